//! Everything that reads bytes of a server, done with bytes that may be anything. Whoever calls it looks for panics, for
//! endless loops and for memory without bound; the fuzzer does, and the test of mutated answers.

use steelyard_resp::protocol::{Answer, Scanner};
use steelyard_resp::{Redirect, read_ranges};

/// Reads bytes as a client would, in one piece and in two, and again with a byte changed by who knows where their lines stand.
pub fn exercise(bytes: &[u8], cut: usize) {
    let mut whole = Scanner::default();
    let end = whole.end(bytes);
    let mut pieces = Scanner::default();
    if let Ok(None) = pieces.end(&bytes[..cut]) {
        assert_eq!(pieces.end(bytes), end, "{}", String::from_utf8_lossy(bytes));
    }
    let Ok(Some(end)) = end else { return };
    assert!(end <= bytes.len());
    for _ in 0..2 {
        assert_eq!(whole.end(bytes), Ok(Some(end)), "{}", String::from_utf8_lossy(bytes));
    }
    let mut changed = bytes.to_vec();
    changed[cut % end] ^= 1;
    let fresh = Scanner::default().end(&changed);
    assert_eq!(whole.end(&changed), fresh, "{}", String::from_utf8_lossy(&changed));
    if let Ok(answer) = Answer::read(&bytes[..end]) {
        let _ = read_ranges(&answer, "::1");
        if let Answer::Error(text) = answer {
            let _ = Redirect::read(text, "::1");
        }
    }
}
