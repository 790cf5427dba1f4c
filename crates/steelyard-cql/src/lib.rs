//! Cassandra's native protocol, versions 3 and 4, as bytes: frames, requests, responses and values, for both sides.
//!
//! Why of our own: the load engine writes requests in place and reads of a response only what it counts, and the
//! simulated cluster needs the server's side, which no client library has. Nothing here does input or output. Formulas
//! and numbers are those of Cassandra's `native_protocol_v4.spec`.
//!
//! Every encoder appends one whole frame to a `Vec<u8>`; every decoder borrows from a frame's body. A server answers in
//! the protocol version and on the stream of the request:
//!
//! ```
//! use steelyard_cql::{Frame, HEADER_LENGTH, V4, request, response};
//! let mut wire = Vec::new();
//! request::options(&mut wire, 7);
//! let header = Frame::header(&wire)?.expect("a whole header");
//! let body = &wire[HEADER_LENGTH..header.frame_length()];
//! assert!(matches!(request::Request::decode(&header, body)?, request::Request::Options));
//! let mut answer = Vec::new();
//! response::supported(&mut answer, V4, header.stream, &[("CQL_VERSION", &["3.4.5"])]);
//! # Ok::<(), steelyard_cql::CqlError>(())
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod compression;
mod consistency;
mod error;
mod frame;
mod primitive;
pub mod request;
pub mod response;
mod value;

pub use compression::{Codec, Compression};
pub use consistency::Consistency;
pub use error::{CqlError, code};
pub use frame::{
    FLAG_COMPRESSION, FLAG_CUSTOM_PAYLOAD, FLAG_TRACING, FLAG_WARNING, Frame, Header, MAX_BODY_BYTES, Opcode,
};
pub use frame::{HEADER_LENGTH, V3, V4};
pub use primitive::{
    Reader, put_bytes, put_long_string, put_null, put_short_bytes, put_string, put_string_list, put_string_map,
};
pub use value::{
    ColumnSpec, ColumnType, MAX_DEPTH, SPARE_VALUES, Value, put_big_integer, put_signed_vint, put_unsigned_vint,
    unsigned_vint,
};
