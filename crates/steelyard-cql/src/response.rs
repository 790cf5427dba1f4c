//! Responses: encoders for the server, decoders for the client.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::value::{MAX_TYPES, SPARE_VALUES};
use crate::{
    ColumnSpec, ColumnType, Consistency, CqlError, FLAG_COMPRESSION, FLAG_CUSTOM_PAYLOAD, FLAG_TRACING, FLAG_WARNING,
    Frame, Header, Opcode, Reader, V4, Value, code, put_bytes, put_short_bytes, put_string, put_string_list,
};

const KIND_VOID: i32 = 1;
const KIND_ROWS: i32 = 2;
const KIND_SET_KEYSPACE: i32 = 3;
const KIND_PREPARED: i32 = 4;
const KIND_SCHEMA_CHANGE: i32 = 5;

const ROWS_GLOBAL_TABLE: i32 = 0x01;
const ROWS_MORE_PAGES: i32 = 0x02;
const ROWS_NO_METADATA: i32 = 0x04;

/// Most columns of a row, and most markers of a statement: what the protocol's own numbers of markers reach.
const MAX_COLUMNS: usize = 65_535;
/// Bytes that a cell takes at least: its length.
const CELL_BYTES: usize = 4;

// ------------------------------------------------------------------------------------------------ the server's side

/// `READY`: the handshake is over.
pub fn ready(out: &mut Vec<u8>, version: u8, stream: i16) {
    Frame::response(out, version, stream, Opcode::Ready, |_| {});
}

/// `SUPPORTED`: answer to `OPTIONS`.
pub fn supported(out: &mut Vec<u8>, version: u8, stream: i16, options: &[(&str, &[&str])]) {
    Frame::response(out, version, stream, Opcode::Supported, |body| {
        body.extend_from_slice(&(options.len() as u16).to_be_bytes());
        for (name, values) in options {
            put_string(body, name);
            put_string_list(body, values);
        }
    });
}

/// `ERROR` with the fields that its code demands (`Detail::None` for codes that have none).
pub fn error(out: &mut Vec<u8>, version: u8, stream: i16, code: i32, message: &str, detail: &Detail<'_>) {
    Frame::response(out, version, stream, Opcode::Error, |body| {
        body.extend_from_slice(&code.to_be_bytes());
        put_string(body, message);
        detail.encode(body);
    });
}

/// `RESULT` of a write.
pub fn void(out: &mut Vec<u8>, version: u8, stream: i16) {
    result(out, version, stream, KIND_VOID, |_| {});
}

/// `RESULT` of `USE`.
pub fn set_keyspace(out: &mut Vec<u8>, version: u8, stream: i16, keyspace: &str) {
    result(out, version, stream, KIND_SET_KEYSPACE, |body| {
        put_string(body, keyspace)
    });
}

/// `RESULT` of a change of the schema: `change` is CREATED, UPDATED or DROPPED; `table` absent means the keyspace itself.
pub fn schema_change(out: &mut Vec<u8>, version: u8, stream: i16, change: &str, keyspace: &str, table: Option<&str>) {
    result(out, version, stream, KIND_SCHEMA_CHANGE, |body| {
        put_string(body, change);
        put_string(body, if table.is_some() { "TABLE" } else { "KEYSPACE" });
        put_string(body, keyspace);
        if let Some(table) = table {
            put_string(body, table);
        }
    });
}

/// `EVENT` about a node: `kind` is TOPOLOGY_CHANGE or STATUS_CHANGE, `change` what happened to it.
pub fn event(out: &mut Vec<u8>, version: u8, kind: &str, change: &str, node: SocketAddr) {
    Frame::response(out, version, -1, Opcode::Event, |body| {
        put_string(body, kind);
        put_string(body, change);
        match node.ip() {
            IpAddr::V4(address) => {
                body.push(4);
                body.extend_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                body.push(16);
                body.extend_from_slice(&address.octets());
            }
        }
        body.extend_from_slice(&i32::from(node.port()).to_be_bytes());
    });
}

