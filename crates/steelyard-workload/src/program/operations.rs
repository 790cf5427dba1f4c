//! Operations of a program: kinds and keys. Operation i of a seed is the same for every process that asks.

use steelyard_wire::program::{Keys, OperationSpec, Program, Step};
use steelyard_wire::{Action, Order, Share};

use super::check::check;
use super::drawn_keys::{DrawnKeys, TakenKeys};
use super::kind_mix::KindMix;
use super::numbers::Numbers;
use crate::OrderError;
use crate::insert_lag::default_insert_lag;
use crate::key_chooser::{KeyChooser, KeySpace};
use crate::operation::{Kinds, Operation};
use crate::random::{Purpose, Random};

/// What the fill of a program is called in records.
const POPULATE: &str = "populate";
/// The kinds of operations of a program, in its order; the one that fills the table, where that is asked for.
pub(crate) fn kinds(program: &Program, action: Action) -> Kinds {
    let mut kinds = Kinds::default();
    let mut add = |name: &str, steps: &[Step]| {
        let names: Vec<String> = steps.iter().map(step_name).collect();
        kinds.add(name, &names.iter().map(String::as_str).collect::<Vec<_>>(), true);
    };
    match action {
        Action::Populate => add(POPULATE, &program.populate),
        Action::Load => program
            .operations
            .iter()
            .for_each(|operation| add(&operation.name, &operation.steps)),
    }
    kinds
}

/// A step is called as its statement, a batch as its statements.
fn step_name(step: &Step) -> String {
    match step {
        Step::Execute { statement } => statement.clone(),
        Step::Batch { statements, .. } => statements.join("+"),
    }
}

/// Which key a kind's operations take.
#[derive(Clone, Debug)]
enum KeyChoice {
    /// The next keys that no operation has taken: how many.
    New(u64),
    Existing(Box<KeyChooser>),
    Drawn(DrawnKeys),
}

impl KeyChoice {
    fn new(operation: &OperationSpec, program: &Program, new_keys: u64, seed: u64) -> Result<Self, OrderError> {
        Ok(match &operation.keys {
            Keys::New => Self::New(keys_taken(&operation.steps)?),
            Keys::Existing { .. } if program.records == 0 => {
                return Err(OrderError::new(
                    "keys.kind",
                    "existing",
                    "new or drawn, because records is 0",
                ));
            }
            Keys::Existing { distribution } => {
                let keys = KeySpace::with_defaults(*distribution, program.records, new_keys);
                Self::Existing(Box::new(KeyChooser::new(&keys)?))
            }
            Keys::Drawn { number, .. } => Self::Drawn(DrawnKeys::new(number, seed)?),
        })
    }

    fn taken(&self) -> u64 {
        match self {
            Self::New(keys) => *keys,
            _ => 0,
        }
    }
}

/// Keys that one operation of these steps takes: of a batch that goes from key to key, as many as it repeats.
pub fn keys_taken(steps: &[Step]) -> Result<u64, OrderError> {
    let mut most = 1;
    for step in steps {
        let Step::Batch {
            repeat, next_key: true, ..
        } = step
        else {
            continue;
        };
        let repeat = Numbers::new(repeat)?;
        let Some(repeat) = repeat.constant() else {
            let read = format!("{:?}", repeat.bounds());
            return Err(OrderError::new(
                "repeat",
                read,
                "a fixed number, because the batch inserts new keys",
            ));
        };
        most = most.max(repeat.unsigned_abs());
    }
    Ok(most)
}

/// New keys among the operations before an index.
#[derive(Clone, Debug)]
struct InsertCount {
    mix: KindMix,
    counted_to: u64,
    keys: u64,
    operations: u64,
}

impl InsertCount {
    fn new(mix: &KindMix) -> Self {
        Self {
            mix: mix.clone(),
            counted_to: 0,
            keys: 0,
            operations: 0,
        }
    }

    fn count(&mut self, index: u64, choices: &[KeyChoice]) {
        if index < self.counted_to {
            (self.counted_to, self.keys, self.operations) = (0, 0, 0);
        }
        while self.counted_to < index {
            let taken = choices[self.mix.kind(self.counted_to)].taken();
            self.keys += taken;
            self.operations += u64::from(taken > 0);
            self.counted_to += 1;
        }
    }
}

/// The operations of one share of a program, in index order.
#[derive(Clone, Debug)]
pub struct Stream {
    share: Share,
    next_index: u64,
    records: u64,
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    /// Each `stride`-th key in turn.
    Fill {
        stride: u64,
    },
    Load(Box<Load>),
}

