//! Everything that reads bytes of a server, done with bytes that may be anything. Whoever calls it looks for panics, for
//! endless loops and for memory without bound; the fuzzer does, and the test of mutated answers.

use steelyard_http::answer::{Part, Reader};
use steelyard_http::json::Glance;
use steelyard_protocol::Malformed;

/// What a client makes of bytes that come in these pieces: heads, bodies and ends, and whether they are answers.
fn read(bytes: &[u8], ends: &[usize]) -> (Vec<u8>, Option<Malformed>) {
    let (mut reader, mut at, mut seen) = (Reader::default(), 0, Vec::new());
    for end in ends {
        loop {
            let (used, part) = match reader.next(&bytes[at..*end]) {
                Ok(read) => read,
                Err(error) => return (seen, Some(error)),
            };
            at += used;
            match part {
                None => break,
                Some(Part::Head(head)) => {
                    seen.extend_from_slice(head.said);
                    seen.extend_from_slice(head.field("Server").unwrap_or_default());
                }
                Some(Part::Body(piece)) => seen.extend_from_slice(piece),
                Some(Part::End) => seen.push(b'!'),
            }
        }
    }
    (seen, None)
}

/// Reads bytes as a client would, in one piece and in two.
pub fn exercise(bytes: &[u8], cut: usize) {
    let (seen, error) = read(bytes, &[bytes.len()]);
    let (in_two, error_in_two) = read(bytes, &[cut, bytes.len()]);
    assert_eq!(in_two, seen, "{}", String::from_utf8_lossy(bytes));
    assert_eq!(
        error_in_two.is_some(),
        error.is_some(),
        "{}",
        String::from_utf8_lossy(bytes)
    );
    let (mut whole, mut pieces) = (Glance::default(), Glance::default());
    let looked = whole.take(&seen);
    let in_pieces = pieces
        .take(&seen[..cut.min(seen.len())])
        .and_then(|()| pieces.take(&seen[cut.min(seen.len())..]));
    assert_eq!(in_pieces, looked);
    if looked.is_ok() {
        assert_eq!(pieces.objects(), whole.objects());
    }
}
