//! `cargo +nightly fuzz run http_answers`: see fuzz/README.md.
#![no_main]

#[path = "../../crates/steelyard-http/tests/exercise.rs"]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let cut = bytes.first().map_or(0, |byte| usize::from(*byte) % (bytes.len() + 1));
    exercise::exercise(bytes, cut);
});
