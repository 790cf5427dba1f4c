//! Rows of a table: partitions are functions of the key number, rows of the values of their primary key, so that whoever knows
//! those values knows the whole row. A row is a path through a tree: each clustering value has entries of the next column.
//!
//! Which rows an operation takes follows cassandra-stress 3.11, whose profiles are compiled to this: each entry of the outermost
//! clustering column is taken with the same chance, together with all that is below it, and the last one where none was.

use std::cell::Cell;

use super::cql_type::Native;
use super::encode::{Digits, put_real, put_whole};
use steelyard_workload::program::Numbers;
use steelyard_workload::random::{Purpose, Random, output};
use steelyard_workload::stress::{Hashed, ProfileColumn};
use steelyard_workload::ycsb_distributions::fnv_hash;

/// Most clustering columns.
pub(super) const MOST_COLUMNS: usize = 8;
/// Chance from which on each entry is taken without a draw.
const CERTAIN: f64 = 0.99999;
/// Draws of a distribution whose mean is asked for.
const DRAWS: u64 = 4096;

/// One row of a table: the numbers that its values follow from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    partition: u64,
    /// Where in the partition; None: it has one row.
    within: Option<u64>,
    /// cassandra-stress's hash of the values.
    seed: i64,
    /// The number that each clustering value is made of.
    columns: [u64; MOST_COLUMNS],
}

impl Row {
    /// The stream of what is random in this row, of a column's stream.
    pub(super) fn stream(&self, column: Random) -> Random {
        let partition = column.at(self.partition);
        self.within.map_or(partition, |within| partition.at(within))
    }

    /// The position of a sequence.
    pub(super) fn position(&self) -> u64 {
        self.within
            .map_or(self.partition, |within| output(self.partition, within))
    }

    /// cassandra-stress's seed of the row.
    pub(super) fn seed(&self) -> i64 {
        self.seed
    }
}

/// A clustering column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub count: Numbers,
    pub value: KeySource,
    random: Random,
    mean: u64,
    /// Whether it is the last, whose value the tool hashes twice: as the first of its values too.
    last: bool,
}

impl Column {
    pub fn new(number: usize, last: bool, count: Numbers, value: KeySource, value_seed: u64) -> Self {
        let random = Random::new(value_seed, Purpose::Row).at(number as u64);
        let sum: i128 = (0..DRAWS)
            .map(|draw| i128::from(count.whole(random.at(draw), draw)))
            .sum();
        let mean = count.constant().unwrap_or((sum / i128::from(DRAWS)) as i64);
        Self {
            count,
            value,
            random,
            mean: mean.max(1).unsigned_abs(),
            last,
        }
    }

    /// Entries below an entry of the column before.
    fn entries(&self, above: u64) -> u64 {
        self.count.whole(self.random.at(above), above).max(1).unsigned_abs()
    }

    /// The row of an entry. `scratch` is left as it was.
    fn row(&self, entry: Entry, scratch: &mut Vec<u8>) -> Row {
        let mut row = entry.above;
        let above = row.position();
        let single = self.count.constant() == Some(1);
        // From which the tool's own generator goes.
        let as_key = (row.seed as u64).wrapping_sub(1);
        let number = match (single, self.value.number.is_drawn()) {
            (true, _) if self.value.number.is_identity() => as_key,
            (true, _) => above,
            (false, true) => self.random.at(above).at(entry.number).bits(0),
            // Counted from a place of the entry's own, as those at the end are taken more often.
            (false, false) => (entry.number + self.random.at(above).bits(2) % entry.of) % entry.of,
        };
        row.columns[entry.column] = number;
        let mut hashed = |row: i64| self.value.hashed(row, if single { as_key } else { number }, scratch);
        let seed = hashed(row.seed).and_then(|seed| if self.last { hashed(seed) } else { Some(seed) });
        if !single {
            let identity = if self.value.number.is_drawn() {
                // Different numbers may be the same value, and are the same row then.
                hash([&self.value], number, scratch)
            } else {
                number
            };
            row.within = Some(row.within.map_or(identity, |within| output(within, identity)));
        }
        // What is counted would give neighbours that the tool's own values are not.
        row.seed = seed.unwrap_or_else(|| row.position() as i64);
        row
    }
}

/// One of the entries that a clustering column has below a row.
#[derive(Clone, Copy, Debug)]
struct Entry {
    above: Row,
    column: usize,
    number: u64,
    /// How many there are.
    of: u64,
}

/// The primary key of a table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    partition: Vec<KeySource>,
    columns: Vec<Column>,
    /// Among how many rows each marker chooses.
    choices: usize,
    select: Random,
}

/// The value of a column of the primary key, made of a key's number.
#[derive(Clone, Debug)]
pub(super) struct KeySource {
    pub native: Native,
    pub number: KeyNumber,
    pub digits: Digits,
}

