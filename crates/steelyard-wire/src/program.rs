//! Programs: workloads as data. Statements, the sources of their values, and which operations execute them how often. TOML
//! workloads and the command lines of other tools are compiled to this; the agent knows no other form but YCSB's.
//!
//! Everything that an operation sends is a pure function of the order's seed, the operation's index and its key.

use serde::{Deserialize, Serialize};

/// A workload of kind `program`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Keys of the filled state: 0 up to records - 1. A key is a number; values make partition and clustering columns of it.
    pub records: u64,
    /// The statements that operations execute, by name.
    pub statements: Vec<Statement>,
    /// Steps that fill the tables, for each key in turn (or each `populate_stride`-th, if one operation writes several).
    pub populate: Vec<Step>,
    /// The fill takes each key that is a multiple of this.
    #[serde(default = "one")]
    pub populate_stride: u64,
    /// The kinds of operations of the load.
    pub operations: Vec<OperationSpec>,
    /// Number of consecutive operations of one kind (cassandra-stress's `clustering`); None: each is drawn independently.
    #[serde(default)]
    pub clustering: Option<DistributionSpec>,
    /// Share of the answers with an `expect` whose values are compared, 0 to 1.
    #[serde(default)]
    pub validate_fraction: f64,
    /// As `insert_lag` of YCSB's workload.
    #[serde(default)]
    pub insert_lag: Option<u64>,
    /// Seed of stored values (`random`, and counts that are a function of seed and key) in place of the order's: the same when
    /// filling and in every load, or what the fill wrote could not be expected.
    #[serde(default)]
    pub value_seed: u64,
}

/// A prepared statement and the values of its markers, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Name by which steps refer to it.
    pub name: String,
    /// Text of the statement.
    pub cql: String,
    /// Values of its markers, in order.
    #[serde(default)]
    pub values: Vec<Value>,
    /// Markers that form the partition key, in its order; empty: the statement goes to any node.
    #[serde(default)]
    pub partition_key: Vec<u16>,
    /// Whether the order's write consistency applies rather than its read consistency.
    pub writes: bool,
    /// Overrides the order's consistency; in a batch, the first one that a statement has applies.
    #[serde(default)]
    pub consistency: Option<String>,
    /// A lightweight transaction: an answer whose `[applied]` is false is counted as `not-applied`.
    #[serde(default)]
    pub conditional: bool,
    /// Rows of one page; None: the server's whole answer in one frame.
    #[serde(default)]
    pub page_rows: Option<u32>,
    /// Maximum number of pages requested, in sequence; they are one operation.
    #[serde(default = "one_page")]
    pub max_pages: u32,
    /// Whether an answer without rows is `not-found`.
    #[serde(default)]
    pub wants_row: bool,
    /// Expected values of the first row's columns, in order; empty: not compared. Only values that follow from the key and
    /// from a version that the value itself carries can be expected: `key`, `fixed`, `row`, `random`, `stress-*`; and `any`.
    #[serde(default)]
    pub expect: Vec<Value>,
    /// The table whose rows its values are of: `random` values then follow from the row's primary key in place of the key number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
}

/// The primary key of a table's rows, as functions of the key number: each key number is a partition, and different numbers may
/// be the same one. Whoever knows the values of a row's primary key knows all of its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Columns of the partition key, of kind `key`.
    pub partition: Vec<Value>,
    /// Clustering columns, outermost first: each value has entries of the next column below it. Empty: a partition is one row.
    #[serde(default)]
    pub clustering: Vec<Clustering>,
    /// Whether each marker takes one of as many rows as the statement has markers; else all take the same row.
    #[serde(default)]
    pub apart: bool,
}

/// A clustering column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clustering {
    /// Number of its values within one entry of the column before; a function of seed and that entry.
    pub count: DistributionSpec,
    /// Its value, of kind `key`: of the entry's number from 0, or with an `identity` or `scramble` of a random one; where `count` is
    /// always 1, of the entry of the column before.
    pub value: Value,
}

/// The number that cassandra-stress draws for a column of a profile, before it makes a value of it: from the key + 1 in the partition
/// key, and from a hash of the values of the primary key elsewhere. Neighbouring keys have neighbouring numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Name of the column.
    pub named: String,
    /// Distribution of the numbers.
    pub of: DistributionSpec,
    /// Bytes of the text or blob that the tool makes of it; None: 4 to 8, evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<DistributionSpec>,
    /// Whether n stays as it is, and only the hash of the row follows from the identity.
    #[serde(default)]
    pub hidden: bool,
    /// Of a blob: whether it is the tool's own, `size` bytes, in place of the identity's 8.
    #[serde(default, skip_serializing_if = "crate::defaults::is_false")]
    pub bytes: bool,
}

