//! Answers of HTTP/1.1, read in the pieces in which they come. What a head announces is believed within limits only.

use steelyard_protocol::Malformed;

/// Most bytes of a head, and of what follows the last chunk.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Most bytes of a line that begins a chunk.
const MAX_SIZE_BYTES: usize = 4 << 10;

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The number of the status.
    pub status: u16,
    /// The status with its words, such as `404 Not Found`.
    pub said: &'a [u8],
    /// The lines of the fields.
    fields: &'a [u8],
}

impl<'a> Head<'a> {
    /// The value of the first field of that name.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        let found = |line: &&[u8]| is_named(line, name);
        let line = lines(self.fields).find(found)?;
        Some(line[name.len() + 1..].trim_ascii())
    }
}

/// What comes next of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Its head.
    Head(Head<'a>),
    /// A piece of its body.
    Body(&'a [u8]),
    /// Its end.
    End,
}

/// Where in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the head, of which so many bytes have come and have no end.
    Head(usize),
    /// In a body of which so much is to come.
    Sized(u64),
    /// Before the size of a chunk.
    Size,
    /// In a chunk of which so much is to come.
    Chunk(u64),
    /// Behind a chunk.
    ChunkEnd,
    /// In the fields behind the last chunk, with room for so many bytes.
    Trailer(usize),
    /// In a body that ends with the connection.
    Unsized,
    /// Behind everything.
    End,
}

/// Reads the answers of a connection, one after the other.
#[derive(Clone, Debug)]
pub struct Reader {
    place: Place,
    keeps: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            place: Place::Head(0),
            keeps: true,
        }
    }
}

impl Reader {
    /// The next part that `input` begins with, and how many bytes it takes with what is passed over before it. `None`: more must
    /// come. The next call is given what is behind those bytes, and more of it.
    ///
    /// # Errors
    ///
    /// Bytes that are no answer.
    #[inline]
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Option<Part<'a>>), Malformed> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match self.place {
                Place::Head(looked) => {
                    let Some(end) = end_of_head(rest, looked)? else {
                        self.place = Place::Head(rest.len());
                        return Ok((at, None));
                    };
                    at += end;
                    self.place = Place::Head(0);
                    if let Some(head) = self.begin(&rest[..end])? {
                        return Ok((at, Some(Part::Head(head))));
                    }
                }
                Place::Sized(0) | Place::End => {
                    self.place = Place::Head(0);
                    return Ok((at, Some(Part::End)));
                }
                _ if rest.is_empty() => return Ok((at, None)),
                Place::Sized(left) => {
                    let piece = piece(rest, left);
                    self.place = Place::Sized(left - piece.len() as u64);
                    return Ok((at + piece.len(), Some(Part::Body(piece))));
                }
                Place::Unsized => return Ok((input.len(), Some(Part::Body(rest)))),
                Place::Size => {
                    let Some((text, bytes)) = line(rest, MAX_SIZE_BYTES)? else {
                        return Ok((at, None));
                    };
                    at += bytes;
                    self.place = match chunk_size(text)? {
                        0 => Place::Trailer(MAX_HEAD_BYTES),
                        size => Place::Chunk(size),
                    };
                }
                Place::Chunk(0) => self.place = Place::ChunkEnd,
                Place::Chunk(left) => {
                    let piece = piece(rest, left);
                    self.place = Place::Chunk(left - piece.len() as u64);
                    return Ok((at + piece.len(), Some(Part::Body(piece))));
                }
                Place::ChunkEnd => {
                    let Some((text, bytes)) = line(rest, 2)? else {
                        return Ok((at, None));
                    };
                    if !text.is_empty() {
                        return Err(Malformed("a chunk is longer than its size"));
                    }
                    at += bytes;
                    self.place = Place::Size;
                }
                Place::Trailer(room) => {
                    let Some((text, bytes)) = line(rest, room)? else {
                        return Ok((at, None));
                    };
                    at += bytes;
                    self.place = match text {
                        [] => Place::End,
                        _ => Place::Trailer(room - bytes),
                    };
                }
            }
        }
    }

    /// Takes a whole head, unless it is one before that of the answer.
    fn begin<'a>(&mut self, head: &'a [u8]) -> Result<Option<Head<'a>>, Malformed> {
        const NO_STATUS: Malformed = Malformed("no answer begins with that line");
        let mut lines = lines(head);
        let first = lines.next().ok_or(NO_STATUS)?;
        let (version, said) = match first.split_at_checked(9) {
            Some((b"HTTP/1.1 ", said)) => (1, said),
            Some((b"HTTP/1.0 ", said)) => (0, said),
            _ => return Err(NO_STATUS),
        };
        let status = match said {
            [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9']
            | [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..] => {
                100 * u16::from(a - b'0') + 10 * u16::from(b - b'0') + u16::from(c - b'0')
            }
            _ => return Err(NO_STATUS),
        };
        self.keeps = version == 1;
        let (mut length, mut chunked) = (None, false);
        for line in lines {
            if is_named(line, "content-length") {
                let value = decimal(line[15..].trim_ascii())?;
                if length.is_some_and(|other| other != value) {
                    return Err(Malformed("two lengths are announced"));
                }
                length = Some(value);
            } else if is_named(line, "transfer-encoding") {
                if !line[18..].trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Malformed("a transfer encoding other than chunked"));
                }
                chunked = true;
            } else if is_named(line, "connection") {
                for word in line[11..].split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    if word.eq_ignore_ascii_case(b"close") {
                        self.keeps = false;
                    } else if version == 0 && word.eq_ignore_ascii_case(b"keep-alive") {
                        self.keeps = true;
                    }
                }
            } else if !line.contains(&b':') && !line.starts_with(b" ") && !line.starts_with(b"\t") {
                return Err(Malformed("a field has no name"));
            }
        }
        self.place = match (status, length) {
            (101, _) => return Err(Malformed("another protocol, which nobody asked for")),
            (100..200, _) => return Ok(None),
            (204 | 304, _) => Place::End,
            _ if chunked => Place::Size,
            (_, Some(length)) => Place::Sized(length),
            _ => Place::Unsized,
        };
        self.keeps &= self.place != Place::Unsized;
        Ok(Some(Head {
            status,
            said,
            fields: &head[first.len()..],
        }))
    }

    /// Whether the answer under way ends where the connection does.
    pub fn ends_with_connection(&self) -> bool {
        self.place == Place::Unsized
    }

    /// Whether nothing has come of the next answer.
    pub fn is_before_answer(&self) -> bool {
        self.place == Place::Head(0)
    }

    /// Whether the connection can be used again after the answer whose head was read last.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.keeps
    }
}

