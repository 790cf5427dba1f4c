//! Answers of PostgreSQL, changed at random places: nothing that reads them may panic or run away.
#![allow(clippy::unwrap_used)]

use steelyard_testing::mutation::mutations;

use crate::exercise::exercise;
use crate::server::{WELCOME, done, error};

#[test]
fn mutated_answers_are_no_danger() {
    let ready: &[u8] = b"Z\0\0\0\x05I";
    let mut seeds = vec![[WELCOME, b"S\0\0\0\x17in_hot_standby\0off\0", ready].concat()];
    for name in ["s0", "s1", "s2"] {
        let (mut well, mut badly) = (b"2\0\0\0\x04".to_vec(), b"2\0\0\0\x04".to_vec());
        done(name, &mut well);
        error("57P01", &mut badly);
        seeds.extend([[well.as_slice(), ready].concat(), [badly.as_slice(), ready].concat()]);
    }
    // Lengths and kinds confuse readers most.
    mutations(&seeds, b"\0\x01\x04\x05\x7f\xffZDCES", &[], exercise);
}
