//! What tests of protocols share: `server` is the scaffold of hand-written servers, `driven` a load,
//! `scenarios` what every client must survive, `mutation` changes bytes at random places. Only a dev-dependency.

#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![allow(clippy::unwrap_used)] // A test ends by it.

pub mod driven;
pub mod mutation;
pub mod scenarios;
pub mod server;
