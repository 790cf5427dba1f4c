//! What the driving loop knows of a workload: operations in index order, what they are called, of how many steps they are.
//! Which bytes that means is the client's business.

use std::sync::Arc;

use steelyard_wire::{Action, Order, Workload};

use crate::{LoadError, program, ycsb};

/// Most shares of an order: what is counted over all of them fits into 64 bits.
pub(crate) const MOST_SHARES: u64 = 1_000_000;

/// One operation of a stream, or one step of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Place in the whole stream, over all shares.
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

/// One kind of operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name's place among `Kinds::names`.
    pub name: u16,
    /// Names of its steps, by place; one entry where it is a single request.
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
    /// The kinds of an order's operations, in the numbers of its stream. Errors: a workload that cannot be.
    pub fn of(order: &Order) -> Result<Arc<Self>, LoadError> {
        Ok(Arc::new(match &order.workload {
            Workload::Ycsb(_) => ycsb::kinds(),
            Workload::Program(program) => program::kinds(program, order.action)?,
        }))
    }

    /// Adds a kind; a kind of one step needs no names of steps.
    pub fn add(&mut self, name: &str, steps: &[&str], counts_rows: bool) {
        let place = self.place(name);
        let steps = match steps {
            [] | [_] => vec![place],
            steps => steps.iter().map(|step| self.place(step)).collect(),
        };
        self.kinds.push(Kind {
            name: place,
            steps,
            counts_rows,
        });
    }

    fn place(&mut self, name: &str) -> u16 {
        let found = self.names.iter().position(|other| other == name);
        let place = found.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        place as u16
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

/// The operations of one share of an order, in index order.
#[derive(Clone, Debug)]
pub enum Stream {
    Ycsb(Box<ycsb::Stream>),
    Program(Box<program::Stream>),
}

/// The order with the `insert_lag` that its own shares want, where it says none: to divide a share further, among threads, must
/// not change what its operations are.
pub(crate) fn with_lag(order: &Order) -> Order {
    let mut order = order.clone();
    let usual = ycsb::usual_lag(&order);
    let lag = match &mut order.workload {
        Workload::Ycsb(workload) => &mut workload.insert_lag,
        Workload::Program(program) => &mut program.insert_lag,
    };
    lag.get_or_insert(usual);
    order
}

impl Stream {
    /// The operations of the order's share from `first_index` on. What the workload leaves open follows from the order's stop and
    /// schedule. Errors: a workload that cannot be.
    pub fn from_order(order: &Order, first_index: u64) -> Result<Self, LoadError> {
        Ok(match &order.workload {
            Workload::Ycsb(workload) => Self::Ycsb(Box::new(ycsb::Stream::from_order(order, workload, first_index)?)),
            Workload::Program(program) => {
                Self::Program(Box::new(program::Stream::from_order(order, program, first_index)?))
            }
        })
    }

    /// The next operation of this share. Never ends: the order's stop does.
    #[allow(clippy::should_implement_trait)] // An Iterator would wrap every operation in an Option that is never None.
    #[inline]
    pub fn next(&mut self) -> Operation {
        match self {
            Self::Ycsb(stream) => stream.next(),
            Self::Program(stream) => stream.next(),
        }
    }

    /// Whether the key is inserted by the load itself and not by the fill. A read may miss it without fault of the system: its
    /// insert may have failed, or still be in flight in spite of the lag window.
    pub fn is_new(&self, key: u64) -> bool {
        match self {
            Self::Ycsb(stream) => stream.is_new(key),
            Self::Program(stream) => stream.is_new(key),
        }
    }
}
