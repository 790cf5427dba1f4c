//! Decoder of requests: what a server reads.

use super::{
    QUERY_NAMES, QUERY_PAGE_SIZE, QUERY_PAGING_STATE, QUERY_SERIAL_CONSISTENCY, QUERY_SKIP_METADATA, QUERY_TIMESTAMP,
    QUERY_VALUES,
};
use crate::{Consistency, CqlError, FLAG_COMPRESSION, FLAG_CUSTOM_PAYLOAD, Header, Opcode, Reader};

/// A decoded request.
#[derive(Clone, Debug, PartialEq)]
pub enum Request<'a> {
    /// `OPTIONS`.
    Options,
    /// `STARTUP`, with its options.
    Startup(Vec<(&'a str, &'a str)>),
    /// `AUTH_RESPONSE`, with its token.
    AuthResponse(Option<&'a [u8]>),
    /// `REGISTER`, with the kinds of events.
    Register(Vec<&'a str>),
    /// `QUERY`.
    Query {
        /// The statement's text.
        statement: &'a str,
        /// Values and consistency.
        parameters: Parameters<'a>,
    },
    /// `PREPARE`.
    Prepare {
        /// The statement's text.
        statement: &'a str,
    },
    /// `EXECUTE`.
    Execute {
        /// Identifier of the prepared statement.
        id: &'a [u8],
        /// Values and consistency.
        parameters: Parameters<'a>,
    },
    /// `BATCH`.
    Batch {
        /// The statements, in order.
        statements: Vec<Statement<'a>>,
        /// How many replicas must answer.
        consistency: Consistency,
        /// Absent also where nothing follows the consistency, as in version 2.
        serial_consistency: Option<Consistency>,
    },
}

/// One statement of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statement<'a> {
    /// A statement as text.
    Text {
        /// The text.
        statement: &'a str,
        /// Its bound values.
        values: Values<'a>,
    },
    /// A prepared statement.
    Prepared {
        /// Its identifier.
        id: &'a [u8],
        /// Its bound values.
        values: Values<'a>,
    },
}

/// What a query or an execution carries besides its statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters<'a> {
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// Whether rows come without the description of their columns.
    pub skip_metadata: bool,
    /// The bound values.
    pub values: Values<'a>,
    /// Rows a page; absent where paging is off.
    pub page_size: Option<i32>,
    /// Where the page before has ended.
    pub paging_state: Option<&'a [u8]>,
    /// Consistency of the first part of a light-weight transaction.
    pub serial_consistency: Option<Consistency>,
    /// Microseconds since the epoch, by the client's clock.
    pub timestamp_us: Option<i64>,
}

/// Bound values, read one by one; nothing is copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values<'a> {
    reader: Reader<'a>,
    left: u16,
    named: bool,
}

impl<'a> Values<'a> {
    /// Reads over the values once, so that iterating afterwards meets no error.
    fn decode(reader: &mut Reader<'a>, named: bool) -> Result<Self, CqlError> {
        let left = reader.short()?;
        reader.fitting(left.into(), 4, "values")?;
        let values = Self {
            reader: *reader,
            left,
            named,
        };
        for _ in 0..left {
            if named {
                reader.string()?;
            }
            reader.bytes()?;
        }
        Ok(values)
    }

    fn none() -> Self {
        Self {
            reader: Reader::new(&[]),
            left: 0,
            named: false,
        }
    }
}

impl<'a> Iterator for Values<'a> {
    /// `None` inside is null or not set.
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        if self.named {
            self.reader.string().ok()?;
        }
        self.reader.bytes().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl<'a> Parameters<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, CqlError> {
        let consistency = Consistency::from_number(reader.short()?)?;
        let flags = reader.byte()?;
        let has = |flag: u8| flags & flag != 0;
        Ok(Self {
            consistency,
            skip_metadata: has(QUERY_SKIP_METADATA),
            values: if has(QUERY_VALUES) {
                Values::decode(reader, has(QUERY_NAMES))?
            } else {
                Values::none()
            },
            page_size: has(QUERY_PAGE_SIZE).then(|| reader.int()).transpose()?,
            paging_state: if has(QUERY_PAGING_STATE) { reader.bytes()? } else { None },
            serial_consistency: has(QUERY_SERIAL_CONSISTENCY)
                .then(|| reader.short().and_then(Consistency::from_number))
                .transpose()?,
            timestamp_us: has(QUERY_TIMESTAMP).then(|| reader.long()).transpose()?,
        })
    }
}

impl<'a> Request<'a> {
    /// The request that `header` and its whole `body` say. Errors: a body that ends early, an opcode that no client sends.
    pub fn decode(header: &Header, body: &'a [u8]) -> Result<Self, CqlError> {
        if header.flags & FLAG_COMPRESSION != 0 {
            return Err(CqlError::Compressed);
        }
        let mut reader = Reader::new(body);
        if header.flags & FLAG_CUSTOM_PAYLOAD != 0 {
            reader.skip_bytes_map()?;
        }
        let reader = &mut reader;
        Ok(match Opcode::from_number(header.opcode)? {
            Opcode::Options => Self::Options,
            Opcode::Startup => Self::Startup(reader.string_map()?),
            Opcode::AuthResponse => Self::AuthResponse(reader.bytes()?),
            Opcode::Register => Self::Register(reader.string_list()?),
            Opcode::Prepare => Self::Prepare {
                statement: reader.long_string()?,
            },
            Opcode::Query => Self::Query {
                statement: reader.long_string()?,
                parameters: Parameters::decode(reader)?,
            },
            Opcode::Execute => Self::Execute {
                id: reader.short_bytes()?,
                parameters: Parameters::decode(reader)?,
            },
            Opcode::Batch => {
                reader.byte()?;
                let count = reader.short_count(5, "statements of a batch")?;
                let statements = (0..count)
                    .map(|_| Statement::decode(reader))
                    .collect::<Result<_, _>>()?;
                let consistency = Consistency::from_number(reader.short()?)?;
                let flags = if reader.is_empty() { 0 } else { reader.byte()? };
                let serial = flags & QUERY_SERIAL_CONSISTENCY != 0;
                Self::Batch {
                    statements,
                    consistency,
                    serial_consistency: serial
                        .then(|| reader.short().and_then(Consistency::from_number))
                        .transpose()?,
                }
            }
            other => {
                return Err(CqlError::Unknown {
                    what: "opcode of a request",
                    number: other as i64,
                });
            }
        })
    }
}

impl<'a> Statement<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, CqlError> {
        match reader.byte()? {
            0 => Ok(Self::Text {
                statement: reader.long_string()?,
                values: Values::decode(reader, false)?,
            }),
            1 => Ok(Self::Prepared {
                id: reader.short_bytes()?,
                values: Values::decode(reader, false)?,
            }),
            other => Err(CqlError::Unknown {
                what: "kind of a batch's statement",
                number: other.into(),
            }),
        }
    }
}
