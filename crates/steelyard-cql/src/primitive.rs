//! Primitive notations of the protocol (section 3 of its specification): `[string]`, `[bytes]`, `[string map]` and so on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::CqlError;

/// Appends a `[string]`. At most 65,535 bytes; the protocol has no way to say more.
pub fn put_string(out: &mut Vec<u8>, text: &str) {
    put_short_bytes(out, text.as_bytes());
}

/// Appends a `[long string]`.
pub fn put_long_string(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// Appends `[bytes]` (or a `[value]`) that are there.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends `[bytes]` that are null.
#[inline]
pub fn put_null(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1_i32).to_be_bytes());
}

/// Appends `[short bytes]`.
#[inline]
pub fn put_short_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() <= usize::from(u16::MAX));
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a `[string list]`.
pub fn put_string_list(out: &mut Vec<u8>, items: &[&str]) {
    out.extend_from_slice(&(items.len() as u16).to_be_bytes());
    for item in items {
        put_string(out, item);
    }
}

/// Appends a `[string map]`.
pub fn put_string_map(out: &mut Vec<u8>, pairs: &[(&str, &str)]) {
    out.extend_from_slice(&(pairs.len() as u16).to_be_bytes());
    for (key, value) in pairs {
        put_string(out, key);
        put_string(out, value);
    }
}

/// Reads one notation after the other from a body. Every method fails with `CqlError::Short` where the body ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes are read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], CqlError> {
        match self.rest.split_at_checked(count) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err(CqlError::Short {
                what,
                missing: count - self.rest.len(),
            }),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], CqlError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(*head)
            }
            None => Err(CqlError::Short {
                what,
                missing: N - self.rest.len(),
            }),
        }
    }

    /// `[byte]`. Errors: no byte is left.
    pub fn byte(&mut self) -> Result<u8, CqlError> {
        self.array::<1>("[byte]").map(|[byte]| byte)
    }

    /// `[short]`. Errors: too few bytes are left.
    pub fn short(&mut self) -> Result<u16, CqlError> {
        self.array("[short]").map(u16::from_be_bytes)
    }

    /// `[int]`. Errors: too few bytes are left.
    #[inline]
    pub fn int(&mut self) -> Result<i32, CqlError> {
        self.array("[int]").map(i32::from_be_bytes)
    }

    /// An `[int]` that counts things of `each` bytes at least. Errors: it is negative, or the bytes that are left cannot hold
    /// so many; so whoever loops or allocates by it does so in proportion to what has come.
    #[inline]
    pub fn count(&mut self, each: usize, what: &'static str) -> Result<usize, CqlError> {
        let count = self.int()?;
        self.fitting(count.into(), each, what)
    }

    /// As `count`, of a `[short]`.
    pub(crate) fn short_count(&mut self, each: usize, what: &'static str) -> Result<usize, CqlError> {
        let count = self.short()?;
        self.fitting(count.into(), each, what)
    }

    /// A count that was read before, as `count`. Things without a byte cannot be counted.
    #[inline]
    pub(crate) fn fitting(&self, count: i64, each: usize, what: &'static str) -> Result<usize, CqlError> {
        let most = self.rest.len().checked_div(each).unwrap_or(0);
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= most)
            .ok_or(CqlError::Count { what, count, most })
    }

    /// `[long]`. Errors: too few bytes are left.
    pub fn long(&mut self) -> Result<i64, CqlError> {
        self.array("[long]").map(i64::from_be_bytes)
    }

    /// `[uuid]`. Errors: too few bytes are left.
    pub fn uuid(&mut self) -> Result<[u8; 16], CqlError> {
        self.array("[uuid]")
    }

    /// `[string]`. Errors: too few bytes are left, or they are not UTF-8.
    pub fn string(&mut self) -> Result<&'a str, CqlError> {
        utf8(self.short_bytes()?, "[string]")
    }

    /// `[long string]`. Errors: too few bytes are left, or they are not UTF-8.
    pub fn long_string(&mut self) -> Result<&'a str, CqlError> {
        let length = self.count(1, "bytes of a [long string]")?;
        utf8(self.take(length, "[long string]")?, "[long string]")
    }

    /// `[bytes]`: `None` where they are null (or, as a `[value]`, not set).
    #[inline]
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, CqlError> {
        match usize::try_from(self.int()?) {
            Ok(length) => self.take(length, "[bytes]").map(Some),
            Err(_) => Ok(None),
        }
    }

    /// `[short bytes]`. Errors: too few bytes are left.
    pub fn short_bytes(&mut self) -> Result<&'a [u8], CqlError> {
        let length = self.short()?;
        self.take(usize::from(length), "[short bytes]")
    }

    /// `[string list]`. Errors: as `string`.
    pub fn string_list(&mut self) -> Result<Vec<&'a str>, CqlError> {
        let count = self.short_count(2, "strings")?;
        (0..count).map(|_| self.string()).collect()
    }

    /// `[string map]`, in its order. Errors: as `string`.
    pub fn string_map(&mut self) -> Result<Vec<(&'a str, &'a str)>, CqlError> {
        let count = self.short_count(4, "pairs of strings")?;
        (0..count).map(|_| Ok((self.string()?, self.string()?))).collect()
    }

    /// `[string multimap]`, in its order. Errors: as `string`.
    pub fn string_multimap(&mut self) -> Result<Vec<(&'a str, Vec<&'a str>)>, CqlError> {
        let count = self.short_count(4, "lists of strings")?;
        (0..count).map(|_| Ok((self.string()?, self.string_list()?))).collect()
    }

    /// Passes over a `[bytes map]`.
    pub fn skip_bytes_map(&mut self) -> Result<(), CqlError> {
        for _ in 0..self.short_count(6, "entries of a [bytes map]")? {
            self.string()?;
            self.bytes()?;
        }
        Ok(())
    }

    /// An `[inet]`: address and port.
    pub fn inet(&mut self) -> Result<(IpAddr, i32), CqlError> {
        let address = match self.byte()? {
            4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>("[inet]")?)),
            16 => IpAddr::V6(Ipv6Addr::from(self.array::<16>("[inet]")?)),
            other => {
                return Err(CqlError::Unknown {
                    what: "length of an address",
                    number: other.into(),
                });
            }
        };
        Ok((address, self.int()?))
    }
}

pub(crate) fn utf8<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, CqlError> {
    std::str::from_utf8(bytes).map_err(|_| CqlError::NotUtf8 { what })
}
