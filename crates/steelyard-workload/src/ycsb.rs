//! YCSB's core workload as pure functions: operation i of a seed is the same for every process that asks.
//!
//! Where YCSB keeps state that depends on time, this uses the index instead. YCSB's counter of acknowledged inserts becomes the
//! number of inserts among the operations before this one, less a lag window (`insert_lag`), because those just before may still
//! be in flight; a stream counts them as it goes.

use std::fmt::Display;

use steelyard_wire::{Action, LengthDistribution, Order, Proportions, Share, Work, Ycsb};

use crate::OrderError;
use crate::insert_lag::default_insert_lag;
use crate::key_chooser::{KeyChooser, KeySpace};
use crate::operation::{Kinds, MOST_SHARES, Operation};
use crate::random::{Purpose, Random};
use crate::ycsb_distributions::{Lengths, uniform};
pub use crate::ycsb_records::{
    ValueSeed, check_value, identifier, is_right, named_number, null_name, null_value, number_in_name, six_characters,
    write_key, write_value,
};

/// Most fields of a record, most digits of a key's number, and most bytes of a field: more is no workload but a mistake, and
/// would take all memory.
const MOST_FIELDS: usize = 1_000_000;
const MOST_DIGITS: u32 = 1024;
const MOST_BYTES: u32 = 1 << 28;

/// What an operation does; its number in the stream is its position in `ALL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Kind {
    /// Reads one record.
    Read,
    /// Writes fields of one record.
    Update,
    /// Inserts a new record.
    Insert,
    /// Reads several records in token order.
    Scan,
    /// Reads one record, then writes fields of it.
    ReadModifyWrite,
}

impl Kind {
    /// Every kind, in YCSB's order.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Update,
        Self::Insert,
        Self::Scan,
        Self::ReadModifyWrite,
    ];

    /// What a step of an operation does by itself.
    pub fn of(operation: &Operation) -> Self {
        match (Self::ALL[usize::from(operation.kind)], operation.step) {
            (Self::ReadModifyWrite, 0) => Self::Read,
            (Self::ReadModifyWrite, _) => Self::Update,
            (kind, _) => kind,
        }
    }

    /// Name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// The workload of an order over a protocol that carries no other. Errors: it has another.
pub fn required<'a>(order: &'a Order, protocol: &str) -> Result<&'a Ycsb, OrderError> {
    let (what, other) = match &order.work {
        Work::Ycsb(workload) => return Ok(workload),
        Work::Program(_) => ("a program has CQL statements, so it is", "cql"),
        Work::Requests(_) => ("requests for documents are", "http"),
    };
    let why = format!("{what} not possible over {protocol}: choose kind ycsb, or protocol {other}");
    Err(OrderError::because("work.kind", why))
}

/// YCSB's kinds of operations. Of scans alone the rows are counted, as of reads there is one.
pub fn kinds() -> Kinds {
    let mut kinds = Kinds::default();
    for kind in Kind::ALL {
        match kind {
            Kind::ReadModifyWrite => kinds.add(kind.name(), &[Kind::Read.name(), Kind::Update.name()], false),
            _ => kinds.add(kind.name(), &[], kind == Kind::Scan),
        }
    }
    kinds
}

/// First key that the load itself inserts.
pub fn first_new_key(workload: &Ycsb) -> u64 {
    workload.insert_start + workload.records
}

/// The operations of one share, in index order.
#[derive(Clone, Debug)]
pub struct Stream {
    share: Share,
    action: Action,
    next_index: u64,
    field_count: u64,
    write_all_fields: bool,
    scan_lengths: Lengths,
    /// Upper ends of the kinds' parts of [0, 1).
    kinds: [f64; 5],
    insert_share: bool,
    kind_random: Random,
    key_random: Random,
    field_random: Random,
    scan_random: Random,
    chooser: KeyChooser,
    first_key: u64,
    /// First key that the load itself inserts.
    first_new_key: u64,
    insert_lag: u64,
    /// Inserts among the operations before `counted_to`, and among those before `visible_to`.
    inserts: u64,
    counted_to: u64,
    visible_inserts: u64,
    visible_to: u64,
}

impl Stream {
    /// The stream of an order: `new` with what the workload leaves open taken from the order's stop and schedule.
    pub fn from_order(
        order: &Order,
        workload: &Ycsb,
        expected_operations: f64,
        first_index: u64,
    ) -> Result<Self, OrderError> {
        Self::new(
            &settled(order, workload, expected_operations),
            order.seed,
            order.share,
            order.action,
            first_index,
        )
    }

