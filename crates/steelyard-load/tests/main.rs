//! Integration tests of the driving loop, in one program, so that they are linked once.

mod drive;
mod expected_operations;
mod schedules;
