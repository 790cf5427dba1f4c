//! Output of records: JSON, one record per line.

use std::io::{self, Write};

use steelyard_wire::Record;

/// Writes one record as a line of its own, in one piece, and flushes. Errors: those of `out`.
pub fn write_record(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}
