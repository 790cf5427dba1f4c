//! The mix of a program's operations: of which kind each is.

use steelyard_wire::program::Program;

use super::numbers::Numbers;
use crate::OrderError;
use crate::random::{Purpose, Random};
use crate::shares::Shares;

/// Longest run of operations of one kind.
const MOST_IN_A_RUN: i64 = 1 << 40;

/// Which kind the operation at an index is. Kinds are drawn one by one, or a run of operations at a time.
#[derive(Clone, Debug)]
pub(super) struct KindMix {
    shares: Shares,
    random: Random,
    runs: Option<(Numbers, Random)>,
    /// The run that was looked at last: its number, its bounds.
    run: u64,
    start: u64,
    end: u64,
}

impl KindMix {
    pub fn new(program: &Program, seed: u64) -> Result<Self, OrderError> {
        let weights: Vec<f64> = program.operations.iter().map(|operation| operation.weight).collect();
        let shares = Shares::new(&weights, "operations.weight")?;
        let runs = program.clustering.as_ref().map(|lengths| {
            let lengths = Numbers::new(lengths)?.within(1..=MOST_IN_A_RUN, "clustering")?;
            Ok((lengths, Random::new(seed, Purpose::Run)))
        });
        let mut mix = Self {
            shares,
            random: Random::new(seed, Purpose::Kind),
            runs: runs.transpose()?,
            run: 0,
            start: 0,
            end: 0,
        };
        mix.end = mix.length(0);
        Ok(mix)
    }

    fn length(&self, run: u64) -> u64 {
        let length = |(lengths, random): &(Numbers, Random)| lengths.whole(random.at(run), run).unsigned_abs();
        self.runs.as_ref().map_or(1, length)
    }

    /// The kind of the operation at `index`. Costs the lengths of the runs between the last index and this one.
    #[inline]
    pub fn kind(&mut self, index: u64) -> usize {
        let draw = if self.runs.is_some() { self.run_of(index) } else { index };
        self.shares.at(self.random.at(draw).unit(0))
    }

    fn run_of(&mut self, index: u64) -> u64 {
        if index < self.start {
            (self.run, self.start, self.end) = (0, 0, self.length(0));
        }
        while index >= self.end {
            self.run += 1;
            self.start = self.end;
            self.end += self.length(self.run);
        }
        self.run
    }
}
