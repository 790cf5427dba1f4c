//! RESP2, Redis' protocol: commands and answers as bytes. What an answer announces is believed within limits only.

use std::iter;

use steelyard_protocol::Malformed;
use steelyard_workload::decimal::put_decimal;

/// Most bytes of an answer.
const MAX_BYTES: usize = 256 << 20;
/// Most bytes of a line: a status, an error or a number.
const MAX_LINE_BYTES: usize = 64 << 10;
/// Most elements that may be outstanding.
const MAX_ELEMENTS: usize = 1 << 22;
const MAX_DEPTH: u32 = 8;

/// Appends the beginning of a command of that many parts, which follow as `put_bulk` writes them.
pub fn put_array(parts: usize, out: &mut Vec<u8>) {
    put_length(b'*', parts, out);
}

/// Appends a part of a command.
pub fn put_bulk(bytes: &[u8], out: &mut Vec<u8>) {
    put_length(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a whole command.
pub fn put_command(parts: &[&[u8]], out: &mut Vec<u8>) {
    put_array(parts.len(), out);
    for part in parts {
        put_bulk(part, out);
    }
}

fn put_length(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    put_decimal(length as u64, 1, out);
    out.extend_from_slice(b"\r\n");
}

/// A line: its first byte, the rest of it without its end, and how many bytes it has with that.
type Line<'a> = (u8, &'a [u8], usize);

/// The first line of an answer or of an element. `None`: it has not come yet.
///
/// # Errors
///
/// Bytes that are no line of RESP2.
#[inline]
pub fn line(input: &[u8]) -> Result<Option<Line<'_>>, Malformed> {
    let Some(kind) = input.first() else { return Ok(None) };
    if !b"+-:$*".contains(kind) {
        return Err(Malformed("no answer begins with that byte"));
    }
    let Some(end) = input.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n') else {
        return if input.len() < MAX_LINE_BYTES {
            Ok(None)
        } else {
            Err(Malformed("a line has no end"))
        };
    };
    match input[1..end].split_last() {
        Some((b'\r', text)) => Ok(Some((*kind, text, end + 1))),
        _ => Err(Malformed("a line does not end with CR and LF")),
    }
}

/// A number as it stands in a line.
///
/// # Errors
///
/// Anything that is no number of 64 bits.
#[inline]
pub fn number(text: &[u8]) -> Result<i64, Malformed> {
    let (digits, sign) = match text {
        [b'-', digits @ ..] => (digits, -1),
        digits => (digits, 1),
    };
    let mut value: i64 = 0;
    for digit in digits {
        let digit = i64::from(digit.wrapping_sub(b'0'));
        let next = value.checked_mul(10).and_then(|value| value.checked_add(sign * digit));
        value = next.filter(|_| digit <= 9).ok_or(Malformed("not a number"))?;
    }
    if digits.is_empty() {
        return Err(Malformed("not a number"));
    }
    Ok(value)
}

/// How many bytes or elements a line announces; `None`: none at all, not even an empty value.
#[inline]
fn length(text: &[u8], most: usize) -> Result<Option<usize>, Malformed> {
    match number(text)? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) if length <= most => Ok(Some(length)),
            _ => Err(Malformed("an impossible length is announced")),
        },
    }
}

/// What a line announces: bytes or elements. `None`: nothing.
fn announced(kind: u8, text: &[u8]) -> Result<Option<usize>, Malformed> {
    match kind {
        b'$' => length(text, MAX_BYTES),
        b'*' => length(text, MAX_ELEMENTS),
        b':' => number(text).map(|_| None),
        _ => Ok(None),
    }
}

/// What a line with a length of up to three digits announces, and how many bytes the line has: most lines of a load, and
/// nothing else is worth a shorter way.
#[inline]
fn short_length(input: &[u8]) -> Option<(usize, usize)> {
    let digits = match input {
        [b'$' | b'*', digits @ .., _] => digits,
        _ => return None,
    };
    let (value, count) = match digits {
        [a, b'\r', ..] => (digit(*a)?, 1),
        [a, b, b'\r', ..] => (10 * digit(*a)? + digit(*b)?, 2),
        [a, b, c, b'\r', ..] => (100 * digit(*a)? + 10 * digit(*b)? + digit(*c)?, 3),
        _ => return None,
    };
    (input[count + 2] == b'\n').then_some((value, count + 3))
}

#[inline]
fn digit(byte: u8) -> Option<usize> {
    byte.is_ascii_digit().then(|| usize::from(byte - b'0'))
}

/// What the line that `input` begins with announces, and how many bytes the line has. `None`: it has not come yet.
#[inline]
fn header(input: &[u8]) -> Result<Option<(Option<usize>, usize)>, Malformed> {
    if let Some((length, bytes)) = short_length(input) {
        return Ok(Some((Some(length), bytes)));
    }
    let Some((kind, text, bytes)) = line(input)? else {
        return Ok(None);
    };
    Ok(Some((announced(kind, text)?, bytes)))
}

