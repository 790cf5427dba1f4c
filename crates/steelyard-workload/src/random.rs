//! Random numbers as a pure function of (seed, stream, index, draw), so that operation i is the same whoever computes it, in
//! whatever order, on however many load nodes.
//!
//! Each level is the n-th output of a SplitMix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014; output function: Stafford's variant 13 of MurmurHash3's finaliser) whose state comes from the level
//! above. SplitMix64 reaches its n-th output without the ones before, which is what makes it counter-based.

/// Weyl increment of SplitMix64: 2^64 divided by the golden ratio, odd.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a number is for. Streams of one seed are independent; the numbers are part of the results, so none is ever reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Kind of an operation.
    Kind = 1,
    /// Key of an operation.
    Key = 2,
    /// YCSB's field of an operation.
    Field = 3,
    /// YCSB's length of a scan.
    ScanLength = 4,
    /// YCSB's length of a value.
    ValueLength = 5,
    /// YCSB's bytes of a value.
    ValueBytes = 6,
    /// Gaps of Poisson arrivals.
    Gap = 7,
    /// Length of a run of operations of one kind.
    Run = 8,
    /// Contents of a program's values.
    Content = 9,
    /// Numbers drawn for an operation.
    Draw = 10,
    /// Rows of a partition, and repetitions within a batch.
    Row = 11,
    /// Repetitions within a batch.
    Repeat = 12,
    /// Which answers are compared.
    Validate = 13,
    /// Which rows of a table's partition an operation takes.
    Select = 14,
}

/// SplitMix64's output function: a bijection of 64 bits.
#[inline]
pub const fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Output `n` (from 0) of the SplitMix64 generator with that seed.
#[inline]
pub const fn output(seed: u64, n: u64) -> u64 {
    mix(seed.wrapping_add(GAMMA.wrapping_mul(n.wrapping_add(1))))
}

/// The random numbers of one purpose under one seed.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers for `purpose` under `seed`.
    pub const fn new(seed: u64, purpose: Purpose) -> Self {
        Self(output(mix(seed), purpose as u64))
    }

    /// The numbers below one index: itself a generator, so that an index can have as many draws as it needs.
    #[inline]
    pub const fn at(self, index: u64) -> Self {
        Self(output(self.0, index))
    }

    /// 64 random bits.
    #[inline]
    pub const fn bits(self, draw: u64) -> u64 {
        output(self.0, draw)
    }

    /// Uniform in [0, 1) with 53 bits.
    #[inline]
    pub fn unit(self, draw: u64) -> f64 {
        unit(self.bits(draw))
    }
}

/// 64 random bits as a number in [0, 1): the 53 high bits, as Java's and everybody's `nextDouble`.
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_those_of_splitmix64() {
        // Published first outputs for seed 1234567.
        let expected = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
        ];
        for (n, value) in expected.into_iter().enumerate() {
            assert_eq!(output(1_234_567, n as u64), value);
        }
    }

    #[test]
    fn every_part_of_the_address_matters() {
        let value = |seed, purpose, index, draw| Random::new(seed, purpose).at(index).bits(draw);
        let base = value(7, Purpose::Kind, 3, 0);
        assert_eq!(base, value(7, Purpose::Kind, 3, 0));
        for other in [
            value(8, Purpose::Kind, 3, 0),
            value(7, Purpose::Key, 3, 0),
            value(7, Purpose::Kind, 4, 0),
            value(7, Purpose::Kind, 3, 1),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn units_are_below_one_and_uniform() {
        assert_eq!(unit(0), 0.0);
        assert!(unit(u64::MAX) < 1.0);
        let random = Random::new(1, Purpose::Kind);
        let mut cells = [0.0f64; 64];
        for index in 0..64_000 {
            cells[(random.at(index).unit(0) * 64.0) as usize] += 1.0;
        }
        let chi_square: f64 = cells.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
        // 63 degrees of freedom: 1e-4 quantiles on both sides.
        assert!((28.0..117.0).contains(&chi_square), "{chi_square}");
    }
}
