//! Real frames of Cassandra and of ours, changed at random places: nothing that reads them may panic or run away. The
//! fuzzer (`fuzz/`) looks for the same with coverage as its guide; this is what every test run can afford.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod exercise;

use std::path::Path;

const MUTATIONS: u64 = 200_000;
const SEED: u64 = 20_261_121;

/// Marsaglia's xorshift64*: no library, the same numbers for ever.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "bin"))
        .collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// A few changes of the kinds that confuse readers: bits, bytes at the edges of numbers, counts, cuts, pieces twice.
fn mutate(frame: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    const EDGES: [u8; 6] = [0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF];
    const COUNTS: [i32; 8] = [0, 2, 300, 65_535, 65_536, i32::MAX, i32::MIN, -5];
    for _ in 0..=random.below(4) {
        if frame.is_empty() {
            return;
        }
        let at = random.below(frame.len());
        match random.below(7) {
            0 => frame[at] ^= 1 << random.below(8),
            1 => frame[at] = EDGES[random.below(EDGES.len())],
            2 => frame.truncate(at),
            3 => {
                let end = (at + 4).min(frame.len());
                frame[at..end].fill(EDGES[random.below(EDGES.len())]);
            }
            4 => {
                let end = (at + 4).min(frame.len());
                let count = COUNTS[random.below(COUNTS.len())].to_be_bytes();
                frame[at..end].copy_from_slice(&count[..end - at]);
            }
            5 => frame
                .splice(at..at, other[random.below(other.len())..].iter().copied())
                .for_each(drop),
            _ => frame[at] = random.below(256) as u8,
        }
    }
}

#[test]
fn mutated_frames_are_no_danger() {
    let seeds = seeds();
    assert!(seeds.len() >= 20, "{} seeds", seeds.len());
    let mut codecs = exercise::codecs();
    let mut random = Random(SEED);
    for seed in &seeds {
        exercise::exercise(seed, &mut codecs);
    }
    for _ in 0..MUTATIONS {
        let mut frame = seeds[random.below(seeds.len())].clone();
        let other = &seeds[random.below(seeds.len())];
        mutate(&mut frame, other, &mut random);
        exercise::exercise(&frame, &mut codecs);
    }
}
