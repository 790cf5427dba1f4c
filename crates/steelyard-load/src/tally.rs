//! Tally: counts and histograms of one worker in one interval. Filled by one thread, handed over whole, merged by the reporter.

use std::collections::BTreeMap;
use std::sync::Arc;

use steelyard_wire::Counts;

use crate::client::FirstSent;
use crate::clock::Nanos;
use crate::error_samples::ErrorSamples;
use crate::histogram::Histogram;
use crate::outcome::Outcome;
use steelyard_workload::OrderError;
use steelyard_workload::operation::Kinds;

/// The spans of an operation's time that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// done - due
    Response,
    /// done - sent
    Service,
    /// sent - due
    Lag,
    /// sent - the later of due and a place in flight being free: the generator's own delay
    Pacing,
    /// The service time of one step of an operation of several, under the step's name: no operation of its own
    Part,
}

impl Measure {
    /// Every measure; its position is its number.
    pub const ALL: [Self; 5] = [Self::Response, Self::Service, Self::Lag, Self::Pacing, Self::Part];

    /// Name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::Lag => "lag",
            Self::Pacing => "pacing",
            Self::Part => "part",
        }
    }
}

/// Histograms of one name.
const CELLS_OF_A_NAME: usize = Outcome::ALL.len() * Measure::ALL.len();

/// An operation's instants. `free` is when its place in flight became free and there was a connection to send it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When it was due.
    pub due: Nanos,
    /// When its place in flight was free.
    pub free: Nanos,
    /// `None`: given up before it was sent; only its response time exists.
    pub sent: Option<Nanos>,
    /// When it ended.
    pub done: Nanos,
}

/// Counts and histograms.
#[derive(Debug)]
pub struct Tally {
    kinds: Arc<Kinds>,
    empty: Histogram,
    /// By name, outcome and measure; made when first needed, because most never are.
    histograms: Vec<Option<Box<Histogram>>>,
    /// Operations sent.
    pub sent: u64,
    /// Operations ended.
    pub done: u64,
    /// Operations that were due and will never be sent.
    pub unsent: u64,
    /// Operations ended, by the number of the outcome.
    pub by_outcome: [u64; Outcome::ALL.len()],
    /// Rows returned by operations whose rows are counted.
    pub rows: u64,
    /// The same by the operation's name.
    rows_of: Vec<u64>,
    /// Keys of operations that ended well, by the operation's name.
    keys_of: Vec<u64>,
    /// Answers without a row for keys that the load itself inserts: no fault of the system, see `Stream::is_new`.
    pub early: u64,
    /// Due but not sent at the end of the interval.
    pub backlog: u64,
    /// When the first operation was sent.
    pub first_sent: Option<Nanos>,
    /// When the last operation ended.
    pub last_done: Option<Nanos>,
    /// What servers said of errors.
    pub error_samples: ErrorSamples,
    /// Nodes to which operations were sent for the first time.
    pub routed: Vec<FirstSent>,
}

impl Tally {
    /// An empty tally of operations of these kinds.
    pub fn new(kinds: &Arc<Kinds>) -> Result<Self, OrderError> {
        Ok(Self::with(Arc::clone(kinds), Histogram::new()?))
    }

    /// Another empty tally.
    pub fn sibling(&self) -> Self {
        Self::with(Arc::clone(&self.kinds), self.empty.clone())
    }

    fn with(kinds: Arc<Kinds>, empty: Histogram) -> Self {
        let names = kinds.names().len();
        let cells = names * CELLS_OF_A_NAME;
        Self {
            kinds,
            empty,
            histograms: (0..cells).map(|_| None).collect(),
            sent: 0,
            done: 0,
            unsent: 0,
            by_outcome: [0; Outcome::ALL.len()],
            rows: 0,
            rows_of: vec![0; names],
            keys_of: vec![0; names],
            early: 0,
            backlog: 0,
            first_sent: None,
            last_done: None,
            error_samples: ErrorSamples::default(),
            routed: Vec::new(),
        }
    }

    /// Counts a whole operation.
    #[inline]
    pub fn operation(&mut self, kind: u16, outcome: Outcome, rows: u32, timing: &Timing) {
        let kind = self.kinds.kind(kind);
        let (name, counts_rows) = (kind.name, kind.counts_rows);
        self.done += 1;
        self.by_outcome[outcome as usize] += 1;
        if counts_rows {
            self.rows += u64::from(rows);
            self.rows_of[usize::from(name)] += u64::from(rows);
        }
        self.last_done = self.last_done.max(Some(timing.done));
        self.record(name, outcome, Measure::Response, timing.done.saturating_sub(timing.due));
        let Some(sent) = timing.sent else { return };
        self.first_sent = Some(self.first_sent.map_or(sent, |first| first.min(sent)));
        self.record(name, outcome, Measure::Service, timing.done.saturating_sub(sent));
        self.record(name, outcome, Measure::Lag, sent.saturating_sub(timing.due));
        self.record(
            name,
            outcome,
            Measure::Pacing,
            sent.saturating_sub(timing.due.max(timing.free)),
        );
    }