/// `RESULT` of `PREPARE`: bind markers, which of them form the partition key (version 4 only), and the columns of the
/// rows that an execution will give.
pub fn prepared(
    out: &mut Vec<u8>,
    version: u8,
    stream: i16,
    id: &[u8],
    markers: &[ColumnSpec],
    key_markers: &[u16],
    columns: &[ColumnSpec],
) {
    result(out, version, stream, KIND_PREPARED, |body| {
        put_short_bytes(body, id);
        body.extend_from_slice(&0_i32.to_be_bytes());
        body.extend_from_slice(&(markers.len() as i32).to_be_bytes());
        if version >= V4 {
            body.extend_from_slice(&(key_markers.len() as i32).to_be_bytes());
            for index in key_markers {
                body.extend_from_slice(&index.to_be_bytes());
            }
        }
        markers.iter().for_each(|marker| put_column(body, marker));
        put_metadata(body, Columns::Named(columns), None);
    });
}

/// Column metadata of a `RESULT` with rows.
#[derive(Clone, Copy, Debug)]
pub enum Columns<'a> {
    /// In full.
    Named(&'a [ColumnSpec]),
    /// Left out, as the request's `skip_metadata` asks; only their number.
    Counted(usize),
}

/// `RESULT` with `count` rows, which `cells` appends row by row, each cell as `[bytes]`: with `put_bytes`, `put_null` or
/// `Value::put`.
#[inline]
pub fn rows(
    out: &mut Vec<u8>,
    version: u8,
    stream: i16,
    columns: Columns<'_>,
    count: u32,
    cells: impl FnOnce(&mut Vec<u8>),
) {
    page(out, version, stream, columns, count, None, cells);
}

/// As `rows`; a `paging_state` says that there are more, and where they begin.
#[inline]
pub fn page(
    out: &mut Vec<u8>,
    version: u8,
    stream: i16,
    columns: Columns<'_>,
    count: u32,
    paging_state: Option<&[u8]>,
    cells: impl FnOnce(&mut Vec<u8>),
) {
    result(out, version, stream, KIND_ROWS, |body| {
        put_metadata(body, columns, paging_state);
        body.extend_from_slice(&count.to_be_bytes());
        cells(body);
    });
}

#[inline]
fn result(out: &mut Vec<u8>, version: u8, stream: i16, kind: i32, write: impl FnOnce(&mut Vec<u8>)) {
    Frame::response(out, version, stream, Opcode::Result, |body| {
        body.extend_from_slice(&kind.to_be_bytes());
        write(body);
    });
}

fn put_metadata(body: &mut Vec<u8>, columns: Columns<'_>, paging_state: Option<&[u8]>) {
    let (flags, count) = match columns {
        Columns::Named(columns) => (0, columns.len()),
        Columns::Counted(count) => (ROWS_NO_METADATA, count),
    };
    let more = if paging_state.is_some() { ROWS_MORE_PAGES } else { 0 };
    body.extend_from_slice(&(flags | more).to_be_bytes());
    body.extend_from_slice(&(count as i32).to_be_bytes());
    if let Some(state) = paging_state {
        put_bytes(body, state);
    }
    if let Columns::Named(columns) = columns {
        columns.iter().for_each(|column| put_column(body, column));
    }
}

fn put_column(body: &mut Vec<u8>, column: &ColumnSpec) {
    put_string(body, &column.keyspace);
    put_string(body, &column.table);
    put_string(body, &column.name);
    column.kind.encode(body);
}

// ------------------------------------------------------------------------------------------------ the client's side

