//! Base64 of RFC 4648, as JSON has bytes.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const NO_DIGIT: u8 = 64;
/// What each byte stands for.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < NO_DIGIT {
        values[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    values
};

/// Appends the text of those bytes.
#[inline]
pub fn put(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        let digit = |shift: u32| DIGITS[(bits >> shift) as usize & 63];
        let mut four = [digit(18), digit(12), digit(6), digit(0)];
        four[three.len() + 1..].fill(b'=');
        out.extend_from_slice(&four);
    }
}

/// The bytes of a text in place of what `out` has; whether it is one.
pub fn take(text: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let digits = &text[..text.len() - padding];
    let (mut bits, mut waiting) = (0u32, 0);
    for byte in digits {
        let digit = VALUES[usize::from(*byte)];
        if digit == NO_DIGIT {
            return false;
        }
        bits = bits << 6 | u32::from(digit);
        waiting += 6;
        if waiting >= 8 {
            waiting -= 8;
            out.push((bits >> waiting) as u8);
        }
    }
    text.len() % 4 == 0 && padding <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
            ("\0", "AA=="),
        ] {
            let mut out = Vec::new();
            put(bytes.as_bytes(), &mut out);
            assert_eq!(out, text.as_bytes());
            assert!(take(text.as_bytes(), &mut out));
            assert_eq!(out, bytes.as_bytes());
        }
        let mut out = Vec::new();
        put(&[0xfb, 0xff, 0xbf], &mut out);
        assert_eq!(out, b"+/+/");
        for wrong in ["Zg", "Zg=", "Z===", "Zm9v====", "Zm-v", "Zm9v Zm8"] {
            assert!(!take(wrong.as_bytes(), &mut out), "{wrong}");
        }
    }
}
