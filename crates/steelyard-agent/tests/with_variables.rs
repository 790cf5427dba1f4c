//! `with-variables`: what stands on the first line of standard input is in the command's environment, and nowhere else.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::io::Write;
use std::process::{Output, Stdio};

use crate::scratch::agent;

const SECRET: &str = "hunt er\"2";

fn with_variables(input: &str, argv: &[&str]) -> Output {
    let mut child = agent()
        .args(["with-variables", "--"])
        .args(argv)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that ends without reading closes its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn the_command_has_the_variables_and_the_rest_of_the_input() {
    let line = serde_json::json!({ "PLANTED": SECRET }).to_string();
    let script = "printf '%s|' \"$PLANTED\"; cat; tr '\\0' ' ' < /proc/$$/cmdline";
    let done = with_variables(&format!("{line}\nfirst\nsecond\n"), &["sh", "-c", script]);
    let text = String::from_utf8(done.stdout).unwrap();
    let (value, rest) = text.split_once('|').unwrap();
    assert_eq!(value, SECRET);
    assert!(rest.starts_with("first\nsecond\n"), "{rest}");
    assert!(!rest.contains("hunt"), "{rest}");
    assert_eq!(done.status.code(), Some(0));
}

#[test]
fn a_line_that_is_wrong_is_not_repeated() {
    for input in ["", "hunter2", "\"hunter2\"\n", "{\"PLANTED\": [\"hunter2\"]}\n"] {
        let done = with_variables(input, &["true"]);
        assert_eq!(done.status.code(), Some(2), "{input:?}");
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.contains("does not begin with a line of JSON"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_127() {
    let done = with_variables("{}\n", &["/there/is/no/such/program"]);
    assert_eq!(done.status.code(), Some(127));
}
