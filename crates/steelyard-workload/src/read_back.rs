//! Reading back: which versions a row may hold after a load, by what was acknowledged, and the operations that read them.
//!
//! A write has taken effect at some instant between being sent and being acknowledged; one that ended in an error may take
//! effect at any time, or never. So a row may hold its last acknowledged write, any that overlaps with that one, and any
//! that ended in an error. If it holds something else, an acknowledged write is lost.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use crate::operation::Operation;

/// Most rows of which is kept what was written: about 100 bytes each.
const MOST_ROWS: usize = 1_000_000;

/// A write that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Version of its values, see `Operation::version`.
    pub version: u64,
    /// When it was sent, nanoseconds.
    pub sent: u64,
    /// When it was acknowledged; None: it may still take effect.
    pub acknowledged: Option<u64>,
}

/// Of each row and field that a load has written, the writes that it may hold. Rows beyond a million are not kept.
#[derive(Debug, Default)]
pub struct Written(HashMap<(u64, u32), Vec<Write>>);

impl Written {
    /// Takes in a write of that key and field, in whatever order they come.
    pub fn add(&mut self, key: u64, field: u32, write: Write) {
        if self.0.len() >= MOST_ROWS && !self.0.contains_key(&(key, field)) {
            return;
        }
        let writes = self.0.entry((key, field)).or_default();
        writes.push(write);
        let acknowledged = writes.iter().filter(|write| write.acknowledged.is_some());
        let last_sent = acknowledged.map(|write| write.sent).max().unwrap_or(0);
        writes.retain(|write| write.acknowledged.is_none_or(|at| at >= last_sent));
    }

    /// Takes in another's.
    pub fn merge(&mut self, other: Self) {
        for ((key, field), writes) in other.0 {
            for write in writes {
                self.add(key, field, write);
            }
        }
    }

    /// The rows of which a write was acknowledged, in no order.
    pub fn rows(self) -> Vec<Row> {
        let acknowledged = self
            .0
            .into_iter()
            .filter(|(_, writes)| writes.iter().any(|write| write.acknowledged.is_some()));
        acknowledged
            .map(|((key, field), mut writes)| {
                // The most likely first: each other one costs a reading.
                writes.sort_by_key(|write| std::cmp::Reverse((write.acknowledged, write.sent)));
                let versions = writes.iter().map(|write| write.version).collect();
                Row { key, field, versions }
            })
            .collect()
    }
}

/// A row to be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Key number.
    pub key: u64,
    /// Number of the field that is looked at.
    pub field: u32,
    /// The versions of which it may hold any.
    pub versions: Vec<u64>,
}

impl Display for Row {
    /// What is said of it where it is not right.
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { key, field, versions } = self;
        write!(
            out,
            "key {key}, field {field}: none of the versions {versions:?} that it may hold"
        )
    }
}

/// Operations that read rows back, one each.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    rows: Vec<Row>,
    next: usize,
    /// Places of the rows that were not right, or could not be read.
    missed: Vec<usize>,
}

impl Stream {
    /// Reads of those rows, in their order.
    pub fn new(rows: Vec<Row>) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// The next read; beyond the last row one of no row.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Operation {
        let place = self.next;
        self.next += 1;
        self.rows.get(place).map_or_else(Operation::default, |row| Operation {
            index: place as u64,
            key: row.key,
            field: row.field,
            expects: row.versions[0],
            ..Operation::default()
        })
    }

    /// The same read with the next version that the row may hold, if there is one.
    pub fn other(&self, operation: &Operation) -> Option<Operation> {
        let versions = &self.rows[operation.index as usize].versions;
        let place = versions.iter().position(|version| *version == operation.expects)?;
        let expects = *versions.get(place + 1)?;
        Some(Operation { expects, ..*operation })
    }

    /// The row of that read, which was not right, or could not be read.
    pub fn miss(&mut self, operation: &Operation) -> &Row {
        let place = operation.index as usize;
        self.missed.push(place);
        &self.rows[place]
    }

    /// The rows that were not right, or were not read.
    pub fn missed(mut self) -> Vec<Row> {
        let unread = self.next.min(self.rows.len())..self.rows.len();
        let places = self.missed.into_iter().chain(unread);
        places
            .map(|place| {
                std::mem::replace(
                    &mut self.rows[place],
                    Row {
                        key: 0,
                        field: 0,
                        versions: Vec::new(),
                    },
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(version: u64, sent: u64, acknowledged: Option<u64>) -> Write {
        Write {
            version,
            sent,
            acknowledged,
        }
    }

    fn versions(writes: &[Write]) -> Vec<u64> {
        let mut written = Written::default();
        for write in writes {
            written.add(7, 1, *write);
        }
        written.rows().first().map_or_else(Vec::new, |row| row.versions.clone())
    }

    #[test]
    fn a_row_may_hold_its_last_write_and_what_overlaps_with_it_or_ended_in_an_error() {
        let (first, second) = (write(1, 10, Some(20)), write(2, 30, Some(40)));
        assert_eq!(versions(&[first, second]), [2]);
        assert_eq!(versions(&[second, first]), [2]);
        assert_eq!(versions(&[write(1, 10, Some(35)), second]), [2, 1]);
        assert_eq!(versions(&[write(1, 10, None), second, first]), [2, 1]);
        assert_eq!(versions(&[second, write(3, 50, None)]), [2, 3]);
        assert!(versions(&[write(1, 10, None)]).is_empty());
        assert_eq!(
            versions(&[write(1, 10, Some(100)), write(2, 20, Some(30)), write(3, 90, Some(95))]),
            [1, 3]
        );
    }

    #[test]
    fn what_was_not_right_or_not_read_is_read_again() {
        let row = |key| Row {
            key,
            field: 2,
            versions: vec![5, 4],
        };
        let mut stream = Stream::new(vec![row(1), row(2), row(3)]);
        let (first, second) = (stream.next(), stream.next());
        assert_eq!((first.key, first.field, first.expects, first.kind), (1, 2, 5, 0));
        let other = stream.other(&second).unwrap();
        assert_eq!((other.key, other.expects), (2, 4));
        assert_eq!(stream.other(&other), None);
        stream.miss(&other);
        assert_eq!(stream.missed(), [row(2), row(3)]);
    }
}
