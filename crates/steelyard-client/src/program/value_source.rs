//! Value sources: where the bound values of statements come from, compiled. Each source appends the bytes of one value.

use std::cell::Cell;
use std::sync::Arc;

use steelyard_wire::Ycsb;

use super::cql_type::{CqlType, Native};
use super::encode::{Digits, put_real, put_whole};
use super::random_values::{RandomValue, is_narrow, put_sized, version_of};
use super::table::{KeySource, Row, Table, Taking};
use steelyard_workload::program::Numbers;
use steelyard_workload::random::Random;
use steelyard_workload::stress::{self, ProfileColumn};
use steelyard_workload::ycsb::{ValueSeed, check_value, first_new_key, named_number, write_key, write_value};
use steelyard_workload::ycsb_distributions::uniform;

/// One execution of a statement: all that its values are a function of.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// Index of the operation.
    pub index: u64,
    /// Key number.
    pub key: u64,
    /// Place of the first key, see `Operation::position`.
    pub position: u64,
    /// Keys that the operation draws, see `Operation::keys`.
    pub keys: u64,
    /// Version of the values that are written, see `Operation::version`.
    pub version: u64,
    /// Number of the repetition within a batch whose key stays.
    pub repetition: Option<u64>,
    /// Number of the execution within a batch: each draws numbers of its own.
    pub occurrence: u64,
    /// YCSB's.
    pub scan_length: u32,
    /// YCSB's: the field and the version that it must hold, where a row is read back.
    pub expects: Option<(u32, u64)>,
    /// cassandra-stress's seed of the row, once a column has asked for it.
    pub stress_row: Cell<Option<i64>>,
    /// The row of its statement's table that it means, once a column has asked for it.
    pub row: Cell<Option<Row>>,
    /// Among how many rows of that table its markers choose, once one has asked for its own.
    pub rows: Cell<Option<u64>>,
}

impl Execution {
    /// The same with another key number.
    pub(super) fn with_key(&self, key: u64) -> Self {
        let at = self.clone();
        at.stress_row.set(None);
        at.row.set(None);
        at.rows.set(None);
        Self { key, ..at }
    }
}

/// Which row of its partition an operation means.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub count: Numbers,
    pub of_key: Random,
    pub of_index: Random,
}

impl Rows {
    fn row(&self, at: &Execution) -> u64 {
        at.repetition.unwrap_or_else(|| {
            let count = self.count.whole(self.of_key.at(at.key), at.key).max(1).unsigned_abs();
            uniform(self.of_index.at(at.index).at(at.occurrence).bits(0), 0, count)
        })
    }
}

/// The row of a table that a marker's value is of.
#[derive(Clone, Debug)]
pub(super) struct RowOf {
    pub table: Arc<Table>,
    pub marker: u64,
}

impl RowOf {
    /// `scratch` is left as it was.
    fn row(&self, at: &Execution, scratch: &mut Vec<u8>) -> Row {
        at.row.get().unwrap_or_else(|| {
            let taking = Taking {
                index: at.index,
                occurrence: at.occurrence,
                key: at.key,
            };
            let (row, of_all) = self.table.row(taking, self.marker, &at.rows, scratch);
            if of_all {
                at.row.set(Some(row));
            }
            row
        })
    }
}

/// What a random value is a function of, besides its column.
#[derive(Clone, Debug)]
pub(super) enum RandomOf {
    Key,
    /// The key, and the row of its partition.
    Rows(Arc<Rows>),
    /// The row's primary key.
    Row(RowOf),
}

#[derive(Clone, Debug)]
pub(super) enum Source {
    Key(KeySource),
    /// The value of that clustering column.
    Clustering(RowOf, usize),
    Random {
        value: RandomValue,
        random: Random,
        versioned: bool,
        choice: Option<ProfileColumn>,
        of: RandomOf,
    },
    Draw {
        native: Native,
        numbers: Numbers,
        random: Random,
    },
    Row {
        native: Native,
        rows: Arc<Rows>,
    },
    Fixed(Option<Vec<u8>>),
    /// Anything: only to be expected.
    Any,
    StressKey(u32),
    StressColumn {
        column: stress::Column,
        key_size: u32,
    },
    YcsbKey(Arc<Ycsb>),
    YcsbField {
        ycsb: Arc<Ycsb>,
        seed: ValueSeed,
        field: u32,
    },
    YcsbScanLength,
}

/// The source of one bound value.
#[derive(Clone, Debug)]
pub struct ValueSource {
    /// Type of the value.
    pub cql_type: CqlType,
    pub(super) source: Source,
}

impl ValueSource {
    pub(super) fn ycsb_key(ycsb: &Arc<Ycsb>) -> Self {
        Self::of(Native::Text, Source::YcsbKey(Arc::clone(ycsb)))
    }

    pub(super) fn ycsb_field(ycsb: &Arc<Ycsb>, seed: u64, field: u32) -> Self {
        let ycsb = Arc::clone(ycsb);
        Self::of(
            Native::Text,
            Source::YcsbField {
                ycsb,
                seed: ValueSeed::new(seed),
                field,
            },
        )
    }

    pub(super) fn ycsb_scan_length() -> Self {
        Self::of(Native::Int, Source::YcsbScanLength)
    }

    pub(super) fn of(native: Native, source: Source) -> Self {
        Self {
            cql_type: CqlType::Native(native),
            source,
        }
    }

    /// Appends the value as `[bytes]`: its length first, null as -1.
    #[inline]
    pub fn put_value(&self, at: &Execution, out: &mut Vec<u8>) {
        put_sized(out, |out| self.put(at, out));
    }

