//! Rows of cassandra-stress 3.11's own tables, byte for byte, so that either tool reads what the other has written.
//!
//! A population value is the *seed* of a row. The key is drawn from the seed, the values from a hash of the key: each generator
//! has a salt (a hash of its name), draws an *identity* from 1 to 100 billion with java.util.Random, and makes bytes of that.
//! `tests/stress_reference.rs` holds all of it against rows that the tool's own classes made.

use crate::murmur3::token;
use steelyard_wire::program::DistributionSpec;

use crate::OrderError;
use crate::distributions::{Distribution, Form, Range};
use crate::random::unit;

/// Most bytes of a value. The tool keeps a buffer of the greatest size for every column.
const MAX_SIZE: i64 = 1 << 28;

/// Salt of the generator `randomstrkey`.
const KEY_SALT: i64 = -6_294_861_599_187_687_378;
const COLUMN_PREFIX: &[u8] = b"randomstr";
const PROFILE_PREFIX: &[u8] = b"seed for stress";
const IDENTITIES: Range = Range {
    min: 1,
    max: 100_000_000_000,
};

/// Append the partition key of the row with that seed: hexadecimal digits of the tool's own alphabet (0-9, K-P), 16 of each
/// identity, lowest first.
pub fn write_key(seed: i64, size: u32, out: &mut Vec<u8>) {
    let mut identities = JavaRandom::new(seed ^ KEY_SALT);
    // The first is the seed of the size, which is fixed.
    identities.next_double();
    let mut left = size;
    while left > 0 {
        let mut identity = IDENTITIES.uniform(identities.next_double());
        for _ in 0..left.min(16) {
            let digit = (identity & 15) as u8;
            out.push(if digit < 10 { b'0' + digit } else { b'A' + digit });
            identity >>= 4;
        }
        left -= left.min(16);
    }
}

/// What a row's values follow from: a hash of its key.
#[inline]
pub fn row_seed(key: &[u8]) -> i64 {
    key.iter().fold(0_i64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(i64::from(*byte as i8))
    })
}

/// The generator of one column.
#[derive(Clone, Debug)]
pub struct Column {
    salt: i64,
    size: Form,
}

impl Column {
    /// Of the column with that name (`-col names=`). Refuses sizes that the tool draws differently each time (quanta), has no room
    /// for (inverses) or does not know.
    pub fn new(name: &str, size: &DistributionSpec) -> Result<Self, OrderError> {
        Ok(Self {
            salt: salt(COLUMN_PREFIX, name.as_bytes()),
            size: checked(size)?,
        })
    }

    /// Of the column `C<number>` (`-col n=`).
    pub fn numbered(number: u32, size: &DistributionSpec) -> Result<Self, OrderError> {
        Self::new(&format!("C{number}"), size)
    }

    /// Append the column's value in the row of a `row_seed`.
    pub fn write(&self, row: i64, out: &mut Vec<u8>) {
        let identity = IDENTITIES.uniform(JavaRandom::new(row ^ self.salt).next_double());
        write_bytes(&self.size, identity, |byte| byte, out);
    }
}

/// Append the bytes of an identity, each as `byte` makes it.
#[inline]
fn write_bytes(size: &Form, identity: i64, byte: impl Fn(u8) -> u8, out: &mut Vec<u8>) {
    let mut words = FasterRandom::new(!identity);
    let mut left = match size {
        Form::Fixed(size) => *size as usize,
        form => draw(form, identity).max(0) as usize,
    };
    while left > 0 {
        let word = words.next_long().to_le_bytes();
        let taken = left.min(word.len());
        out.extend(word[..taken].iter().map(|one| byte(*one)));
        left -= taken;
    }
}

/// How the tool hashes the values of a row's primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashed {
    /// As numbers.
    Number,
    /// As the characters of its own text.
    Text,
    /// As the bytes of its own blob.
    Blob,
    /// As the bytes of the value.
    Bytes,
}

/// The generator of one column of a profile.
#[derive(Clone, Debug)]
pub struct ProfileColumn {
    salt: i64,
    identities: Form,
    size: Form,
}

impl ProfileColumn {
    /// Of the column with that name, its `population` and `size`. Refuses sizes as `Column::new` does.
    pub fn new(name: &str, population: &DistributionSpec, size: &DistributionSpec) -> Result<Self, OrderError> {
        Ok(Self {
            salt: salt(PROFILE_PREFIX, name.as_bytes()),
            identities: Distribution::new(population)?.0,
            size: checked(size)?,
        })
    }

