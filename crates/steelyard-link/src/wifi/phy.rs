//! Rates, gaps and airtimes of 802.11b, g and n.
//!
//! Sources: IEEE 802.11-2016, clauses 16 (HR/DSSS), 17 (OFDM), 18 (ERP) and 19 (HT). All three are taken in the 2.4 GHz band: an
//! OFDM or HT transmission there is followed by a signal extension of 6 us, and SIFS is 10 us. Their sum is the 16 us of the
//! 5 GHz band, so every exchange takes the same time in either. The airtime here includes the extension.

use std::fmt;

/// MAC header and check sequence of a data frame.
const MAC_BYTES: usize = 28;
/// The same with the quality-of-service field, which 802.11n always sends.
const QOS_MAC_BYTES: usize = 30;
/// LLC and SNAP headers, in front of the IP packet.
const LLC_BYTES: usize = 8;
/// Delimiter in front of each frame of an A-MPDU.
const DELIMITER_BYTES: usize = 4;
/// SERVICE field in front and tail bits behind an OFDM payload.
const SERVICE_AND_TAIL_BITS: usize = 16 + 6;
const SYMBOL_NS: u64 = 4_000;
const OFDM_PREAMBLE_NS: u64 = 20_000;
/// HT-mixed format, one spatial stream: L-STF, L-LTF, L-SIG, HT-SIG, HT-STF, HT-LTF.
const HT_PREAMBLE_NS: u64 = 36_000;
/// Long preamble and PLCP header of HR/DSSS.
const LONG_PREAMBLE_NS: u64 = 192_000;
const SIGNAL_EXTENSION_NS: u64 = 6_000;

/// An ACK or CTS.
pub const ACK_BYTES: usize = 14;
/// An RTS.
pub const RTS_BYTES: usize = 20;
/// A compressed block ACK.
pub const BLOCK_ACK_BYTES: usize = 32;
/// Most frames of an A-MPDU: the window of a block ACK.
pub const MOST_AGGREGATE: usize = 64;
/// Longest A-MPDU in bytes.
const MOST_AGGREGATE_BYTES: usize = 65_535;
/// Longest PPDU (aPPDUMaxTime of HT-mixed format).
const LONGEST_PPDU_NS: u64 = 5_484_000;

/// A data rate, in units of 100 kb/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u32);

impl Rate {
    /// The rate of that many Mb/s, to the nearest 0.1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a list of rates is looked through afterwards
    pub fn of_mbit(mbit: f64) -> Self {
        Self((mbit * 10.0).round() as u32)
    }

    /// In Mb/s.
    pub fn mbit(self) -> f64 {
        f64::from(self.0) / 10.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.mbit())
    }
}

/// An amendment of 802.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// 802.11b: HR/DSSS with the long preamble.
    B,
    /// 802.11g: ERP-OFDM without 802.11b stations, so with the short slot and without protection.
    G,
    /// 802.11n: HT-mixed format, 20 MHz, one spatial stream, long guard interval.
    N,
}

/// What stations wait, and how wide their windows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A slot of the back-off.
    pub slot_ns: u64,
    /// Gap before an answer.
    pub sifs_ns: u64,
    /// Gap before the back-off: DIFS, or AIFS of best effort.
    pub ifs_ns: u64,
    /// First contention window: the back-off is drawn from 0 to this.
    pub cw_min: u32,
    /// Widest contention window.
    pub cw_max: u32,
}

/// A standard with the rate of its data frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// The standard.
    pub standard: Standard,
    /// Rate of data frames.
    pub rate: Rate,
}

impl Standard {
    const ALL: [Self; 3] = [Self::B, Self::G, Self::N];

