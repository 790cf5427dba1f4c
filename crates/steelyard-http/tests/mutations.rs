//! Answers of servers, changed at random places: nothing that reads them may panic or run away.
#![allow(clippy::unwrap_used)]

use steelyard_testing::mutation::{insert_digits, mutations};

use crate::exercise::exercise;

fn seeds() -> Vec<Vec<u8>> {
    let sized = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let kvs = r#"{"header":{"revision":"2"},"kvs":[{"key":"Zm9v","value":"YmFy"},{"key":"Zg=="}],"count":"2"}"#;
    let seeds = [
        sized("abcdefghijklm"),
        sized(""),
        sized(kvs),
        [sized("one"), sized("two")].concat(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\nwiki\r\n5\r\npedia\r\n0\r\nX: y\r\n\r\n"
            .to_owned(),
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nconnection: close\r\nContent-Length: 0\r\n\r\n"
            .to_owned(),
        "HTTP/1.0 200 OK\nConnection: keep-alive\n\nuntil the end".to_owned(),
        "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
    ];
    seeds.map(String::into_bytes).to_vec()
}

#[test]
fn mutated_answers_are_no_danger() {
    // Ends of lines, signs and digits confuse readers most.
    mutations(&seeds(), b"\r\n;:,09f {[\xff", &[insert_digits], exercise);
}
