//! YCSB's distributions, as pure functions of uniform numbers and parameters.
//!
//! Semantics are those of site.ycsb:core 0.17.0, peculiarities included, because published results were made with them;
//! `tests/reference.rs` holds each against numbers that the reference itself produced.

use std::cell::Cell;

use steelyard_wire::LengthDistribution;

/// The exponent of YCSB's zipfian distributions.
pub const ZIPFIAN_CONSTANT: f64 = 0.99;
/// Number of items below YCSB's scrambled zipfian distribution (its generator spans 0..=10^10).
pub const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
/// zeta of the scrambled distribution, as YCSB has it precomputed.
pub const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Zetas of more items than this are completed by the Euler-Maclaurin formula; its error is below 10^-14 of it there.
const ZETA_ITEMS: u64 = 1_000_000;

/// YCSB's 64-bit FNV hash of a number's eight bytes, low byte first, without its sign.
pub fn fnv_hash(value: u64) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for octet in value.to_le_bytes() {
        hash = (hash ^ u64::from(octet)).wrapping_mul(1_099_511_628_211);
    }
    (hash as i64).unsigned_abs()
}

/// Sum of 1/i^theta for i in from+1..=to, added to `initial`: the zeta of `to` items from that of `from` items.
pub fn zeta(from: u64, to: u64, theta: f64, initial: f64) -> f64 {
    (from..to).fold(initial, |sum, i| sum + 1.0 / ((i + 1) as f64).powf(theta))
}

/// Uniform over `count` values from `low`: the bits' absolute value modulo count, as YCSB (the bias is below count / 2^63).
#[inline]
pub fn uniform(bits: u64, low: u64, count: u64) -> u64 {
    low + (bits as i64).unsigned_abs() % count
}

/// Sum of 1 / i^theta for i from 1 to count, without adding up more than the first million (Euler-Maclaurin).
pub fn zeta_of(count: u64, theta: f64) -> f64 {
    let first = count.min(ZETA_ITEMS);
    let sum = zeta(0, first, theta, 0.0);
    if count == first {
        return sum;
    }
    let (from, to) = (first as f64, count as f64);
    let integral = (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (to.powf(-theta) - from.powf(-theta)) / 2.0;
    let slopes = theta / 12.0 * (from.powf(-theta - 1.0) - to.powf(-theta - 1.0));
    sum + integral + ends + slopes
}

/// Zipfian over `min..=max`, the lowest most popular (Gray et al., "Quickly generating billion-record synthetic databases",
/// SIGMOD 1994, as YCSB's ZipfianGenerator has it).
#[derive(Clone, Copy, Debug)]
pub struct Zipfian {
    theta: f64,
    base: u64,
    first_count: u64,
    count: u64,
    zeta: f64,
    zeta_of_two: f64,
    eta: f64,
}

impl Zipfian {
    /// Zipfian over `min..=max`. Costs one power an item, up to a million of them.
    pub fn new(min: u64, max: u64) -> Self {
        Self::with_zeta(min, max, zeta_of(max - min + 1, ZIPFIAN_CONSTANT))
    }

    /// The same with a zeta that is known.
    pub fn with_zeta(min: u64, max: u64, zeta_of_count: f64) -> Self {
        Self::with_theta(min, max, ZIPFIAN_CONSTANT, zeta_of_count)
    }

    /// With another exponent than YCSB's, above 0 and below 1, and its zeta.
    pub fn with_theta(min: u64, max: u64, theta: f64, zeta_of_count: f64) -> Self {
        let count = max - min + 1;
        let mut zipfian = Self {
            theta,
            base: min,
            first_count: count,
            count,
            zeta: zeta_of_count,
            zeta_of_two: zeta(0, 2, theta, 0.0),
            eta: 0.0,
        };
        zipfian.eta = zipfian.eta_now();
        zipfian
    }

    /// Gray's eta. YCSB keeps the first number of items in it when items are added; so does this.
    fn eta_now(&self) -> f64 {
        (1.0 - (2.0 / self.first_count as f64).powf(1.0 - self.theta)) / (1.0 - self.zeta_of_two / self.zeta)
    }

    /// Add items up to `count`; fewer than there are changes nothing. Costs one power per item added.
    pub fn grow(&mut self, count: u64) {
        if count > self.count {
            self.zeta = zeta(self.count, count, self.theta, self.zeta);
            self.count = count;
            self.eta = self.eta_now();
        }
    }

    /// zeta of the present number of items.
    pub fn zeta(&self) -> f64 {
        self.zeta
    }

    /// The value at `unit` in [0, 1).
    pub fn value(&self, unit: f64) -> u64 {
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return self.base;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return self.base + 1;
        }
        let alpha = 1.0 / (1.0 - self.theta);
        let rank = self.count as f64 * (self.eta * unit - self.eta + 1.0).powf(alpha);
        self.base + (rank as u64).min(self.count - 1)
    }
}