    /// Its name: `802.11g`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::B => "802.11b",
            Self::G => "802.11g",
            Self::N => "802.11n",
        }
    }

    /// Rates of data frames, ascending.
    pub const fn rates(self) -> &'static [Rate] {
        match self {
            Self::B => &[Rate(10), Rate(20), Rate(55), Rate(110)],
            Self::G => &[
                Rate(60),
                Rate(90),
                Rate(120),
                Rate(180),
                Rate(240),
                Rate(360),
                Rate(480),
                Rate(540),
            ],
            Self::N => &[
                Rate(65),
                Rate(130),
                Rate(195),
                Rate(260),
                Rate(390),
                Rate(520),
                Rate(585),
                Rate(650),
            ],
        }
    }

    /// Rates of control frames and broadcasts, ascending.
    pub const fn basic_rates(self) -> &'static [Rate] {
        match self {
            Self::B => &[Rate(10), Rate(20)],
            Self::G | Self::N => &[Rate(60), Rate(120), Rate(240)],
        }
    }

    /// Rate of the answer to a frame of that rate: the highest basic rate that is no higher (9.7.6.5.2), and no higher than `most`.
    pub fn control_rate(self, rate: Rate, most: Option<Rate>) -> Rate {
        let limit = most.map_or(rate, |most| most.min(rate));
        let basic = self.basic_rates();
        basic
            .iter()
            .rev()
            .find(|basic| **basic <= limit)
            .copied()
            .unwrap_or(basic[0])
    }

    /// Gaps and windows.
    pub const fn timing(self) -> Timing {
        let (slot_ns, sifs_ns, slots, cw_min) = match self {
            Self::B => (20_000, 10_000, 2, 31),
            Self::G => (9_000, 10_000, 2, 15),
            Self::N => (9_000, 10_000, 3, 15),
        };
        Timing {
            slot_ns,
            sifs_ns,
            ifs_ns: sifs_ns + slots * slot_ns,
            cw_min,
            cw_max: 1023,
        }
    }

    /// Bytes of a data frame (MPDU) around an Ethernet payload.
    pub const fn frame_bytes(self, payload_bytes: usize) -> usize {
        payload_bytes
            + LLC_BYTES
            + match self {
                Self::B | Self::G => MAC_BYTES,
                Self::N => QOS_MAC_BYTES,
            }
    }

    /// Airtime of a data frame by itself.
    pub fn data_ns(self, rate: Rate, payload_bytes: usize) -> u64 {
        self.payload_ns(rate, self.frame_bytes(payload_bytes))
    }

    /// Airtime of an A-MPDU of these subframes together.
    pub fn aggregate_ns(self, rate: Rate, subframes_bytes: usize) -> u64 {
        self.payload_ns(rate, subframes_bytes)
    }

    /// Airtime of a control frame.
    pub fn control_ns(self, rate: Rate, bytes: usize) -> u64 {
        match self {
            Self::B => dsss_ns(rate, bytes),
            Self::G | Self::N => ofdm_ns(OFDM_PREAMBLE_NS, rate, bytes),
        }
    }

    /// Airtime of a broadcast, at the lowest basic rate.
    pub fn broadcast_ns(self, payload_bytes: usize) -> u64 {
        self.control_ns(self.basic_rates()[0], payload_bytes + LLC_BYTES + MAC_BYTES)
    }

    /// Whether an A-MPDU of that many bytes may be sent.
    pub fn may_aggregate(self, rate: Rate, subframes_bytes: usize) -> bool {
        subframes_bytes <= MOST_AGGREGATE_BYTES && self.aggregate_ns(rate, subframes_bytes) <= LONGEST_PPDU_NS
    }

    fn payload_ns(self, rate: Rate, bytes: usize) -> u64 {
        match self {
            Self::B => dsss_ns(rate, bytes),
            Self::G => ofdm_ns(OFDM_PREAMBLE_NS, rate, bytes),
            Self::N => ofdm_ns(HT_PREAMBLE_NS, rate, bytes),
        }
    }
}

/// Bytes of a frame within an A-MPDU: delimiter in front, padded to four bytes. The last one is padded too, as in the oracle.
pub const fn subframe_bytes(frame_bytes: usize) -> usize {
    (frame_bytes + DELIMITER_BYTES).next_multiple_of(4)
}

/// TXTIME of clause 17.4.3 and 19.4.3 with the signal extension. All rates carry `rate * 4 us` bits in a symbol.
fn ofdm_ns(preamble_ns: u64, rate: Rate, bytes: usize) -> u64 {
    let bits_per_symbol = rate.0 as usize * 4 / 10;
    let symbols = (SERVICE_AND_TAIL_BITS + 8 * bytes).div_ceil(bits_per_symbol);
    preamble_ns + SYMBOL_NS * symbols as u64 + SIGNAL_EXTENSION_NS
}