    /// The number that the value with that seed is made of.
    pub fn identity(&self, seed: i64) -> i64 {
        draw(&self.identities, seed ^ self.salt)
    }

    /// The same with its fraction, of which a value of a type with fractions is made.
    pub fn real(&self, seed: i64) -> f64 {
        draw_real(&self.identities, seed ^ self.salt)
    }

    /// Appends the blob that is made of an identity.
    pub fn write_blob(&self, identity: i64, out: &mut Vec<u8>) {
        write_bytes(&self.size, identity, |byte| byte, out);
    }

    /// The hash of a row with the value of `identity` too, whose bytes `put` appends. `scratch` is left as it was.
    pub fn hash(
        &self,
        row: i64,
        identity: i64,
        how: Hashed,
        put: impl FnOnce(&mut Vec<u8>),
        scratch: &mut Vec<u8>,
    ) -> i64 {
        let with = |sum: i64, number: i64| sum.wrapping_mul(31).wrapping_add(number);
        let start = scratch.len();
        match how {
            Hashed::Number => return with(row, identity),
            Hashed::Bytes => put(scratch),
            Hashed::Blob => self.write_blob(identity, scratch),
            Hashed::Text => write_bytes(&self.size, identity, |byte| ((byte & 127) + 32) & 127, scratch),
        }
        let bytes = scratch[start..].iter();
        let hash = bytes.fold(row, |sum, byte| with(sum, i64::from(*byte as i8)));
        scratch.truncate(start);
        hash
    }
}

/// A distribution of sizes that is a function of the identity.
fn checked(size: &DistributionSpec) -> Result<Form, OrderError> {
    let form = Distribution::new(size)?.0;
    let range = form.range();
    if range.min < 0 || range.max > MAX_SIZE {
        let read = format!("{}..{}", range.min, range.max);
        return Err(OrderError::new("size", read, "0 to 268435456 bytes"));
    }
    match form {
        Form::Fixed(_) | Form::Sequence(_) | Form::Uniform(_) => Ok(form),
        Form::Exponential(..) | Form::Gaussian(..) | Form::Extreme(..) => Ok(form),
        _ => Err(OrderError::new(
            "size",
            format!("{size:?}"),
            "fixed, sequence, uniform, exponential, gaussian, extreme without quanta",
        )),
    }
}

/// The number that commons-math 3.2 draws with java.util.Random of that seed; the minimum of a distribution that the tool does not have:
/// a study that asks for one is refused before (`DRAWN` in `workload/stress.py`).
fn draw(form: &Form, seed: i64) -> i64 {
    match form {
        Form::Fixed(value) => *value,
        Form::Sequence(range) => range.min + seed % (range.max - range.min + 1),
        Form::Uniform(range) => range.uniform(JavaRandom::new(seed).next_double()),
        Form::Exponential(range, mean) => range.offset(mean * JavaRandom::new(seed).next_exponential()),
        Form::Gaussian(range, normal) => {
            range.bound(normal.deviation * JavaRandom::new(seed).next_gaussian() + normal.mean)
        }
        Form::Extreme(range, weibull) => range.offset(weibull.quantile(JavaRandom::new(seed).next_double())),
        Form::Quantized(quantized) => {
            let mut random = JavaRandom::new(seed);
            quantized.value(random.next_double(), random.next_double())
        }
        Form::Inverted(of, range) => range.max.wrapping_sub(draw(of, seed).wrapping_sub(range.min)),
        other => other.range().min,
    }
}

/// As `draw`, before the tool cuts the fraction off. It has none of sequences, and fails of quanta.
fn draw_real(form: &Form, seed: i64) -> f64 {
    let bounds = |range: &Range| (range.min as f64, range.max as f64);
    let bound = |range: &Range, value: f64| value.clamp(range.min as f64, range.max as f64);
    let offset = |range: &Range, value: f64| bound(range, range.min as f64 + value.max(0.0));
    match form {
        Form::Uniform(range) => {
            let unit = JavaRandom::new(seed).next_double();
            bound(range, unit * (range.max as f64 + 1.0) + (1.0 - unit) * range.min as f64)
        }
        Form::Exponential(range, mean) => offset(range, mean * JavaRandom::new(seed).next_exponential()),
        Form::Gaussian(range, normal) => bound(
            range,
            normal.deviation * JavaRandom::new(seed).next_gaussian() + normal.mean,
        ),
        Form::Extreme(range, weibull) => offset(range, weibull.quantile(JavaRandom::new(seed).next_double())),
        Form::Inverted(of, range) => {
            let (min, max) = bounds(range);
            max - (draw_real(of, seed) - min)
        }
        other => draw(other, seed) as f64,
    }
}

