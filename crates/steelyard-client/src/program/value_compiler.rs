//! Compiler of a statement's values: from the description in an order to value sources. What is not possible is refused.

use std::sync::Arc;

use steelyard_wire::program::{
    Clustering, DistributionSpec, Identity, Make, Program, Statement, Table as TableSpec, Value,
};

use super::constants;
use super::cql_type::{CqlType, Native};
use super::encode::Digits;
use super::random_values::{DEFAULT_BYTES, DEFAULT_ENTRIES, MOST_BYTES, MOST_ENTRIES, RandomValue};
use super::table::{Column, KeyIdentity, KeyNumber, KeySource, MOST_COLUMNS, Table};
use super::value_source::{RandomOf, RowOf, Rows, Source, ValueSource};
use steelyard_workload::OrderError;
use steelyard_workload::program::Numbers;
use steelyard_workload::random::{Purpose, Random};
use steelyard_workload::stress::{self, Hashed, ProfileColumn};

/// Bytes of cassandra-stress's keys: no partition key is longer.
const KEY_BYTES: std::ops::RangeInclusive<u32> = 1..=65_535;

/// Compiles the values of one statement.
#[derive(Clone, Debug)]
pub(super) struct ValueCompiler {
    /// Of what is drawn for each operation.
    pub seed: u64,
    /// Of what is stored.
    pub value_seed: u64,
    pub records: u64,
    pub rows: Option<Arc<Rows>>,
    /// Of the statement.
    pub table: Option<Arc<Table>>,
}

impl ValueCompiler {
    pub fn new(seed: u64, program: &Program, statement: &Statement) -> Result<Self, OrderError> {
        let values = &statement.values;
        let mut compiler = Self {
            seed,
            value_seed: program.value_seed,
            records: program.records,
            rows: None,
            table: None,
        };
        if let Some(table) = &statement.table {
            compiler.table = Some(Arc::new(compiler.table_of(table, values.len())?));
        }
        let counts = values.iter().enumerate().find_map(|(number, value)| match &value.make {
            Make::Row { count } => Some((number, count)),
            _ => None,
        });
        if let Some((number, count)) = counts {
            if compiler.table.is_some() {
                let error = OrderError::because(
                    "make.kind",
                    "row is not possible in a statement with a table: use clustering",
                );
                return Err(error.within(format!("values.{number}")));
            }
            let rows = compiler.rows(count);
            compiler.rows = Some(Arc::new(
                rows.map_err(|error| error.within(format!("values.{number}")))?,
            ));
        }
        Ok(compiler)
    }

    fn rows(&self, count: &DistributionSpec) -> Result<Rows, OrderError> {
        Ok(Rows {
            count: Numbers::new(count)?.within(1..=i64::MAX, "make.count")?,
            of_key: Random::new(self.value_seed, Purpose::Row).at(0),
            of_index: Random::new(self.seed, Purpose::Row).at(1),
        })
    }

