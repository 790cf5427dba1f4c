//! YCSB over etcd's JSON gateway: a field is a key of its own, `KEY/FIELD`, so that one request carries each operation.

use std::borrow::Cow;

use serde::Deserialize;
use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_protocol::{Malformed, base64};
use steelyard_wire::{Action, Etcd, Order, Ycsb};
use steelyard_workload::OrderError;
use steelyard_workload::decimal::put_decimal;
use steelyard_workload::operation::{Compared, Operation};
use steelyard_workload::ycsb::{
    Kind, ValueSeed, first_new_key, is_right, named_number, number_in_name, required, write_key, write_value,
};

use crate::course::{Course, Scratch};

/// Most operations of a transaction, by etcd's default.
const MAX_FIELDS: usize = 128;

/// What etcd says, with the code of an unknown error, when it gives up waiting for the others.
const DEADLINE: &str = "context deadline exceeded";

/// What is asked of etcd.
pub(crate) struct Gateway {
    workload: Ycsb,
    seed: ValueSeed,
    action: Action,
    serializable: bool,
    compared: Compared,
}

/// What is compared of an answer to a range: keys and values in base64.
#[derive(Deserialize)]
struct Range<'a> {
    #[serde(borrow, default)]
    kvs: Vec<KeyValue<'a>>,
}

#[derive(Deserialize)]
struct KeyValue<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow, default)]
    value: Cow<'a, str>,
}

/// The body of an error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    code: u32,
    error: String,
    message: String,
}

impl Gateway {
    /// Errors: work that etcd cannot do.
    pub fn of(order: &Order, target: Etcd) -> Result<Self, OrderError> {
        let workload = required(order, "etcd")?;
        let fields = workload.fields.len();
        if fields > MAX_FIELDS {
            let allowed = "1 to 128 over etcd, where a record is written in one transaction";
            return Err(OrderError::new("work.fields", fields, allowed));
        }
        Ok(Self {
            workload: workload.clone(),
            seed: ValueSeed::new(order.seed),
            action: order.action,
            serializable: target.serializable,
            compared: Compared::new(order.seed, workload.validate_fraction),
        })
    }

    #[inline]
    pub fn compares(&self, operation: &Operation) -> bool {
        matches!(Kind::of(operation), Kind::Read | Kind::Scan) && self.compared.has(operation)
    }

    #[inline]
    pub fn put(&self, operation: &Operation, fields: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) {
        scratch.body.clear();
        let path = self.put_body(operation, scratch);
        out.extend_from_slice(b"POST /v3/kv/");
        out.extend_from_slice(path);
        out.extend_from_slice(b" HTTP/1.1\r\nContent-Length: ");
        put_decimal(scratch.body.len() as u64, 1, out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(fields);
        out.extend_from_slice(&scratch.body);
    }

    /// Writes the body of a request; what it is sent to.
    fn put_body(&self, operation: &Operation, scratch: &mut Scratch) -> &'static [u8] {
        let Scratch { key, value, body } = scratch;
        key.clear();
        write_key(operation.key, &self.workload, key);
        key.push(b'/');
        let prefix = key.len();
        match Kind::of(operation) {
            Kind::Scan => {
                self.put_range(key, Some(b"\0"), body);
                body.extend_from_slice(b",\"limit\":");
                let fields = self.workload.fields.len() as u64;
                put_decimal(u64::from(operation.scan_length) * fields, 1, body);
                body.push(b'}');
                b"range"
            }
            Kind::Read | Kind::ReadModifyWrite => {
                if self.workload.read_all_fields {
                    // All keys that begin with the prefix: those below it with its last byte, the slash, raised by one.
                    value.clear();
                    value.extend_from_slice(&key[..prefix - 1]);
                    value.push(b'/' + 1);
                    self.put_range(key, Some(value), body);
                } else {
                    key.extend_from_slice(self.workload.fields[operation.field as usize].as_bytes());
                    self.put_range(key, None, body);
                }
                body.push(b'}');
                b"range"
            }
            Kind::Update if !self.workload.write_all_fields => {
                self.put_value(operation, operation.field as usize, prefix, key, value, body);
                b"put"
            }
            Kind::Update | Kind::Insert => {
                body.extend_from_slice(b"{\"success\":[");
                for field in 0..self.workload.fields.len() {
                    if field > 0 {
                        body.push(b',');
                    }
                    body.extend_from_slice(b"{\"requestPut\":");
                    self.put_value(operation, field, prefix, key, value, body);
                    body.push(b'}');
                }
                body.extend_from_slice(b"]}");
                b"txn"
            }
        }
    }

