//! Hash slots of a Redis cluster: which of the 16384 a key is in, which node serves which, and where a node sends a client.

use std::ops::RangeInclusive;

use steelyard_protocol::Malformed;

use crate::protocol::{Answer, number};

/// Number of hash slots.
pub(crate) const COUNT: usize = 16_384;
/// CRC-16/XMODEM by byte.
const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ (0x1021 * (crc >> 15));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// The hash slot of a key: of what stands between its first braces, if anything does.
#[inline]
pub fn hash_slot(key: &[u8]) -> u16 {
    let crc = tag(key).iter().fold(0_u16, |crc, byte| {
        (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]
    });
    crc % COUNT as u16
}

#[inline]
fn tag(key: &[u8]) -> &[u8] {
    let inside = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        Some(&rest[..close])
    });
    inside.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// The ranges of hash slots in the answer to `CLUSTER SLOTS`, each with the `host:port` of its master. A host that is left out
/// is the one that was asked: `asked`.
///
/// # Errors
///
/// Anything that is no such answer.
pub fn read_ranges(answer: &Answer<'_>, asked: &str) -> Result<Vec<(RangeInclusive<u16>, String)>, Malformed> {
    const WRONG: Malformed = Malformed("not an answer to CLUSTER SLOTS");
    let Answer::Array(ranges) = answer else {
        return Err(WRONG);
    };
    let read = |range: &Answer<'_>| {
        let [Answer::Integer(first), Answer::Integer(last), master, ..] = range.elements() else {
            return Err(WRONG);
        };
        let [Answer::Bulk(host), Answer::Integer(port), ..] = master.elements() else {
            return Err(WRONG);
        };
        let slot = |number: &i64| u16::try_from(*number).ok().filter(|slot| usize::from(*slot) < COUNT);
        let (Some(first), Some(last), Ok(port)) = (slot(first), slot(last), u16::try_from(*port)) else {
            return Err(WRONG);
        };
        let host = String::from_utf8_lossy(host.unwrap_or_default());
        Ok((first..=last, contact(&host, port, asked)))
    };
    ranges.iter().map(read).collect()
}

/// `host:port` as an address is written; an unknown host is `asked`.
fn contact(host: &str, port: u16, asked: &str) -> String {
    let host = if matches!(host, "" | "?") { asked } else { host };
    match host.trim_matches(['[', ']']).parse() {
        Ok(address) => std::net::SocketAddr::new(address, port).to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

/// Where a node sends the client with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Only this once, because the slot is on its way; else from now on.
    pub once: bool,
    /// The hash slot of the command's key.
    pub slot: u16,
    /// `host:port` of the node to ask.
    pub to: String,
}

impl Redirect {
    /// What the line of an error says, if it is a redirect. A host that is left out is `asked`.
    pub fn read(error: &[u8], asked: &str) -> Option<Self> {
        let mut words = std::str::from_utf8(error).ok()?.split(' ');
        let once = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let slot = number(words.next()?.as_bytes()).ok()?;
        let (host, port) = words.next()?.rsplit_once(':')?;
        Some(Self {
            once,
            slot: u16::try_from(slot).ok().filter(|slot| usize::from(*slot) < COUNT)?,
            to: contact(host, port.parse().ok()?, asked),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // 0x31C3 is the specification's check value of CRC-16/XMODEM.
        assert_eq!(hash_slot(b"123456789"), 0x31C3);
        assert_eq!(hash_slot(b"foo"), 12_182);
        assert_eq!(hash_slot(b"bar"), 5_061);
        assert_eq!(hash_slot(b"{user1000}.following"), hash_slot(b"user1000"));
        assert_eq!(hash_slot(b"foo{bar}{zap}"), hash_slot(b"bar"));
        // Empty braces, and no end.
        assert_eq!(tag(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(tag(b"foo{bar"), b"foo{bar");
        assert_eq!(hash_slot(b""), 0);
    }

    #[test]
    fn ranges_name_their_masters() {
        let text = b"*2\r\n*4\r\n:0\r\n:5460\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n*0\r\n\
            *3\r\n$9\r\n127.0.0.1\r\n:7003\r\n$2\r\nid\r\n*3\r\n:5461\r\n:16383\r\n*2\r\n$-1\r\n:7001\r\n";
        let answer = Answer::read(text).unwrap();
        assert_eq!(
            read_ranges(&answer, "::1").unwrap(),
            [
                (0..=5460, "127.0.0.1:7000".to_owned()),
                (5461..=16_383, "[::1]:7001".to_owned())
            ]
        );
        for wrong in [
            "+OK\r\n",
            "*1\r\n+OK\r\n",
            "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n",
            "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:65536\r\n",
        ] {
            let answer = Answer::read(wrong.as_bytes()).unwrap();
            assert!(read_ranges(&answer, "h").is_err(), "{wrong}");
        }
    }

    #[test]
    fn redirects_are_read_and_nothing_else() {
        let read = |text: &str| Redirect::read(text.as_bytes(), "10.0.0.1");
        let redirect = |once, slot, to: &str| {
            Some(Redirect {
                once,
                slot,
                to: to.to_owned(),
            })
        };
        assert_eq!(
            read("MOVED 3999 127.0.0.1:6381"),
            redirect(false, 3999, "127.0.0.1:6381")
        );
        assert_eq!(read("ASK 1 ::1:6381"), redirect(true, 1, "[::1]:6381"));
        assert_eq!(read("MOVED 0 :6382"), redirect(false, 0, "10.0.0.1:6382"));
        assert_eq!(read("MOVED 0 redis-2:6382"), redirect(false, 0, "redis-2:6382"));
        for wrong in [
            "ERR no",
            "MOVED",
            "MOVED x a:1",
            "MOVED 16384 a:1",
            "MOVED 1 a",
            "MOVED 1 a:99999",
            "MOVED -1 a:1",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
