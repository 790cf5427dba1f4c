//! Requests of an order as frames of the native protocol, built in number, each with its partition key and how it is executed.

use crate::program::{Batch, Execution, Request, Requests, Statement, ValueSource};
use steelyard_cql::request::{self, BatchKind, Manner, ValueWriter};
use steelyard_cql::{Consistency, put_bytes};
use steelyard_wire::program::BatchMode;
use steelyard_wire::{Cql, Order};
use steelyard_workload::OrderError;
use steelyard_workload::operation::Operation;

/// A request's partition key: its bytes as tokens are computed of them, and where in them each part lies.
#[derive(Debug, Default)]
pub(crate) struct PartitionKey {
    pub bytes: Vec<u8>,
    parts: Vec<(usize, usize)>,
}

impl PartitionKey {
    fn part(&self, number: usize) -> &[u8] {
        let (start, end) = self.parts[number];
        &self.bytes[start..end]
    }
}

/// How a request is carried out, and what of its answer matters.
#[derive(Clone, Debug)]
pub(crate) struct RequestPlan {
    manner: Manner<'static>,
    /// Nothing of the answer but the number of its rows, unless it is compared.
    pub is_plain: bool,
    /// Whether answers can be compared.
    pub has_compared: bool,
    pub wants_row: bool,
    pub conditional: bool,
    pub max_pages: u32,
}

/// The statements of an order, and the requests of its operations.
#[derive(Debug)]
pub(crate) struct Statements {
    /// What is to be prepared.
    pub cql: Vec<String>,
    pub requests: Requests,
    /// By the number of a request.
    plans: Vec<RequestPlan>,
}

impl Statements {
    /// Compiles the order's workload. Errors: a workload that is not possible; a consistency level that does not exist.
    pub fn new(order: &Order, target: &Cql) -> Result<Self, OrderError> {
        let requests = Requests::of(order)?;
        let levels = Levels {
            read: level("target.read_consistency", &target.read_consistency)?,
            write: level("target.write_consistency", &target.write_consistency)?,
            serial: serial_level(&target.serial_consistency)?,
        };
        let plans = (0..requests.count())
            .map(|number| levels.plan(&requests, number))
            .collect::<Result<_, _>>()?;
        let cql = requests
            .statements
            .iter()
            .map(|statement| statement.cql.clone())
            .collect();
        Ok(Self { cql, requests, plans })
    }

    /// How a request is executed.
    #[inline]
    pub fn plan(&self, number: usize) -> &RequestPlan {
        &self.plans[number]
    }

    /// Makes the partition key of an operation's request. False: it may go anywhere.
    #[inline]
    pub fn put_key(&self, operation: &Operation, at: &Execution, key: &mut PartitionKey) -> bool {
        key.bytes.clear();
        key.parts.clear();
        let request = self.requests.request(self.requests.request_number(operation));
        let statement = &self.requests.statements[self.requests.first(request, operation)];
        let batched;
        let at = match request {
            Request::Execute { .. } => at,
            Request::Batch(batch) => {
                batched = batch.first(at);
                &batched
            }
        };
        match statement.partition_key.as_slice() {
            [] => return false,
            [only] => {
                statement.values[usize::from(*only)].put(at, &mut key.bytes);
                key.parts.push((0, key.bytes.len()));
            }
            many => {
                for marker in many {
                    let start = key.bytes.len() + 2;
                    key.bytes.extend_from_slice(&[0; 2]);
                    statement.values[usize::from(*marker)].put(at, &mut key.bytes);
                    let end = key.bytes.len();
                    key.bytes[start - 2..start].copy_from_slice(&((end - start) as u16).to_be_bytes());
                    key.bytes.push(0);
                    key.parts.push((start, end));
                }
            }
        }
        true
    }

