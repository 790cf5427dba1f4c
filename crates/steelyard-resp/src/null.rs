//! The null server: answers every command of a load at once, so that the ceiling of a load generator can be measured. Every
//! record exists, with what YCSB's key 0 would hold in ten fields of a hundred bytes, and all hash slots are its own.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use steelyard_channel::answering::{self, Answered};
use steelyard_protocol::Malformed;
use steelyard_workload::ycsb::{null_name, null_value};

use crate::protocol::{Scanner, line, number, put_array, put_bulk};

const FIELDS: u32 = 10;

/// Listens and serves, on one thread, until the kernel refuses; one command after the other, each after `service`. Calls `listening`
/// with the bound address.
///
/// # Errors
///
/// What the kernel says.
pub fn serve(listen: SocketAddr, service: Duration, listening: impl FnOnce(SocketAddr)) -> io::Result<()> {
    answering::serve(listen, |address| {
        listening(address);
        let answers = Answers::new(address);
        move |scanner: &mut Scanner, input: &[u8], out: &mut Vec<u8>| {
            let broken = |error: Malformed| io::Error::new(io::ErrorKind::InvalidData, error);
            let mut used = 0;
            while let Some(end) = scanner.end(&input[used..]).map_err(broken)? {
                if !service.is_zero() {
                    thread::sleep(service);
                }
                answers.put(&input[used..used + end], out).map_err(broken)?;
                used += end;
            }
            Ok(Answered { used, closes: false })
        }
    })
}

/// What is answered, made once.
struct Answers {
    record: Vec<u8>,
    value: Vec<u8>,
    keys: Vec<u8>,
    slots: Vec<u8>,
    info: Vec<u8>,
}

impl Answers {
    fn new(address: SocketAddr) -> Self {
        let (mut record, mut value, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let (mut slots, mut info) = (Vec::new(), Vec::new());
        put_array(2 * FIELDS as usize, &mut record);
        for field in 0..FIELDS {
            put_bulk(format!("field{field}").as_bytes(), &mut record);
            put_bulk(&null_value(field), &mut record);
        }
        put_bulk(&null_value(0), &mut value);
        put_array(1, &mut keys);
        put_bulk(null_name().as_bytes(), &mut keys);
        slots.extend_from_slice(b"*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n");
        put_bulk(address.ip().to_string().as_bytes(), &mut slots);
        slots.extend_from_slice(format!(":{}\r\n$4\r\nnull\r\n", address.port()).as_bytes());
        put_bulk(b"redis_version:null\r\n", &mut info);
        Self {
            record,
            value,
            keys,
            slots,
            info,
        }
    }

    /// Appends the answer to a command. Errors: it is none.
    fn put(&self, command: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        const NONE: Malformed = Malformed("not a command");
        let (kind, parts, begin) = line(command)?.ok_or(NONE)?;
        let (_, _, length) = line(&command[begin..])?.ok_or(NONE)?;
        let (parts, name) = (number(parts)?, &command[begin + length..]);
        if kind != b'*' || parts < 1 {
            return Err(NONE);
        }
        let name = name.split(|byte| *byte == b'\r').next().unwrap_or_default();
        match name {
            b"HGETALL" => out.extend_from_slice(&self.record),
            b"HMGET" => {
                put_array(usize::try_from(parts - 2).unwrap_or(0), out);
                (2..parts).for_each(|_| out.extend_from_slice(&self.value));
            }
            b"HMSET" | b"READONLY" | b"ASKING" => out.extend_from_slice(b"+OK\r\n"),
            b"HSET" | b"ZADD" => out.extend_from_slice(b":1\r\n"),
            // One key, which is there as every other.
            b"ZRANGEBYSCORE" => out.extend_from_slice(&self.keys),
            b"PING" => out.extend_from_slice(b"+PONG\r\n"),
            b"INFO" => out.extend_from_slice(&self.info),
            b"CLUSTER" => out.extend_from_slice(&self.slots),
            _ => out.extend_from_slice(b"-ERR unknown command\r\n"),
        }
        Ok(())
    }
}
