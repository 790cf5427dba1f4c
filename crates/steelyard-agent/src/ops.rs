//! `ops`: print the operations of an order without sending them, for tests and for people who wonder what is sent.

use std::error::Error;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};
use steelyard_load::ycsb::{Kind, Operation, Stream, write_key, write_value};
use steelyard_wire::Order;

#[derive(clap::Args)]
pub struct Arguments {
    /// File with the order (JSON); - for standard input.
    #[arg(long)]
    order: PathBuf,
    /// Index of the first operation, over all shares.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many operations of the order's share to print.
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// Print the values that are written, too.
    #[arg(long)]
    values: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    index: u64,
    kind: &'static str,
    key: &'a str,
    key_number: u64,
    field: u32,
    scan_length: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Map<String, Value>>,
}

pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let text = if arguments.order.as_os_str() == "-" {
        io::read_to_string(io::stdin())?
    } else {
        fs::read_to_string(&arguments.order).map_err(|error| format!("{}: {error}", arguments.order.display()))?
    };
    let order: Order = serde_json::from_str(&text).map_err(|error| format!("the order: {error}"))?;
    match print(arguments, &order) {
        // The reader has seen enough.
        Err(error)
            if error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) =>
        {
            Ok(())
        }
        outcome => outcome,
    }
}

fn print(arguments: &Arguments, order: &Order) -> Result<(), Box<dyn Error>> {
    let mut stream = Stream::from_order(order, arguments.first)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut key = Vec::new();
    for _ in 0..arguments.count {
        let operation = stream.next();
        key.clear();
        write_key(operation.key, &order.workload, &mut key);
        let line = Line {
            index: operation.index,
            kind: operation.kind.name(),
            key: &String::from_utf8_lossy(&key),
            key_number: operation.key,
            field: operation.field,
            scan_length: operation.scan_length,
            values: arguments.values.then(|| values(order, &operation)),
        };
        serde_json::to_writer(&mut out, &line).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// What the operation writes: field name to value; empty for reads and scans.
fn values(order: &Order, operation: &Operation) -> Map<String, Value> {
    let whole = operation.kind == Kind::Insert || order.workload.write_all_fields;
    let writes = !matches!(operation.kind, Kind::Read | Kind::Scan);
    let version = operation.version(order.action);
    let mut bytes = Vec::new();
    order
        .fields
        .iter()
        .zip(0u32..)
        .filter(|(_, field)| writes && (whole || *field == operation.field))
        .map(|(name, field)| {
            bytes.clear();
            write_value(order.seed, operation.key, field, version, &order.workload, &mut bytes);
            (name.clone(), Value::from(String::from_utf8_lossy(&bytes)))
        })
        .collect()
}
