//! CQL's types as CQL writes them.

use std::fmt;

use steelyard_workload::OrderError;

/// Deepest nesting of types that is read.
const MAX_DEPTH: usize = 16;
/// Most dimensions of a vector: Cassandra's own limit.
const MAX_DIMENSIONS: u32 = 8192;
const ALLOWED: &str =
    "native types, list, set, map, tuple, vector<type, n> and frozen of them; user-defined types are not known";

/// A type without the types in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// `ascii`.
    Ascii,
    /// `bigint`.
    BigInt,
    /// `blob`.
    Blob,
    /// `boolean`.
    Boolean,
    /// `counter`.
    Counter,
    /// `date`.
    Date,
    /// `decimal`.
    Decimal,
    /// `double`.
    Double,
    /// `duration`.
    Duration,
    /// `float`.
    Float,
    /// `inet`.
    Inet,
    /// `int`.
    Int,
    /// `smallint`.
    SmallInt,
    /// `text`, `varchar`.
    Text,
    /// `time`.
    Time,
    /// `timestamp`.
    Timestamp,
    /// `timeuuid`.
    TimeUuid,
    /// `tinyint`.
    TinyInt,
    /// `uuid`.
    Uuid,
    /// `varint`.
    VarInt,
}

use Native::{
    Ascii, BigInt, Blob, Boolean, Counter, Date, Decimal, Double, Duration, Float, Inet, Int, SmallInt, Text, Time,
    TimeUuid, Timestamp, TinyInt, Uuid, VarInt,
};

impl Native {
    const NAMES: [(&'static str, Self); 21] = [
        ("ascii", Ascii),
        ("bigint", BigInt),
        ("blob", Blob),
        ("boolean", Boolean),
        ("counter", Counter),
        ("date", Date),
        ("decimal", Decimal),
        ("double", Double),
        ("duration", Duration),
        ("float", Float),
        ("inet", Inet),
        ("int", Int),
        ("smallint", SmallInt),
        ("text", Text),
        ("time", Time),
        ("timestamp", Timestamp),
        ("timeuuid", TimeUuid),
        ("tinyint", TinyInt),
        ("uuid", Uuid),
        ("varint", VarInt),
        ("varchar", Text),
    ];

    /// Whether it has fractions.
    pub fn is_real(self) -> bool {
        matches!(self, Float | Double)
    }

    /// Bytes of every value, where a vector leaves their lengths out. Cassandra counts smallint, tinyint, date and time among
    /// those of variable length.
    pub fn fixed_length(self) -> Option<usize> {
        match self {
            Boolean => Some(1),
            Float | Int => Some(4),
            BigInt | Counter | Double | Timestamp => Some(8),
            TimeUuid | Uuid => Some(16),
            _ => None,
        }
    }

    /// Whole numbers that the type holds; None: any, or no numbers.
    pub fn range(self) -> Option<(i64, i64)> {
        match self {
            TinyInt => Some((i8::MIN.into(), i8::MAX.into())),
            SmallInt => Some((i16::MIN.into(), i16::MAX.into())),
            Int => Some((i32::MIN.into(), i32::MAX.into())),
            Date => Some((-(1 << 31), (1 << 31) - 1)),
            Time => Some((0, 86_399_999_999_999)),
            Inet => Some((0, u32::MAX.into())),
            _ => None,
        }
    }
}

/// A type. `frozen<...>` is left out, as it changes nothing of a value's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CqlType {
    /// A type without types in it.
    Native(Native),
    /// `list<...>`.
    List(Box<CqlType>),
    /// `set<...>`.
    Set(Box<CqlType>),
    /// `map<..., ...>`.
    Map(Box<CqlType>, Box<CqlType>),
    /// `tuple<...>`.
    Tuple(Vec<CqlType>),
    /// `vector<..., n>`, with its dimensions.
    Vector(Box<CqlType>, u32),
}

impl CqlType {
    /// The type that CQL writes so. Errors: a type that does not exist or is not known.
    pub fn parse(text: &str) -> Result<Self, OrderError> {
        let mut parser = Parser { rest: text };
        parser
            .parse(0)
            .filter(|_| parser.rest.trim().is_empty())
            .ok_or_else(|| OrderError::new("type", format!("{text:?}"), ALLOWED))
    }

    /// Bytes of every value of the type, if there are always as many.
    pub fn fixed_length(&self) -> Option<usize> {
        match self {
            Self::Native(native) => native.fixed_length(),
            Self::Vector(of, dimensions) => Some(of.fixed_length()? * *dimensions as usize),
            _ => None,
        }
    }

