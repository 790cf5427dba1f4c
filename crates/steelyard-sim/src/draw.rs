//! Random draws, as pure functions of (seed, stream, count): no state, so nothing depends on the order of asking.

/// What a draw is for; streams are independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Service = 1,
    Start = 2,
    Trial = 3,
}

/// All draws of one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    seed: u64,
}

impl Draws {
    /// Draws under a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed: mix(seed) }
    }

    /// Draws of this seed that differ by `salt`, such as a node's address.
    pub fn salted(self, salt: &[u8]) -> Self {
        Self {
            seed: salt.iter().fold(self.seed, |seed, byte| mix(seed ^ u64::from(*byte))),
        }
    }

    /// Uniform in (0, 1), never 0 and never 1.
    pub fn uniform(self, stream: Stream, count: u64) -> f64 {
        let bits = mix(mix(self.seed ^ (stream as u64)).wrapping_add(count.wrapping_mul(GOLDEN)));
        #[allow(clippy::cast_precision_loss)] // 53 bits fit
        let integer = (bits >> 11) as f64;
        (integer + 0.5) / 9_007_199_254_740_992.0
    }

    /// Standard normal (Box and Muller 1958), from the uniform draws 2 `count` and 2 `count` + 1.
    pub fn normal(self, stream: Stream, count: u64) -> f64 {
        let (u, v) = (self.uniform(stream, 2 * count), self.uniform(stream, 2 * count + 1));
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Log-normal with mean 1 and coefficient of variation `cv`: exp(sigma z - sigma^2 / 2), sigma^2 = ln(1 + cv^2).
    pub fn factor(self, stream: Stream, count: u64, cv: f64) -> f64 {
        let variance = (cv * cv).ln_1p();
        (variance.sqrt() * self.normal(stream, count) - variance / 2.0).exp()
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_mean_one_and_the_asked_variation() {
        for cv in [0.0, 0.05, 0.3] {
            let n = 20_000;
            let all: Vec<f64> = (0..n)
                .map(|seed| Draws::new(seed).factor(Stream::Start, 0, cv))
                .collect();
            #[allow(clippy::cast_precision_loss)]
            let mean = all.iter().sum::<f64>() / n as f64;
            #[allow(clippy::cast_precision_loss)]
            let deviation = (all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
            assert!((mean - 1.0).abs() < 0.01, "{cv}: {mean}");
            assert!((deviation / mean - cv).abs() < 0.03 * cv.max(1e-6), "{cv}: {deviation}");
        }
    }

    #[test]
    fn draws_are_pure_and_streams_and_salts_differ() {
        let draws = Draws::new(3);
        assert_eq!(
            draws.uniform(Stream::Trial, 5).to_bits(),
            Draws::new(3).uniform(Stream::Trial, 5).to_bits()
        );
        let others = [
            draws.uniform(Stream::Start, 5),
            draws.uniform(Stream::Trial, 6),
            Draws::new(4).uniform(Stream::Trial, 5),
            draws.salted(b"10.0.0.1").uniform(Stream::Trial, 5),
            draws.salted(b"10.0.0.2").uniform(Stream::Trial, 5),
        ];
        for (index, value) in others.iter().enumerate() {
            assert!((value - draws.uniform(Stream::Trial, 5)).abs() > 1e-12, "{index}");
        }
    }
}