    /// Appends the request of an operation; gives the rows that it writes, where those are counted. `ids` are those of the statements at the node, `key` is what `put_key` made, and
    /// `paging_state` says where the page before has ended.
    #[inline]
    pub fn put(
        &self,
        operation: &Operation,
        at: &Execution,
        (key, paging_state): (&PartitionKey, Option<&[u8]>),
        ids: &[Vec<u8>],
        stream: i16,
        out: &mut Vec<u8>,
    ) -> u32 {
        let number = self.requests.request_number(operation);
        let request = self.requests.request(number);
        let manner = Manner {
            paging_state,
            ..self.plans[number].manner
        };
        match request {
            Request::Execute { .. } => {
                let number = self.requests.first(request, operation);
                let statement = &self.requests.statements[number];
                let count = statement.values.len() as u16;
                request::execute_with(out, stream, &ids[number], &manner, count, |values| {
                    put_values(statement, at, key, values);
                });
                0
            }
            Request::Batch(batch) => self.put_batch(batch, at, &manner, ids, stream, out),
        }
    }

    fn put_batch(
        &self,
        batch: &Batch,
        at: &Execution,
        manner: &Manner<'_>,
        ids: &[Vec<u8>],
        stream: i16,
        out: &mut Vec<u8>,
    ) -> u32 {
        let kind = match batch.mode {
            BatchMode::Logged => BatchKind::Logged,
            BatchMode::Unlogged => BatchKind::Unlogged,
            BatchMode::Counter => BatchKind::Counter,
        };
        let executions = batch.executions(at);
        request::batch(out, stream, kind, manner, executions.len() as u16, |writer| {
            for (at, number) in executions.iter().zip(batch.statements.iter().cycle()) {
                let statement = &self.requests.statements[*number];
                writer.prepared(&ids[*number], statement.values.len() as u16, |values| {
                    let put = |value: &ValueSource| value.put_value(at, values.raw());
                    statement.values.iter().for_each(put);
                });
            }
        });
        if batch.counts_rows() {
            executions.len() as u32
        } else {
            0
        }
    }
}

/// What makes the partition key has been made already.
#[inline]
fn put_values(statement: &Statement, at: &Execution, key: &PartitionKey, values: &mut ValueWriter<'_>) {
    for (value, marker) in statement.values.iter().zip(0..) {
        match statement.partition_key.iter().position(|part| *part == marker) {
            Some(part) => put_bytes(values.raw(), key.part(part)),
            None => value.put_value(at, values.raw()),
        }
    }
}

/// The order's consistency levels.
struct Levels {
    read: Consistency,
    write: Consistency,
    serial: Consistency,
}

impl Levels {
    fn plan(&self, requests: &Requests, number: usize) -> Result<RequestPlan, OrderError> {
        let statements = requests.of_request(number);
        let first = statements.first();
        let own = statements.iter().find_map(|statement| statement.consistency.as_deref());
        let consistency = match own {
            Some(name) => level("statements.consistency", name)?,
            None if first.is_some_and(|statement| statement.writes) => self.write,
            None => self.read,
        };
        let conditional = statements.iter().any(|statement| statement.conditional);
        // The rows of a batch's answer are not read.
        let first = first.filter(|_| matches!(requests.request(number), Request::Execute { .. }));
        Ok(RequestPlan {
            manner: Manner {
                serial_consistency: conditional.then_some(self.serial),
                page_size: first.and_then(|statement| statement.page_rows),
                ..Manner::new(consistency)
            },
            is_plain: statements.iter().all(|statement| statement.is_plain()),
            has_compared: first.is_some_and(|statement| statement.compared() > 0),
            wants_row: first.is_some_and(|statement| statement.wants_row),
            conditional,
            max_pages: first.map_or(1, |statement| statement.max_pages),
        })
    }
}

fn level(field: &'static str, name: &str) -> Result<Consistency, OrderError> {
    let allowed = "ANY, ONE, TWO, THREE, QUORUM, ALL, LOCAL_QUORUM, EACH_QUORUM, SERIAL, LOCAL_SERIAL, LOCAL_ONE";
    Consistency::from_name(name).ok_or_else(|| OrderError::new(field, name, allowed))
}

fn serial_level(name: &str) -> Result<Consistency, OrderError> {
    Consistency::from_name(name)
        .filter(|level| matches!(level, Consistency::Serial | Consistency::LocalSerial))
        .ok_or_else(|| OrderError::new("target.serial_consistency", name, "SERIAL, LOCAL_SERIAL"))
}
