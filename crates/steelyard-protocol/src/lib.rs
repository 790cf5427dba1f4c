//! What the load's clients of several protocols share: places in flight (`slot`), the beginning of a load (`begin`, `exchange`),
//! why there is none (`error`), and the client of protocols whose answers come in the order of the requests (`client`, `pipelined`),
//! with its nodes (`nodes`), which may come and go (`watch`).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod base64;
pub mod begin;
pub mod client;
pub mod error;
pub mod exchange;
pub mod nodes;
pub mod pipelined;
pub mod slot;
mod threads;
pub mod watch;

pub use error::{ConnectError, Language, Malformed};
