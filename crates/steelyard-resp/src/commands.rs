//! Commands of YCSB's operations, as its binding for Redis has them: a record is a hash under its key, and a sorted set holds
//! all keys by a hash of theirs, for scans.

use std::collections::{HashMap, VecDeque};

use steelyard_load::outcome::Outcome;
use steelyard_protocol::Malformed;
use steelyard_wire::{Action, Order, Resp, Ycsb};
use steelyard_workload::OrderError;
use steelyard_workload::operation::{Compared, Operation};
use steelyard_workload::ycsb::{
    Kind, ValueSeed, first_new_key, is_right, number_in_name, required, write_key, write_value,
};

use crate::hash_slots::hash_slot;
use crate::protocol::{Answer, line, number, put_array, put_bulk, put_command, values};

/// Which of its commands an operation is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// That of a record, by the kind of operation.
    #[default]
    Record,
    /// An insert's second: its key goes to the sorted set.
    Index,
    /// A scan's first: which keys there are.
    Keys,
    /// The others of a scan: a record each.
    Row,
}

/// What an operation is at.
#[derive(Debug, Default)]
pub struct Course {
    pub(crate) stage: Stage,
    /// The record's key; the next one's of a scan.
    pub(crate) key: Vec<u8>,
    pub(crate) rows: u32,
    /// How often the command was sent elsewhere since it last waited.
    pub(crate) redirects: u32,
    /// Keys that a scan has not read yet.
    keys: VecDeque<Vec<u8>>,
}

/// The commands of an order.
pub(crate) struct Commands {
    workload: Ycsb,
    seed: ValueSeed,
    action: Action,
    /// The fields' names as they stand in commands.
    fields: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
    compared: Compared,
    index: Option<Vec<u8>>,
    index_slot: u16,
}

impl Commands {
    /// Errors: work that has no commands.
    pub fn of(order: &Order, target: &Resp) -> Result<Self, OrderError> {
        let workload = required(order, "resp")?;
        let scans = order.action == Action::Load && workload.proportions.scan > 0.0;
        if scans && target.index.is_none() {
            let why = "not possible over resp without target.index, which the fill needs, too: give both \"_indices\", \
                as YCSB's binding does, or take scans out";
            return Err(OrderError::because("work.proportions.scan", why));
        }
        let bulk = |name: &String| {
            let mut bytes = Vec::new();
            put_bulk(name.as_bytes(), &mut bytes);
            bytes
        };
        let index = target.index.as_ref().map(|index| index.as_bytes().to_vec());
        Ok(Self {
            fields: workload.fields.iter().map(bulk).collect(),
            numbers: workload
                .fields
                .iter()
                .map(|name| name.clone().into_bytes())
                .zip(0..)
                .collect(),
            compared: Compared::new(order.seed, workload.validate_fraction),
            workload: workload.clone(),
            seed: ValueSeed::new(order.seed),
            action: order.action,
            index_slot: index.as_deref().map_or(0, hash_slot),
            index,
        })
    }

    /// Begins an operation, or a step of it.
    #[inline]
    pub fn begin(&self, operation: &Operation, course: &mut Course) {
        course.key.clear();
        course.keys.clear();
        (course.rows, course.redirects) = (0, 0);
        write_key(operation.key, &self.workload, &mut course.key);
        course.stage = match Kind::of(operation) {
            Kind::Scan => Stage::Keys,
            _ => Stage::Record,
        };
    }

    /// Of the key that the command names.
    #[inline]
    pub fn hash_slot(&self, course: &Course) -> u16 {
        match course.stage {
            Stage::Index | Stage::Keys => self.index_slot,
            Stage::Record | Stage::Row => hash_slot(&course.key),
        }
    }

    /// Appends the command that the operation is at; `scratch` is overwritten.
    #[inline]
    pub fn put(&self, operation: &Operation, course: &Course, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        let index = self.index.as_deref().unwrap_or_default();
        let score = || java_hash(&course.key).to_string();
        match (course.stage, Kind::of(operation)) {
            (Stage::Index, _) => put_command(&[b"ZADD", index, score().as_bytes(), &course.key], out),
            (Stage::Keys, _) => {
                let (score, rows) = (score(), operation.scan_length.to_string());
                let (score, rows) = (score.as_bytes(), rows.as_bytes());
                put_command(&[b"ZRANGEBYSCORE", index, score, b"+inf", b"LIMIT", b"0", rows], out);
            }
            (Stage::Record, Kind::Update | Kind::Insert) => self.put_fields(operation, &course.key, scratch, out),
            _ if self.workload.read_all_fields => {
                out.extend_from_slice(b"*2\r\n$7\r\nHGETALL\r\n");
                put_bulk(&course.key, out);
            }
            _ => {
                out.extend_from_slice(b"*3\r\n$5\r\nHMGET\r\n");
                put_bulk(&course.key, out);
                out.extend_from_slice(&self.fields[operation.field as usize]);
            }
        }
    }

