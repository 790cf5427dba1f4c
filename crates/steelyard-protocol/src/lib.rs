//! What the load's clients of several protocols share: places in flight (`slot`), the beginning of a load (`begin`, `exchange`),
//! why there is none (`error`), and the client of protocols whose answers come in the order of the requests (`client`, `pipelined`).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod base64;
pub mod begin;
pub mod client;
pub mod error;
pub mod exchange;
pub mod pipelined;
pub mod slot;

pub use error::{ConnectError, Language, Malformed};
