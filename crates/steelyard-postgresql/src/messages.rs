//! Messages of PostgreSQL's protocol, version 3.0, as bytes. What a message announces is believed within limits only.

use std::fmt;

use steelyard_protocol::Malformed;

/// Most bytes of a message, and of an answer.
const MAX_BYTES: usize = 256 << 20;
const SHORT: Malformed = Malformed("a message is shorter than what it announces");

/// Codes that the first message of a connection has in place of a kind.
pub mod code {
    /// Version 3.0 of the protocol.
    pub const VERSION: u32 = 3 << 16;
    /// A question for TLS.
    pub const TLS: u32 = 80_877_103;
    /// A question for GSSAPI's encryption.
    pub const GSS: u32 = 80_877_104;
}

/// What executes the statement that was bound, and ends the group.
pub const EXECUTE_AND_SYNC: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
/// What ends a group, and alone is an empty one.
pub const SYNC: &[u8] = b"S\0\0\0\x04";

/// Appends a message, with the length that its body turns out to have. `kind`: `None` for the first of a connection.
#[inline]
pub fn put(kind: Option<u8>, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.extend(kind);
    sized(4, out, body);
}

/// Appends a value behind its length.
#[inline]
pub fn put_value(out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    sized(0, out, value);
}

#[inline]
fn sized(own: usize, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    let from = out.len();
    body(out);
    let length = (out.len() - from + own) as u32;
    out[begin..from].copy_from_slice(&length.to_be_bytes());
}

/// Appends a text with its end.
pub fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.push(0);
}

/// The text that `rest` begins with, which it is behind afterwards. `None`: it has no end.
pub fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (text, behind) = rest.split_at(end);
    *rest = &behind[1..];
    Some(text)
}

/// The kind of the message that `input` begins with, and how many bytes it has. `None`: that has not come yet.
///
/// # Errors
///
/// An impossible length.
#[inline]
pub fn header(input: &[u8]) -> Result<Option<(u8, usize)>, Malformed> {
    let [kind, a, b, c, d, ..] = *input else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if !(4..MAX_BYTES).contains(&length) {
        return Err(Malformed("an impossible length is announced"));
    }
    Ok(Some((kind, length + 1)))
}

/// As `header`, of a server.
#[inline]
fn header_of_server(input: &[u8]) -> Result<Option<(u8, usize)>, Malformed> {
    match input.first() {
        Some(
            b'1' | b'2' | b'3' | b'A' | b'C' | b'D' | b'E' | b'I' | b'K' | b'N' | b'R' | b'S' | b'T' | b'Z' | b'n'
            | b's' | b't' | b'v',
        ) => header(input),
        Some(_) => Err(Malformed("no message of a server begins with that byte")),
        None => Ok(None),
    }
}

/// A message of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The byte that says which.
    pub kind: u8,
    /// What follows its length.
    pub body: &'a [u8],
}

/// The message of a server that `input` begins with, and how many bytes it has. `None`: not all of it has come.
///
/// # Errors
///
/// No message.
#[inline]
pub fn first(input: &[u8]) -> Result<Option<(Message<'_>, usize)>, Malformed> {
    let Some((kind, bytes)) = header_of_server(input)? else {
        return Ok(None);
    };
    Ok(input.get(5..bytes).map(|body| (Message { kind, body }, bytes)))
}

/// Finds where answers end: with the message that the server is ready again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reader {
    /// Where the next message begins, from the beginning of the answer.
    at: usize,
    /// Whether a message came that a parameter of the server has changed.
    pub has_news: bool,
}

impl Reader {
    /// Where the answer ends that `input` begins with; `None`: not all of it has come. The next call must be given the same
    /// bytes and more, or those after the end.
    ///
    /// # Errors
    ///
    /// Bytes that are no answer, or one without bounds.
    #[inline]
    pub fn end(&mut self, input: &[u8]) -> Result<Option<usize>, Malformed> {
        while let Some((kind, bytes)) = header_of_server(&input[self.at..])? {
            let end = self.at + bytes;
            if end > MAX_BYTES {
                return Err(Malformed("an answer without bounds"));
            }
            if end > input.len() {
                break;
            }
            if kind == b'Z' {
                self.at = 0;
                return Ok(Some(end));
            }
            self.has_news |= kind == b'S';
            self.at = end;
        }
        Ok(None)
    }
}