    fn put_fields(&self, operation: &Operation, key: &[u8], scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        let whole = Kind::of(operation) == Kind::Insert || self.workload.write_all_fields;
        let fields = if whole {
            0..self.fields.len()
        } else {
            operation.field as usize..operation.field as usize + 1
        };
        put_array(2 + 2 * fields.len(), out);
        out.extend_from_slice(b"$5\r\nHMSET\r\n");
        put_bulk(key, out);
        let version = operation.version(self.action);
        for number in fields {
            out.extend_from_slice(&self.fields[number]);
            scratch.clear();
            write_value(
                self.seed,
                operation.key,
                number as u32,
                version,
                &self.workload,
                scratch,
            );
            put_bulk(scratch, out);
        }
    }

    /// Takes an answer that is no error. `None`: another command follows. Errors: not an answer to that command.
    #[inline]
    pub fn take(
        &self,
        operation: &Operation,
        course: &mut Course,
        answer: &[u8],
    ) -> Result<Option<Outcome>, Malformed> {
        const OTHER: Malformed = Malformed("an answer of another command");
        let (kind, text, _) = line(answer)?.ok_or(OTHER)?;
        match (course.stage, Kind::of(operation)) {
            (Stage::Record, Kind::Update | Kind::Insert) if kind == b'+' => {
                if self.index.is_some() && Kind::of(operation) == Kind::Insert {
                    course.stage = Stage::Index;
                    return Ok(None);
                }
                Ok(Some(Outcome::Ok))
            }
            (Stage::Index, _) if kind == b':' => Ok(Some(Outcome::Ok)),
            (Stage::Keys, _) if kind == b'*' => {
                for key in Answer::read(answer)?.elements() {
                    let Answer::Bulk(Some(key)) = key else {
                        return Err(OTHER);
                    };
                    course.keys.push_back(key.to_vec());
                }
                Ok(self.next_row(course))
            }
            (Stage::Record | Stage::Row, Kind::Read | Kind::Scan) if kind == b'*' => {
                let there = self.is_there(answer, text)?;
                if there && self.compared.has(operation) && !self.holds(operation, &course.key, answer)? {
                    return Ok(Some(Outcome::Invalid));
                }
                course.rows += u32::from(there);
                Ok(match course.stage {
                    Stage::Row => self.next_row(course),
                    _ if there => Some(Outcome::Ok),
                    _ => Some(Outcome::NotFound),
                })
            }
            _ => Err(OTHER),
        }
    }

    /// Whether the record that was read is there: any field of it, or the one that was wanted.
    #[inline]
    fn is_there(&self, answer: &[u8], elements: &[u8]) -> Result<bool, Malformed> {
        Ok(number(elements)? > 0 && answer != b"*1\r\n$-1\r\n")
    }

    /// Whether a record that is there holds what was written to it.
    fn holds(&self, operation: &Operation, key: &[u8], answer: &[u8]) -> Result<bool, Malformed> {
        let Some(number) = number_in_name(key) else {
            return Ok(false);
        };
        let holds = |field: u32, value: Option<&[u8]>| {
            value.is_some_and(|value| is_right(self.seed, operation, number, field, value, &self.workload))
        };
        let mut values = values(answer)?;
        if !self.workload.read_all_fields {
            return Ok(values.all(|value| holds(operation.field, value)));
        }
        let (mut count, mut missing) = (0, operation.expects > 0);
        while let Some(name) = values.next() {
            let field = name.and_then(|name| self.field(name, count));
            missing &= field != Some(operation.field);
            if !field.is_some_and(|field| holds(field, values.next().flatten())) {
                return Ok(false);
            }
            count += 1;
        }
        // An update makes a record of a key whose insert has failed. Of a scan's rows it is unknown which keys are new.
        let may_lack_fields = Kind::of(operation) == Kind::Scan || operation.key >= first_new_key(&self.workload);
        Ok(!missing && (may_lack_fields || count == self.fields.len()))
    }

    /// The number of a field that a record has at that place: most servers give fields in the order in which they were written.
    #[inline]
    fn field(&self, name: &[u8], place: usize) -> Option<u32> {
        match self.workload.fields.get(place) {
            Some(field) if field.as_bytes() == name => Some(place as u32),
            _ => self.numbers.get(name).copied(),
        }
    }

    fn next_row(&self, course: &mut Course) -> Option<Outcome> {
        let Some(key) = course.keys.pop_front() else {
            return Some(Outcome::Ok);
        };
        (course.stage, course.key) = (Stage::Row, key);
        None
    }
}

