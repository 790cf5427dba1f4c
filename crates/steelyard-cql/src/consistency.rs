//! Consistency levels by name and number.

use crate::CqlError;

/// How many replicas must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Consistency {
    /// `ANY`: writes only; a hint counts.
    Any = 0x0000,
    /// `ONE`: one replica.
    One = 0x0001,
    /// `TWO`: two replicas.
    Two = 0x0002,
    /// `THREE`: three replicas.
    Three = 0x0003,
    /// `QUORUM`: more than half of all replicas.
    Quorum = 0x0004,
    /// `ALL`: every replica.
    All = 0x0005,
    /// `LOCAL_QUORUM`: more than half of the replicas in the coordinator's data centre.
    LocalQuorum = 0x0006,
    /// `EACH_QUORUM`: more than half of the replicas in every data centre.
    EachQuorum = 0x0007,
    /// `SERIAL`: linearizable, over all data centres.
    Serial = 0x0008,
    /// `LOCAL_SERIAL`: linearizable, within the coordinator's data centre.
    LocalSerial = 0x0009,
    /// `LOCAL_ONE`: one replica in the coordinator's data centre.
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