/// A decoded response.
#[derive(Clone, Debug, PartialEq)]
pub enum Response<'a> {
    /// `READY`.
    Ready,
    /// The authenticator's class.
    Authenticate(&'a str),
    /// `AUTH_CHALLENGE`.
    AuthChallenge,
    /// `AUTH_SUCCESS`.
    AuthSuccess,
    /// `SUPPORTED`, with options and their values.
    Supported(Vec<(&'a str, Vec<&'a str>)>),
    /// `RESULT` without a result.
    Void,
    /// `RESULT` with rows.
    Rows(Rows<'a>),
    /// `RESULT` of `USE`, with the keyspace.
    SetKeyspace(&'a str),
    /// `RESULT` of `PREPARE`.
    Prepared(Prepared),
    /// `RESULT` of a change of the schema.
    SchemaChange,
    /// Kind of the event, and its fields as they came.
    Event(&'a str, &'a [u8]),
    /// `ERROR`.
    Error(ServerError<'a>),
}

/// A prepared statement as the server described it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Identifier by which the statement is executed.
    pub id: Vec<u8>,
    /// Columns of the bind markers, in order.
    pub markers: Vec<ColumnSpec>,
    /// Which markers form the partition key.
    pub key_markers: Vec<u16>,
    /// Columns of the rows that it returns; empty where it returns none.
    pub columns: Vec<ColumnSpec>,
}

/// Rows of a result. Cells are read one by one with `cell`, `columns.len() * count` of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<'a> {
    /// Empty where the server left the metadata out.
    pub columns: Vec<ColumnSpec>,
    /// Columns of each row.
    pub column_count: usize,
    /// Where the page has ended, if there are more.
    pub paging_state: Option<&'a [u8]>,
    /// Number of rows in this page.
    pub count: u32,
    cells: Reader<'a>,
}

impl<'a> Rows<'a> {
    /// The next cell, row by row; `None` inside is null. Errors when the rows end early.
    pub fn cell(&mut self) -> Result<Option<&'a [u8]>, CqlError> {
        self.cells.bytes()
    }

    /// The next row, decoded by the metadata that came with it; empty where that was left out. Errors when the rows end
    /// early, or a cell is not what its type says.
    pub fn row(&mut self) -> Result<Vec<Value<'a>>, CqlError> {
        let cells = &mut self.cells;
        let mut left = cells.rest().len() + SPARE_VALUES;
        self.columns
            .iter()
            .map(|column| Value::decode_within(&column.kind, cells.bytes()?, &mut left))
            .collect()
    }
}

/// The server's reason for not answering.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerError<'a> {
    /// Number of the error, see `code`.
    pub code: i32,
    /// The server's text.
    pub message: &'a str,
    /// The fields that this error has besides.
    pub detail: Detail<'a>,
}

/// What some error codes say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail<'a> {
    /// No further field.
    None,
    /// Of `UNAVAILABLE`.
    Unavailable {
        /// Consistency of the request.
        consistency: Consistency,
        /// Replicas that it needs.
        required: i32,
        /// Replicas that are alive.
        alive: i32,
    },
    /// Of `WRITE_TIMEOUT`.
    WriteTimeout {
        /// Consistency of the request.
        consistency: Consistency,
        /// Replicas that have acknowledged.
        received: i32,
        /// Replicas that it needs.
        required: i32,
        /// Kind of write, such as `SIMPLE` or `BATCH_LOG`.
        write_type: &'a str,
    },
    /// Of `READ_TIMEOUT`.
    ReadTimeout {
        /// Consistency of the request.
        consistency: Consistency,
        /// Replicas that have answered.
        received: i32,
        /// Replicas that it needs.
        required: i32,
        /// Whether the replica that was asked for the data has answered.
        data_present: bool,
    },
    /// Of `ALREADY_EXISTS`.
    AlreadyExists {
        /// The keyspace.
        keyspace: &'a str,
        /// The table; empty if the keyspace exists.
        table: &'a str,
    },
    /// Of `UNPREPARED`.
    Unprepared {
        /// Identifier that is not known.
        id: &'a [u8],
    },
}

impl<'a> Detail<'a> {
    fn encode(&self, body: &mut Vec<u8>) {
        let mut counts = |consistency: Consistency, first: i32, second: i32| {
            body.extend_from_slice(&(consistency as u16).to_be_bytes());
            body.extend_from_slice(&first.to_be_bytes());
            body.extend_from_slice(&second.to_be_bytes());
        };
        match *self {
            Self::None => {}
            Self::Unavailable {
                consistency,
                required,
                alive,
            } => counts(consistency, required, alive),
            Self::WriteTimeout {
                consistency,
                received,
                required,
                write_type,
            } => {
                counts(consistency, received, required);
                put_string(body, write_type);
            }
            Self::ReadTimeout {
                consistency,
                received,
                required,
                data_present,
            } => {
                counts(consistency, received, required);
                body.push(u8::from(data_present));
            }
            Self::AlreadyExists { keyspace, table } => {
                put_string(body, keyspace);
                put_string(body, table);
            }
            Self::Unprepared { id } => put_short_bytes(body, id),
        }
    }

