//! Statements of YCSB's operations, prepared on each connection, and what their answers mean.

use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_protocol::Malformed;
use steelyard_wire::{Action, Order, Postgresql, Ycsb};
use steelyard_workload::OrderError;
use steelyard_workload::decimal::put_decimal;
use steelyard_workload::operation::{Compared, Operation};
use steelyard_workload::ycsb::{
    Kind, ValueSeed, identifier, is_right, named_number, number_in_name, required, write_key, write_value,
};

use crate::messages::{EXECUTE_AND_SYNC, Row, SYNC, ServerError, first, put, put_text, put_value};

/// Most columns of a table, less the key's.
const MAX_FIELDS: usize = 1_599;

/// What is kept of an operation.
#[derive(Debug, Default)]
pub struct Course {
    pub(crate) rows: u32,
}

/// The statements of an order. Of one kind there is one for all fields, or one for each.
pub(crate) struct Statements {
    workload: Ycsb,
    seed: ValueSeed,
    action: Action,
    compared: Compared,
    /// Of each kind of step, the number of its first statement.
    firsts: [usize; 4],
    /// What prepares all of them.
    pub prepare: Vec<u8>,
    /// The first bytes of what binds each, behind the message's length.
    binds: Vec<Vec<u8>>,
}

impl Statements {
    /// Errors: work that has no statements, or names that are not there.
    pub fn of(order: &Order, target: &Postgresql) -> Result<Self, OrderError> {
        let workload = required(order, "postgresql")?;
        for (field, name) in [("target.table", &target.table), ("target.key", &target.key)] {
            if name.is_empty() {
                return Err(OrderError::new(field, "nothing", "a name"));
            }
        }
        let count = workload.fields.len();
        if !(1..=MAX_FIELDS).contains(&count) {
            return Err(OrderError::new("work.fields", count, "1 to 1599 over postgresql"));
        }
        let mut statements = Self {
            workload: workload.clone(),
            seed: ValueSeed::new(order.seed),
            action: order.action,
            compared: Compared::new(order.seed, workload.validate_fraction),
            firsts: [0; 4],
            prepare: Vec::new(),
            binds: Vec::new(),
        };
        let fields: Vec<String> = workload.fields.iter().map(|field| identifier(field)).collect();
        for (place, kind) in Kind::ALL[..4].iter().enumerate() {
            statements.firsts[place] = statements.binds.len();
            let parts = if statements.is_whole(*kind) { count } else { 1 };
            for fields in fields.chunks(parts) {
                statements.add(&sql(*kind, target, fields), parameters(*kind, fields.len()));
            }
        }
        statements.prepare.extend_from_slice(SYNC);
        Ok(statements)
    }

    /// Whether a statement of that kind has all fields.
    fn is_whole(&self, kind: Kind) -> bool {
        match kind {
            Kind::Insert => true,
            Kind::Update => self.workload.write_all_fields,
            _ => self.workload.read_all_fields,
        }
    }

    fn add(&mut self, sql: &str, parameters: usize) {
        let name = format!("s{}", self.binds.len());
        put(Some(b'P'), &mut self.prepare, |out| {
            put_text(name.as_bytes(), out);
            put_text(sql.as_bytes(), out);
            // The server knows the parameters' types.
            out.extend_from_slice(&[0; 2]);
        });
        // The portal has no name, and all parameters are text.
        let mut bind = vec![0];
        put_text(name.as_bytes(), &mut bind);
        bind.extend_from_slice(&[0; 2]);
        bind.extend_from_slice(&(parameters as u16).to_be_bytes());
        self.binds.push(bind);
    }

    /// The fields that a step reads or writes.
    fn fields(&self, kind: Kind, operation: &Operation) -> std::ops::Range<u32> {
        if self.is_whole(kind) {
            0..self.workload.fields.len() as u32
        } else {
            operation.field..operation.field + 1
        }
    }

    /// Appends the group of an operation's step.
    #[inline]
    pub fn put(&self, operation: &Operation, out: &mut Vec<u8>) {
        let (workload, kind) = (&self.workload, Kind::of(operation));
        let fields = self.fields(kind, operation);
        let first = self.firsts[kind as usize];
        let number = if self.is_whole(kind) {
            first
        } else {
            first + operation.field as usize
        };
        let put_key = |out: &mut Vec<u8>| put_value(out, |out| write_key(operation.key, workload, out));
        let version = operation.version(self.action);
        put(Some(b'B'), out, |out| {
            out.extend_from_slice(&self.binds[number]);
            if kind != Kind::Update {
                put_key(out);
            }
            match kind {
                Kind::Scan => put_value(out, |out| put_decimal(u64::from(operation.scan_length), 1, out)),
                Kind::Update | Kind::Insert => {
                    for field in fields {
                        put_value(out, |out| {
                            write_value(self.seed, operation.key, field, version, workload, out)
                        });
                    }
                }
                _ => {}
            }
            if kind == Kind::Update {
                put_key(out);
            }
            // All values of rows are text.
            out.extend_from_slice(&[0; 2]);
        });
        out.extend_from_slice(EXECUTE_AND_SYNC);
    }

