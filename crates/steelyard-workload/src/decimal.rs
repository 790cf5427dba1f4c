//! Decimal digits of whole numbers, with leading zeros.

/// Appends a number in decimal digits, with zeros before it up to `fewest` digits.
pub(crate) fn put_decimal(value: u64, fewest: usize, out: &mut Vec<u8>) {
    let mut buffer = [0; 20];
    let mut start = buffer.len();
    let mut left = value;
    while left > 0 || start == buffer.len() {
        start -= 1;
        buffer[start] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    let written = buffer.len() - start;
    out.extend(std::iter::repeat_n(b'0', fewest.saturating_sub(written)));
    out.extend_from_slice(&buffer[start..]);
}
