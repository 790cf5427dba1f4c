//! Compiling a statement's values: what an order says becomes makers, or is refused.

use std::sync::Arc;

use steelyard_wire::program::{DistributionSpec, Make, Program, Value};

use super::constants;
use super::cql_type::{CqlType, Native};
use super::encode::Digits;
use super::numbers::Numbers;
use super::random_values::{Content, DEFAULT_BYTES, DEFAULT_ENTRIES, MOST_BYTES, MOST_ENTRIES};
use super::value_source::{Maker, Rows, Source};
use crate::OrderError;
use crate::random::{Purpose, Random};
use crate::stress;

/// Bytes of cassandra-stress's keys: no partition key is longer.
const KEY_BYTES: std::ops::RangeInclusive<u32> = 1..=65_535;

/// What makers of one statement have in common.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// Of what is drawn for each operation.
    pub seed: u64,
    /// Of what is stored.
    pub value_seed: u64,
    pub records: u64,
    pub rows: Option<Arc<Rows>>,
}

impl Context {
    pub fn new(seed: u64, program: &Program, values: &[Value]) -> Result<Self, OrderError> {
        let mut context = Self {
            seed,
            value_seed: program.value_seed,
            records: program.records,
            rows: None,
        };
        let counts = values.iter().enumerate().find_map(|(place, value)| match &value.make {
            Make::Row { count } => Some((place, count)),
            _ => None,
        });
        if let Some((place, count)) = counts {
            let rows = context.rows(count);
            context.rows = Some(Arc::new(rows.map_err(|error| error.within(format!("values.{place}")))?));
        }
        Ok(context)
    }

    fn rows(&self, count: &DistributionSpec) -> Result<Rows, OrderError> {
        Ok(Rows {
            count: Numbers::new(count)?.within(1..=i64::MAX, "make.count")?,
            of_key: Random::new(self.value_seed, Purpose::Row).at(0),
            of_index: Random::new(self.seed, Purpose::Row).at(1),
        })
    }

