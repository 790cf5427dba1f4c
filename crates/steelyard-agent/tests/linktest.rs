//! `linktest` over loopback: both families of addresses, nobody there, and the end of the server.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::process::{Child, Stdio};

use serde_json::Value as Json;

use crate::scratch::{agent, first_line, lines, run, text};

/// A server on a free port; ends with the test.
struct Server(Child, String);

impl Server {
    fn at(address: &str) -> Self {
        let mut child = agent()
            .args(["linktest", "serve", "--address", address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = first_line(&mut child);
        let said: Json = serde_json::from_str(&line).unwrap();
        assert_eq!(said["listening"], true);
        Self(child, said["port"].to_string())
    }

    fn measure(&self, address: &str, options: &[&str]) -> Json {
        let out = run(&[
            &["linktest", "measure", "--address", address, "--port", &self.1],
            options,
        ]
        .concat());
        assert!(out.status.success(), "{}", text(&out.stderr));
        lines(&out).remove(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn loopback_is_measured_by_either_family_of_addresses() {
    for address in ["127.0.0.1", "::1"] {
        let measured =
            Server::at(address).measure(address, &["--seconds", "0.2", "--probes", "20", "--interval-ms", "1"]);
        assert_eq!(
            (&measured["sent"], &measured["lost"]),
            (&Json::from(20), &Json::from(0)),
            "{measured}"
        );
        let number = |name: &str| measured[name].as_f64().unwrap();
        assert!(number("rtt_ms_min") > 0.0 && number("rtt_ms_min") <= number("rtt_ms_mean"));
        assert!(number("rtt_ms_mean") <= number("rtt_ms_p99") * 20.0);
        assert!(number("mbit_per_s") > 1.0, "{measured}");
    }
}

#[test]
fn what_is_not_asked_for_is_null() {
    let measured = Server::at("127.0.0.1").measure("127.0.0.1", &["--seconds", "0", "--probes", "0"]);
    for name in ["mbit_per_s", "rtt_ms_min", "rtt_ms_mean", "rtt_ms_p99"] {
        assert_eq!(measured[name], Json::Null, "{measured}");
    }
}

#[test]
fn nobody_there_is_exit_code_3() {
    let out = run(&[
        "linktest",
        "measure",
        "--address",
        "127.0.0.1",
        "--port",
        "1",
        "--timeout-ms",
        "50",
    ]);
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("127.0.0.1:1"), "{}", text(&out.stderr));
}

#[test]
fn the_server_ends_with_its_input() {
    let mut server = Server::at("127.0.0.1");
    drop(server.0.stdin.take());
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let out = run(&["linktest", "serve", "--address", "192.0.2.1"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("192.0.2.1"), "{}", text(&out.stderr));
}
