//! Real frames of Cassandra and of ours, changed at random places: nothing that reads them may panic or run away. The
//! fuzzer (`fuzz/`) looks for the same with coverage as its guide; this is what every test run can afford.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod exercise;

use std::path::Path;

use steelyard_testing::mutation::{Change, mutations};

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

/// What confuses readers of numbers: four bytes at once, counts, any byte.
const CHANGES: [Change; 3] = [
    |frame, at, random| {
        let end = (at + 4).min(frame.len());
        frame[at..end].fill(random.one_of(&EDGES));
    },
    |frame, at, random| {
        const COUNTS: [i32; 8] = [0, 2, 300, 65_535, 65_536, i32::MAX, i32::MIN, -5];
        let end = (at + 4).min(frame.len());
        let count = random.one_of(&COUNTS).to_be_bytes();
        frame[at..end].copy_from_slice(&count[..end - at]);
    },
    |frame, at, random| frame[at] = random.below(256) as u8,
];
const EDGES: [u8; 6] = [0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF];

#[test]
fn mutated_frames_are_no_danger() {
    let seeds = seeds();
    assert!(seeds.len() >= 20, "{} seeds", seeds.len());
    let mut codecs = exercise::codecs();
    mutations(&seeds, &EDGES, &CHANGES, |frame, _| {
        exercise::exercise(frame, &mut codecs)
    });
}
