//! Operations and their kinds: all that the driving loop knows of a workload. Which bytes an operation sends is the client's
//! business.

use steelyard_wire::Action;

use crate::random::{Purpose, Random};

/// Most shares of an order: what is counted over all of them fits into 64 bits.
pub(crate) const MOST_SHARES: u64 = 1_000_000;

/// One operation of a stream, or one step of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Number in the whole stream, over all shares, from 0.
    pub index: u64,
    /// Key number; the statements' values make bytes of it.
    pub key: u64,
    /// Number of its kind, see `Kinds`.
    pub kind: u16,
    /// Which of the kind's steps is carried out.
    pub step: u16,
    /// YCSB's: the one field that is read or written where not all are.
    pub field: u32,
    /// YCSB's: rows asked for; 0 unless it is a scan.
    pub scan_length: u32,
    /// Keys that it draws one by one; 0: one, or those that follow it.
    pub keys: u32,
    /// Place of the first of them among those of all operations.
    pub position: u64,
    /// YCSB's: the version that `field` must hold where a row is read back; 0: any that was written.
    pub expects: u64,
}

impl Operation {
    /// The version of the values that this operation writes: 0 while populating, else one for each operation, from 1.
    pub fn version(&self, action: Action) -> u64 {
        match action {
            Action::Populate => 0,
            Action::Load => self.index + 1,
        }
    }
}

/// Which answers are compared with what was written: a share of them, by seed and operation.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    random: Random,
    fraction: f64,
}

impl Compared {
    /// That share of an order's answers.
    pub fn new(seed: u64, fraction: f64) -> Self {
        Self {
            random: Random::new(seed, Purpose::Validate),
            fraction,
        }
    }

    /// Whether the answer to that operation is among them. What is read back always is.
    #[inline]
    pub fn has(&self, operation: &Operation) -> bool {
        operation.expects > 0 || self.random.at(operation.index).unit(u64::from(operation.step)) < self.fraction
    }
}

/// One kind of operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Number of its name among `Kinds::names`.
    pub name: u16,
    /// Names of its steps, by number; one entry where it is a single request.
    pub steps: Vec<u16>,
    /// Whether the rows of its answers are counted.
    pub counts_rows: bool,
}

/// The kinds of operations of a stream, with the names by which they and their steps are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    names: Vec<String>,
    kinds: Vec<Kind>,
}

impl Kinds {
    /// Adds a kind; a kind of one step needs no names of steps.
    pub fn add(&mut self, name: &str, steps: &[&str], counts_rows: bool) {
        let number = self.number(name);
        let steps = match steps {
            [] | [_] => vec![number],
            steps => steps.iter().map(|step| self.number(step)).collect(),
        };
        self.kinds.push(Kind {
            name: number,
            steps,
            counts_rows,
        });
    }

    /// The number of a name, added where it is new.
    fn number(&mut self, name: &str) -> u16 {
        let known = self.names.iter().position(|other| other == name);
        let number = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        number as u16
    }

    /// Every name under which something is counted: of operations, and of steps.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The kind with that number.
    #[inline]
    pub fn kind(&self, number: u16) -> &Kind {
        &self.kinds[usize::from(number)]
    }

    /// The name of the kind with that number.
    pub fn name(&self, number: u16) -> &str {
        &self.names[usize::from(self.kind(number).name)]
    }

    /// How many kinds there are.
    pub fn count(&self) -> usize {
        self.kinds.len()
    }
}
