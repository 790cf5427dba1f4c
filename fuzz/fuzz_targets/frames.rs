//! `cargo +nightly fuzz run frames`: see fuzz/README.md.
#![no_main]

#[path = "../../crates/steelyard-cql/tests/exercise/mod.rs"]
mod exercise;

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use steelyard_cql::Codec;

thread_local! {
    // Tables are kept, as a connection keeps them.
    static CODECS: RefCell<[Codec; 2]> = RefCell::new(exercise::codecs());
}

fuzz_target!(|bytes: &[u8]| {
    CODECS.with_borrow_mut(|codecs| exercise::exercise(bytes, codecs));
});