/// The values of an array, in turn, of an answer that `Scanner` has found. `None`: one that is not there, or is no value.
///
/// # Errors
///
/// No answer.
#[inline]
pub fn values(answer: &[u8]) -> Result<impl Iterator<Item = Option<&[u8]>>, Malformed> {
    let (_, first) = header(answer)?.ok_or(Malformed("less than an answer"))?;
    let mut rest = &answer[first..];
    Ok(iter::from_fn(move || {
        let (length, begin) = header(rest).ok()??;
        let length = length.filter(|_| rest[0] == b'$');
        let value = length.and_then(|length| rest.get(begin..begin + length));
        let end = value.map_or(begin, |value| begin + value.len() + 2);
        rest = rest.get(end..).unwrap_or_default();
        Some(value)
    }))
}

/// Where the lines of an answer stand. Records of one table mostly differ in their values alone, and lines at known places are
/// compared without waiting for what the one before announces.
#[derive(Clone, Debug, Default)]
struct Shape {
    /// Bytes of the answer; 0: none is known.
    length: usize,
    /// Of each line, with the end of the value before it: where eight bytes begin, which bits of them are its own, and these.
    lines: Vec<(usize, u64, u64)>,
}

impl Shape {
    /// That of a whole answer; `None` if it is short, or a line is long.
    fn of(answer: &[u8]) -> Option<Self> {
        let length = answer.len();
        let last = length.checked_sub(8)?;
        let (mut at, mut lines) = (0, Vec::new());
        while at <= length {
            let (announced, bytes) = if at == length {
                (None, 1)
            } else {
                header(&answer[at..]).ok()??
            };
            let (begin, end) = (at.saturating_sub(2), length.min(at + bytes));
            let from = begin.min(last);
            let unused = 8_usize.checked_sub(end - begin)?;
            let mask = u64::MAX >> (8 * unused) << (8 * (begin - from));
            lines.push((from, mask, eight_bytes(answer, from)? & mask));
            let value = announced.filter(|_| answer[at] == b'$').map_or(0, |length| length + 2);
            at += bytes + value;
        }
        Some(Self { length, lines })
    }

    /// Where the answer ends that `input` begins with, if it has this shape and has come whole.
    #[inline]
    fn end(&self, input: &[u8]) -> Option<usize> {
        let answer = input.get(..self.length)?;
        let stands = |(from, mask, line): &(usize, u64, u64)| {
            eight_bytes(answer, *from).map(|bytes| bytes & mask) == Some(*line)
        };
        (self.length > 0 && self.lines.iter().all(stands)).then_some(self.length)
    }
}