/// A share: a number of a distribution over a divisor, at most 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fraction {
    /// The number.
    pub of: DistributionSpec,
    /// What it is divided by; above 0.
    pub divisor: u64,
}

/// One kind of operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationSpec {
    /// Its name in records.
    pub name: String,
    /// Its share of the operations, relative to the sum of all weights.
    pub weight: f64,
    /// Which key each operation takes.
    pub keys: Keys,
    /// Steps, carried out in sequence; if there is more than one, each is counted under its statement's name with the
    /// measure `part`.
    pub steps: Vec<Step>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// One execution of a statement.
    Execute {
        /// Name of the statement.
        statement: String,
    },
    /// Statements in one BATCH request.
    Batch {
        /// Names of the statements.
        statements: Vec<String>,
        /// Kind of batch.
        mode: BatchMode,
        /// How often all of them are in it; a function of seed and key where it is no fixed number: where the key stays,
        /// as many as a `row` of the same count chooses among; where each key is drawn, a function of seed and index.
        #[serde(default = "once")]
        repeat: DistributionSpec,
        /// Whether each repetition takes the next key; else the key stays and only `row` moves on.
        #[serde(default)]
        next_key: bool,
        /// With `next_key`, of statements with a `table`: for each of the keys, rows of its partition. Each entry of the
        /// outermost clustering column is taken with this chance, drawn for each operation, and one at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        select: Option<Fraction>,
    },
}

/// Kind of a BATCH request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchMode {
    /// Atomic, by the batch log.
    Logged,
    /// Not atomic.
    Unlogged,
    /// Of counter updates.
    Counter,
}

/// Which key an operation takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Keys {
    /// The next key that no operation has taken: inserts.
    New,
    /// A key that exists, those that the load has inserted included, by YCSB's choosers.
    Existing {
        /// Which of the existing keys.
        distribution: crate::RequestDistribution,
    },
    /// A number of that distribution, whether the key exists or not.
    Drawn {
        /// The distribution of key numbers.
        number: DistributionSpec,
        /// Whether each key of a batch with `next_key` is a draw of its own, and none is there twice; a sequence then goes on
        /// behind the keys of the operations before. Else the batch goes from the operation's key to the next.
        #[serde(default, skip_serializing_if = "crate::defaults::is_false")]
        each: bool,
    },
}

/// A value of a CQL type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// The type in CQL: `text`, `map<text, frozen<list<int>>>`, `tuple<int, uuid>`, `vector<float, 3>`.
    #[serde(rename = "type")]
    pub cql_type: String,
    /// Where the value comes from.
    pub make: Make,
}

/// Where a value comes from. Numbers become integers, timestamps (ms), dates (days), text (decimal), blobs (8 bytes, highest
/// first), uuids (of the number's hash) as the type requires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Make {
    /// offset + scale x n, where n is (key / divide) modulo `modulo`, hashed first if `scramble`.
    Key {
        /// Divisor of the key; above 0.
        #[serde(default = "one")]
        divide: u64,
        /// Modulus of the quotient; above 0.
        #[serde(default)]
        modulo: Option<u64>,
        /// Whether the quotient is hashed.
        #[serde(default)]
        scramble: bool,
        /// Factor of the number.
        #[serde(default = "plus_one")]
        scale: i64,
        /// Offset that is added at the end.
        #[serde(default)]
        offset: i64,
        /// Prefix of the number, in text.
        #[serde(default)]
        prefix: String,
        /// Minimum number of digits, in text.
        #[serde(default)]
        digits: u32,
        /// n is the identity that cassandra-stress draws for this column, in place of `modulo` and `scramble`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<Identity>,
    },
    /// The value of a clustering column in the row that the operation means, see `table`.
    Clustering {
        /// Number of the column, from 0.
        column: u32,
    },
    /// Bytes and numbers that look random and are a function of seed, key (or row, see `table`), `salt`, of the row where the statement has values of
    /// kind `row`, and, if `versioned`, of the version: 0 by the fill, else one more than the index of the operation that writes
    /// it. Text then carries it in front as 16 hexadecimal digits, blobs as 8 bytes, so that they are at least that long.
    Random {
        /// Distinguishes the columns of a table.
        #[serde(default)]
        salt: u32,
        /// Of numbers, timestamps and the like, not of collections; None: all that the type holds, of float and double 0 to 1, of timestamps and
        /// dates those from 1970 to 9999, of counters 1.
        #[serde(default)]
        number: Option<DistributionSpec>,
        /// Bytes of text and blobs (None: 16), entries of collections (None: 4).
        #[serde(default)]
        size: Option<DistributionSpec>,
        /// Entries of a list or set; key and value of a map; members of a tuple. Empty: `random` of their types.
        #[serde(default)]
        of: Vec<Value>,
        /// Whether the value changes with the version.
        #[serde(default)]
        versioned: bool,
        /// The value is one of as many as there are numbers here: it follows from `salt` and the identity that cassandra-stress
        /// draws for the column in that row, see `table`; within a collection from a draw of its own. Without a `size` it is that
        /// number itself, of float and double with its fraction.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<Identity>,
    },
    /// A number drawn for each operation: limits, clustering bounds.
    Draw {
        /// The distribution of the numbers.
        number: DistributionSpec,
    },
    /// A JSON value; null is CQL's null.
    Fixed {
        /// The value.
        value: serde_json::Value,
    },
    /// Number of the repetition within a batch, from 0; else a number below `count` drawn for the operation, where `count` is
    /// a function of seed and key.
    Row {
        /// The distribution of the number of rows.
        count: DistributionSpec,
    },
    /// In `expect` only: whatever the column holds.
    Any,
    /// cassandra-stress's partition key of the seed `key` + 1... as its own generator makes it.
    StressKey {
        /// Bytes of the key.
        size: u32,
    },
    /// cassandra-stress's value of that column (from 0) in the row of the seed.
    StressColumn {
        /// Number of the column, from 0.
        column: u32,
        /// Bytes of the value.
        size: DistributionSpec,
        /// Its name where it is not `C` and the number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<String>,
        /// Bytes of the row's key, of which its values are a function.
        #[serde(default = "stress_key_size")]
        key_size: u32,
    },
}