/// java.util.Random: the linear congruential generator of its documentation.
struct JavaRandom(u64);

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_deec_e66d;
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: i64) -> Self {
        Self((seed as u64 ^ Self::MULTIPLIER) & Self::MASK)
    }

    /// The `bits` (at most 32) highest of the next state.
    #[inline]
    fn next(&mut self, bits: u32) -> u64 {
        self.0 = self.0.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xb) & Self::MASK;
        self.0 >> (48 - bits)
    }

    fn next_long(&mut self) -> i64 {
        let (high, low) = (self.next(32) as u32 as i32, self.next(32) as u32 as i32);
        (i64::from(high) << 32).wrapping_add(i64::from(low))
    }

    fn next_double(&mut self) -> f64 {
        let (high, low) = (self.next(26), self.next(27));
        // 53 bits, where `unit` wants them.
        unit(((high << 27) | low) << 11)
    }

    /// Marsaglia's polar method, as the documentation gives it.
    fn next_gaussian(&mut self) -> f64 {
        loop {
            let (a, b) = (2.0 * self.next_double() - 1.0, 2.0 * self.next_double() - 1.0);
            let square = a * a + b * b;
            if square < 1.0 && square != 0.0 {
                return a * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Unit exponential numbers by Ahrens and Dieter's algorithm SA ("Computer methods for sampling from the exponential and
    /// normal distributions", 1972), in the order of draws of commons-math.
    fn next_exponential(&mut self) -> f64 {
        const LN_2: f64 = std::f64::consts::LN_2;
        let mut whole = 0.0;
        let mut u = self.next_double();
        if u == 0.0 {
            return f64::INFINITY;
        }
        while u < 0.5 {
            whole += LN_2;
            u *= 2.0;
        }
        u += u - 1.0;
        if u <= LN_2 {
            return whole + u;
        }
        let mut least = self.next_double();
        let (mut term, mut sum) = (LN_2, LN_2);
        for i in 2.. {
            least = least.min(self.next_double());
            term *= LN_2 / f64::from(i);
            sum += term;
            if u <= sum || term < f64::EPSILON / 4.0 {
                break;
            }
        }
        whole + least * LN_2
    }
}

/// The tool's own source of bytes: a xorshift that begins, and every 32nd word begins again, with java.util.Random.
struct FasterRandom {
    state: i64,
    words: u32,
}

impl FasterRandom {
    const RENEW: u32 = 32;

    fn new(seed: i64) -> Self {
        Self {
            state: JavaRandom::new(seed).next_long(),
            words: 0,
        }
    }

    #[inline]
    fn next_long(&mut self) -> i64 {
        self.words += 1;
        if self.words == Self::RENEW {
            *self = Self::new(self.state);
        }
        // Shifts to the right keep the sign.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(2_685_821_657_736_338_717)
    }
}

/// A generator's salt: the hash of its name that Cassandra also makes tokens with.
fn salt(prefix: &[u8], name: &[u8]) -> i64 {
    token(&[prefix, name].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_salt_is_the_hash_of_the_key_generators_name() {
        assert_eq!(KEY_SALT, salt(b"randomstrkey", b""));
    }

    #[test]
    fn sizes_that_the_tool_does_not_repeat_are_refused() {
        let inner = Box::new(DistributionSpec::Fixed { value: 3.0 });
        for size in [
            DistributionSpec::Fixed { value: -1.0 },
            DistributionSpec::Fixed { value: 1e12 },
            DistributionSpec::Uniform { min: -3.0, max: 3.0 },
            DistributionSpec::ScrambledZipfian { min: 1, max: 9 },
            DistributionSpec::Inverted { of: inner },
            DistributionSpec::Extreme {
                min: 1,
                max: 9,
                shape: 1.0,
                quanta: Some(3),
            },
        ] {
            assert_eq!(Column::numbered(0, &size).unwrap_err().field, "size", "{size:?}");
        }
    }
}
