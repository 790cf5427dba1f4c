//! Requests: encoders for the client, a decoder for the server.

use crate::{
    Compression, Consistency, Frame, Opcode, put_bytes, put_long_string, put_null, put_short_bytes, put_string_list,
    put_string_map,
};

mod decoder;

pub use decoder::{Parameters, Request, Statement, Values};

const QUERY_VALUES: u8 = 0x01;
const QUERY_SKIP_METADATA: u8 = 0x02;
const QUERY_PAGE_SIZE: u8 = 0x04;
const QUERY_PAGING_STATE: u8 = 0x08;
const QUERY_SERIAL_CONSISTENCY: u8 = 0x10;
const QUERY_TIMESTAMP: u8 = 0x20;
const QUERY_NAMES: u8 = 0x40;

/// `OPTIONS`: what do you support?
pub fn options(out: &mut Vec<u8>, stream: i16) {
    Frame::request(out, stream, Opcode::Options, |_| {});
}

/// `STARTUP`. `driver` is what the server's list of clients shows. With a compression the answer to it may be compressed
/// already.
pub fn startup(out: &mut Vec<u8>, stream: i16, driver: &str, driver_version: &str, compression: Option<Compression>) {
    let pairs = [
        ("CQL_VERSION", "3.0.0"),
        ("DRIVER_NAME", driver),
        ("DRIVER_VERSION", driver_version),
        ("COMPRESSION", compression.map_or("", Compression::name)),
    ];
    let pairs = &pairs[..pairs.len() - usize::from(compression.is_none())];
    Frame::request(out, stream, Opcode::Startup, |body| put_string_map(body, pairs));
}

/// `AUTH_RESPONSE` of the server's password authenticator (SASL PLAIN: authorise-as, user, password).
pub fn auth_response_plain(out: &mut Vec<u8>, stream: i16, user: &str, password: &str) {
    let token = [b"\0", user.as_bytes(), b"\0", password.as_bytes()].concat();
    Frame::request(out, stream, Opcode::AuthResponse, |body| put_bytes(body, &token));
}

/// `REGISTER` for events such as `STATUS_CHANGE`.
pub fn register(out: &mut Vec<u8>, stream: i16, events: &[&str]) {
    Frame::request(out, stream, Opcode::Register, |body| put_string_list(body, events));
}

/// `QUERY` of a statement without values; paging is off, so all rows come at once.
pub fn query(out: &mut Vec<u8>, stream: i16, statement: &str, consistency: Consistency) {
    Frame::request(out, stream, Opcode::Query, |body| {
        put_long_string(body, statement);
        body.extend_from_slice(&(consistency as u16).to_be_bytes());
        body.push(0);
    });
}

/// `PREPARE`.
pub fn prepare(out: &mut Vec<u8>, stream: i16, statement: &str) {
    Frame::request(out, stream, Opcode::Prepare, |body| put_long_string(body, statement));
}

/// `EXECUTE` of a prepared statement: no paging, no result metadata (`id` already stands for it). `values` appends the
/// `count` values in place.
#[inline]
pub fn execute(
    out: &mut Vec<u8>,
    stream: i16,
    id: &[u8],
    consistency: Consistency,
    count: u16,
    values: impl FnOnce(&mut ValueWriter<'_>),
) {
    execute_with(out, stream, id, &Manner::new(consistency), count, values);
}

/// How a request is to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner<'a> {
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// Of conditional statements.
    pub serial_consistency: Option<Consistency>,
    /// Rows of a page; None: all at once.
    pub page_size: Option<i32>,
    /// Where the page before has ended.
    pub paging_state: Option<&'a [u8]>,
}

impl Manner<'_> {
    /// Nothing but a consistency.
    pub fn new(consistency: Consistency) -> Self {
        Self {
            consistency,
            serial_consistency: None,
            page_size: None,
            paging_state: None,
        }
    }
}

/// As `execute`, with pages and serial consistency.
#[inline]
pub fn execute_with(
    out: &mut Vec<u8>,
    stream: i16,
    id: &[u8],
    manner: &Manner<'_>,
    count: u16,
    values: impl FnOnce(&mut ValueWriter<'_>),
) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = QUERY_VALUES
        | QUERY_SKIP_METADATA
        | flag(manner.page_size.is_some(), QUERY_PAGE_SIZE)
        | flag(manner.paging_state.is_some(), QUERY_PAGING_STATE)
        | flag(manner.serial_consistency.is_some(), QUERY_SERIAL_CONSISTENCY);
    Frame::request(out, stream, Opcode::Execute, |body| {
        put_short_bytes(body, id);
        body.extend_from_slice(&(manner.consistency as u16).to_be_bytes());
        body.push(flags);
        body.extend_from_slice(&count.to_be_bytes());
        values(&mut ValueWriter { out: body });
        if let Some(rows) = manner.page_size {
            body.extend_from_slice(&rows.to_be_bytes());
        }
        if let Some(state) = manner.paging_state {
            put_bytes(body, state);
        }
        if let Some(serial) = manner.serial_consistency {
            body.extend_from_slice(&(serial as u16).to_be_bytes());
        }
    });
}