#[inline]
fn piece(rest: &[u8], left: u64) -> &[u8] {
    let length = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
    &rest[..length]
}

/// Where the empty line ends that ends a head; up to `looked` there is none.
#[inline]
fn end_of_head(input: &[u8], looked: usize) -> Result<Option<usize>, Malformed> {
    const BEGINNING: &[u8] = b"HTTP/1.";
    let begun = input.len().min(BEGINNING.len());
    if input[..begun] != BEGINNING[..begun] {
        return Err(Malformed("no answer begins with those bytes"));
    }
    let input = &input[..input.len().min(MAX_HEAD_BYTES)];
    let mut at = looked.saturating_sub(2);
    while let Some(found) = input[at..].iter().position(|byte| *byte == b'\n') {
        at += found + 1;
        match input[at..] {
            [b'\n', ..] => return Ok(Some(at + 1)),
            [b'\r', b'\n', ..] => return Ok(Some(at + 2)),
            _ => {}
        }
    }
    if input.len() < MAX_HEAD_BYTES {
        Ok(None)
    } else {
        Err(Malformed("a head has no end"))
    }
}

/// The lines of a head without their ends.
pub(crate) fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = head.split(|byte| *byte == b'\n');
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty())
}

/// Whether a line has the field of that name.
#[inline]
pub(crate) fn is_named(line: &[u8], name: &str) -> bool {
    line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name.as_bytes())
}

/// A line without its end, and how many bytes it has with that; `None`: not all of it has come.
fn line(input: &[u8], most: usize) -> Result<Option<(&[u8], usize)>, Malformed> {
    match input.iter().take(most).position(|byte| *byte == b'\n') {
        Some(end) => Ok(Some((
            input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]),
            end + 1,
        ))),
        None if input.len() < most => Ok(None),
        None => Err(Malformed("a line has no end")),
    }
}

/// A number of bytes.
///
/// # Errors
///
/// Anything that is no number below 2^63.
pub(crate) fn decimal(text: &[u8]) -> Result<u64, Malformed> {
    const NONE: Malformed = Malformed("a length is no number");
    if text.is_empty() || text.len() > 18 {
        return Err(NONE);
    }
    text.iter().try_fold(0, |value, digit| match digit {
        b'0'..=b'9' => Ok(10 * value + u64::from(digit - b'0')),
        _ => Err(NONE),
    })
}

/// The size of a chunk, whatever extensions follow it.
fn chunk_size(text: &[u8]) -> Result<u64, Malformed> {
    const NONE: Malformed = Malformed("a chunk has no size");
    let digits = text.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if digits.is_empty() || digits.len() > 15 {
        return Err(NONE);
    }
    digits.iter().try_fold(0, |value, digit| {
        let digit = char::from(*digit).to_digit(16).ok_or(NONE)?;
        Ok(16 * value + u64::from(digit))
    })
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