/// A distribution of numbers, as a function of uniform bits. Where a `min` and a `max` are given both can occur. `exponential`,
/// `gaussian` and `extreme` are those of cassandra-stress's options, so that its command lines keep their meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DistributionSpec {
    /// Always the same number.
    Fixed {
        /// The number.
        value: f64,
    },
    /// min, min + 1, ... max, min again: by the operation's index, or by the key where it makes a stored value.
    Sequence {
        /// Smallest number.
        min: i64,
        /// Largest number.
        max: i64,
    },
    /// Each number with equal probability; with fractions if a bound has one.
    Uniform {
        /// Smallest number.
        min: f64,
        /// Largest number.
        max: f64,
    },
    /// Zipfian: the lowest number is the most popular.
    Zipfian {
        /// Smallest number.
        min: i64,
        /// Largest number.
        max: i64,
        /// Exponent, above 0 and below 1.
        #[serde(default = "theta")]
        theta: f64,
    },
    /// Zipfian popularity, scattered over the numbers by a hash.
    ScrambledZipfian {
        /// Smallest number.
        min: i64,
        /// Largest number.
        max: i64,
    },
    /// Zipfian: the highest number is the most popular.
    Latest {
        /// Smallest number.
        min: i64,
        /// Largest number.
        max: i64,
    },
    /// A fraction of the numbers gets a fraction of the draws, uniform within both parts.
    Hotspot {
        /// Smallest number.
        min: i64,
        /// Largest number.
        max: i64,
        /// Share of the numbers that are hot, 0 to 1, from the smallest up.
        data_fraction: f64,
        /// Share of the draws that are hot, 0 to 1.
        operation_fraction: f64,
    },
    /// EXP(min..max)
    Exponential {
        /// Smallest number.
        min: i64,
        /// Largest number.
        max: i64,
    },
    /// GAUSSIAN(min..max,mean,deviation); by default the middle, and three deviations to each end.
    Gaussian {
        /// Smallest number.
        min: i64,
        /// Largest number.
        max: i64,
        /// Mean before the cut at the bounds.
        #[serde(default)]
        mean: Option<f64>,
        /// Standard deviation before the cut at the bounds.
        #[serde(default)]
        deviation: Option<f64>,
    },
    /// EXTREME(min..max,shape): Weibull; QEXTREME with `quanta`.
    Extreme {
        /// Smallest number.
        min: i64,
        /// Largest number.
        max: i64,
        /// Shape of the Weibull distribution, above 0.
        shape: f64,
        /// Number of quanta of equal chance.
        #[serde(default)]
        quanta: Option<u32>,
    },
    /// ~DIST: reversed, the highest value takes the lowest one's place.
    Inverted {
        /// The distribution that is reversed.
        of: Box<DistributionSpec>,
    },
}

fn one() -> u64 {
    1
}

fn plus_one() -> i64 {
    1
}

fn one_page() -> u32 {
    1
}

fn theta() -> f64 {
    0.99
}

fn stress_key_size() -> u32 {
    10
}

fn once() -> DistributionSpec {
    DistributionSpec::Fixed { value: 1.0 }
}