    /// The operations of `share` from `first_index` on. Counting the inserts before `first_index` takes a few nanoseconds each;
    /// `latest` takes a power for each record.
    pub fn new(workload: &Ycsb, seed: u64, share: Share, action: Action, first_index: u64) -> Result<Self, OrderError> {
        check(workload, share)?;
        let behind = first_index % share.of;
        let next_index = first_index + (share.index + share.of - behind) % share.of;
        Ok(Self {
            share,
            action,
            next_index,
            field_count: workload.fields.len() as u64,
            write_all_fields: workload.write_all_fields,
            scan_lengths: Lengths::new(
                workload.scan_length_distribution,
                workload.min_scan_length,
                workload.max_scan_length,
            ),
            kinds: kind_ends(&workload.proportions),
            insert_share: workload.proportions.insert > 0.0,
            kind_random: Random::new(seed, Purpose::Kind),
            key_random: Random::new(seed, Purpose::Key),
            field_random: Random::new(seed, Purpose::Field),
            scan_random: Random::new(seed, Purpose::ScanLength),
            chooser: KeyChooser::new(&KeySpace::of(workload))?,
            first_key: workload.insert_start,
            first_new_key: first_new_key(workload),
            insert_lag: workload.insert_lag.unwrap_or(0),
            inserts: 0,
            counted_to: 0,
            visible_inserts: 0,
            visible_to: 0,
        })
    }

    /// The next operation of this share. Never ends: the order's stop does.
    #[allow(clippy::should_implement_trait)] // An Iterator would wrap every operation in an Option that is never None.
    pub fn next(&mut self) -> Operation {
        let index = self.next_index;
        self.next_index += self.share.of;
        self.at(index)
    }

    /// Operation `index` of the whole stream, whatever the share; `next` goes on where it was. Counts the inserts between the
    /// last index and this one, or from 0 if this one is smaller.
    pub fn at(&mut self, index: u64) -> Operation {
        if self.action == Action::Populate {
            return Operation {
                index,
                kind: Kind::Insert as u16,
                key: self.first_key + index,
                ..Operation::default()
            };
        }
        self.count_inserts(index);
        let kind = self.kind(index);
        let key = if kind == Kind::Insert {
            self.first_new_key + self.inserts
        } else {
            self.existing_key(index)
        };
        let field = uniform(self.field_random.at(index).bits(0), 0, self.field_count) as u32;
        let scan_length = if kind == Kind::Scan {
            self.scan_lengths.value(self.scan_random.at(index).bits(0))
        } else {
            0
        };
        Operation {
            index,
            kind: kind as u16,
            key,
            step: 0,
            field,
            scan_length,
            ..Operation::default()
        }
    }

    /// Whether the key is inserted by the load itself and not by the fill. A read may miss it without fault of the system: its
    /// insert may have failed, or still be in flight in spite of the lag window.
    pub fn is_new(&self, key: u64) -> bool {
        key >= self.first_new_key
    }

    /// The field by which what the operation's step writes is read back: where all fields are written, always the same one.
    pub fn written_field(&self, operation: &Operation) -> Option<u32> {
        let writes = matches!(Kind::of(operation), Kind::Update | Kind::Insert);
        writes.then_some(if self.write_all_fields { 0 } else { operation.field })
    }

    fn kind(&self, index: u64) -> Kind {
        kind_at(&self.kinds, self.kind_random.at(index).unit(0))
    }

    fn count_inserts(&mut self, index: u64) {
        if !self.insert_share {
            return;
        }
        if index < self.counted_to {
            (self.inserts, self.counted_to, self.visible_inserts, self.visible_to) = (0, 0, 0, 0);
        }
        let visible_to = index.saturating_sub(self.insert_lag);
        while self.visible_to < visible_to {
            self.visible_inserts += u64::from(self.kind(self.visible_to) == Kind::Insert);
            self.visible_to += 1;
        }
        while self.counted_to < index {
            self.inserts += u64::from(self.kind(self.counted_to) == Kind::Insert);
            self.counted_to += 1;
        }
    }

    /// YCSB's nextKeynum: draw until the key exists.
    fn existing_key(&mut self, index: u64) -> u64 {
        let newest = self.first_new_key - 1 + self.visible_inserts;
        let requests = index - self.inserts;
        let random = self.key_random.at(index);
        self.chooser.existing(random, self.first_key, newest, requests)
    }
}

/// The order's workload with `expected_new_keys` and `insert_lag` filled in where they are None.
///
/// New keys: `expected_operations` x the share of inserts x 2, as YCSB has it. Lag: see `insert_lag`.
pub fn settled(order: &Order, workload: &Ycsb, expected_operations: f64) -> Ycsb {
    let mut workload = workload.clone();
    let insert_share = workload.proportions.insert / workload.proportions.sum();
    workload
        .expected_new_keys
        .get_or_insert((expected_operations * insert_share * 2.0) as u64);
    workload.insert_lag.get_or_insert(default_insert_lag(order));
    workload
}