    /// Appends a range but for its last brace.
    fn put_range(&self, key: &[u8], end: Option<&[u8]>, body: &mut Vec<u8>) {
        body.extend_from_slice(b"{\"key\":\"");
        base64::put(key, body);
        if let Some(end) = end {
            body.extend_from_slice(b"\",\"range_end\":\"");
            base64::put(end, body);
        }
        body.push(b'"');
        if self.serializable {
            body.extend_from_slice(b",\"serializable\":true");
        }
    }

    /// Appends a field with its value; of `key` the first `prefix` bytes are the record's.
    fn put_value(
        &self,
        operation: &Operation,
        field: usize,
        prefix: usize,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
        body: &mut Vec<u8>,
    ) {
        key.truncate(prefix);
        key.extend_from_slice(self.workload.fields[field].as_bytes());
        let version = operation.version(self.action);
        value.clear();
        write_value(self.seed, operation.key, field as u32, version, &self.workload, value);
        body.extend_from_slice(b"{\"key\":\"");
        base64::put(key, body);
        body.extend_from_slice(b"\",\"value\":\"");
        base64::put(value, body);
        body.extend_from_slice(b"\"}");
    }

    #[inline]
    pub fn end(
        &self,
        operation: &Operation,
        course: &mut Course,
        samples: &mut ErrorSamples,
    ) -> Result<Outcome, Malformed> {
        if course.status != 200 {
            let (outcome, text) = refused(operation, course);
            samples.add(outcome, &text);
            return Ok(outcome);
        }
        let found = course.glance.objects()?;
        if course.compares && found > 0 && !self.holds(operation, &course.body)? {
            return Ok(Outcome::Invalid);
        }
        Ok(match Kind::of(operation) {
            Kind::Scan => {
                course.rows = found.div_ceil(self.workload.fields.len() as u32);
                Outcome::Ok
            }
            Kind::Read | Kind::ReadModifyWrite if found == 0 => Outcome::NotFound,
            Kind::Read | Kind::ReadModifyWrite => {
                course.rows = 1;
                Outcome::Ok
            }
            Kind::Update | Kind::Insert => Outcome::Ok,
        })
    }
}

impl Gateway {
    /// Whether the keys that were found are those that were asked for, and hold what was written to them. Errors: it is no answer
    /// to a range.
    fn holds(&self, operation: &Operation, body: &[u8]) -> Result<bool, Malformed> {
        let range: Range<'_> = serde_json::from_slice(body).map_err(|_| Malformed("the body is no range of keys"))?;
        let is_scan = Kind::of(operation) == Kind::Scan;
        let wanted = named_number(operation.key, &self.workload);
        // An update makes a field of a key whose insert has failed.
        let may_lack_fields = is_scan || operation.key >= first_new_key(&self.workload);
        let all = if self.workload.read_all_fields {
            self.workload.fields.len()
        } else {
            1
        };
        if range.kvs.len() != all && !may_lack_fields {
            return Ok(false);
        }
        let (mut key, mut value, mut missing) = (Vec::new(), Vec::new(), operation.expects > 0);
        let right = range.kvs.iter().all(|kv| {
            if !base64::take(kv.key.as_bytes(), &mut key) || !base64::take(kv.value.as_bytes(), &mut value) {
                return false;
            }
            let Some(slash) = key.iter().position(|byte| *byte == b'/') else {
                return false;
            };
            let field = self
                .workload
                .fields
                .iter()
                .position(|field| field.as_bytes() == &key[slash + 1..]);
            let is_asked = is_scan || self.workload.read_all_fields || field == Some(operation.field as usize);
            match (number_in_name(&key[..slash]), field) {
                (Some(number), Some(field)) if is_asked && (is_scan || number == wanted) => {
                    missing &= field != operation.field as usize;
                    is_right(self.seed, operation, number, field as u32, &value, &self.workload)
                }
                _ => false,
            }
        });
        Ok(right && !missing)
    }
}

/// The kind and the text of an error: by the code of gRPC in its body, else by its status.
#[cold]
fn refused(operation: &Operation, course: &Course) -> (Outcome, String) {
    let refusal: Refusal = serde_json::from_slice(&course.body).unwrap_or_default();
    let said = if refusal.message.is_empty() {
        refusal.error
    } else {
        refusal.message
    };
    let timeout = match Kind::of(operation) {
        Kind::Update | Kind::Insert => Outcome::WriteTimeout,
        _ => Outcome::ReadTimeout,
    };
    let outcome = match (refusal.code, course.status) {
        _ if said == DEADLINE => timeout,
        (4, _) | (0, 504) => timeout,
        (8, _) | (0, 429) => Outcome::Overloaded,
        (14, _) | (0, 503) => Outcome::Unavailable,
        _ => Outcome::Server,
    };
    let status = String::from_utf8_lossy(&course.said);
    let text = if said.is_empty() {
        format!("HTTP {status}")
    } else {
        said
    };
    (outcome, text)
}

#[cfg(test)]
#[path = "etcd_tests.rs"]
mod tests;
