//! Token of a partition key under Cassandra's `Murmur3Partitioner`.
//!
//! It is MurmurHash3 x64 128 (Appleby, public domain), first half, seed 0, with one historical fault kept: the tail's
//! bytes are taken as *signed*. So it differs from the original for keys that are no multiple of 16 bytes long and have
//! bytes above 127 in their tail. Keys of one column are hashed as they are.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Token of a serialised partition key. `i64::MIN` is no token; Cassandra maps it to `i64::MAX`.
#[inline]
pub fn token(key: &[u8]) -> i64 {
    match hash(key) {
        i64::MIN => i64::MAX,
        token => token,
    }
}

fn hash(key: &[u8]) -> i64 {
    let blocks = key.chunks_exact(16);
    let tail = blocks.remainder();
    let (mut h1, mut h2) = (0_u64, 0_u64);
    for block in blocks {
        h1 ^= scramble1(word(&block[..8]));
        h1 = h1
            .rotate_left(27)
            .wrapping_add(h2)
            .wrapping_mul(5)
            .wrapping_add(0x52dc_e729);
        h2 ^= scramble2(word(&block[8..]));
        h2 = h2
            .rotate_left(31)
            .wrapping_add(h1)
            .wrapping_mul(5)
            .wrapping_add(0x3849_5ab5);
    }
    if tail.len() > 8 {
        h2 ^= scramble2(signed(&tail[8..]));
    }
    if !tail.is_empty() {
        h1 ^= scramble1(signed(&tail[..tail.len().min(8)]));
    }
    h1 ^= key.len() as u64;
    h2 ^= key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1.wrapping_add(h2) as i64
}

/// Eight bytes, little end first.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Up to eight bytes, little end first, each widened with its sign.
fn signed(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0, |sum, (position, byte)| {
        sum ^ ((*byte as i8 as i64 as u64) << (8 * position))
    })
}

fn scramble1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn scramble2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::token;

    /// Expected values: `Murmur3Token.hash_fn` of the public Python driver.
    #[test]
    fn tokens_are_those_of_the_public_driver() {
        assert_eq!(token(b""), 0);
        assert_eq!(token(b"a"), -8839064797231613815);
        assert_eq!(token(b"123"), -7468325962851647638);
        assert_eq!(token(b"user1"), -1727604350198519072);
        assert_eq!(token(b"user6284781860667377211"), 4844203595558397365);
        assert_eq!(token(&(0..16).collect::<Vec<u8>>()), 4920504430128807728);
    }

    #[test]
    fn bytes_above_127_are_signed_as_in_cassandra() {
        assert_eq!(token(&(128..160).collect::<Vec<u8>>()), -61479015959055060);
        assert_eq!(token(&[0xFF; 15]), -2195530867418009455);
        assert_eq!(token(&[b'x'; 33]), -5243862173996223363);
        assert_eq!(token(&(201..=255).rev().collect::<Vec<u8>>()), -7898214181880734519);
    }
}