/// Upper ends of the kinds' parts of [0, 1), in YCSB's order. The shares are divided by their sum.
pub fn kind_ends(proportions: &Proportions) -> [f64; 5] {
    let shares = proportions.shares();
    let sum = proportions.sum();
    let last = shares.iter().rposition(|share| *share > 0.0).unwrap_or(0);
    let mut end = 0.0;
    let mut number = 0;
    shares.map(|share| {
        end += share / sum;
        number += 1;
        // Rounding must not leave a gap below 1, nor give it to a kind that has no share.
        if number > last { 1.0 } else { end }
    })
}

/// The kind whose part of [0, 1) holds `unit`.
#[inline]
pub fn kind_at(ends: &[f64; 5], unit: f64) -> Kind {
    let number = ends.iter().position(|end| unit < *end).unwrap_or(Kind::ALL.len() - 1);
    Kind::ALL[number]
}

/// Refuse what cannot work.
fn check(workload: &Ycsb, share: Share) -> Result<(), OrderError> {
    let ensure = |good: bool, field, read: &dyn Display, allowed| {
        if good {
            Ok(())
        } else {
            Err(OrderError::new(field, read, allowed))
        }
    };
    let w = workload;
    let fraction = |value: f64| (0.0..=1.0).contains(&value);
    let shares = w.proportions.shares();
    ensure(w.records > 0, "work.records", &w.records, "at least 1")?;
    let keys = w
        .insert_start
        .checked_add(w.records)
        .and_then(|end| end.checked_add(w.expected_new_keys.unwrap_or(0)));
    ensure(
        keys.is_some_and(|keys| keys < 1 << 62),
        "work.records",
        &w.records,
        "key numbers below 2^62",
    )?;
    let fields = w.fields.len();
    ensure(
        (1..=MOST_FIELDS).contains(&fields),
        "work.fields",
        &fields,
        "1 to a million",
    )?;
    let of = (1..=MOST_SHARES).contains(&share.of);
    ensure(of, "share.of", &share.of, "1 to a million")?;
    ensure(
        share.index < share.of,
        "share.index",
        &share.index,
        "0 up to share.of - 1",
    )?;
    ensure(
        shares.iter().all(|share| *share >= 0.0) && w.proportions.sum() > 0.0 && w.proportions.sum().is_finite(),
        "work.proportions",
        &format!("{shares:?}"),
        "numbers of at least 0 with a sum above 0",
    )?;
    let padding = w.zero_padding;
    ensure(
        padding <= MOST_DIGITS,
        "work.zero_padding",
        &padding,
        "up to 1024 digits",
    )?;
    let length = w.field_length;
    ensure(
        length <= MOST_BYTES,
        "work.field_length",
        &length,
        "up to 268435456 bytes",
    )?;
    let min_length = w.min_field_length;
    let lengths = w.field_length_distribution == LengthDistribution::Constant || min_length <= w.field_length;
    ensure(lengths, "work.min_field_length", &min_length, "up to field_length")?;
    let scans = (1..=w.max_scan_length).contains(&w.min_scan_length);
    ensure(
        scans,
        "work.min_scan_length",
        &w.min_scan_length,
        "1 up to max_scan_length",
    )?;
    let scan_kind = w.scan_length_distribution != LengthDistribution::Constant;
    ensure(
        scan_kind,
        "work.scan_length_distribution",
        &"constant",
        "uniform, zipfian",
    )?;
    let (data, operations) = (w.hotspot_data_fraction, w.hotspot_operation_fraction);
    ensure(fraction(data), "work.hotspot_data_fraction", &data, "0 to 1")?;
    ensure(
        fraction(operations),
        "work.hotspot_operation_fraction",
        &operations,
        "0 to 1",
    )?;
    let (percentile, part) = (w.exponential_percentile, w.exponential_fraction);
    ensure(
        percentile > 0.0 && percentile < 100.0,
        "work.exponential_percentile",
        &percentile,
        "between 0 and 100",
    )?;
    ensure(
        part > 0.0 && part.is_finite(),
        "work.exponential_fraction",
        &part,
        "a number above 0",
    )?;
    let validated = w.validate_fraction;
    ensure(fraction(validated), "work.validate_fraction", &validated, "0 to 1")
}

#[cfg(test)]
#[path = "ycsb_tests.rs"]
mod tests;
