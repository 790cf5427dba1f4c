//! Bytes changed at random places: nothing that reads them may panic or run away.

const MUTATIONS: u64 = 200_000;
const SEED: u64 = 20_261_128;

/// Marsaglia's xorshift64*: no library, the same numbers for ever.
pub struct Random(u64);

impl Random {
    /// A number from 0 up to below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    /// One of them.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A change of bytes at a place, which is within them.
pub type Change = fn(&mut Vec<u8>, usize, &mut Random);

/// Inserts up to eight digits.
pub fn insert_digits(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    bytes.splice(at..at, std::iter::repeat_n(b'9', random.below(9)));
}

/// Calls `read` with each seed, then with seeds that were changed in the ways that confuse readers: bits, bytes of `edges`, cuts,
/// pieces twice, and the changes of `own`. The number that `read` gets is a place in the bytes, where they may be cut in two.
pub fn mutations(seeds: &[Vec<u8>], edges: &[u8], own: &[Change], mut read: impl FnMut(&[u8], usize)) {
    let mut random = Random(SEED);
    for seed in seeds {
        read(seed, seed.len() / 2);
    }
    for _ in 0..MUTATIONS {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        let other = &seeds[random.below(seeds.len())];
        for _ in 0..=random.below(4) {
            if bytes.is_empty() {
                break;
            }
            let at = random.below(bytes.len());
            match random.below(4 + own.len()) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.one_of(edges),
                2 => bytes.truncate(at),
                3 => drop(bytes.splice(at..at, other[random.below(other.len())..].iter().copied())),
                change => own[change - 4](&mut bytes, at, &mut random),
            }
        }
        let cut = random.below(bytes.len() + 1);
        read(&bytes, cut);
    }
}