/// Zipfian popularity scattered over `count` values from `low` by a hash.
#[derive(Clone, Copy, Debug)]
pub struct ScrambledZipfian {
    low: u64,
    count: u64,
    ranks: Zipfian,
}

impl ScrambledZipfian {
    /// Over `count` (at least 1) values from `low`.
    pub fn new(low: u64, count: u64) -> Self {
        Self {
            low,
            count,
            ranks: Zipfian::with_zeta(0, SCRAMBLED_ITEMS, SCRAMBLED_ZETA),
        }
    }

    /// The value at `unit` in [0, 1).
    pub fn value(&self, unit: f64) -> u64 {
        self.low + fnv_hash(self.ranks.value(unit)) % self.count
    }
}

/// Zipfian with the newest value most popular.
#[derive(Clone, Copy, Debug)]
pub struct Latest {
    at_first: Zipfian,
    distance: Zipfian,
}

impl Latest {
    /// `newest` (at least 1) is the newest value at the beginning. As in YCSB the distances are 0..newest, so value 0 never comes.
    pub fn new(newest: u64) -> Self {
        let distance = Zipfian::new(0, newest - 1);
        Self {
            at_first: distance,
            distance,
        }
    }

    /// The value at `unit` when `newest` is the newest. Costs a power per value that is new since the last call; if there are
    /// fewer than then, per value that is new since the beginning.
    pub fn value(&mut self, unit: f64, newest: u64) -> u64 {
        if newest < self.distance.count {
            self.distance = self.at_first;
        }
        self.distance.grow(newest);
        newest - self.distance.value(unit)
    }
}

/// A fraction of the operations on a fraction of the values, uniform within both parts.
#[derive(Clone, Copy, Debug)]
pub struct Hotspot {
    low: u64,
    hot: u64,
    cold: u64,
    operation_fraction: f64,
}

impl Hotspot {
    /// The first `data_fraction` of `count` values from `low` gets `operation_fraction` of the operations.
    pub fn new(low: u64, count: u64, data_fraction: f64, operation_fraction: f64) -> Self {
        let hot = (count as f64 * data_fraction) as u64;
        Self {
            low,
            hot: hot.min(count),
            cold: count - hot.min(count),
            operation_fraction,
        }
    }

    /// How many values are hot, and how many are not.
    pub fn sizes(&self) -> (u64, u64) {
        (self.hot, self.cold)
    }

    /// `unit` chooses the part, `bits` the value in it.
    pub fn value(&self, unit: f64, bits: u64) -> u64 {
        if unit < self.operation_fraction {
            uniform(bits, self.low, self.hot)
        } else {
            uniform(bits, self.low + self.hot, self.cold)
        }
    }
}

/// Exponentially falling popularity.
#[derive(Clone, Copy, Debug)]
pub struct Exponential {
    gamma: f64,
}

impl Exponential {
    /// `percentile` percent of the values are below `range`.
    pub fn new(percentile: f64, range: f64) -> Self {
        Self {
            gamma: -(1.0 - percentile / 100.0).ln() / range,
        }
    }

    /// The value at `unit` in (0, 1].
    pub fn value(&self, unit: f64) -> f64 {
        -unit.ln() / self.gamma
    }
}

/// Lengths of fields and scans.
#[derive(Clone, Copy, Debug)]
pub enum Lengths {
    /// Always that length.
    Constant(u32),
    /// Each length alike.
    Uniform {
        /// Least length.
        min: u32,
        /// Greatest length.
        max: u32,
    },
    /// Short lengths more often.
    Zipfian(Zipfian),
}