    /// Compiles one value, the `ordinal`-th of its statement. Errors: a type or a make that is not possible.
    pub fn source(&self, value: &Value, ordinal: u64) -> Result<ValueSource, OrderError> {
        if value.make == Make::Any {
            // The type does not matter.
            return Ok(ValueSource::of(Native::Blob, Source::Any));
        }
        let cql_type = CqlType::parse(&value.cql_type)?;
        let source = match &value.make {
            Make::Any => Source::Any,
            Make::Key { .. } => Source::Key(self.key(&cql_type, &value.make)?),
            Make::Clustering { column } => self.clustering(&cql_type, *column, ordinal)?,
            Make::Random {
                salt,
                versioned,
                choice,
                ..
            } => Source::Random {
                value: self.random_value(&cql_type, &value.make)?,
                random: Random::new(self.value_seed, Purpose::Content).at(u64::from(*salt)),
                versioned: *versioned,
                choice: match (choice, &self.table) {
                    (Some(choice), Some(_)) => Some(identity_of(choice, "make.choice")?),
                    (Some(_), None) => {
                        return Err(OrderError::because("make.choice", "requires a statement with a table"));
                    }
                    (None, _) => None,
                },
                of: match (&self.table, &self.rows) {
                    (Some(table), _) => RandomOf::Row(RowOf {
                        table: Arc::clone(table),
                        marker: ordinal,
                    }),
                    (None, Some(rows)) => RandomOf::Rows(Arc::clone(rows)),
                    (None, None) => RandomOf::Key,
                },
            },
            Make::Draw { number } => {
                let native = native(&cql_type, "draw")?;
                Source::Draw {
                    native,
                    numbers: numbers_of(native, number, "make.number")?,
                    random: Random::new(self.seed, Purpose::Draw).at(ordinal),
                }
            }
            Make::Fixed { value } => Source::Fixed(constants::bytes(&cql_type, value)?),
            Make::Row { count } => Source::Row {
                native: native(&cql_type, "row")?,
                rows: Arc::new(self.rows(count)?),
            },
            Make::StressKey { size } => {
                let bytes = matches!(
                    native(&cql_type, "stress-key")?,
                    Native::Blob | Native::Text | Native::Ascii
                );
                if !bytes || !KEY_BYTES.contains(size) {
                    return Err(OrderError::new("make.size", size, "1 to 65535, of a blob or text"));
                }
                Source::StressKey(*size)
            }
            Make::StressColumn {
                column,
                size,
                named,
                key_size,
            } => {
                native(&cql_type, "stress-column")?;
                if !KEY_BYTES.contains(key_size) {
                    return Err(OrderError::new("make.key_size", key_size, "1 to 65535"));
                }
                let generator = match named {
                    Some(name) => stress::Column::new(name, size),
                    None => stress::Column::numbered(*column, size),
                };
                Source::StressColumn {
                    column: generator.map_err(|error| error.within("make"))?,
                    key_size: *key_size,
                }
            }
        };
        Ok(ValueSource { cql_type, source })
    }

    fn clustering(&self, cql_type: &CqlType, column: u32, ordinal: u64) -> Result<Source, OrderError> {
        let of = self.table.as_ref().map(|table| RowOf {
            table: Arc::clone(table),
            marker: ordinal,
        });
        let number = column as usize;
        let clustering = of.as_ref().and_then(|of| of.table.columns().get(number));
        match (of.clone(), clustering) {
            (Some(of), Some(column)) if *cql_type == CqlType::Native(column.value.native) => {
                Ok(Source::Clustering(of, number))
            }
            _ => {
                let allowed = "a clustering column of the statement's table, and its type";
                Err(OrderError::new("make.column", column, allowed))
            }
        }
    }

    /// The primary key of a statement's table, of which it binds that many markers.
    fn table_of(&self, table: &TableSpec, markers: usize) -> Result<Table, OrderError> {
        let key = |value: &Value, records: u64| {
            let compiler = Self {
                records,
                ..self.clone()
            };
            compiler.key(&CqlType::parse(&value.cql_type)?, &value.make)
        };
        if table.partition.is_empty() || table.clustering.len() > MOST_COLUMNS {
            let read = format!("{} and {} columns", table.partition.len(), table.clustering.len());
            let allowed = format!("at least 1 of the partition key, at most {MOST_COLUMNS} clustering columns");
            return Err(OrderError::new("table", read, allowed));
        }
        let partition = table.partition.iter().map(|value| key(value, self.records));
        let column = |(number, column): (usize, &Clustering)| {
            let count = Numbers::new(&column.count)?.within(1..=i64::from(u32::MAX), "count")?;
            // Entries are counted below their number; a single one is made of any number.
            let most = count.bounds().1.unsigned_abs();
            let value = key(&column.value, if most == 1 { 1 << 62 } else { most })?;
            let last = number + 1 == table.clustering.len();
            Ok(Column::new(number, last, count, value, self.value_seed))
        };
        let columns: Result<Vec<Column>, OrderError> = table.clustering.iter().enumerate().map(column).collect();
        Ok(Table::new(
            partition
                .collect::<Result<_, _>>()
                .map_err(|error| error.within("table.partition"))?,
            columns.map_err(|error| error.within("table.clustering"))?,
            if table.apart { markers.max(1) } else { 1 },
            self.seed,
        ))
    }