    /// Types of the values within.
    pub fn inner(&self) -> Vec<&Self> {
        match self {
            Self::Native(_) => Vec::new(),
            Self::List(of) | Self::Set(of) | Self::Vector(of, _) => vec![of],
            Self::Map(key, value) => vec![key, value],
            Self::Tuple(members) => members.iter().collect(),
        }
    }
}

impl fmt::Display for CqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native(native) => {
                let name = Native::NAMES.iter().find(|(_, other)| other == native);
                f.write_str(name.map_or("", |(name, _)| name))
            }
            Self::List(of) => write!(f, "list<{of}>"),
            Self::Set(of) => write!(f, "set<{of}>"),
            Self::Map(key, value) => write!(f, "map<{key}, {value}>"),
            Self::Vector(of, dimensions) => write!(f, "vector<{of}, {dimensions}>"),
            Self::Tuple(members) => {
                let members: Vec<String> = members.iter().map(ToString::to_string).collect();
                write!(f, "tuple<{}>", members.join(", "))
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn parse(&mut self, depth: usize) -> Option<CqlType> {
        if depth > MAX_DEPTH {
            return None;
        }
        let name = self.word()?.to_ascii_lowercase();
        if let Some((_, native)) = Native::NAMES.iter().find(|(other, _)| *other == name) {
            return Some(CqlType::Native(*native));
        }
        self.symbol('<')?;
        let mut members = vec![self.parse(depth + 1)?];
        let mut dimensions = None;
        while self.symbol(',').is_some() {
            if name == "vector" {
                dimensions = Some(self.word()?.parse().ok()?);
                break;
            }
            members.push(self.parse(depth + 1)?);
        }
        self.symbol('>')?;
        let first = Box::new(members[0].clone());
        match (name.as_str(), members.len(), dimensions) {
            ("frozen", 1, None) => Some(*first),
            ("list", 1, None) => Some(CqlType::List(first)),
            ("set", 1, None) => Some(CqlType::Set(first)),
            ("map", 2, None) => Some(CqlType::Map(first, Box::new(members.pop()?))),
            ("tuple", _, None) => Some(CqlType::Tuple(members)),
            ("vector", 1, Some(1..=MAX_DIMENSIONS)) => Some(CqlType::Vector(first, dimensions?)),
            _ => None,
        }
    }

    fn word(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }

    fn symbol(&mut self, symbol: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(symbol)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_cql_writes_them() {
        let cases = [
            ("int", "int"),
            ("VARCHAR", "text"),
            (" frozen< list<int> > ", "list<int>"),
            ("map<text,frozen<list<int>>>", "map<text, list<int>>"),
            (
                "tuple<int, set<uuid>, map<ascii, blob>>",
                "tuple<int, set<uuid>, map<ascii, blob>>",
            ),
            ("vector<float, 3>", "vector<float, 3>"),
            ("vector<vector<int,2>, 8192>", "vector<vector<int, 2>, 8192>"),
        ];
        for (text, shown) in cases {
            assert_eq!(CqlType::parse(text).unwrap().to_string(), shown);
        }
        for (name, native) in Native::NAMES {
            assert_eq!(CqlType::parse(name).unwrap(), CqlType::Native(native));
        }
    }

    #[test]
    fn what_is_no_type_is_refused_by_name() {
        let deep = format!("{}int{}", "list<".repeat(20), ">".repeat(20));
        for text in [
            "",
            "integer",
            "list",
            "list<>",
            "list<int",
            "list<int>>",
            "map<int>",
            "set<int, int>",
            "vector<float>",
            "vector<float, 0>",
            "vector<3, float>",
            "address",
            "frozen<address>",
            "int int",
            "tuple<>",
            &deep,
        ] {
            let error = CqlType::parse(text).unwrap_err();
            assert_eq!(error.field, "type");
            assert!(error.problem.contains(text), "{error}");
        }
    }

    #[test]
    fn lengths_are_fixed_as_cassandra_counts_them() {
        for (text, length) in [
            ("int", Some(4)),
            ("smallint", None),
            ("vector<float, 3>", Some(12)),
            ("vector<vector<boolean, 2>, 3>", Some(6)),
            ("vector<text, 3>", None),
            ("list<int>", None),
        ] {
            assert_eq!(CqlType::parse(text).unwrap().fixed_length(), length, "{text}");
        }
    }
}
