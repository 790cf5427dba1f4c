//! Consistency levels by name and number.

use crate::CqlError;

/// How many replicas must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Consistency {
    Any = 0x0000,
    One = 0x0001,
    Two = 0x0002,
    Three = 0x0003,
    Quorum = 0x0004,
    All = 0x0005,
    LocalQuorum = 0x0006,
    EachQuorum = 0x0007,
    Serial = 0x0008,
    LocalSerial = 0x0009,
    LocalOne = 0x000A,
}

impl Consistency {
    /// Every level, in the order of their numbers.
    pub const ALL_LEVELS: [Self; 11] = [
        Self::Any,
        Self::One,
        Self::Two,
        Self::Three,
        Self::Quorum,
        Self::All,
        Self::LocalQuorum,
        Self::EachQuorum,
        Self::Serial,
        Self::LocalSerial,
        Self::LocalOne,
    ];

    /// The level's name in CQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "ANY",
            Self::One => "ONE",
            Self::Two => "TWO",
            Self::Three => "THREE",
            Self::Quorum => "QUORUM",
            Self::All => "ALL",
            Self::LocalQuorum => "LOCAL_QUORUM",
            Self::EachQuorum => "EACH_QUORUM",
            Self::Serial => "SERIAL",
            Self::LocalSerial => "LOCAL_SERIAL",
            Self::LocalOne => "LOCAL_ONE",
        }
    }

    /// The level of that name, in any case; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL_LEVELS
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(name))
    }

    /// The level of that number.
    pub fn from_number(number: u16) -> Result<Self, CqlError> {
        Self::ALL_LEVELS
            .get(usize::from(number))
            .copied()
            .ok_or(CqlError::Unknown {
                what: "consistency level",
                number: i64::from(number),
            })
    }
}
