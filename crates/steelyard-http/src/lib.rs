//! The load's client of HTTP/1.1: requests for documents, and YCSB's operations over etcd's JSON gateway. `null` is the server that
//! answers at once.
//!
//! Nothing is pipelined: a connection has one request in flight. Each worker makes its connections in its own loop and without
//! waiting, so that a load may have one for each request.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod answer;
mod client;
mod connect;
mod connection;
mod course;
mod dialect;
mod documents;
mod etcd;
pub mod json;
mod nodes;
pub mod null;
mod pool;
mod server;

pub use client::HttpClient;
pub use connect::connect;
pub use server::HTTP;