#[inline]
fn eight_bytes(bytes: &[u8], from: usize) -> Option<u64> {
    bytes.get(from..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Finds where answers end. What it has seen of an answer it does not look at again when more has come.
#[derive(Clone, Debug, Default)]
pub struct Scanner {
    /// Where the next element begins, from the beginning of the answer.
    at: usize,
    /// Elements that are still to come; 0: at the beginning of an answer.
    open: usize,
    /// Of the last two arrays that were equally long.
    shape: Shape,
    /// Bytes of the last array without that shape.
    length: usize,
}

impl Scanner {
    /// Where the answer ends that `input` begins with; `None`: not all of it has come. The next call must be given the same
    /// bytes and more, or those after the end.
    ///
    /// # Errors
    ///
    /// Bytes that are no answer, or one without bounds.
    #[inline]
    pub fn end(&mut self, input: &[u8]) -> Result<Option<usize>, Malformed> {
        if self.open == 0 {
            (self.at, self.open) = (0, 1);
        }
        if self.at == 0
            && let Some(end) = self.shape.end(input)
        {
            self.open = 0;
            return Ok(Some(end));
        }
        while self.open > 0 {
            let rest = &input[self.at..];
            let Some((announced, mut bytes)) = header(rest)? else {
                return Ok(None);
            };
            match (rest[0], announced) {
                (b'$', Some(length)) => {
                    let end = bytes + length;
                    match rest.get(end..end + 2) {
                        Some(b"\r\n") => bytes = end + 2,
                        Some(_) => return Err(Malformed("a value does not end with CR and LF")),
                        None => return Ok(None),
                    }
                }
                (_, Some(elements)) => self.open += elements,
                _ => {}
            }
            self.at += bytes;
            self.open -= 1;
            if self.open > MAX_ELEMENTS || self.at > MAX_BYTES {
                return Err(Malformed("an answer without bounds"));
            }
        }
        let again = input[0] == b'*' && std::mem::replace(&mut self.length, self.at) == self.at;
        if again && self.shape.length != self.at {
            self.shape = Shape::of(&input[..self.at]).unwrap_or_default();
        }
        Ok(Some(self.at))
    }
}

/// An answer, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// A status, such as `OK`.
    Status(&'a [u8]),
    /// An error; its first word says which.
    Error(&'a [u8]),
    /// A number.
    Integer(i64),
    /// Bytes; `None`: there is no such value.
    Bulk(Option<&'a [u8]>),
    /// Several.
    Array(Vec<Answer<'a>>),
}

impl<'a> Answer<'a> {
    /// Takes apart the answer that `bytes` are.
    ///
    /// # Errors
    ///
    /// Bytes that are no answer, more than one, or one that is nested too deep.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match Self::first(bytes, MAX_DEPTH)? {
            (answer, end) if end == bytes.len() => Ok(answer),
            _ => Err(Malformed("more than an answer")),
        }
    }

    fn first(bytes: &'a [u8], depth: u32) -> Result<(Self, usize), Malformed> {
        const SHORT: Malformed = Malformed("less than an answer");
        let (kind, text, mut end) = line(bytes)?.ok_or(SHORT)?;
        let answer = match kind {
            b'+' => Self::Status(text),
            b'-' => Self::Error(text),
            b':' => Self::Integer(number(text)?),
            b'$' => Self::Bulk(match length(text, MAX_BYTES)? {
                None => None,
                Some(length) => {
                    let value = bytes.get(end..end + length).ok_or(SHORT)?;
                    end += length + 2;
                    Some(value)
                }
            }),
            _ => {
                let mut elements = Vec::new();
                for _ in 0..length(text, MAX_ELEMENTS)?.unwrap_or(0) {
                    let depth = depth.checked_sub(1).ok_or(Malformed("nested too deep"))?;
                    let (element, length) = Self::first(bytes.get(end..).ok_or(SHORT)?, depth)?;
                    elements.push(element);
                    end += length;
                }
                Self::Array(elements)
            }
        };
        Ok((answer, end))
    }

    /// Its elements; none if it is a single value.
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::Array(elements) => elements,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_bulks() {
        let mut out = Vec::new();
        put_command(&[b"HGETALL", b"user1", b""], &mut out);
        assert_eq!(out, b"*3\r\n$7\r\nHGETALL\r\n$5\r\nuser1\r\n$0\r\n\r\n");
    }

    #[test]
    fn an_answer_that_comes_in_pieces_ends_where_it_ends() {
        let whole: &[u8] = b"*4\r\n$2\r\n\r\n\r\n*2\r\n:-12\r\n$-1\r\n+OK\r\n*-1\r\n";
        let answers = [whole, b"-ERR no\r\n", b"*0\r\n", b"$0\r\n\r\n"].concat();
        let (mut scanner, mut at, mut ends) = (Scanner::default(), 0, Vec::new());
        for come in 0..=answers.len() {
            while let Some(end) = scanner.end(&answers[at..come]).unwrap() {
                at += end;
                ends.push(at);
            }
        }
        assert_eq!(ends, [37, 46, 50, 56]);
        assert_eq!(
            Answer::read(whole).unwrap(),
            Answer::Array(vec![
                Answer::Bulk(Some(b"\r\n")),
                Answer::Array(vec![Answer::Integer(-12), Answer::Bulk(None)]),
                Answer::Status(b"OK"),
                Answer::Array(Vec::new()),
            ])
        );
    }

    #[test]
    fn an_answer_of_the_same_length_ends_where_it_ends() {
        let answer = |first: &str, second: &str| {
            let bulk = |value: &str| format!("${}\r\n{value}\r\n", value.len());
            format!("*3\r\n{}:7\r\n{}", bulk(first), bulk(second))
        };
        let (mut scanner, usual) = (Scanner::default(), answer("abcdef", "0123456789"));
        for _ in 0..3 {
            assert_eq!(scanner.end(usual.as_bytes()), Ok(Some(usual.len())));
            assert_eq!(scanner.end(b""), Ok(None));
        }
        assert_eq!(scanner.shape.end(usual.as_bytes()), Some(usual.len()));
        for other in [
            answer("abcdefg", "012345678"),
            answer("a\r\n$1\r", "0123456789"),
            answer("", ""),
        ] {
            let more = format!("{other}{usual}");
            assert_eq!(scanner.end(more.as_bytes()), Ok(Some(other.len())), "{other:?}");
        }
        for come in 0..usual.len() {
            assert_eq!(scanner.clone().end(&usual.as_bytes()[..come]), Ok(None));
        }
        for place in [1, 5, 14, 15, 16, 20, 23, 35, 36] {
            let mut broken = usual.clone().into_bytes();
            broken[place] ^= 1;
            assert_ne!(scanner.clone().end(&broken), Ok(Some(usual.len())), "{place}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let endless = [b"+".as_slice(), &[b'x'; MAX_LINE_BYTES]].concat();
        let cases: [&[u8]; 14] = [
            b"HTTP/1.1 400\r\n",
            b"$-2\r\n",
            b"$9999999999999999999\r\n",
            b"$300000000\r\n",
            b"*300000000\r\n",
            b"$1\r\nabc",
            b"$\r\n",
            b":1x\r\n",
            b":-\r\n",
            b"+OK\n",
            b"\n",
            b"%1\r\n",
            b"*2\r\n$1\r\na\r\n!",
            &endless,
        ];
        for bytes in cases {
            assert!(
                Scanner::default().end(bytes).is_err(),
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
        assert_eq!(number(b"-9223372036854775808"), Ok(i64::MIN));
        assert!(number(b"9223372036854775808").is_err());
        assert!(Answer::read(&b"*1\r\n".repeat(20)).is_err());
    }
}