/// What a `BATCH` is to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BatchKind {
    /// Atomic, by way of the batch log.
    Logged = 0,
    /// Not atomic.
    Unlogged = 1,
    /// Of counter updates.
    Counter = 2,
}

/// `BATCH` of `count` prepared statements, which `statements` appends one by one.
pub fn batch(
    out: &mut Vec<u8>,
    stream: i16,
    kind: BatchKind,
    manner: &Manner<'_>,
    count: u16,
    statements: impl FnOnce(&mut BatchWriter<'_>),
) {
    Frame::request(out, stream, Opcode::Batch, |body| {
        body.push(kind as u8);
        body.extend_from_slice(&count.to_be_bytes());
        statements(&mut BatchWriter { out: body });
        body.extend_from_slice(&(manner.consistency as u16).to_be_bytes());
        match manner.serial_consistency {
            Some(serial) => {
                body.push(QUERY_SERIAL_CONSISTENCY);
                body.extend_from_slice(&(serial as u16).to_be_bytes());
            }
            None => body.push(0),
        }
    });
}

/// Appends statements to a batch that is being built.
pub struct BatchWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl BatchWriter<'_> {
    /// A prepared statement; `values` appends its `count` values in place.
    pub fn prepared(&mut self, id: &[u8], count: u16, values: impl FnOnce(&mut ValueWriter<'_>)) {
        self.out.push(1);
        put_short_bytes(self.out, id);
        self.out.extend_from_slice(&count.to_be_bytes());
        values(&mut ValueWriter { out: self.out });
    }
}

/// Appends values to a request that is being built.
pub struct ValueWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl ValueWriter<'_> {
    /// Appends a value's bytes with their length.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        put_bytes(self.out, bytes);
    }

    /// Appends an `int` value.
    #[inline]
    pub fn int(&mut self, value: i32) {
        put_bytes(self.out, &value.to_be_bytes());
    }

    /// Appends a null.
    pub fn null(&mut self) {
        put_null(self.out);
    }

    /// The frame itself, for those who append values with their lengths.
    #[inline]
    pub fn raw(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// A value that `write` appends; its length is filled in afterwards.
    #[inline]
    pub fn with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        write(self.out);
        let length = (self.out.len() - start - 4) as u32;
        self.out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HEADER_LENGTH;
    use crate::Header;

    fn decode(wire: &[u8]) -> (Header, Request<'_>) {
        let header = Frame::header(wire).unwrap().unwrap();
        assert_eq!(header.frame_length(), wire.len());
        (header, Request::decode(&header, &wire[HEADER_LENGTH..]).unwrap())
    }

    #[test]
    fn plain_requests_come_back() {
        let mut wire = Vec::new();
        startup(&mut wire, 1, "steelyard", "0.1.0", Some(Compression::Lz4));
        let (header, request) = decode(&wire);
        assert_eq!((header.version, header.stream, header.response), (4, 1, false));
        let Request::Startup(pairs) = request else {
            panic!("{request:?}")
        };
        assert!(pairs.contains(&("CQL_VERSION", "3.0.0")));
        assert!(pairs.contains(&("COMPRESSION", "lz4")));

        wire.clear();
        register(&mut wire, 2, &["STATUS_CHANGE"]);
        assert_eq!(decode(&wire).1, Request::Register(vec!["STATUS_CHANGE"]));

        wire.clear();
        prepare(&mut wire, 3, "SELECT");
        assert_eq!(decode(&wire).1, Request::Prepare { statement: "SELECT" });

        wire.clear();
        auth_response_plain(&mut wire, 4, "u", "p");
        assert_eq!(decode(&wire).1, Request::AuthResponse(Some(b"\0u\0p")));
    }

    #[test]
    fn queries_and_executions_come_back_with_their_values() {
        let mut wire = Vec::new();
        query(&mut wire, 5, "SELECT 1", Consistency::LocalQuorum);
        let (_, Request::Query { statement, parameters }) = decode(&wire) else {
            panic!()
        };
        assert_eq!(
            (statement, parameters.consistency),
            ("SELECT 1", Consistency::LocalQuorum)
        );
        assert_eq!(parameters.values.count(), 0);

        wire.clear();
        execute(&mut wire, 6, b"id", Consistency::One, 3, |values| {
            values.bytes(b"key");
            values.null();
            values.with(|out| out.extend_from_slice(b"built"));
        });
        let (_, Request::Execute { id, parameters }) = decode(&wire) else {
            panic!()
        };
        assert_eq!(id, b"id");
        assert!(parameters.skip_metadata && parameters.page_size.is_none());
        assert_eq!(
            parameters.values.collect::<Vec<_>>(),
            [Some(&b"key"[..]), None, Some(b"built")]
        );
    }

    #[test]
    fn every_parameter_of_a_query_is_read_past() {
        let mut body = Vec::new();
        put_long_string(&mut body, "Q");
        body.extend_from_slice(&[0, 1, 0x7F]);
        body.extend_from_slice(&[0, 1]);
        crate::put_string(&mut body, "name");
        put_bytes(&mut body, b"v");
        body.extend_from_slice(&5000_i32.to_be_bytes());
        put_bytes(&mut body, b"state");
        body.extend_from_slice(&8_u16.to_be_bytes());
        body.extend_from_slice(&9_i64.to_be_bytes());
        let header = Header {
            version: 4,
            response: false,
            flags: 0,
            stream: 0,
            opcode: 7,
            body_length: 0,
        };
        let Request::Query { parameters, .. } = Request::decode(&header, &body).unwrap() else {
            panic!()
        };
        assert_eq!(parameters.page_size, Some(5000));
        assert_eq!(parameters.paging_state, Some(&b"state"[..]));
        assert_eq!(parameters.serial_consistency, Some(Consistency::Serial));
        assert_eq!(parameters.timestamp_us, Some(9));
        assert_eq!({ parameters.values }.next(), Some(Some(&b"v"[..])));
    }

    #[test]
    fn pages_and_serial_consistency_come_back() {
        let mut wire = Vec::new();
        let manner = Manner {
            serial_consistency: Some(Consistency::LocalSerial),
            page_size: Some(100),
            paging_state: Some(b"here"),
            ..Manner::new(Consistency::Quorum)
        };
        execute_with(&mut wire, 6, b"id", &manner, 1, |values| values.bytes(b"key"));
        let (_, Request::Execute { parameters, .. }) = decode(&wire) else {
            panic!()
        };
        assert_eq!(
            (parameters.consistency, parameters.serial_consistency),
            (Consistency::Quorum, Some(Consistency::LocalSerial))
        );
        assert_eq!(
            (parameters.page_size, parameters.paging_state),
            (Some(100), Some(&b"here"[..]))
        );
        assert_eq!(parameters.values.collect::<Vec<_>>(), [Some(&b"key"[..])]);
    }

    #[test]
    fn a_batch_of_prepared_statements_comes_back() {
        for serial in [None, Some(Consistency::Serial)] {
            let mut wire = Vec::new();
            let manner = Manner {
                serial_consistency: serial,
                ..Manner::new(Consistency::One)
            };
            batch(&mut wire, 6, BatchKind::Counter, &manner, 2, |statements| {
                statements.prepared(b"a", 1, |values| values.int(1));
                statements.prepared(b"b", 2, |values| {
                    values.null();
                    values.raw().extend_from_slice(&[0, 0, 0, 1, 9]);
                });
            });
            let (
                _,
                Request::Batch {
                    statements,
                    consistency,
                    serial_consistency,
                },
            ) = decode(&wire)
            else {
                panic!()
            };
            assert_eq!((consistency, serial_consistency), (Consistency::One, serial));
            let ids: Vec<_> = statements
                .iter()
                .map(|statement| match statement {
                    Statement::Prepared { id, values } => (*id, values.collect::<Vec<_>>()),
                    Statement::Text { .. } => panic!(),
                })
                .collect();
            assert_eq!(ids[0], (&b"a"[..], vec![Some(&[0, 0, 0, 1][..])]));
            assert_eq!(ids[1], (&b"b"[..], vec![None, Some(&[9][..])]));
        }
    }

    #[test]
    fn a_batch_comes_back_and_no_cut_of_it_panics() {
        let mut body = vec![0, 0, 2, 0];
        put_long_string(&mut body, "INSERT");
        body.extend_from_slice(&[0, 1]);
        put_bytes(&mut body, b"a");
        body.push(1);
        put_short_bytes(&mut body, b"id");
        body.extend_from_slice(&[0, 0, 0, 4, 0]);
        let header = Header {
            version: 4,
            response: false,
            flags: 0,
            stream: 0,
            opcode: 13,
            body_length: 0,
        };
        let Request::Batch {
            statements,
            consistency,
            ..
        } = Request::decode(&header, &body).unwrap()
        else {
            panic!()
        };
        assert_eq!((statements.len(), consistency), (2, Consistency::Quorum));
        for end in 0..body.len() - 1 {
            assert!(Request::decode(&header, &body[..end]).is_err(), "{end}");
        }
    }
}