/// Java's hash of a string of ASCII, by which YCSB's binding sorts keys.
fn java_hash(key: &[u8]) -> i32 {
    key.iter().fold(0, |hash: i32, byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Scanner;

    fn order(action: Action, whole: bool) -> Order {
        let mut order: Order = serde_json::from_str(include_str!("../../../schema/resp-order.example.json")).unwrap();
        let ycsb = order.work.ycsb_mut().unwrap();
        ycsb.fields.truncate(2);
        ycsb.field_length = 3;
        (ycsb.read_all_fields, ycsb.write_all_fields) = (whole, whole);
        order.action = action;
        order
    }

    fn commands(order: &Order) -> Commands {
        let index = Some("_indices".to_owned());
        Commands::of(order, &Resp { index }).unwrap()
    }

    fn text(commands: &Commands, operation: &Operation, course: &Course) -> String {
        let mut out = Vec::new();
        commands.put(operation, course, &mut Vec::new(), &mut out);
        let answer = Answer::read(&out).unwrap();
        let part = |part: &Answer<'_>| match part {
            Answer::Bulk(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("{other:?}"),
        };
        answer.elements().iter().map(part).collect::<Vec<_>>().join(" ")
    }

    fn operation(kind: Kind, step: u16) -> Operation {
        Operation {
            kind: kind as u16,
            step,
            key: 7,
            field: 1,
            scan_length: 5,
            ..Operation::default()
        }
    }

    #[test]
    fn commands_are_those_of_ycsbs_binding() {
        let mut key = Vec::new();
        let order_of_all = order(Action::Load, true);
        write_key(7, order_of_all.work.ycsb().unwrap(), &mut key);
        let key = String::from_utf8(key).unwrap();
        let score = java_hash(key.as_bytes());
        let value = |field, version| {
            let mut value = Vec::new();
            let ycsb = order_of_all.work.ycsb().unwrap();
            write_value(ValueSeed::new(order_of_all.seed), 7, field, version, ycsb, &mut value);
            String::from_utf8(value).unwrap()
        };
        let all = format!("HMSET {key} field0 {} field1 {}", value(0, 1), value(1, 1));
        let cases = [
            (true, Kind::Read, 0, format!("HGETALL {key}")),
            (false, Kind::Read, 0, format!("HMGET {key} field1")),
            (true, Kind::Update, 0, all.clone()),
            (
                false,
                Kind::ReadModifyWrite,
                1,
                format!("HMSET {key} field1 {}", value(1, 1)),
            ),
            (false, Kind::ReadModifyWrite, 0, format!("HMGET {key} field1")),
            (false, Kind::Insert, 0, all),
            (
                true,
                Kind::Scan,
                0,
                format!("ZRANGEBYSCORE _indices {score} +inf LIMIT 0 5"),
            ),
        ];
        for (whole, kind, step, wanted) in cases {
            let (commands, mut course) = (commands(&order(Action::Load, whole)), Course::default());
            let operation = operation(kind, step);
            commands.begin(&operation, &mut course);
            assert_eq!(text(&commands, &operation, &course), wanted);
        }
        // What is filled has version 0.
        let (commands, mut course) = (commands(&order(Action::Populate, true)), Course::default());
        let operation = operation(Kind::Insert, 0);
        commands.begin(&operation, &mut course);
        assert!(text(&commands, &operation, &course).ends_with(&value(1, 0)));
        assert_eq!(commands.take(&operation, &mut course, b"+OK\r\n"), Ok(None));
        assert_eq!(
            text(&commands, &operation, &course),
            format!("ZADD _indices {score} {key}")
        );
        assert_eq!(commands.take(&operation, &mut course, b":1\r\n"), Ok(Some(Outcome::Ok)));
    }

    #[test]
    fn a_scan_reads_the_keys_that_it_is_given() {
        let (commands, mut course) = (commands(&order(Action::Load, true)), Course::default());
        let scan = operation(Kind::Scan, 0);
        commands.begin(&scan, &mut course);
        assert_eq!(
            commands.take(&scan, &mut course, b"*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
            Ok(None)
        );
        assert_eq!(
            (text(&commands, &scan, &course), commands.hash_slot(&course)),
            ("HGETALL a".to_owned(), hash_slot(b"a"))
        );
        assert_eq!(
            commands.take(&scan, &mut course, b"*2\r\n$1\r\nf\r\n$1\r\nv\r\n"),
            Ok(None)
        );
        assert_eq!(text(&commands, &scan, &course), "HGETALL b");
        // It was deleted meanwhile.
        assert_eq!(commands.take(&scan, &mut course, b"*0\r\n"), Ok(Some(Outcome::Ok)));
        assert_eq!(course.rows, 1);
        commands.begin(&scan, &mut course);
        assert_eq!(commands.take(&scan, &mut course, b"*0\r\n"), Ok(Some(Outcome::Ok)));
    }

    #[test]
    fn every_wrong_byte_of_a_record_is_found() {
        let record = |order: &Order, fields: &[u32], named: bool| {
            let (mut out, workload) = (Vec::new(), order.work.ycsb().unwrap());
            put_array(fields.len() * (1 + usize::from(named)), &mut out);
            for field in fields {
                if named {
                    put_bulk(workload.fields[*field as usize].as_bytes(), &mut out);
                }
                let mut value = Vec::new();
                write_value(ValueSeed::new(77), 7, *field, 5, workload, &mut value);
                put_bulk(&value, &mut out);
            }
            out
        };
        for whole in [true, false] {
            let mut order = order(Action::Load, whole);
            let ycsb = order.work.ycsb_mut().unwrap();
            (ycsb.validate_fraction, ycsb.field_length) = (1.0, 40);
            let commands = commands(&order);
            let outcome = |key: u64, kind: Kind, answer: &[u8]| {
                let (mut course, read) = (
                    Course::default(),
                    Operation {
                        key,
                        ..operation(kind, 0)
                    },
                );
                commands.begin(&read, &mut course);
                if kind == Kind::Scan {
                    let mut keys = b"*1\r\n".to_vec();
                    let mut name = Vec::new();
                    write_key(key, &commands.workload, &mut name);
                    put_bulk(&name, &mut keys);
                    assert_eq!(commands.take(&read, &mut course, &keys), Ok(None));
                }
                commands.take(&read, &mut course, answer)
            };
            // Fields come in any order.
            let good = record(&order, if whole { &[1, 0] } else { &[1] }, whole);
            for kind in [Kind::Read, Kind::Scan] {
                assert_eq!(outcome(7, kind, &good), Ok(Some(Outcome::Ok)));
                assert_eq!(outcome(8, kind, &good), Ok(Some(Outcome::Invalid)));
                for byte in 0..good.len() {
                    let mut wrong = good.clone();
                    wrong[byte] ^= 1;
                    if Scanner::default().end(&wrong) == Ok(Some(wrong.len())) {
                        assert_ne!(outcome(7, kind, &wrong), Ok(Some(Outcome::Ok)), "{byte}");
                    }
                }
            }
            if whole {
                let lacks = record(&order, &[1], true);
                assert_eq!(outcome(7, Kind::Read, &lacks), Ok(Some(Outcome::Invalid)));
                assert_eq!(outcome(7, Kind::Scan, &lacks), Ok(Some(Outcome::Ok)));
            }
        }
    }

    #[test]
    fn a_missing_record_is_not_found_and_another_commands_answer_is_refused() {
        for (whole, answers) in [
            (
                true,
                [("*0\r\n", Outcome::NotFound), ("*2\r\n+f\r\n+v\r\n", Outcome::Ok)],
            ),
            (
                false,
                [("*1\r\n$-1\r\n", Outcome::NotFound), ("*1\r\n$1\r\nv\r\n", Outcome::Ok)],
            ),
        ] {
            let (commands, mut course) = (commands(&order(Action::Load, whole)), Course::default());
            let read = operation(Kind::Read, 0);
            commands.begin(&read, &mut course);
            for (answer, outcome) in answers {
                assert_eq!(commands.take(&read, &mut course, answer.as_bytes()), Ok(Some(outcome)));
            }
            for other in ["+OK\r\n", ":1\r\n", "$1\r\nv\r\n"] {
                assert!(commands.take(&read, &mut course, other.as_bytes()).is_err());
            }
            let update = operation(Kind::Update, 0);
            assert!(commands.take(&update, &mut course, b"*0\r\n").is_err());
        }
    }

    #[test]
    fn what_has_no_commands_is_refused_in_words() {
        let mut scans = order(Action::Load, true);
        scans.work.ycsb_mut().unwrap().proportions.scan = 0.5;
        let refused = |order: &Order| Commands::of(order, &Resp::default()).err().unwrap().to_string();
        assert!(refused(&scans).contains("target.index"));
        scans.action = Action::Populate;
        assert!(Commands::of(&scans, &Resp::default()).is_ok());
        let program = include_str!("../../../schema/program-order.example.json");
        assert!(refused(&serde_json::from_str(program).unwrap()).contains("not possible over resp"));
    }

    #[test]
    fn keys_are_sorted_as_java_does() {
        assert_eq!(java_hash(b"hello"), 99_162_322);
        assert_eq!(java_hash(b"The quick brown fox jumps over the lazy dog"), -609_428_141);
    }
}