/// TXTIME of clause 16.3.4: the payload in whole microseconds.
fn dsss_ns(rate: Rate, bytes: usize) -> u64 {
    let payload_us = (80 * bytes as u64).div_ceil(u64::from(rate.0));
    LONG_PREAMBLE_NS + 1_000 * payload_us
}

impl Phy {
    /// The PHY of a name such as `802.11g-54`; else what is allowed.
    pub fn parse(name: &str) -> Result<Self, String> {
        let parsed = name.rsplit_once('-').and_then(|(standard, rate)| {
            let standard = Standard::ALL.into_iter().find(|known| known.name() == standard)?;
            let rate = Rate::of_mbit(rate.parse().ok()?);
            standard.rates().contains(&rate).then_some(Self { standard, rate })
        });
        parsed.ok_or_else(|| {
            let names: Vec<String> = Standard::ALL.into_iter().map(Self::names).collect();
            format!("{name:?} is not one of {}", names.join("; "))
        })
    }

    fn names(standard: Standard) -> String {
        let rates = standard
            .rates()
            .iter()
            .map(|rate| format!("{}-{rate}", standard.name()));
        rates.collect::<Vec<String>>().join(", ")
    }
}

impl fmt::Display for Phy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.standard.name(), self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in ["802.11b-5.5", "802.11g-54", "802.11n-6.5"] {
            assert_eq!(Phy::parse(name).unwrap().to_string(), name);
        }
        for wrong in ["802.11g", "802.11g-11", "802.11ac-65", "802.11n-65.0x", "g-54", ""] {
            assert!(Phy::parse(wrong).unwrap_err().contains("802.11g-54"), "{wrong}");
        }
    }

    #[test]
    fn airtimes_are_those_of_the_standards_formulas() {
        let g = Phy::parse("802.11g-54").unwrap();
        // 20 us + 57 symbols, and the extension; an ACK at 24 Mb/s: 20 us + 2 symbols.
        assert_eq!(g.standard.data_ns(g.rate, 1500), 248_000 + SIGNAL_EXTENSION_NS);
        let ack = g.standard.control_rate(g.rate, None);
        assert_eq!(ack, Rate(240));
        assert_eq!(g.standard.control_ns(ack, ACK_BYTES), 28_000 + SIGNAL_EXTENSION_NS);
        let b = Phy::parse("802.11b-11").unwrap();
        // 192 us + ceil(1536 * 8 / 11 us); an ACK at 2 Mb/s: 192 us + 56 us.
        assert_eq!(b.standard.data_ns(b.rate, 1500), 1_310_000);
        assert_eq!(
            b.standard.control_ns(b.standard.control_rate(b.rate, None), ACK_BYTES),
            248_000
        );
        let n = Phy::parse("802.11n-65").unwrap();
        // 28 frames of 1,500 bytes last 5.36 ms, 29 are too long.
        let subframe = subframe_bytes(n.standard.frame_bytes(1500));
        assert_eq!(
            n.standard.aggregate_ns(n.rate, 28 * subframe),
            5_360_000 + SIGNAL_EXTENSION_NS
        );
        assert!(n.standard.may_aggregate(n.rate, 28 * subframe));
        assert!(!n.standard.may_aggregate(n.rate, 29 * subframe));
    }

    #[test]
    fn the_gaps_with_extension_are_those_of_the_5_ghz_band() {
        let timing = Standard::G.timing();
        assert_eq!(timing.sifs_ns + SIGNAL_EXTENSION_NS, 16_000);
        assert_eq!(timing.ifs_ns + SIGNAL_EXTENSION_NS, 34_000);
        assert_eq!(Standard::N.timing().ifs_ns + SIGNAL_EXTENSION_NS, 43_000);
        assert_eq!(Standard::B.timing().ifs_ns, 50_000);
    }

    #[test]
    fn answers_go_at_a_basic_rate() {
        for (rate, most, answer) in [
            (540, None, 240),
            (540, Some(60), 60),
            (90, Some(240), 60),
            (180, None, 120),
        ] {
            assert_eq!(Standard::G.control_rate(Rate(rate), most.map(Rate)), Rate(answer));
        }
        assert_eq!(Standard::B.control_rate(Rate(110), None), Rate(20));
        assert_eq!(Standard::N.control_rate(Rate(650), None), Rate(240));
    }
}