    fn decode(code: i32, reader: &mut Reader<'a>) -> Result<Self, CqlError> {
        Ok(match code {
            code::UNAVAILABLE => Self::Unavailable {
                consistency: Consistency::from_number(reader.short()?)?,
                required: reader.int()?,
                alive: reader.int()?,
            },
            code::WRITE_TIMEOUT => Self::WriteTimeout {
                consistency: Consistency::from_number(reader.short()?)?,
                received: reader.int()?,
                required: reader.int()?,
                write_type: reader.string()?,
            },
            code::READ_TIMEOUT => Self::ReadTimeout {
                consistency: Consistency::from_number(reader.short()?)?,
                received: reader.int()?,
                required: reader.int()?,
                data_present: reader.byte()? != 0,
            },
            code::ALREADY_EXISTS => Self::AlreadyExists {
                keyspace: reader.string()?,
                table: reader.string()?,
            },
            code::UNPREPARED => Self::Unprepared {
                id: reader.short_bytes()?,
            },
            _ => Self::None,
        })
    }
}

/// What a load engine needs of a response: how many rows, or which error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// Answered without rows: a write, or anything that is no result with rows.
    Void,
    /// Rows: how many.
    Rows(u32),
    /// The error's code.
    Error(i32),
}

/// Reads no further than `Glance` needs; cells are never touched.
#[inline]
pub fn glance(header: &Header, body: &[u8]) -> Result<Glance, CqlError> {
    let mut reader = content(header, body)?;
    if header.opcode == Opcode::Error as u8 {
        return Ok(Glance::Error(reader.int()?));
    }
    if header.opcode != Opcode::Result as u8 || reader.int()? != KIND_ROWS {
        return Ok(Glance::Void);
    }
    let (flags, columns) = (reader.int()?, column_count(&mut reader)?);
    if flags & ROWS_MORE_PAGES != 0 {
        reader.bytes()?;
    }
    if flags & ROWS_NO_METADATA == 0 {
        skip_columns(&mut reader, flags, columns)?;
    }
    row_count(&mut reader, columns).map(Glance::Rows)
}

#[cold]
fn skip_columns(reader: &mut Reader<'_>, flags: i32, columns: usize) -> Result<(), CqlError> {
    decode_columns(reader, flags, columns).map(|_| ())
}

/// The body behind what flags put before it: a trace's id, warnings, a custom payload.
#[inline]
fn content<'a>(header: &Header, body: &'a [u8]) -> Result<Reader<'a>, CqlError> {
    let mut reader = Reader::new(body);
    if header.flags & (FLAG_COMPRESSION | FLAG_TRACING | FLAG_WARNING | FLAG_CUSTOM_PAYLOAD) != 0 {
        if header.flags & FLAG_COMPRESSION != 0 {
            return Err(CqlError::Compressed);
        }
        if header.flags & FLAG_TRACING != 0 {
            reader.uuid()?;
        }
        if header.flags & FLAG_WARNING != 0 {
            reader.string_list()?;
        }
        if header.flags & FLAG_CUSTOM_PAYLOAD != 0 {
            reader.skip_bytes_map()?;
        }
    }
    Ok(reader)
}

