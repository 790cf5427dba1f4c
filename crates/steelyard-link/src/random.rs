//! Random numbers of a medium: one SplitMix64 sequence per seed, so that the same frames at the same times meet the same fate.

/// Weyl increment of SplitMix64: 2^64 divided by the golden ratio, odd.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The SplitMix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1) with 53 bits.
    #[allow(clippy::cast_precision_loss)] // 53 bits fit
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in 0..=most. For a window of 2^k - 1, as those of 802.11 are, it is exact.
    #[allow(clippy::cast_possible_truncation)] // the high half of a product by a 32-bit number
    pub const fn up_to(&mut self, most: u32) -> u32 {
        (((self.bits() >> 32) * (most as u64 + 1)) >> 32) as u32
    }

    /// Exponentially distributed with mean 1: the gaps of Poisson arrivals.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_those_of_splitmix64() {
        // Published first outputs for seed 1234567.
        let mut random = Random::new(1_234_567);
        let outputs: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            outputs,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn draws_of_a_window_are_uniform() {
        let mut random = Random::new(5);
        let mut counts = [0_u32; 16];
        for _ in 0..160_000 {
            counts[random.up_to(15) as usize] += 1;
        }
        // The mean is 10,000 with a standard deviation of 97.
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        let mean = (0..100_000).map(|_| random.exponential()).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }
}