    /// What the answer to a step means. Errors: not an answer to it.
    #[inline]
    pub fn take(
        &self,
        operation: &Operation,
        course: &mut Course,
        answer: &[u8],
        samples: &mut ErrorSamples,
    ) -> Result<Outcome, Malformed> {
        const OTHER: Malformed = Malformed("an answer to another statement");
        let kind = Kind::of(operation);
        let reads = matches!(kind, Kind::Read | Kind::Scan);
        let compares = reads && self.compared.has(operation);
        let (mut outcome, mut is_right, mut at) = (None, true, 0);
        while let Some((message, bytes)) = first(&answer[at..])? {
            at += bytes;
            match (message.kind, kind) {
                (b'D', _) if reads => {
                    course.rows += 1;
                    is_right = is_right && (!compares || self.holds(operation, message.body)?);
                }
                (b'C', Kind::Read) if course.rows == 0 => outcome = Some(Outcome::NotFound),
                (b'C', Kind::Update) if message.body == b"UPDATE 0\0" => outcome = Some(Outcome::NotFound),
                (b'C', _) => {
                    let wanted = [b'S', b'U', b'I', b'S'][kind as usize];
                    let ended = message.body.first() == Some(&wanted);
                    outcome = Some(ended.then_some(Outcome::Ok).ok_or(OTHER)?);
                }
                (b'E', _) => {
                    let error = ServerError::read(message.body);
                    samples.add(outcome_of(&error.code), &error.to_string());
                    outcome = Some(outcome_of(&error.code));
                }
                // Bound, ready again, or none of the operation's business.
                (b'2' | b'Z' | b'S' | b'N' | b'A', _) => {}
                _ => return Err(OTHER),
            }
        }
        let outcome = outcome.ok_or(OTHER)?;
        Ok(if outcome == Outcome::Ok && !is_right {
            Outcome::Invalid
        } else {
            outcome
        })
    }

    /// Whether a row holds what was written to it.
    fn holds(&self, operation: &Operation, body: &[u8]) -> Result<bool, Malformed> {
        let kind = Kind::of(operation);
        let (mut row, fields) = (Row::read(body)?, self.fields(kind, operation));
        if u32::from(row.columns) != fields.end - fields.start + u32::from(kind == Kind::Scan) {
            return Ok(false);
        }
        let number = match kind {
            Kind::Scan => row.value()?.and_then(number_in_name),
            _ => Some(named_number(operation.key, &self.workload)),
        };
        for field in fields {
            let (Some(number), Some(value)) = (number, row.value()?) else {
                return Ok(false);
            };
            if !is_right(self.seed, operation, number, field, value, &self.workload) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The text of a statement for those fields.
fn sql(kind: Kind, target: &Postgresql, fields: &[String]) -> String {
    let (table, key) = (identifier(&target.table), identifier(&target.key));
    let columns = fields.join(", ");
    let each = |write: &dyn Fn(usize, &str) -> String| {
        let parts: Vec<String> = fields.iter().enumerate().map(|(at, field)| write(at, field)).collect();
        parts.join(", ")
    };
    match kind {
        Kind::Update => {
            let sets = each(&|at, field| format!("{field} = ${}", at + 1));
            format!("UPDATE {table} SET {sets} WHERE {key} = ${}", fields.len() + 1)
        }
        Kind::Insert => {
            let values = each(&|at, _| format!("${}", at + 2));
            // As with the other protocols, rows may be there already: of an earlier fill, or of another trial's inserts.
            let sets = each(&|_, field| format!("{field} = EXCLUDED.{field}"));
            format!(
                "INSERT INTO {table} ({key}, {columns}) VALUES ($1, {values}) ON CONFLICT ({key}) DO UPDATE SET {sets}"
            )
        }
        Kind::Scan => format!("SELECT {key}, {columns} FROM {table} WHERE {key} >= $1 ORDER BY {key} LIMIT $2"),
        _ => format!("SELECT {columns} FROM {table} WHERE {key} = $1"),
    }
}

fn parameters(kind: Kind, fields: usize) -> usize {
    match kind {
        Kind::Update | Kind::Insert => fields + 1,
        Kind::Scan => 2,
        _ => 1,
    }
}

/// The kind of error that an SQLSTATE is.
fn outcome_of(code: &str) -> Outcome {
    match code {
        "57P01" | "57P02" | "57P03" => Outcome::Unavailable,
        _ if code.starts_with("53") => Outcome::Overloaded,
        _ => Outcome::Server,
    }
}

#[cfg(test)]
#[path = "statements_tests.rs"]
mod tests;
