//! Answers of Redis, changed at random places: nothing that reads them may panic or run away.
#![allow(clippy::unwrap_used)]

use steelyard_resp::protocol::{put_array, put_bulk};
use steelyard_testing::mutation::{insert_digits, mutations};

use crate::exercise::exercise;

fn seeds() -> Vec<Vec<u8>> {
    let mut record = Vec::new();
    put_array(20, &mut record);
    for field in 0..10 {
        put_bulk(format!("field{field}").as_bytes(), &mut record);
        put_bulk(&[b'v'; 100], &mut record);
    }
    let slots = b"*2\r\n*4\r\n:0\r\n:5460\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n*0\r\n*3\r\n$9\r\n127.0.0.1\r\n:7003\r\n$2\r\nid\r\n\
        *3\r\n:5461\r\n:16383\r\n*2\r\n$-1\r\n:7001\r\n";
    let small: [&[u8]; 9] = [
        b"+OK\r\n",
        b":1\r\n",
        b"$-1\r\n",
        b"*0\r\n",
        b"*1\r\n$-1\r\n",
        b"-MOVED 3999 127.0.0.1:6381\r\n",
        b"-ASK 3999 ::1:6381\r\n",
        b"-CLUSTERDOWN The cluster is down\r\n",
        b"$20\r\nredis_version:7.0.15\r\n",
    ];
    let mut seeds: Vec<Vec<u8>> = small.iter().map(|seed| seed.to_vec()).collect();
    seeds.extend([record, slots.to_vec()]);
    seeds
}

#[test]
fn mutated_answers_are_no_danger() {
    // Ends of lines, signs and digits confuse readers most.
    mutations(&seeds(), b"\r\n-+:$*09 {\xff", &[insert_digits], exercise);
}
