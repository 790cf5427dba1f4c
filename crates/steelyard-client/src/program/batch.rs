//! Batches: which executions of their statements an operation repeats.

use std::sync::Arc;

use steelyard_wire::program::BatchMode;

use super::table::Table;
use super::value_source::Execution;
use steelyard_workload::program::DrawnKeys;
use steelyard_workload::program::Numbers;
use steelyard_workload::random::Random;

/// Most statements of a batch.
pub(super) const MOST_STATEMENTS: usize = 65_535;

/// Statements in one request.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Numbers of its statements.
    pub statements: Vec<usize>,
    /// Kind of batch.
    pub mode: BatchMode,
    pub(super) keys: BatchKeys,
    pub(super) repeat: Numbers,
    pub(super) random: Random,
    /// Which rows of each key, where a key is a partition of a table.
    pub(super) select: Option<Box<Select>>,
}

/// Which key each repetition takes.
#[derive(Clone, Debug)]
pub(super) enum BatchKeys {
    /// That of the operation.
    Same,
    /// The next one, below `end`.
    Next { end: u64 },
    /// One that it draws.
    Each(Box<DrawnKeys>),
}

impl Batch {
    /// What the values of its first execution follow from, as far as they make the partition key.
    #[inline]
    pub fn first(&self, at: &Execution) -> Execution {
        Execution {
            repetition: matches!(self.keys, BatchKeys::Same).then_some(0),
            ..at.clone()
        }
    }

    /// What the values of its statements' executions follow from, all statements in each repetition.
    pub fn executions(&self, at: &Execution) -> Vec<Execution> {
        let mut repetitions = Vec::new();
        match &self.keys {
            BatchKeys::Same => repetitions.extend((0..self.wanted(at.key)).map(|number| Execution {
                repetition: Some(number),
                ..at.clone()
            })),
            BatchKeys::Next { end } => {
                let keys = self.wanted(at.key).min(end.saturating_sub(at.key)).max(1);
                self.put_keys(at, at.key..at.key + keys, &mut repetitions);
            }
            BatchKeys::Each(drawn) => {
                // The last operation may have fewer.
                let keys = self.wanted(at.index).min(at.keys);
                self.put_keys(at, drawn.several(at.index, at.position, keys), &mut repetitions);
            }
        }
        let each = self.statements.len();
        let of = |at: Execution| std::iter::repeat_n(at, each);
        let number = |(occurrence, at): (usize, Execution)| Execution {
            occurrence: occurrence as u64,
            ..at
        };
        repetitions.into_iter().flat_map(of).enumerate().map(number).collect()
    }

    /// Whether its executions are counted as rows: where they are rows of partitions.
    pub fn counts_rows(&self) -> bool {
        self.select.is_some()
    }

    fn wanted(&self, number: u64) -> u64 {
        self.repeat.whole(self.random.at(number), number).unsigned_abs()
    }

    fn put_keys(&self, at: &Execution, keys: impl IntoIterator<Item = u64>, repetitions: &mut Vec<Execution>) {
        for key in keys {
            let at = at.with_key(key);
            match &self.select {
                Some(select) => select.put(&at, repetitions),
                None => repetitions.push(at),
            }
        }
    }
}

/// Which rows of a partition are written.
#[derive(Clone, Debug)]
pub(super) struct Select {
    pub table: Arc<Table>,
    pub of: Numbers,
    pub divisor: f64,
    pub random: Random,
}

impl Select {
    fn put(&self, at: &Execution, executions: &mut Vec<Execution>) {
        let chance = self.of.whole(self.random.at(at.index).at(at.key), at.index) as f64 / self.divisor;
        let most = MOST_STATEMENTS.saturating_sub(executions.len()).max(1);
        self.table.selected(at.key, chance, at.index, most, |row| {
            let at = at.clone();
            at.row.set(Some(row));
            executions.push(at);
        });
    }
}
