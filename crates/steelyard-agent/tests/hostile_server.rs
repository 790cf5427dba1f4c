//! `cql` against servers that mean harm: it ends at its time, and takes memory in proportion to what was sent.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use steelyard_cql::{FLAG_WARNING, Frame, HEADER_LENGTH, Opcode, V4, put_string, response};

const TIMEOUT_S: f64 = 1.0;
/// A machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(20);
const DRIP: Duration = Duration::from_millis(20);
/// Address space of the agent: far less than what is announced.
const MEMORY_KIB: u64 = 1 << 20;

/// What a server does with its answer to a statement, and with those of the handshake.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Promptly,
    /// A byte now and then.
    Dripping,
    DrippingFromTheBeginning,
}

/// Answers OPTIONS and STARTUP as they should be, and anything else with `answer`.
fn serve(mut stream: TcpStream, answer: &[u8], manner: Manner) {
    let mut input = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(count) = stream.read(&mut chunk) {
        if count == 0 {
            return;
        }
        input.extend_from_slice(&chunk[..count]);
        while let Ok(Some(header)) = Frame::header(&input) {
            let mut out = Vec::new();
            let operation = match header.opcode {
                opcode if opcode == Opcode::Options as u8 => {
                    response::supported(&mut out, V4, header.stream, &[("CQL_VERSION", &["3.4.7"])]);
                    false
                }
                opcode if opcode == Opcode::Startup as u8 => {
                    response::ready(&mut out, V4, header.stream);
                    false
                }
                _ => {
                    out.extend_from_slice(answer);
                    true
                }
            };
            input.drain(..header.frame_length());
            let drips = manner == Manner::DrippingFromTheBeginning || operation && manner == Manner::Dripping;
            let size = if drips { 1 } else { out.len() };
            for piece in out.chunks(size) {
                if stream.write_all(piece).is_err() {
                    return;
                }
                if drips {
                    thread::sleep(DRIP);
                }
            }
        }
    }
}

fn listen(answer: Vec<u8>, manner: Manner) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || serve(stream.unwrap(), &answer, manner));
        }
    });
    address
}

/// What `cql` does with that answer; it has ended in good time, within its memory.
fn cql(answer: Vec<u8>, manner: Manner) -> Output {
    let address = listen(answer, manner);
    let began = Instant::now();
    let output = Command::new("prlimit")
        .arg(format!("--as={}", MEMORY_KIB << 10))
        .arg(env!("CARGO_BIN_EXE_steelyard-agent"))
        .args(["cql", "--contact", &address.to_string()])
        .args(["--timeout-s", &TIMEOUT_S.to_string(), "SELECT"])
        .output()
        .unwrap();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    output
}

fn refused(answer: Vec<u8>, manner: Manner, why: &str) {
    let output = cql(answer, manner);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(why), "{said}");
}

/// RESULT with rows: flags, number of columns, what describes them, number of rows, cells.
fn rows(flags: i32, columns: i32, described: &[u8], count: i32, cells: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Frame::response(&mut out, V4, 0, Opcode::Result, |body| {
        for number in [2, flags, columns] {
            body.extend_from_slice(&i32::to_be_bytes(number));
        }
        body.extend_from_slice(described);
        body.extend_from_slice(&count.to_be_bytes());
        body.extend_from_slice(cells);
    });
    out
}

#[test]
fn rows_and_columns_that_are_only_announced_are_refused() {
    refused(rows(4, 0, &[], i32::MAX, &[]), Manner::Promptly, "2147483647 rows");
    refused(rows(4, -5, &[], 1, &[0xFF; 8]), Manner::Promptly, "-5 columns");
}

#[test]
fn a_server_that_drips_is_left_at_the_time_limit() {
    let answer = rows(4, 1, &[], 20_000, &[0xFF; 80_000]);
    refused(answer.clone(), Manner::Dripping, "did not answer within 1 s");
    refused(answer, Manner::DrippingFromTheBeginning, "did not answer within 1 s");
}

/// 60,000 elements of 4 bytes, each a value of a type whose one field's name has 60,000: 3.6 GB of text.
#[test]
fn names_that_are_longer_than_values_take_no_memory() {
    let mut described = Vec::new();
    for name in ["k", "t", "c"] {
        put_string(&mut described, name);
    }
    described.extend_from_slice(&[0, 0x20, 0, 0x30]);
    put_string(&mut described, "k");
    put_string(&mut described, "u");
    described.extend_from_slice(&[0, 1]);
    put_string(&mut described, &"n".repeat(60_000));
    described.extend_from_slice(&[0, 9]);
    let count = 60_000_i32;
    let mut cells = (4 + 4 * count).to_be_bytes().to_vec();
    cells.extend_from_slice(&count.to_be_bytes());
    cells.resize(cells.len() + 4 * count as usize, 0);
    let output = cql(rows(1, 1, &described, 1, &cells), Manner::Promptly);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("did not answer within 1 s"), "{said}");
}

/// Warnings whose number says more than there is.
#[test]
fn lists_of_strings_are_held_against_their_bytes() {
    let mut answer = rows(4, 1, &[], 0, &[]);
    answer[1] = FLAG_WARNING;
    answer[HEADER_LENGTH] = 0xFF;
    refused(answer, Manner::Promptly, "strings are announced");
}