impl<'a> Response<'a> {
    /// The response that `header` and its whole `body` say. Errors: a body that ends early, an opcode that no server sends.
    pub fn decode(header: &Header, body: &'a [u8]) -> Result<Self, CqlError> {
        let mut reader = content(header, body)?;
        let reader = &mut reader;
        Ok(match Opcode::from_number(header.opcode)? {
            Opcode::Ready => Self::Ready,
            Opcode::Authenticate => Self::Authenticate(reader.string()?),
            Opcode::AuthChallenge => Self::AuthChallenge,
            Opcode::AuthSuccess => Self::AuthSuccess,
            Opcode::Supported => Self::Supported(reader.string_multimap()?),
            Opcode::Event => Self::Event(reader.string()?, reader.rest()),
            Opcode::Error => {
                let (code, message) = (reader.int()?, reader.string()?);
                Self::Error(ServerError {
                    code,
                    message,
                    detail: Detail::decode(code, reader)?,
                })
            }
            Opcode::Result => match reader.int()? {
                KIND_VOID => Self::Void,
                KIND_ROWS => Self::Rows(decode_rows(reader)?),
                KIND_SET_KEYSPACE => Self::SetKeyspace(reader.string()?),
                KIND_PREPARED => Self::Prepared(decode_prepared(header.version, reader)?),
                KIND_SCHEMA_CHANGE => Self::SchemaChange,
                other => {
                    return Err(CqlError::Unknown {
                        what: "kind of result",
                        number: other.into(),
                    });
                }
            },
            other => {
                return Err(CqlError::Unknown {
                    what: "opcode of a response",
                    number: other as i64,
                });
            }
        })
    }
}

fn decode_rows<'a>(reader: &mut Reader<'a>) -> Result<Rows<'a>, CqlError> {
    let (flags, columns) = (reader.int()?, column_count(reader)?);
    let paging_state = if flags & ROWS_MORE_PAGES != 0 {
        reader.bytes()?
    } else {
        None
    };
    let specs = if flags & ROWS_NO_METADATA == 0 {
        decode_columns(reader, flags, columns)?
    } else {
        Vec::new()
    };
    let count = row_count(reader, columns)?;
    Ok(Rows {
        columns: specs,
        column_count: columns,
        paging_state,
        count,
        cells: *reader,
    })
}

fn decode_prepared(version: u8, reader: &mut Reader<'_>) -> Result<Prepared, CqlError> {
    let id = reader.short_bytes()?.to_vec();
    let (flags, count) = (reader.int()?, column_count(reader)?);
    let mut key_markers = Vec::new();
    if version >= V4 {
        for _ in 0..reader.count(2, "markers of a partition key")? {
            key_markers.push(reader.short()?);
        }
    }
    let markers = decode_columns(reader, flags, count)?;
    let (flags, count) = (reader.int()?, column_count(reader)?);
    let columns = if flags & ROWS_NO_METADATA == 0 {
        decode_columns(reader, flags, count)?
    } else {
        Vec::new()
    };
    Ok(Prepared {
        id,
        markers,
        key_markers,
        columns,
    })
}

/// Number of columns; their description may be left out, so that no bytes need follow.
#[inline]
fn column_count(reader: &mut Reader<'_>) -> Result<usize, CqlError> {
    let count = reader.int()?;
    match usize::try_from(count) {
        Ok(count) if count <= MAX_COLUMNS => Ok(count),
        _ => Err(CqlError::Count {
            what: "columns",
            count: count.into(),
            most: MAX_COLUMNS,
        }),
    }
}

/// Number of rows, of which each column has a cell. Rows without columns have no bytes: nobody can count them.
#[inline]
fn row_count(reader: &mut Reader<'_>, columns: usize) -> Result<u32, CqlError> {
    let count = reader.count(columns * CELL_BYTES, "rows")?;
    // It has come as 31 bits.
    Ok(count as u32)
}

fn decode_columns(reader: &mut Reader<'_>, flags: i32, count: usize) -> Result<Vec<ColumnSpec>, CqlError> {
    let names = |reader: &mut Reader<'_>| Ok::<_, CqlError>((reader.string()?.into(), reader.string()?.into()));
    let global: Option<(Arc<str>, Arc<str>)> = match flags & ROWS_GLOBAL_TABLE != 0 && count > 0 {
        true => Some(names(reader)?),
        false => None,
    };
    // A name and a type; and where they are not said once for all, keyspace and table.
    reader.fitting(count as i64, if global.is_some() { 4 } else { 8 }, "columns")?;
    let mut types = MAX_TYPES;
    (0..count)
        .map(|_| {
            let (keyspace, table) = match &global {
                Some(names) => names.clone(),
                None => names(reader)?,
            };
            Ok(ColumnSpec {
                keyspace,
                table,
                name: reader.string()?.to_owned(),
                kind: ColumnType::decode_within(reader, &mut types, 0)?,
            })
        })
        .collect()
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
