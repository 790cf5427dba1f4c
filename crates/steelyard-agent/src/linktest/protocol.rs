//! What both ends of `linktest` say to each other.
//!
//! Datagrams: eight letters and the number of the probe, which come back with other letters, so that two servers never talk to
//! each other. The stream: eight letters and its length of time, then whatever fits into the path; the answer says how many bytes
//! arrived in its last three quarters: the beginning, in which TCP looks for the rate, is left out.

use std::time::Duration;

const PROBE: &[u8; 8] = b"SYlink1?";
const ECHO: &[u8; 8] = b"SYlink1!";
const STREAM: &[u8; 8] = b"SYlink1>";
/// Bytes of a probe's payload; with headers some 100 bytes in the air, as `ping` has.
pub const PROBE_BYTES: usize = 56;
pub const STREAM_HEADER_BYTES: usize = 16;
pub const ANSWER_BYTES: usize = 16;
/// Share of a stream's time that is not counted.
const LEFT_OUT: f64 = 0.25;
/// Longest stream.
pub const LONGEST: Duration = Duration::from_secs(600);

/// A probe with a number.
pub fn probe(number: u64) -> [u8; PROBE_BYTES] {
    let mut bytes = [0; PROBE_BYTES];
    bytes[..8].copy_from_slice(PROBE);
    bytes[8..16].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Makes a probe its own echo; false if it is none.
pub fn turn(datagram: &mut [u8]) -> bool {
    if datagram.len() != PROBE_BYTES || !datagram.starts_with(PROBE) {
        return false;
    }
    datagram[..8].copy_from_slice(ECHO);
    true
}

/// The number of the probe that a datagram echoes.
pub fn echoed(datagram: &[u8]) -> Option<u64> {
    let number = datagram.strip_prefix(ECHO)?.get(..8)?;
    (datagram.len() == PROBE_BYTES).then(|| number.try_into().map(u64::from_be_bytes).ok())?
}

/// How a stream begins.
pub fn stream_header(length: Duration) -> [u8; STREAM_HEADER_BYTES] {
    let mut bytes = [0; STREAM_HEADER_BYTES];
    bytes[..8].copy_from_slice(STREAM);
    bytes[8..].copy_from_slice(&u64::try_from(length.as_nanos()).unwrap_or(u64::MAX).to_be_bytes());
    bytes
}

/// The length of the stream that begins so.
pub fn stream_length(header: &[u8; STREAM_HEADER_BYTES]) -> Option<Duration> {
    let length = header.strip_prefix(STREAM)?.try_into().map(u64::from_be_bytes).ok()?;
    Some(Duration::from_nanos(length)).filter(|length| *length <= LONGEST)
}

/// The part of a stream that is not counted.
pub fn left_out(length: Duration) -> Duration {
    length.mul_f64(LEFT_OUT)
}

/// What the server says at the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub bytes: u64,
    pub time: Duration,
}

impl Answer {
    pub fn to_bytes(self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..8].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[8..].copy_from_slice(&u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX).to_be_bytes());
        bytes
    }

    pub fn from_bytes(bytes: [u8; ANSWER_BYTES]) -> Self {
        let half = |at: usize| {
            bytes[at..at + 8]
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        Self {
            bytes: half(0),
            time: Duration::from_nanos(half(8)),
        }
    }

    /// Megabits (10^6) of payload per second.
    #[allow(clippy::cast_precision_loss)] // exact up to 9 PB
    pub fn mbit_per_s(self) -> f64 {
        self.bytes as f64 * 8.0 / 1e6 / self.time.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_come_back_once() {
        let mut datagram = probe(7);
        assert_eq!(echoed(&datagram), None);
        assert!(turn(&mut datagram));
        assert_eq!(echoed(&datagram), Some(7));
        assert!(!turn(&mut datagram), "an echo is not echoed");
        assert!(!turn(&mut [0; 8]));
        assert_eq!(echoed(&datagram[..20]), None);
    }

    #[test]
    fn streams_and_answers_are_read_as_written() {
        let length = Duration::from_millis(2500);
        assert_eq!(stream_length(&stream_header(length)), Some(length));
        assert_eq!(stream_length(&stream_header(LONGEST * 2)), None);
        assert_eq!(stream_length(b"GET / HTTP/1.1\r\n"), None);
        assert_eq!(left_out(Duration::from_secs(2)), Duration::from_millis(500));
        let answer = Answer {
            bytes: 2_500_000,
            time: Duration::from_secs(2),
        };
        assert_eq!(Answer::from_bytes(answer.to_bytes()), answer);
        assert!((answer.mbit_per_s() - 10.0).abs() < 1e-9);
    }
}