impl Lengths {
    /// As YCSB: constant is `max`, uniform and zipfian are over `min..=max`, zipfian favours the short. Needs min <= max.
    pub fn new(kind: LengthDistribution, min: u32, max: u32) -> Self {
        match kind {
            LengthDistribution::Constant => Self::Constant(max),
            LengthDistribution::Uniform => Self::Uniform { min, max },
            LengthDistribution::Zipfian => Self::Zipfian(zipfian_lengths(min, max)),
        }
    }

    /// The length for 64 random bits.
    pub fn value(&self, bits: u64) -> u32 {
        match self {
            Self::Constant(length) => *length,
            Self::Uniform { min, max } => uniform(bits, u64::from(*min), u64::from(max - min) + 1) as u32,
            Self::Zipfian(zipfian) => zipfian.value(crate::random::unit(bits)) as u32,
        }
    }
}

/// Zipfian over `min..=max`, remembered: `write_value` asks for the same one for every value, and its zeta costs a power per item.
fn zipfian_lengths(min: u32, max: u32) -> Zipfian {
    thread_local! {
        static LAST: Cell<Option<(u32, u32, Zipfian)>> = const { Cell::new(None) };
    }
    LAST.with(|last| match last.get() {
        Some((low, high, zipfian)) if (low, high) == (min, max) => zipfian,
        _ => {
            let zipfian = Zipfian::new(u64::from(min), u64::from(max));
            last.set(Some((min, max, zipfian)));
            zipfian
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_zetas_are_completed_by_the_formula() {
        for (count, theta) in [(1_500_000, 0.99), (1_000_001, 0.3), (3_000_000, 0.7)] {
            let whole = zeta(0, count, theta, 0.0);
            assert!((zeta_of(count, theta) / whole - 1.0).abs() < 1e-11, "{count} {theta}");
        }
    }

    #[test]
    fn zeta_grows_to_the_same_number() {
        let whole = zeta(0, 1000, ZIPFIAN_CONSTANT, 0.0);
        let grown = zeta(400, 1000, ZIPFIAN_CONSTANT, zeta(0, 400, ZIPFIAN_CONSTANT, 0.0));
        assert_eq!(whole, grown);
    }

    #[test]
    fn extremes_stay_in_range() {
        let last = 1.0 - f64::EPSILON / 2.0;
        for count in [1, 2, 3, 10, 1000] {
            let zipfian = Zipfian::new(5, 4 + count);
            assert_eq!(zipfian.value(0.0), 5);
            assert!(zipfian.value(last) < 5 + count, "{count}");
            assert_eq!(uniform(0, 5, count), 5);
            assert_eq!(uniform((count - 1).wrapping_neg(), 5, count), 4 + count);
            assert!(uniform(1 << 63, 5, count) < 5 + count);
            assert!(ScrambledZipfian::new(5, count).value(last) < 5 + count);
        }
        assert_eq!(Exponential::new(95.0, 100.0).value(1.0), 0.0);
    }

    #[test]
    fn latest_reaches_every_value_but_zero() {
        let mut latest = Latest::new(9);
        let seen: std::collections::BTreeSet<u64> = (0..10_000).map(|i| latest.value(i as f64 / 1e4, 9)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
        let before = latest.value(0.7, 9);
        assert_eq!(latest.value(0.0, 12), 12);
        assert_eq!(latest.value(0.7, 9), before);
    }

    #[test]
    fn hotspot_splits_at_the_fraction() {
        let hotspot = Hotspot::new(100, 10, 0.2, 0.8);
        assert_eq!(hotspot.sizes(), (2, 8));
        assert_eq!(hotspot.value(0.0, 3), 101);
        assert_eq!(hotspot.value(0.8, 0), 102);
        assert_eq!(hotspot.value(0.99, 7), 109);
    }

    #[test]
    fn percentile_of_the_exponential_is_its_range() {
        let exponential = Exponential::new(95.0, 857.0);
        assert!((exponential.value(0.05) - 857.0).abs() < 1e-9);
    }
}