    /// Appends the value's bytes; false: it is null.
    #[inline]
    pub fn put(&self, at: &Execution, out: &mut Vec<u8>) -> bool {
        match &self.source {
            Source::Random { .. } => self.put_random(at, at.version, out),
            Source::YcsbKey(ycsb) => write_key(at.key, ycsb, out),
            Source::YcsbField { ycsb, seed, field } => {
                write_value(*seed, at.key, *field, at.version, ycsb, out);
            }
            Source::YcsbScanLength => out.extend_from_slice(&at.scan_length.to_be_bytes()),
            Source::Key(source) => source.put(at.key, out),
            Source::Clustering(of, column) => {
                let row = of.row(at, out);
                of.table.put_column(*column, &row, out);
            }
            Source::Draw {
                native,
                numbers,
                random,
            } => {
                let random = random.at(at.index).at(at.occurrence);
                match native {
                    Native::Float | Native::Double => {
                        put_real(*native, numbers.real(random, at.index), &Digits::default(), out);
                    }
                    _ => put_whole(*native, numbers.whole(random, at.index), &Digits::default(), out),
                }
            }
            Source::Row { native, rows } => put_whole(*native, rows.row(at) as i64, &Digits::default(), out),
            Source::Fixed(None) | Source::Any => return false,
            Source::Fixed(Some(bytes)) => out.extend_from_slice(bytes),
            Source::StressKey(size) => stress::write_key(stress_seed(at.key), *size, out),
            Source::StressColumn { column, key_size } => {
                let row = at.stress_row.get().unwrap_or_else(|| {
                    let start = out.len();
                    stress::write_key(stress_seed(at.key), *key_size, out);
                    let row = stress::row_seed(&out[start..]);
                    out.truncate(start);
                    at.stress_row.set(Some(row));
                    row
                });
                column.write(row, out);
            }
        }
        true
    }

    fn put_random(&self, at: &Execution, version: u64, out: &mut Vec<u8>) {
        let Source::Random {
            value,
            random,
            versioned,
            choice,
            of,
        } = &self.source
        else {
            return;
        };
        let (mut stream, position) = match (of, choice) {
            (RandomOf::Row(of), Some(column)) => {
                let seed = of.row(at, out).seed();
                return value.put_chosen(column, seed, *random, at, out);
            }
            (RandomOf::Key, _) => (random.at(at.key), at.key),
            (RandomOf::Rows(rows), _) => (random.at(at.key).at(rows.row(at)), at.key),
            (RandomOf::Row(of), None) => {
                let row = of.row(at, out);
                (row.stream(*random), row.position())
            }
        };
        if *versioned {
            stream = stream.at(version);
        }
        if position == at.key {
            value.put(stream, at, version, out);
        } else {
            value.put(stream, &at.with_key(position), version, out);
        }
    }

    /// As `put_value` for a value within another: what looks random follows from `random`.
    pub(super) fn put_seeded(&self, at: &Execution, random: Random, out: &mut Vec<u8>) {
        match &self.source {
            Source::Random {
                value,
                random: column,
                choice,
                ..
            } => put_sized(out, |out| {
                match choice {
                    Some(choice) => value.put_chosen(choice, random.bits(0) as i64, *column, at, out),
                    None => value.put(random, at, at.version, out),
                }
                true
            }),
            _ => self.put_value(at, out),
        }
    }

    /// Appends what a column should hold that holds `cell`: a value with the version that the cell carries. False: null.
    pub(super) fn put_expected(&self, at: &Execution, cell: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
        match &self.source {
            Source::Random {
                value, versioned: true, ..
            } => {
                let version = cell.and_then(|cell| version_of(value, cell));
                self.put_random(at, version.unwrap_or(0), out);
                true
            }
            Source::YcsbField { ycsb, field, seed } => match cell {
                _ if at.expects.is_some_and(|(of, _)| of == *field) => {
                    let version = at.expects.map_or(0, |(_, version)| version);
                    write_value(*seed, at.key, *field, version, ycsb, out);
                    true
                }
                Some(cell) => {
                    out.extend_from_slice(cell);
                    check_value(named_number(at.key, ycsb), *field, cell, ycsb)
                }
                // An update makes a row of a key whose insert has failed.
                None => at.key < first_new_key(ycsb),
            },
            _ => self.put(at, out),
        }
    }

    /// Why the value cannot be expected of a row, if it cannot.
    pub(super) fn unexpected(&self) -> Option<&'static str> {
        match &self.source {
            Source::Draw { .. } => Some("draw"),
            Source::Random {
                value, versioned: true, ..
            } if !matches!(value, RandomValue::Text { .. } | RandomValue::Blob { .. }) => {
                Some("a versioned value without a place for its version")
            }
            _ => None,
        }
    }

    /// Whether it is always null.
    pub(super) fn is_null(&self) -> bool {
        matches!(self.source, Source::Fixed(None) | Source::Any)
    }

    /// Whether it gives no value, and any cell is as expected.
    pub(super) fn is_any(&self) -> bool {
        matches!(self.source, Source::Any)
    }

    /// Whether values within one collection may be the same.
    pub(super) fn may_repeat(&self) -> bool {
        match &self.source {
            Source::Random {
                value, choice: None, ..
            } => match value {
                RandomValue::Text { size, .. } | RandomValue::Blob { size, .. } => {
                    is_narrow(&self.cql_type, size.bounds().0)
                }
                RandomValue::Any(_) => is_narrow(&self.cql_type, 0),
                _ => true,
            },
            _ => true,
        }
    }
}

/// cassandra-stress counts its rows from 1.
fn stress_seed(key: u64) -> i64 {
    (key as i64).wrapping_add(1)
}