impl KeySource {
    #[inline]
    pub fn put(&self, key: u64, out: &mut Vec<u8>) {
        match self.number.shown() {
            Some(identity) if self.native.is_real() => put_real(
                self.native,
                identity.column.real(self.number.seed(key)),
                &self.digits,
                out,
            ),
            Some(identity) if identity.bytes => identity
                .column
                .write_blob(identity.column.identity(self.number.seed(key)), out),
            _ => put_whole(self.native, self.number.of(key), &self.digits, out),
        }
    }

    /// Whether the key follows from its value.
    fn tells_key(&self) -> bool {
        let whole = matches!(
            self.native,
            Native::Text | Native::Ascii | Native::Blob | Native::BigInt | Native::Int | Native::VarInt
        );
        whole && self.number.tells_key()
    }

    /// cassandra-stress's hash of a row with this value of a key number too; None: the tool has no such column.
    fn hashed(&self, row: i64, key: u64, scratch: &mut Vec<u8>) -> Option<i64> {
        let identity = self.number.identity.as_ref()?;
        let drawn = identity.column.identity(seed_of(key));
        // As the type holds it.
        let held = match self.native {
            Native::Int => i64::from(drawn as i32),
            Native::SmallInt => i64::from(drawn as i16),
            Native::TinyInt => i64::from(drawn as i8),
            Native::Float => identity.column.real(seed_of(key)) as f32 as i64,
            Native::Double => identity.column.real(seed_of(key)) as i64,
            _ => drawn,
        };
        let put = |out: &mut Vec<u8>| self.put(key, out);
        Some(identity.column.hash(row, held, identity.how, put, scratch))
    }
}

/// The operation that takes rows, and the execution within its batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taking {
    pub index: u64,
    pub occurrence: u64,
    pub key: u64,
}

/// Takes entries of the last column until there are enough.
struct Taker<'a, F> {
    /// Entries that are still wanted.
    left: usize,
    take: F,
    /// Room for values that are hashed; left as it was.
    scratch: &'a mut Vec<u8>,
}

impl Table {
    pub fn new(partition: Vec<KeySource>, columns: Vec<Column>, choices: usize, seed: u64) -> Self {
        Self {
            partition,
            columns,
            choices,
            select: Random::new(seed, Purpose::Select),
        }
    }

    /// The clustering columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Appends the value of a clustering column in a row.
    pub fn put_column(&self, column: usize, row: &Row, out: &mut Vec<u8>) {
        self.columns[column].value.put(row.columns[column], out);
    }

    /// The row that a marker's value is of, and whether it is that of all markers. `counted`: among how many rows the markers of
    /// this execution choose, once one has asked. `scratch` is left as it was.
    pub fn row(&self, at: Taking, marker: u64, counted: &Cell<Option<u64>>, scratch: &mut Vec<u8>) -> (Row, bool) {
        let start = self.start(at.key, scratch);
        let Some(first) = self.columns.first() else {
            return (start, self.choices == 1);
        };
        let below = self.columns.iter().skip(1).map(|column| column.mean);
        let expected = below.fold(first.entries(start.position()), u64::saturating_mul);
        let chance = self.choices as f64 / expected as f64;
        let random = self.select.at(at.index).at(at.occurrence);
        // How many entries there are among the first `most`, and the last of them.
        let mut among = |most: usize| {
            let (mut count, mut last) = (0, None);
            let taker = Taker {
                left: most,
                take: |entry, _: &mut Vec<u8>| (count, last) = (count + 1, Some(entry)),
                scratch,
            };
            self.take(start, chance, random, taker);
            (count, last)
        };
        // Counted first: to keep the entries would be an allocation for each operation.
        let wanted = match self.choices {
            1 => 0,
            choices => {
                let count = counted.get().unwrap_or_else(|| among(choices).0);
                counted.set(Some(count));
                random.at(marker).bits(0) % count
            }
        };
        let (_, last) = among(wanted as usize + 1);
        let row = last.map_or(start, |entry| self.row_of(entry, scratch));
        (row, self.choices == 1)
    }

    /// Most rows of a partition.
    pub fn most_rows(&self) -> i64 {
        let most = |column: &Column| column.count.bounds().1;
        self.columns.iter().map(most).fold(1, i64::saturating_mul)
    }

    /// Hands over the rows of a key's partition that an operation writes, each outermost entry with that chance; `most` at most.
    pub fn selected(&self, key: u64, chance: f64, index: u64, most: usize, mut take: impl FnMut(Row)) {
        let random = self.select.at(index).at(key);
        let scratch = &mut Vec::new();
        let start = self.start(key, scratch);
        if self.columns.is_empty() {
            return take(start);
        }
        let taker = Taker {
            left: most,
            take: |entry, scratch: &mut Vec<u8>| take(self.row_of(entry, scratch)),
            scratch,
        };
        self.take(start, chance, random, taker);
    }