    fn key(&self, cql_type: &CqlType, make: &Make) -> Result<KeySource, OrderError> {
        let Make::Key {
            divide,
            modulo,
            scramble,
            scale,
            offset,
            prefix,
            digits,
            identity,
        } = make
        else {
            return Err(OrderError::new("make.kind", "another", "key"));
        };
        let native = native(cql_type, "key")?;
        if *divide == 0 || *modulo == Some(0) || *digits > 64 {
            let read = format!("divide {divide}, modulo {modulo:?}, digits {digits}");
            return Err(OrderError::new(
                "make",
                read,
                "divide and modulo above 0, up to 64 digits",
            ));
        }
        let identity = identity.as_ref().map(|identity| {
            Ok(KeyIdentity {
                column: identity_of(identity, "make.identity")?,
                how: hashed(native),
                hidden: identity.hidden,
                bytes: identity.bytes,
            })
        });
        let identity = identity.transpose()?;
        if identity.as_ref().is_some_and(|identity| identity.bytes) && native != Native::Blob {
            let problem = format!("applies only to blobs, but the type is {cql_type}");
            return Err(OrderError::because("make.identity.bytes", problem));
        }
        let most = match (modulo, scramble) {
            (Some(modulo), true) => modulo - 1,
            (None, true) => i64::MAX as u64,
            (modulo, false) => {
                let last = self.records.saturating_sub(1) / divide;
                modulo.map_or(last, |modulo| last.min(modulo - 1))
            }
        };
        // Identities wrap, as the tool's do.
        let counts = identity.as_ref().is_none_or(|identity| identity.hidden);
        if let (Some((min, max)), true) = (native.range(), counts) {
            let held = i128::from(min)..=i128::from(max);
            let last = i128::from(*offset) + i128::from(*scale) * i128::from(most);
            if !held.contains(&i128::from(*offset)) || !held.contains(&last) {
                let read = format!("numbers of {offset} to {last}");
                return Err(OrderError::new("make", read, format!("{min} to {max}: {cql_type}")));
            }
        }
        Ok(KeySource {
            native,
            number: KeyNumber {
                divide: *divide,
                modulo: *modulo,
                scramble: *scramble,
                scale: *scale,
                offset: *offset,
                identity,
            },
            digits: Digits {
                prefix: prefix.as_bytes().to_vec(),
                fewest: *digits as usize,
            },
        })
    }

    fn random_value(&self, cql_type: &CqlType, make: &Make) -> Result<RandomValue, OrderError> {
        let Make::Random {
            number,
            size,
            of,
            versioned,
            choice,
            ..
        } = make
        else {
            return Err(OrderError::new("make.kind", "another", "random"));
        };
        let CqlType::Native(native) = cql_type else {
            if number.is_some() {
                let problem = format!("does not apply to {cql_type}: set the numbers of its entries in of");
                return Err(OrderError::because("make.number", problem));
            }
            return self.collection(cql_type, size.as_ref(), of);
        };
        if !of.is_empty() {
            let problem = format!("has {} values, but {cql_type} has no entries", of.len());
            return Err(OrderError::because("make.of", problem));
        }
        if *versioned && choice.is_some() {
            return Err(OrderError::because("make.versioned", "cannot be combined with choice"));
        }
        let bytes = || size_of(size.as_ref(), DEFAULT_BYTES, MOST_BYTES);
        if choice.is_some() && size.is_none() {
            return Ok(RandomValue::Chosen(*native));
        }
        Ok(match (native, number) {
            (_, Some(number)) => RandomValue::Number {
                native: *native,
                numbers: numbers_of(*native, number, "make.number")?,
            },
            (Native::Text | Native::Ascii, None) => RandomValue::Text {
                size: bytes()?,
                versioned: *versioned,
            },
            (Native::Blob, None) => RandomValue::Blob {
                size: bytes()?,
                versioned: *versioned,
            },
            _ => RandomValue::Any(*native),
        })
    }