/// The values of a row, in turn.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// How many there are, as it announces.
    pub columns: u16,
    rest: &'a [u8],
}

impl<'a> Row<'a> {
    /// That of a message's body.
    ///
    /// # Errors
    ///
    /// Less than a row.
    #[inline]
    pub fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let (columns, rest) = body.split_first_chunk().ok_or(SHORT)?;
        let columns = u16::from_be_bytes(*columns);
        Ok(Self { columns, rest })
    }

    /// The next value; `None`: it is null.
    ///
    /// # Errors
    ///
    /// The row has no more values, or less of one than it announces.
    #[inline]
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let (length, rest) = self.rest.split_first_chunk().ok_or(SHORT)?;
        self.rest = rest;
        let length = i32::from_be_bytes(*length);
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| SHORT)?;
        let (value, rest) = rest.split_at_checked(length).ok_or(SHORT)?;
        self.rest = rest;
        Ok(Some(value))
    }
}

/// What a server says of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// SQLSTATE.
    pub code: String,
    /// Its words.
    pub message: String,
}

impl ServerError {
    /// That of a message's body, as far as it says one.
    pub fn read(mut body: &[u8]) -> Self {
        let mut error = Self::default();
        while let Some((field, rest)) = body.split_first()
            && let Some(said) = text(&mut { rest })
        {
            body = &rest[said.len() + 1..];
            let said = String::from_utf8_lossy(said).into_owned();
            match field {
                b'C' => error.code = said,
                b'M' => error.message = said,
                _ => {}
            }
        }
        error
    }

    /// The name of its code, where it is a frequent one.
    fn name(&self) -> &'static str {
        match self.code.as_str() {
            "23505" => " unique_violation",
            "25006" => " read_only_sql_transaction",
            "28000" => " invalid_authorization_specification",
            "28P01" => " invalid_password",
            "3D000" => " invalid_catalog_name",
            "40001" => " serialization_failure",
            "40P01" => " deadlock_detected",
            "42501" => " insufficient_privilege",
            "42703" => " undefined_column",
            "42P01" => " undefined_table",
            "53100" => " disk_full",
            "53200" => " out_of_memory",
            "53300" => " too_many_connections",
            "55P03" => " lock_not_available",
            "57014" => " query_canceled",
            "57P01" => " admin_shutdown",
            "57P02" => " crash_shutdown",
            "57P03" => " cannot_connect_now",
            _ => "",
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}: {}", self.code, self.name(), self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_comes_in_pieces_ends_where_it_ends() {
        let one: &[u8] = b"2\0\0\0\x04D\0\0\0\x0f\0\x02\0\0\0\x01Z\xff\xff\xff\xffC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
        let two: &[u8] = b"S\0\0\0\x06a\0Z\0\0\0\x05I";
        let answers = [one, two, one].concat();
        let (mut reader, mut at, mut ends) = (Reader::default(), 0, Vec::new());
        for come in 0..=answers.len() {
            while let Some(end) = reader.end(&answers[at..come]).unwrap() {
                at += end;
                ends.push(at);
            }
            assert_eq!(reader.has_news, at >= one.len() && come >= one.len() + 7, "{come}");
        }
        assert_eq!(ends, [one.len(), one.len() + two.len(), answers.len()]);
        let (message, _) = first(&one[5..]).unwrap().unwrap();
        let mut row = Row::read(message.body).unwrap();
        assert_eq!((row.value(), row.value()), (Ok(Some(b"Z".as_slice())), Ok(None)));
        assert!(row.value().is_err());
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for bytes in [
            "HTTP/1.1 400",
            "SSH-2.0",
            "Z\0\0\0\x03I",
            "D\x7f\0\0\0",
            "\0\0\0\0\0",
            "\u{7f}",
        ] {
            assert!(Reader::default().end(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
        for row in [
            b"".as_slice(),
            b"\0\x01\0\0",
            b"\0\x01\0\0\0\x02a",
            b"\0\x01\xff\xff\xff\xfea",
        ] {
            assert!(Row::read(row).and_then(|mut row| row.value()).is_err(), "{row:?}");
        }
    }

    #[test]
    fn errors_have_their_names() {
        let error = ServerError::read(b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0Fpostgres.c\0\0");
        assert_eq!(error.to_string(), "57P01 admin_shutdown: terminating connection");
        assert_eq!(ServerError::read(b"C12345\0Mcut").to_string(), "12345: ");
    }
}
