//! Integration tests in one program, so that they are linked once.

mod bianchi;
mod foresight;
mod scenarios;
mod shared;
mod wifi;
