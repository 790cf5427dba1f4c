//! A glance at JSON in the pieces in which it comes: whether it is whole, and how many objects the arrays of its object have.

use steelyard_protocol::Malformed;

/// Deeper than any answer of etcd.
const MAX_DEPTH: u32 = 64;

/// What was seen of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    /// Whether an array of the outermost object is open.
    in_array: bool,
    is_over: bool,
    objects: u32,
}

impl Glance {
    /// Looks at the next piece.
    ///
    /// # Errors
    ///
    /// It is not part of one object.
    #[inline]
    pub fn take(&mut self, piece: &[u8]) -> Result<(), Malformed> {
        let mut bytes = piece.iter();
        loop {
            if self.in_string {
                if std::mem::take(&mut self.is_escaped) && bytes.next().is_none() {
                    self.is_escaped = true;
                }
                match bytes.find(|byte| matches!(byte, b'"' | b'\\')) {
                    Some(b'"') => self.in_string = false,
                    Some(_) => self.is_escaped = true,
                    None => return Ok(()),
                }
                continue;
            }
            let Some(byte) = bytes.next() else { return Ok(()) };
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                _ if self.is_over || (self.depth == 0 && *byte != b'{') => {
                    return Err(Malformed("the body is not one JSON object"));
                }
                b'"' => self.in_string = true,
                b'{' | b'[' => self.open(*byte)?,
                b'}' | b']' => {
                    self.depth -= 1;
                    self.is_over = self.depth == 0;
                }
                _ => {}
            }
        }
    }

    #[inline]
    fn open(&mut self, byte: u8) -> Result<(), Malformed> {
        match self.depth {
            1 => self.in_array = byte == b'[',
            2 if self.in_array => self.objects += 1,
            MAX_DEPTH => return Err(Malformed("the body is nested too deep")),
            _ => {}
        }
        self.depth += 1;
        Ok(())
    }

    /// How many objects there were in arrays of the object, which has ended.
    ///
    /// # Errors
    ///
    /// It has not.
    pub fn objects(&self) -> Result<u32, Malformed> {
        if self.is_over {
            Ok(self.objects)
        } else {
            Err(Malformed("the body is not one whole JSON object"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(text: &str, step: usize) -> Result<u32, Malformed> {
        let mut glance = Glance::default();
        text.as_bytes().chunks(step).try_for_each(|piece| glance.take(piece))?;
        glance.objects()
    }

    #[test]
    fn objects_of_arrays_are_counted_in_whatever_pieces_they_come() {
        let kvs = r#"{"header":{"revision":"2","a":{}},"kvs":[{"key":"fQ==","value":"\"}]\\"},{"key":"b","lease":{"id":[{}]}}],"count":"2"}"#;
        for (text, count) in [
            (kvs, 2),
            ("{}", 0),
            (r#" {"header":{},"more":true} "#, 0),
            (r#"{"kvs":[]}"#, 0),
        ] {
            for step in 1..=text.len() {
                assert_eq!(objects(text, step), Ok(count), "{text} by {step}");
            }
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let deep = format!("{{\"a\":{}", "[".repeat(100));
        for text in [
            "",
            "null",
            "[]",
            "{",
            r#"{"a"#,
            r#"{"a":"\""#,
            "{}{}",
            "{} x",
            "}",
            &deep,
        ] {
            for step in 1..=text.len().max(1) {
                assert!(objects(text, step).is_err(), "{text}");
            }
        }
    }
}
