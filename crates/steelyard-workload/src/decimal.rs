//! Decimal digits of whole numbers, with leading zeros.

/// Appends a number in decimal digits, with zeros before it up to `fewest` digits.
pub fn put_decimal(value: u64, fewest: usize, out: &mut Vec<u8>) {
    let mut buffer = [0; 20];
    let mut start = buffer.len();
    let mut left = value;
    // Two at a time: each division waits for the one before.
    while left >= 10 {
        let pair = (left % 100) as u8;
        left /= 100;
        start -= 2;
        (buffer[start], buffer[start + 1]) = (b'0' + pair / 10, b'0' + pair % 10);
    }
    if left > 0 || start == buffer.len() {
        start -= 1;
        buffer[start] = b'0' + left as u8;
    }
    let written = buffer.len() - start;
    if written < fewest {
        out.resize(out.len() + fewest - written, b'0');
    }
    out.extend_from_slice(&buffer[start..]);
}