    fn start(&self, key: u64, scratch: &mut Vec<u8>) -> Row {
        let injective = self.partition.iter().any(KeySource::tells_key);
        let partition = if injective {
            key
        } else {
            hash(&self.partition, key, scratch)
        };
        let seed = |sum: Option<i64>, value: &KeySource| value.hashed(sum?, key, scratch);
        Row {
            partition,
            seed: self.partition.iter().fold(Some(0), seed).unwrap_or(partition as i64),
            ..Row::default()
        }
    }

    fn row_of(&self, entry: Entry, scratch: &mut Vec<u8>) -> Row {
        self.columns[entry.column].row(entry, scratch)
    }

    /// Takes entries of the last column, one at least where there are columns.
    fn take<F>(&self, start: Row, chance: f64, random: Random, mut taker: Taker<'_, F>)
    where
        F: FnMut(Entry, &mut Vec<u8>),
    {
        let of = self.columns.first().map_or(0, |first| first.entries(start.position()));
        let (mut number, mut draw) = (skipped(chance, random, 0).min(of.saturating_sub(1)), 0);
        while taker.left > 0 && number < of {
            let entry = Entry {
                above: start,
                column: 0,
                number,
                of,
            };
            self.take_below(entry, &mut taker);
            draw += 1;
            number = (number + 1).saturating_add(skipped(chance, random, draw));
        }
    }

    /// Takes all entries of the last column below one, or that one.
    fn take_below<F>(&self, entry: Entry, taker: &mut Taker<'_, F>)
    where
        F: FnMut(Entry, &mut Vec<u8>),
    {
        let column = entry.column + 1;
        let Some(next) = self.columns.get(column) else {
            taker.left -= 1;
            return (taker.take)(entry, taker.scratch);
        };
        let above = self.row_of(entry, taker.scratch);
        let of = next.entries(above.position());
        for number in 0..of {
            if taker.left == 0 {
                return;
            }
            let entry = Entry {
                above,
                column,
                number,
                of,
            };
            self.take_below(entry, taker);
        }
    }
}

/// Entries that are passed over before the next one that is taken: geometric.
fn skipped(chance: f64, random: Random, draw: u64) -> u64 {
    if chance > CERTAIN {
        return 0;
    }
    // To `u64::MAX` where the chance is 0.
    ((1.0 - random.unit(draw)).ln() / (-chance).ln_1p()) as u64
}

/// A hash of the values that sources make of a key number.
fn hash<'a>(sources: impl IntoIterator<Item = &'a KeySource>, key: u64, scratch: &mut Vec<u8>) -> u64 {
    let begin = scratch.len();
    for source in sources {
        let start = scratch.len();
        source.put(key, scratch);
        // Where one value ends.
        scratch.push((scratch.len() - start) as u8);
    }
    let word = |chunk: &[u8]| chunk.iter().fold(0_u64, |word, byte| (word << 8) | u64::from(*byte));
    let bytes = &scratch[begin..];
    let hash = bytes
        .chunks(8)
        .fold(bytes.len() as u64, |hash, chunk| output(hash, word(chunk)));
    scratch.truncate(begin);
    hash
}

/// A key's number: of the key itself, or the identity that cassandra-stress draws.
#[derive(Clone, Debug)]
pub(super) struct KeyNumber {
    pub divide: u64,
    pub modulo: Option<u64>,
    pub scramble: bool,
    pub scale: i64,
    pub offset: i64,
    pub identity: Option<KeyIdentity>,
}

/// What cassandra-stress draws for a column of the key.
#[derive(Clone, Debug)]
pub(super) struct KeyIdentity {
    pub column: ProfileColumn,
    pub how: Hashed,
    /// Whether it is not the key's number.
    pub hidden: bool,
    /// Whether the value is the tool's own blob.
    pub bytes: bool,
}

impl KeyNumber {
    #[inline]
    pub fn of(&self, key: u64) -> i64 {
        let number = if self.divide == 1 { key } else { key / self.divide };
        let number = match self.shown() {
            Some(identity) => identity.column.identity(seed_of(number)) as u64,
            None if self.scramble => fnv_hash(number),
            None => number,
        };
        let number = self.modulo.map_or(number, |modulo| number % modulo);
        self.offset.wrapping_add(self.scale.wrapping_mul(number as i64))
    }

    /// Whether it looks random rather than counts.
    pub fn is_drawn(&self) -> bool {
        self.scramble || self.is_identity()
    }

    fn is_identity(&self) -> bool {
        self.shown().is_some()
    }

    /// The identity that the value is made of.
    fn shown(&self) -> Option<&KeyIdentity> {
        self.identity.as_ref().filter(|identity| !identity.hidden)
    }

    /// cassandra-stress's seed of a key.
    fn seed(&self, key: u64) -> i64 {
        seed_of(key / self.divide)
    }

    /// Whether each key has a number of its own.
    pub fn tells_key(&self) -> bool {
        !self.is_drawn() && self.divide == 1 && self.modulo.is_none() && self.scale == 1
    }
}

/// cassandra-stress's seed of a key.
fn seed_of(key: u64) -> i64 {
    (key as i64).wrapping_add(1)
}