    /// Counts the service time of one step. It is not an operation of its own, so it has no response time and adds nothing
    /// to `done`.
    pub fn part(&mut self, name: u16, outcome: Outcome, service: Nanos) {
        self.record(name, outcome, Measure::Part, service);
    }

    #[inline]
    fn record(&mut self, name: u16, outcome: Outcome, measure: Measure, ns: Nanos) {
        let cell = &mut self.histograms[cell_number(name, outcome, measure)];
        cell.get_or_insert_with(|| Box::new(self.empty.clone())).record(ns);
    }

    /// Operations that ended in an error.
    pub fn errors(&self) -> u64 {
        Outcome::ALL
            .into_iter()
            .filter(|outcome| outcome.is_error())
            .map(|outcome| self.by_outcome[outcome as usize])
            .sum()
    }

    /// Reads of keys that the fill has written, without a row.
    pub fn not_found(&self) -> u64 {
        self.by_outcome[Outcome::NotFound as usize] - self.early
    }

    /// Errors by the names of their kinds; kinds without errors are left out.
    pub fn errors_by_kind(&self) -> BTreeMap<String, u64> {
        Outcome::ALL
            .into_iter()
            .filter(|outcome| outcome.is_error() && self.by_outcome[*outcome as usize] > 0)
            .map(|outcome| (outcome.name().to_owned(), self.by_outcome[outcome as usize]))
            .collect()
    }

    /// Counts the keys that an operation drew and that ended well.
    #[inline]
    pub fn keys(&mut self, kind: u16, keys: u32) {
        self.keys_of[usize::from(self.kinds.kind(kind).name)] += u64::from(keys);
    }

    /// Rows by the names of operations; operations without rows are left out.
    pub fn rows_by_name(&self) -> BTreeMap<String, u64> {
        self.by_name(&self.rows_of)
    }

    /// Keys by the names of operations, likewise.
    pub fn keys_by_name(&self) -> BTreeMap<String, u64> {
        self.by_name(&self.keys_of)
    }

    fn by_name(&self, counts: &[u64]) -> BTreeMap<String, u64> {
        let names = self.kinds.names().iter().zip(counts);
        names
            .filter(|(_, count)| **count > 0)
            .map(|(name, count)| (name.clone(), *count))
            .collect()
    }

    /// Adds another's counts; backlogs add up too.
    pub fn merge(&mut self, other: &Self) {
        self.merge_counts(other);
        self.routed.extend_from_slice(&other.routed);
        for (mine, theirs) in self.histograms.iter_mut().zip(&other.histograms) {
            if let Some(theirs) = theirs {
                mine.get_or_insert_with(|| Box::new(self.empty.clone())).merge(theirs);
            }
        }
    }

    /// Adds another's counts, but not its histograms: for the totals of a phase.
    pub fn merge_counts(&mut self, other: &Self) {
        self.sent += other.sent;
        self.done += other.done;
        self.unsent += other.unsent;
        self.rows += other.rows;
        for (mine, theirs) in self.rows_of.iter_mut().zip(&other.rows_of) {
            *mine += theirs;
        }
        for (mine, theirs) in self.keys_of.iter_mut().zip(&other.keys_of) {
            *mine += theirs;
        }
        self.early += other.early;
        self.backlog += other.backlog;
        for (mine, theirs) in self.by_outcome.iter_mut().zip(other.by_outcome) {
            *mine += theirs;
        }
        self.first_sent = [self.first_sent, other.first_sent].into_iter().flatten().min();
        self.last_done = self.last_done.max(other.last_done);
        self.error_samples.merge(&other.error_samples);
    }

    /// Forgets everything; histograms once made are kept.
    pub fn clear(&mut self) {
        for histogram in self.histograms.iter_mut().flatten() {
            if histogram.count() > 0 {
                histogram.clear();
            }
        }
        (self.sent, self.done, self.unsent) = (0, 0, 0);
        (self.rows, self.early, self.backlog) = (0, 0, 0);
        self.by_outcome = [0; Outcome::ALL.len()];
        self.rows_of.fill(0);
        self.keys_of.fill(0);
        (self.first_sent, self.last_done) = (None, None);
        self.error_samples.clear();
        self.routed.clear();
    }