#[derive(Clone, Debug)]
struct Load {
    records: u64,
    mix: KindMix,
    choices: Vec<KeyChoice>,
    key_random: Random,
    inserts: bool,
    /// Of kinds that draw each of their keys.
    taken: Option<TakenKeys>,
    insert_lag: u64,
    /// Before the next operation.
    inserted: InsertCount,
    /// Before the oldest operation that may still be in flight.
    visible: InsertCount,
}

impl Stream {
    /// The operations of the order's share from `first_index` on. Errors: a program that is not possible.
    pub fn from_order(
        order: &Order,
        program: &Program,
        expected_operations: f64,
        first_index: u64,
    ) -> Result<Self, OrderError> {
        check(program, order)?;
        let share = order.share;
        let behind = first_index % share.of;
        Ok(Self {
            share,
            next_index: first_index + (share.index + share.of - behind) % share.of,
            records: program.records,
            work: match order.action {
                Action::Populate => Work::Fill {
                    stride: program.populate_stride,
                },
                Action::Load => Work::Load(Box::new(Load::new(order, program, expected_operations)?)),
            },
        })
    }

    /// The next operation of this share. Never ends: the order's stop does.
    #[allow(clippy::should_implement_trait)] // An Iterator would wrap every operation in an Option that is never None.
    pub fn next(&mut self) -> Operation {
        let index = self.next_index;
        self.next_index += self.share.of;
        match &mut self.work {
            Work::Fill { stride } => Operation {
                index,
                key: index * *stride,
                ..Operation::default()
            },
            Work::Load(load) => load.at(index),
        }
    }

    /// Whether the fill does not write that key.
    pub fn is_new(&self, key: u64) -> bool {
        key >= self.records
    }
}

impl Load {
    fn new(order: &Order, program: &Program, expected_operations: f64) -> Result<Self, OrderError> {
        let new_keys = expected_new_keys(program, expected_operations)?;
        if new_keys >= 1 << 62 {
            let read = format!("{new_keys} new keys expected");
            return Err(OrderError::new("stop.operations", read, "new keys below 2^62"));
        }
        let choice = |operation: &OperationSpec| {
            let choice = KeyChoice::new(operation, program, new_keys, order.seed);
            choice.map_err(|error| error.within(format!("operations.{}", operation.name)))
        };
        let choices: Vec<KeyChoice> = program.operations.iter().map(choice).collect::<Result<_, _>>()?;
        let mix = KindMix::new(program, order.seed)?;
        Ok(Self {
            records: program.records,
            inserted: InsertCount::new(&mix),
            visible: InsertCount::new(&mix),
            taken: TakenKeys::new(order, program, &mix)?,
            mix,
            inserts: choices.iter().any(|choice| choice.taken() > 0),
            choices,
            key_random: Random::new(order.seed, Purpose::Key),
            insert_lag: program.insert_lag.unwrap_or_else(|| default_insert_lag(order)),
        })
    }

    /// Operation `index` of the whole stream, whatever the share.
    fn at(&mut self, index: u64) -> Operation {
        if self.inserts {
            self.inserted.count(index, &self.choices);
            self.visible.count(index.saturating_sub(self.insert_lag), &self.choices);
        }
        let kind = self.mix.kind(index);
        let random = self.key_random.at(index);
        let taken = self.taken.as_mut().and_then(|taken| taken.of(index, kind));
        let (position, keys) = taken.unwrap_or((index, 0));
        let key = match &mut self.choices[kind] {
            KeyChoice::New(_) => self.records + self.inserted.keys,
            KeyChoice::Existing(chooser) => {
                let newest = (self.records - 1) + self.visible.keys;
                chooser.existing(random, 0, newest, index - self.inserted.operations)
            }
            KeyChoice::Drawn(drawn) => drawn.first(index, position),
        };
        Operation {
            index,
            key,
            position,
            keys: keys as u32,
            kind: kind as u16,
            ..Operation::default()
        }
    }
}

/// As YCSB: twice the keys that the operations will insert.
fn expected_new_keys(program: &Program, expected_operations: f64) -> Result<u64, OrderError> {
    let sum: f64 = program.operations.iter().map(|operation| operation.weight).sum();
    let mut share = 0.0;
    for operation in &program.operations {
        if operation.keys == Keys::New {
            let path = format!("operations.{}", operation.name);
            let taken = keys_taken(&operation.steps).map_err(|error| error.within(path))?;
            share += operation.weight / sum * taken as f64;
        }
    }
    Ok((expected_operations * share * 2.0) as u64)
}
