//! Everything that reads bytes of a server, done with bytes that may be anything. Whoever calls it looks for panics, for
//! endless loops and for memory without bound; the fuzzer does, and the test of mutated answers.

use steelyard_postgresql::messages::{Reader, Row, ServerError, first};

/// Reads bytes as a client would, in one piece and in two.
pub fn exercise(bytes: &[u8], cut: usize) {
    let mut whole = Reader::default();
    let end = whole.end(bytes);
    let mut pieces = Reader::default();
    if let Ok(None) = pieces.end(&bytes[..cut]) {
        assert_eq!(pieces.end(bytes), end, "{}", String::from_utf8_lossy(bytes));
    }
    let mut at = 0;
    while let Ok(Some((message, length))) = first(&bytes[at..]) {
        at += length;
        assert!(at <= bytes.len());
        match message.kind {
            b'E' => drop(ServerError::read(message.body).to_string()),
            b'D' => {
                let Ok(mut row) = Row::read(message.body) else { continue };
                let mut count = 0;
                while row.value().is_ok() {
                    count += 1;
                }
                assert!(4 * count <= message.body.len());
            }
            _ => {}
        }
    }
    if let Ok(Some(end)) = end {
        assert!(end <= at);
    }
}