    /// One measure over all kinds and outcomes, added to `into`.
    pub fn collect(&self, measure: Measure, into: &mut Histogram) {
        into.clear();
        let step = Measure::ALL.len();
        for histogram in self.histograms.iter().skip(measure as usize).step_by(step).flatten() {
            into.merge(histogram);
        }
    }

    /// The histograms as the records have them.
    pub fn counts(&self) -> Vec<Counts> {
        let mut counts = Vec::new();
        for (name, operation) in (0..).zip(self.kinds.names()) {
            for outcome in Outcome::ALL {
                for measure in Measure::ALL {
                    let Some(histogram) = &self.histograms[cell_number(name, outcome, measure)] else {
                        continue;
                    };
                    if histogram.count() == 0 {
                        continue;
                    }
                    counts.push(Counts {
                        operation: operation.clone(),
                        outcome: outcome.name().to_owned(),
                        measure: measure.name().to_owned(),
                        buckets: histogram.buckets(),
                    });
                }
            }
        }
        counts
    }
}

fn cell_number(name: u16, outcome: Outcome, measure: Measure) -> usize {
    (usize::from(name) * Outcome::ALL.len() + outcome as usize) * Measure::ALL.len() + measure as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use steelyard_workload::ycsb::{self, Kind};

    fn tally() -> Tally {
        Tally::new(&Arc::new(ycsb::kinds())).unwrap()
    }

    fn timing(due: Nanos, free: Nanos, sent: Option<Nanos>, done: Nanos) -> Timing {
        Timing { due, free, sent, done }
    }

    fn low(tally: &Tally, measure: &str) -> Vec<(u64, u64)> {
        let counts = tally.counts().into_iter().find(|counts| counts.measure == measure);
        counts.map_or_else(Vec::new, |counts| {
            counts.buckets.into_iter().map(|(low, _, count)| (low, count)).collect()
        })
    }

    #[test]
    fn each_measure_is_its_difference() {
        let mut tally = tally();
        tally.operation(Kind::Read as u16, Outcome::Ok, 1, &timing(100, 400, Some(450), 1000));
        assert_eq!(low(&tally, "response"), [(900, 1)]);
        assert_eq!(low(&tally, "service"), [(550, 1)]);
        assert_eq!(low(&tally, "lag"), [(350, 1)]);
        assert_eq!(low(&tally, "pacing"), [(50, 1)]);
        assert_eq!(
            (tally.first_sent, tally.last_done, tally.rows),
            (Some(450), Some(1000), 0)
        );
    }

    #[test]
    fn an_operation_that_was_never_sent_has_a_response_time_only() {
        let mut tally = tally();
        tally.operation(Kind::Scan as u16, Outcome::Connection, 0, &timing(100, 0, None, 1000));
        assert_eq!(tally.counts().len(), 1);
        assert_eq!(low(&tally, "response"), [(900, 1)]);
        assert_eq!((tally.errors(), tally.first_sent), (1, None));
        assert_eq!(tally.errors_by_kind(), [("connection".to_owned(), 1)].into());
    }

    #[test]
    fn reads_of_keys_that_the_load_inserts_are_not_missing() {
        let mut tally = tally();
        for _ in 0..3 {
            tally.operation(Kind::Read as u16, Outcome::NotFound, 0, &timing(0, 0, Some(1), 2));
        }
        tally.early = 2;
        let mut sum = tally.sibling();
        sum.merge(&tally);
        assert_eq!((sum.not_found(), low(&sum, "response").len()), (1, 1));
    }

    #[test]
    fn merged_tallies_are_their_sum_and_a_cleared_one_is_empty() {
        let (mut left, mut right) = (tally(), tally());
        left.operation(Kind::Scan as u16, Outcome::Ok, 3, &timing(0, 0, Some(5), 10));
        right.operation(Kind::Scan as u16, Outcome::Ok, 4, &timing(0, 0, Some(2), 10));
        right.operation(Kind::Read as u16, Outcome::NotFound, 0, &timing(0, 0, Some(4), 20));
        left.merge(&right);
        assert_eq!(
            (left.done, left.rows, left.errors(), left.first_sent, left.last_done),
            (3, 7, 0, Some(2), Some(20))
        );
        let mut all = Histogram::new().unwrap();
        left.collect(Measure::Response, &mut all);
        assert_eq!(all.count(), 3);
        left.clear();
        assert!(left.counts().is_empty());
        assert_eq!(left.done, 0);
    }
}
