//! `ops`: print the operations of an order without sending them, for tests and for people.

use std::error::Error;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};
use steelyard_client::program::{Execution, Request, Requests, Statement, ValueSource};
use steelyard_load::schedule::expected_operations;
use steelyard_wire::program::BatchMode;
use steelyard_wire::{Order, Work, Ycsb};
use steelyard_workload::operation::Operation;
use steelyard_workload::stream::{Stream, kinds, settle};
use steelyard_workload::ycsb::{Kind, ValueSeed, write_key, write_value};

use crate::cql_json::bytes_to_json;

#[derive(clap::Args)]
pub struct Arguments {
    /// File with the order (JSON); - for standard input.
    #[arg(long)]
    order: PathBuf,
    /// Index of the first operation, over all shares.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Number of operations to print from the order's share.
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// Also print the values that are written (for programs: all values sent).
    #[arg(long)]
    values: bool,
}

/// An operation of YCSB's workload.
#[derive(Serialize)]
struct YcsbLine<'a> {
    index: u64,
    kind: &'a str,
    key: &'a str,
    key_number: u64,
    field: u32,
    scan_length: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Map<String, Value>>,
}

/// A request for a document.
#[derive(Serialize)]
struct RequestLine<'a> {
    index: u64,
    kind: &'a str,
    path: &'a str,
}

/// An operation of a program.
#[derive(Serialize)]
struct ProgramLine<'a> {
    index: u64,
    kind: &'a str,
    key_number: u64,
    steps: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Step<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchMode>,
    statements: Vec<StatementLine<'a>>,
}

#[derive(Serialize)]
struct StatementLine<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<Value>>,
}

pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let text = if arguments.order.as_os_str() == "-" {
        io::read_to_string(io::stdin())?
    } else {
        fs::read_to_string(&arguments.order).map_err(|error| format!("{}: {error}", arguments.order.display()))?
    };
    let mut order: Order = serde_json::from_str(&text).map_err(|error| format!("the order: {error}"))?;
    settle(&mut order)?;
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
    let mut stream = Stream::from_order(order, expected_operations(order), arguments.first)?;
    let kinds = kinds(order)?;
    // YCSB's lines have no statements, and a protocol may have none.
    let requests = matches!(order.work, Work::Program(_))
        .then(|| Requests::of(order))
        .transpose()?;
    let mut out = BufWriter::new(io::stdout().lock());
    // An order that ends by keys has no operation beyond.
    let end = order.stop.keys.and(order.stop.operations).unwrap_or(u64::MAX);
    for _ in 0..arguments.count {
        let operation = stream.next();
        if operation.index >= end {
            break;
        }
        let kind = kinds.name(operation.kind);
        if let Some(workload) = order.work.ycsb() {
            let mut key = Vec::new();
            write_key(operation.key, workload, &mut key);
            let line = YcsbLine {
                index: operation.index,
                kind,
                key: &String::from_utf8_lossy(&key),
                key_number: operation.key,
                field: operation.field,
                scan_length: operation.scan_length,
                values: arguments.values.then(|| fields(order, workload, &operation)),
            };
            serde_json::to_writer(&mut out, &line).map_err(io::Error::from)?;
        } else if let Work::Requests(requests) = &order.work {
            let line = RequestLine {
                index: operation.index,
                kind,
                path: &requests.documents[operation.key as usize].path,
            };
            serde_json::to_writer(&mut out, &line).map_err(io::Error::from)?;
        } else if let Some(requests) = &requests {
            let steps = 0..kinds.kind(operation.kind).steps.len() as u16;
            let line = ProgramLine {
                index: operation.index,
                kind,
                key_number: operation.key,
                steps: steps
                    .map(|step| step_of(requests, &Operation { step, ..operation }, arguments.values))
                    .collect(),
            };
            serde_json::to_writer(&mut out, &line).map_err(io::Error::from)?;
        }
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Statements and values that one step of a program's operation sends.
fn step_of<'a>(requests: &'a Requests, operation: &Operation, with_values: bool) -> Step<'a> {
    let at = requests.at(operation);
    let line = |number: usize, at: &Execution| {
        let statement = &requests.statements[number];
        StatementLine {
            name: &statement.name,
            values: with_values.then(|| values(statement, at)),
        }
    };
    match requests.request(requests.request_number(operation)) {
        request @ Request::Execute { .. } => Step {
            batch: None,
            statements: vec![line(requests.first(request, operation), &at)],
        },
        Request::Batch(batch) => {
            let executions = batch.executions(&at);
            let numbered = executions.iter().zip(batch.statements.iter().cycle());
            Step {
                batch: Some(batch.mode),
                statements: numbered.map(|(at, number)| line(*number, at)).collect(),
            }
        }
    }
}

fn values(statement: &Statement, at: &Execution) -> Vec<Value> {
    let mut bytes = Vec::new();
    let mut show = |source: &ValueSource| {
        bytes.clear();
        let not_null = source.put(at, &mut bytes);
        bytes_to_json(&source.cql_type, not_null.then_some(bytes.as_slice()))
    };
    statement.values.iter().map(&mut show).collect()
}

/// Values that a YCSB operation writes: field name to value; empty for reads and scans.
fn fields(order: &Order, workload: &Ycsb, operation: &Operation) -> Map<String, Value> {
    let kind = Kind::ALL[usize::from(operation.kind)];
    let whole = kind == Kind::Insert || workload.write_all_fields;
    let writes = !matches!(kind, Kind::Read | Kind::Scan);
    let version = operation.version(order.action);
    let mut bytes = Vec::new();
    workload
        .fields
        .iter()
        .zip(0u32..)
        .filter(|(_, field)| writes && (whole || *field == operation.field))
        .map(|(name, field)| {
            bytes.clear();
            write_value(
                ValueSeed::new(order.seed),
                operation.key,
                field,
                version,
                workload,
                &mut bytes,
            );
            (name.clone(), Value::from(String::from_utf8_lossy(&bytes)))
        })
        .collect()
}