    /// A random value of a type with types in it.
    fn collection(
        &self,
        cql_type: &CqlType,
        size: Option<&DistributionSpec>,
        of: &[Value],
    ) -> Result<RandomValue, OrderError> {
        let mut members = self.members(cql_type, of)?;
        let entries = || size_of(size, DEFAULT_ENTRIES, MOST_ENTRIES);
        if let CqlType::Tuple(_) = cql_type {
            return Ok(RandomValue::Members(members));
        }
        let last = members.pop();
        Ok(match (cql_type, last, members.pop()) {
            (CqlType::Map(..), Some(value), Some(key)) => RandomValue::Pairs {
                size: entries()?,
                distinct: key.may_repeat(),
                key: Box::new(key),
                value: Box::new(value),
            },
            (CqlType::Vector(_, count), Some(of), None) => RandomValue::Dimensions {
                fixed: of.cql_type.fixed_length().is_some(),
                of: Box::new(of),
                count: *count,
            },
            (_, Some(of), _) => RandomValue::Entries {
                size: entries()?,
                distinct: matches!(cql_type, CqlType::Set(_)) && of.may_repeat(),
                of: Box::new(of),
            },
            _ => RandomValue::Members(Vec::new()),
        })
    }

    /// Sources of the values within a value: those that the order gives, or random ones.
    fn members(&self, cql_type: &CqlType, of: &[Value]) -> Result<Vec<ValueSource>, OrderError> {
        let inner = cql_type.inner();
        if of.is_empty() {
            return inner
                .into_iter()
                .map(|cql_type| self.default_source(cql_type))
                .collect();
        }
        if of.len() != inner.len() {
            let read = format!("{} values", of.len());
            let allowed = format!("{} or no values for {cql_type}", inner.len());
            return Err(OrderError::new("make.of", read, allowed));
        }
        let member = |(number, (value, cql_type)): (usize, (&Value, &CqlType))| {
            if matches!(value.make, Make::Random { versioned: true, .. }) {
                let problem = "must be false: the enclosing value has the version";
                return Err(OrderError::because("make.of.versioned", problem));
            }
            let source = self
                .source(value, number as u64)
                .map_err(|error| error.within("make.of"))?;
            if source.cql_type == *cql_type {
                Ok(source)
            } else {
                Err(OrderError::new("make.of.type", &source.cql_type, cql_type.to_string()))
            }
        };
        of.iter().zip(inner).enumerate().map(member).collect()
    }

    fn default_source(&self, cql_type: &CqlType) -> Result<ValueSource, OrderError> {
        let make = Make::Random {
            salt: 0,
            number: None,
            size: None,
            of: Vec::new(),
            versioned: false,
            choice: None,
        };
        let cql_type = cql_type.to_string();
        self.source(&Value { cql_type, make }, 0)
    }
}

/// The type without types in it that a make wants.
fn native(cql_type: &CqlType, make: &str) -> Result<Native, OrderError> {
    match cql_type {
        CqlType::Native(native) => Ok(*native),
        other => {
            let allowed = format!("a type without inner types, because {make} makes numbers");
            Err(OrderError::new("type", other, allowed))
        }
    }
}

/// The generator of a column of cassandra-stress.
fn identity_of(identity: &Identity, field: &'static str) -> Result<ProfileColumn, OrderError> {
    let default = DistributionSpec::Uniform { min: 4.0, max: 8.0 };
    let size = identity.size.as_ref().unwrap_or(&default);
    ProfileColumn::new(&identity.named, &identity.of, size).map_err(|error| error.within(field))
}

/// How cassandra-stress hashes the values of a type.
fn hashed(native: Native) -> Hashed {
    match native {
        Native::Text | Native::Ascii => Hashed::Text,
        Native::Blob => Hashed::Blob,
        Native::BigInt | Native::Int | Native::SmallInt | Native::TinyInt | Native::VarInt => Hashed::Number,
        Native::Decimal | Native::Float | Native::Double => Hashed::Number,
        _ => Hashed::Bytes,
    }
}

fn size_of(size: Option<&DistributionSpec>, default: i64, most: i64) -> Result<Numbers, OrderError> {
    match size {
        None => Numbers::fixed(default),
        Some(size) => Numbers::new(size)?.within(0..=most, "make.size"),
    }
}

fn numbers_of(native: Native, distribution: &DistributionSpec, field: &'static str) -> Result<Numbers, OrderError> {
    let numbers = Numbers::new(distribution).map_err(|error| error.within(field))?;
    match native.range() {
        Some((min, max)) => numbers.within(min..=max, field),
        None => Ok(numbers),
    }
}
