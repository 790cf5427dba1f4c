//! Keys that operations draw one by one, as many as their batches repeat. In a sequence each operation goes on behind those before
//! it: where it begins follows from the seed and its index alone.

use std::collections::HashSet;

use steelyard_wire::Order;
use steelyard_wire::program::{DistributionSpec, Keys, OperationSpec, Program, Step};

use super::kind_mix::KindMix;
use super::numbers::Numbers;
use crate::OrderError;
use crate::random::{Purpose, Random};

/// Draws for each key of a batch, of which one must be new to it.
const DRAWS_PER_KEY: u64 = 64;

/// Key numbers of a distribution.
#[derive(Clone, Debug)]
pub struct DrawnKeys {
    numbers: Numbers,
    random: Random,
}

impl DrawnKeys {
    /// Keys of a distribution. Errors: parameters that are not possible, keys below 0.
    pub fn new(number: &DistributionSpec, seed: u64) -> Result<Self, OrderError> {
        Ok(Self {
            numbers: Numbers::new(number)?.within(0..=i64::MAX, "keys.number")?,
            random: Random::new(seed, Purpose::Key),
        })
    }

    /// The first key of an operation; `position`: its place in a sequence.
    #[inline]
    pub fn first(&self, index: u64, position: u64) -> u64 {
        self.key(self.random.at(index), position)
    }

    /// That many different keys of an operation; fewer where there are no more.
    pub fn several(&self, index: u64, position: u64, count: u64) -> Vec<u64> {
        let random = self.random.at(index);
        let mut keys = vec![self.key(random, position)];
        let mut seen: HashSet<u64> = keys.iter().copied().collect();
        for draw in 1..count.saturating_mul(DRAWS_PER_KEY) {
            if keys.len() as u64 >= count {
                break;
            }
            let key = self.key(random.at(draw), position.wrapping_add(draw));
            if seen.insert(key) {
                keys.push(key);
            }
        }
        keys
    }

    #[inline]
    fn key(&self, random: Random, position: u64) -> u64 {
        self.numbers.whole(random, position).unsigned_abs()
    }
}

/// How often the batch of an operation is repeated that draws each of its keys.
pub fn repeat_random(seed: u64) -> Random {
    Random::new(seed, Purpose::Repeat)
}

/// Where in the sequence of all keys each operation begins, and how many it takes.
#[derive(Clone, Debug)]
pub(super) struct TakenKeys {
    /// Repetitions of the batches of each kind; None: its keys are not counted.
    repeats: Vec<Option<Vec<Numbers>>>,
    random: Random,
    /// Keys of each operation, where that is always the same number.
    constant: Option<u64>,
    /// Keys that there are for all operations.
    most: u64,
    mix: KindMix,
    counted_to: u64,
    keys: u64,
}

impl TakenKeys {
    /// None where no operation draws each of its keys.
    pub fn new(order: &Order, program: &Program, mix: &KindMix) -> Result<Option<Self>, OrderError> {
        let repeats: Vec<Option<Vec<Numbers>>> = program.operations.iter().map(repeats).collect::<Result<_, _>>()?;
        if repeats.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut sizes = repeats.iter().map(constant);
        let first = sizes.next().flatten();
        Ok(Some(Self {
            constant: first.filter(|_| sizes.all(|size| size == first)),
            repeats,
            random: repeat_random(order.seed),
            most: order.stop.keys.unwrap_or(u64::MAX),
            mix: mix.clone(),
            counted_to: 0,
            keys: 0,
        }))
    }

    /// Position of an operation's first key, and how many keys it takes; None: they are not counted. Costs the sizes of the
    /// operations since the last index.
    #[inline]
    pub fn of(&mut self, index: u64, kind: usize) -> Option<(u64, u64)> {
        self.repeats[kind].as_ref()?;
        let position = self.before(index);
        let size = self.size(index, kind);
        Some((position, size.min(self.most.saturating_sub(position)).max(1)))
    }

    /// How many operations take all keys that there are. Costs the size of each.
    pub fn operations(&mut self) -> u64 {
        if let Some(size) = self.constant {
            return self.most.div_ceil(size);
        }
        while self.keys < self.most {
            self.count();
        }
        self.counted_to
    }

    fn before(&mut self, index: u64) -> u64 {
        if let Some(size) = self.constant {
            return index.saturating_mul(size);
        }
        if index < self.counted_to {
            (self.counted_to, self.keys) = (0, 0);
        }
        while self.counted_to < index {
            self.count();
        }
        self.keys
    }

    #[inline]
    fn count(&mut self) {
        let kind = self.mix.kind(self.counted_to);
        self.keys = self.keys.saturating_add(self.size(self.counted_to, kind));
        self.counted_to += 1;
    }

    #[inline]
    fn size(&self, index: u64, kind: usize) -> u64 {
        let size = |repeat: &Numbers| repeat.whole(self.random.at(index), index).unsigned_abs();
        let most = |repeats: &Vec<Numbers>| repeats.iter().map(size).max().unwrap_or(1);
        self.repeats[kind].as_ref().map_or(0, most)
    }
}

fn repeats(operation: &OperationSpec) -> Result<Option<Vec<Numbers>>, OrderError> {
    if !matches!(operation.keys, Keys::Drawn { each: true, .. }) {
        return Ok(None);
    }
    let of = |step: &Step| match step {
        Step::Batch {
            repeat, next_key: true, ..
        } => Some(Numbers::new(repeat).and_then(|numbers| numbers.within(1..=i64::MAX, "repeat"))),
        _ => None,
    };
    let repeats: Result<Vec<Numbers>, OrderError> = operation.steps.iter().filter_map(of).collect();
    let repeats = repeats.map_err(|error| error.within(format!("operations.{}", operation.name)))?;
    Ok(Some(repeats))
}

fn constant(repeats: &Option<Vec<Numbers>>) -> Option<u64> {
    let repeats = repeats.as_ref()?;
    let sizes: Option<Vec<u64>> = repeats
        .iter()
        .map(|numbers| numbers.constant().map(i64::unsigned_abs))
        .collect();
    Some(sizes?.into_iter().max().unwrap_or(1))
}

/// The number of operations that take `stop.keys` keys of a program in all. Errors: no operation draws each of its keys.
pub(crate) fn operations_of_keys(order: &Order, program: &Program) -> Result<u64, OrderError> {
    let kept = program
        .operations
        .iter()
        .any(|operation| operation.weight > 0.0 && matches!(operation.keys, Keys::Drawn { each: true, .. }));
    let taken = TakenKeys::new(order, program, &KindMix::new(program, order.seed)?)?;
    match taken {
        Some(mut taken) if kept => Ok(taken.operations()),
        _ => Err(OrderError::because(
            "stop.keys",
            "requires an operation that draws each of its keys",
        )),
    }
}