    /// Compiles one value, the `ordinal`-th of its statement. Errors: a type or a make that cannot be.
    pub fn maker(&self, value: &Value, ordinal: u64) -> Result<Maker, OrderError> {
        if value.make == Make::Any {
            // The type does not matter.
            return Ok(Maker::of(Native::Blob, Source::Any));
        }
        let kind = CqlType::parse(&value.cql_type)?;
        let source = match &value.make {
            Make::Any => Source::Any,
            Make::Key { .. } => self.key(&kind, &value.make)?,
            Make::Random { salt, versioned, .. } => Source::Random {
                content: self.content(&kind, &value.make)?,
                random: Random::new(self.value_seed, Purpose::Content).at(u64::from(*salt)),
                versioned: *versioned,
                rows: self.rows.clone(),
            },
            Make::Draw { number } => {
                let native = native(&kind, "draw")?;
                Source::Draw {
                    native,
                    numbers: numbers_of(native, number, "make.number")?,
                    random: Random::new(self.seed, Purpose::Draw).at(ordinal),
                }
            }
            Make::Fixed { value } => Source::Fixed(constants::bytes(&kind, value)?),
            Make::Row { count } => Source::Row {
                native: native(&kind, "row")?,
                rows: Arc::new(self.rows(count)?),
            },
            Make::StressKey { size } => {
                let bytes = matches!(
                    native(&kind, "stress-key")?,
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
                native(&kind, "stress-column")?;
                if !KEY_BYTES.contains(key_size) {
                    return Err(OrderError::new("make.key_size", key_size, "1 to 65535"));
                }
                let made = match named {
                    Some(name) => stress::Column::new(name, size),
                    None => stress::Column::numbered(*column, size),
                };
                Source::StressColumn {
                    column: made.map_err(|error| error.within("make"))?,
                    key_size: *key_size,
                }
            }
        };
        Ok(Maker { kind, source })
    }

    fn key(&self, kind: &CqlType, make: &Make) -> Result<Source, OrderError> {
        let Make::Key {
            divide,
            modulo,
            scramble,
            scale,
            offset,
            prefix,
            digits,
        } = make
        else {
            return Err(OrderError::new("make.kind", "another", "key"));
        };
        let native = native(kind, "key")?;
        if *divide == 0 || *modulo == Some(0) || *digits > 64 {
            let read = format!("divide {divide}, modulo {modulo:?}, digits {digits}");
            return Err(OrderError::new(
                "make",
                read,
                "divide and modulo above 0, up to 64 digits",
            ));
        }
        let most = match (modulo, scramble) {
            (Some(modulo), true) => modulo - 1,
            (None, true) => i64::MAX as u64,
            (modulo, false) => {
                let last = self.records.saturating_sub(1) / divide;
                modulo.map_or(last, |modulo| last.min(modulo - 1))
            }
        };
        if let Some((min, max)) = native.range() {
            let held = i128::from(min)..=i128::from(max);
            let last = i128::from(*offset) + i128::from(*scale) * i128::from(most);
            if !held.contains(&i128::from(*offset)) || !held.contains(&last) {
                let read = format!("numbers of {offset} to {last}");
                return Err(OrderError::new("make", read, format!("{min} to {max}: {kind}")));
            }
        }
        Ok(Source::Key {
            native,
            divide: *divide,
            modulo: *modulo,
            scramble: *scramble,
            scale: *scale,
            offset: *offset,
            digits: Digits {
                prefix: prefix.as_bytes().to_vec(),
                fewest: *digits as usize,
            },
        })
    }

    fn content(&self, kind: &CqlType, make: &Make) -> Result<Content, OrderError> {
        let Make::Random {
            number,
            size,
            of,
            versioned,
            ..
        } = make
        else {
            return Err(OrderError::new("make.kind", "another", "random"));
        };
        let CqlType::Native(native) = kind else {
            if number.is_some() {
                let allowed = format!("numbers of what is in it, see of: {kind}");
                return Err(OrderError::new("make.number", "a number", allowed));
            }
            return self.collection(kind, size.as_ref(), of);
        };
        if !of.is_empty() {
            let read = format!("{} values", of.len());
            return Err(OrderError::new("make.of", read, format!("none: {kind}")));
        }
        let bytes = || size_of(size.as_ref(), DEFAULT_BYTES, MOST_BYTES);
        Ok(match (native, number) {
            (_, Some(number)) => Content::Number {
                native: *native,
                numbers: numbers_of(*native, number, "make.number")?,
            },
            (Native::Text | Native::Ascii, None) => Content::Text {
                size: bytes()?,
                versioned: *versioned,
            },
            (Native::Blob, None) => Content::Blob {
                size: bytes()?,
                versioned: *versioned,
            },
            _ => Content::Any(*native),
        })
    }

    /// Of a type with types in it.
    fn collection(&self, kind: &CqlType, size: Option<&DistributionSpec>, of: &[Value]) -> Result<Content, OrderError> {
        let mut members = self.members(kind, of)?;
        let entries = || size_of(size, DEFAULT_ENTRIES, MOST_ENTRIES);
        if let CqlType::Tuple(_) = kind {
            return Ok(Content::Members(members));
        }
        let last = members.pop();
        Ok(match (kind, last, members.pop()) {
            (CqlType::Map(..), Some(value), Some(key)) => Content::Pairs {
                size: entries()?,
                distinct: key.may_repeat(),
                key: Box::new(key),
                value: Box::new(value),
            },
            (CqlType::Vector(_, count), Some(of), None) => Content::Dimensions {
                fixed: of.kind.fixed_length().is_some(),
                of: Box::new(of),
                count: *count,
            },
            (_, Some(of), _) => Content::Entries {
                size: entries()?,
                distinct: matches!(kind, CqlType::Set(_)) && of.may_repeat(),
                of: Box::new(of),
            },
            _ => Content::Members(Vec::new()),
        })
    }

    /// Makers of the values within one: those that are said, or what looks random.
    fn members(&self, kind: &CqlType, of: &[Value]) -> Result<Vec<Maker>, OrderError> {
        let inner = kind.inner();
        if of.is_empty() {
            return inner.into_iter().map(|kind| self.default_maker(kind)).collect();
        }
        if of.len() != inner.len() {
            let read = format!("{} values", of.len());
            let allowed = format!("{} or none: {kind}", inner.len());
            return Err(OrderError::new("make.of", read, allowed));
        }
        let member = |(number, (value, kind)): (usize, (&Value, &CqlType))| {
            if matches!(value.make, Make::Random { versioned: true, .. }) {
                let allowed = "false: the value around it has the version";
                return Err(OrderError::new("make.of.versioned", true, allowed));
            }
            let made = self
                .maker(value, number as u64)
                .map_err(|error| error.within("make.of"))?;
            if made.kind == *kind {
                Ok(made)
            } else {
                Err(OrderError::new("make.of.type", &made.kind, kind.to_string()))
            }
        };
        of.iter().zip(inner).enumerate().map(member).collect()
    }

    fn default_maker(&self, kind: &CqlType) -> Result<Maker, OrderError> {
        let make = Make::Random {
            salt: 0,
            number: None,
            size: None,
            of: Vec::new(),
            versioned: false,
        };
        let cql_type = kind.to_string();
        self.maker(&Value { cql_type, make }, 0)
    }
}

/// The type without types in it that a make wants.
fn native(kind: &CqlType, make: &str) -> Result<Native, OrderError> {
    match kind {
        CqlType::Native(native) => Ok(*native),
        other => {
            let allowed = format!("a type without types in it, as {make} makes numbers");
            Err(OrderError::new("type", other, allowed))
        }
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
