//! Requests of a workload, compiled: statements with the sources of their values, and which statements each step of each kind of
//! operation executes. YCSB's workload comes to the same form, with value sources of its own.

use std::sync::Arc;

use steelyard_wire::program::{Fraction, Keys, Program, Step};
use steelyard_wire::{Action, Cql, Order, Work};

use super::batch::{Batch, BatchKeys, MOST_STATEMENTS, Select};
use super::table::Table;
use super::validation::holds;
use super::value_compiler::ValueCompiler;
use super::value_source::{Execution, ValueSource};
use super::ycsb_statements;
use steelyard_workload::OrderError;
use steelyard_workload::operation::{Compared, Operation};
use steelyard_workload::program::Numbers;
use steelyard_workload::program::check;
use steelyard_workload::program::{DrawnKeys, repeat_random};
use steelyard_workload::random::{Purpose, Random};
use steelyard_workload::ycsb::first_new_key;

/// Most pages of one operation, and most rows of one page.
const MOST_PAGES: u32 = 1_000_000;
const MOST_PAGE_ROWS: u32 = i32::MAX as u32;

/// A statement to be prepared, and what its executions bind.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Name in the order; of YCSB's that of the kind of operation.
    pub name: String,
    /// Text, as it is prepared.
    pub cql: String,
    /// Sources of its bound values, in the order of its markers.
    pub values: Vec<ValueSource>,
    /// Places in `values` of what makes the partition key, in the key's order.
    pub partition_key: Vec<u16>,
    /// Whether the order's write consistency is meant rather than its read consistency.
    pub writes: bool,
    /// Instead of the order's.
    pub consistency: Option<String>,
    /// Whether it is a light-weight transaction.
    pub conditional: bool,
    /// Rows of one page; `None`: the whole answer in one frame.
    pub page_rows: Option<i32>,
    /// Most pages of one operation.
    pub max_pages: u32,
    /// Whether an answer without rows is `NotFound`.
    pub wants_row: bool,
    pub(super) expect: Vec<ValueSource>,
    table: Option<Arc<Table>>,
}

impl Statement {
    /// A statement of which nothing matters but its rows.
    pub(super) fn plain(name: &str, cql: String, values: Vec<ValueSource>, partition_key: u16, writes: bool) -> Self {
        Self {
            name: name.to_owned(),
            cql,
            values,
            partition_key: vec![partition_key],
            writes,
            consistency: None,
            conditional: false,
            page_rows: None,
            max_pages: 1,
            wants_row: false,
            expect: Vec::new(),
            table: None,
        }
    }

    /// Whether nothing of an answer that is not compared matters but its number of rows.
    pub fn is_plain(&self) -> bool {
        !self.conditional && self.page_rows.is_none()
    }

    /// How many columns of a row are compared; 0: rows are not looked at.
    pub fn compared(&self) -> usize {
        self.expect.len()
    }

    /// Whether the `column`-th cell of the first row holds what was written there; `scratch` is overwritten.
    pub fn holds(&self, at: &Execution, column: usize, cell: Option<&[u8]>, scratch: &mut Vec<u8>) -> bool {
        holds(&self.expect[column], at, cell, scratch)
    }
}

/// One request.
#[derive(Clone, Debug)]
pub enum Request {
    /// One execution of a prepared statement.
    Execute {
        /// Place of the statement; with `per_field` of the first of as many as there are fields.
        statement: usize,
        /// Whether each field has a statement of its own.
        per_field: bool,
    },
    /// A BATCH request.
    Batch(Box<Batch>),
}

/// What an order says of CQL. Errors: another protocol, which has no statements.
pub fn cql(order: &Order) -> Result<&Cql, OrderError> {
    let other = || OrderError::because("target.protocol", "statements are possible only over cql");
    order.target.cql().ok_or_else(other)
}

/// All statements of an order, and the requests that its operations are.
#[derive(Clone, Debug)]
pub struct Requests {
    /// The statements to be prepared; requests mention them by number.
    pub statements: Vec<Statement>,
    /// The requests of all steps of all kinds.
    requests: Vec<Request>,
    /// Number of the first request of each kind.
    starts: Vec<u32>,
    action: Action,
    compared: Compared,
    /// First key of those from which on a scan may begin with another key's row.
    first_new_key: u64,
}

impl Requests {
    /// Compiles an order's workload. Errors: a workload that is not possible.
    pub fn of(order: &Order) -> Result<Self, OrderError> {
        let ((statements, kinds), fraction, first_new_key) = match &order.work {
            Work::Ycsb(workload) => {
                let compiled = ycsb_statements::requests(order, cql(order)?, workload);
                (compiled, workload.validate_fraction, first_new_key(workload))
            }
            Work::Program(program) => {
                check(program, order)?;
                (compile(order, program)?, program.validate_fraction, u64::MAX)
            }
            Work::Requests(_) => {
                let why =
                    "requests for documents are not possible over cql: choose kind ycsb or program, or protocol http";
                return Err(OrderError::because("work.kind", why));
            }
        };
        let starts = kinds.iter().scan(0, |next, steps| {
            let start = *next;
            *next += steps.len() as u32;
            Some(start)
        });
        Ok(Self {
            statements,
            starts: starts.collect(),
            requests: kinds.into_iter().flatten().collect(),
            action: order.action,
            compared: Compared::new(order.seed, fraction),
            first_new_key,
        })
    }

    /// The number of the request that a step of an operation sends, below `count`.
    #[inline]
    pub fn request_number(&self, operation: &Operation) -> usize {
        self.starts[usize::from(operation.kind)] as usize + usize::from(operation.step)
    }

    /// How many requests there are, of all kinds and steps.
    pub fn count(&self) -> usize {
        self.requests.len()
    }

    /// The request with that number.
    #[inline]
    pub fn request(&self, number: usize) -> &Request {
        &self.requests[number]
    }

    /// The statements of a request; a single one where there is one for each field, as those are alike.
    pub fn of_request(&self, number: usize) -> Vec<&Statement> {
        let numbers = match &self.requests[number] {
            Request::Execute { statement, .. } => std::slice::from_ref(statement),
            Request::Batch(batch) => &batch.statements,
        };
        numbers
            .iter()
            .filter_map(|number| self.statements.get(*number))
            .collect()
    }

    /// What the operation's values follow from.
    #[inline]
    pub fn at(&self, operation: &Operation) -> Execution {
        Execution {
            index: operation.index,
            key: operation.key,
            position: operation.position,
            keys: u64::from(operation.keys),
            version: operation.version(self.action),
            scan_length: operation.scan_length,
            expects: (operation.expects > 0).then_some((operation.field, operation.expects)),
            ..Execution::default()
        }
    }

    /// The first statement of an operation's request; it decides where the request goes.
    #[inline]
    pub fn first(&self, request: &Request, operation: &Operation) -> usize {
        match request {
            Request::Execute {
                statement,
                per_field: false,
            } => *statement,
            Request::Execute { statement, .. } => *statement + operation.field as usize,
            Request::Batch(batch) => batch.statements[0],
        }
    }

    /// Whether the answer to that operation is among those that are compared.
    #[inline]
    pub fn is_compared(&self, operation: &Operation) -> bool {
        self.compared.has(operation) && (operation.scan_length == 0 || operation.key < self.first_new_key)
    }
}

type Compiled = (Vec<Statement>, Vec<Vec<Request>>);

/// Only the statements that operations of the order's action execute are prepared.
fn compile(order: &Order, program: &Program) -> Result<Compiled, OrderError> {
    let mut compiler = Compiler {
        order,
        program,
        statements: Vec::new(),
    };
    let mut kinds = Vec::new();
    match order.action {
        Action::Populate => {
            let keys = BatchKeys::Next { end: program.records };
            kinds.push(compiler.steps("populate", &program.populate, &keys)?);
        }
        Action::Load => {
            for operation in &program.operations {
                let path = format!("operations.{}", operation.name);
                let keys = match &operation.keys {
                    Keys::Drawn { number, each: true } => {
                        let drawn = DrawnKeys::new(number, order.seed);
                        BatchKeys::Each(Box::new(drawn.map_err(|error| error.within(&path))?))
                    }
                    _ => BatchKeys::Next { end: u64::MAX },
                };
                kinds.push(compiler.steps(&path, &operation.steps, &keys)?);
            }
        }
    }
    Ok((compiler.statements, kinds))
}

struct Compiler<'a> {
    order: &'a Order,
    program: &'a Program,
    statements: Vec<Statement>,
}

impl Compiler<'_> {
    fn steps(&mut self, path: &str, steps: &[Step], keys: &BatchKeys) -> Result<Vec<Request>, OrderError> {
        let step = |step| self.step(step, keys).map_err(|error| error.within(path));
        steps.iter().map(step).collect()
    }

    fn step(&mut self, step: &Step, keys: &BatchKeys) -> Result<Request, OrderError> {
        match step {
            Step::Execute { statement } => Ok(Request::Execute {
                statement: self.statement(statement)?,
                per_field: false,
            }),
            Step::Batch {
                statements,
                mode,
                repeat,
                next_key,
                select,
            } => {
                let repeat = Numbers::new(repeat)?.within(1..=MOST_STATEMENTS as i64, "repeat")?;
                let statements: Vec<usize> = statements
                    .iter()
                    .map(|name| self.statement(name))
                    .collect::<Result<_, _>>()?;
                let mut most = (repeat.bounds().1 * statements.len() as i64) as f64;
                let select = match select {
                    Some(_) if !next_key => return Err(OrderError::because("select", "requires next_key")),
                    Some(select) => {
                        let (select, rows) = self.select(select, &statements)?;
                        most *= rows;
                        Some(Box::new(select))
                    }
                    None => None,
                };
                if statements.is_empty() || most > MOST_STATEMENTS as f64 {
                    let read = format!("up to {most:.0} statements in a batch");
                    let allowed = format!("1 to {MOST_STATEMENTS}");
                    return Err(OrderError::new("statements", read, allowed));
                }
                let keys = if *next_key { keys.clone() } else { BatchKeys::Same };
                let batch = Batch {
                    statements,
                    mode: *mode,
                    repeat,
                    random: match keys {
                        // The rows that a `row` of as many means, see `Rows`.
                        BatchKeys::Same => Random::new(self.program.value_seed, Purpose::Row).at(0),
                        BatchKeys::Next { .. } => Random::new(self.program.value_seed, Purpose::Repeat),
                        BatchKeys::Each(_) => repeat_random(self.order.seed),
                    },
                    keys,
                    select,
                };
                match batch.statements.iter().find(|number| !self.statements[**number].writes) {
                    Some(number) => Err(OrderError::new(
                        "statements",
                        &self.statements[*number].name,
                        "only statements that write, in a batch",
                    )),
                    None => Ok(Request::Batch(Box::new(batch))),
                }
            }
        }
    }

    /// Which rows of a partition a batch of statements writes, and how many there can be.
    fn select(&self, select: &Fraction, statements: &[usize]) -> Result<(Select, f64), OrderError> {
        let table = statements
            .first()
            .and_then(|number| self.statements[*number].table.clone());
        let Some(table) = table else {
            return Err(OrderError::because("select", "requires a statement with a table"));
        };
        let of = Numbers::new(&select.of)?.within(0..=i64::MAX, "select.of")?;
        if select.divisor == 0 {
            return Err(OrderError::new("select.divisor", 0, "at least 1"));
        }
        let divisor = select.divisor as f64;
        let share = (of.bounds().1 as f64 / divisor).min(1.0);
        let mean = table.most_rows() as f64 * share;
        // Eight deviations above the mean of a binomial: a draw beyond is less likely than 1 in 10^15.
        let most = (mean + 8.0 * (mean * (1.0 - share)).sqrt()).max(1.0);
        let random = Random::new(self.order.seed, Purpose::Select).at(u64::MAX);
        Ok((
            Select {
                table,
                of,
                divisor,
                random,
            },
            most,
        ))
    }

    /// Place of a statement by name; compiled when it is asked for first.
    fn statement(&mut self, name: &str) -> Result<usize, OrderError> {
        if let Some(number) = self.statements.iter().position(|statement| statement.name == name) {
            return Ok(number);
        }
        let mut named = self
            .program
            .statements
            .iter()
            .filter(|statement| statement.name == name);
        let (Some(statement), None) = (named.next(), named.next()) else {
            let names: Vec<&str> = self
                .program
                .statements
                .iter()
                .map(|statement| statement.name.as_str())
                .collect();
            let allowed = format!("{}, each defined once", names.join(", "));
            return Err(OrderError::new("statement", name, allowed));
        };
        let compiled = self
            .compile(statement)
            .map_err(|error| error.within(format!("statements.{name}")))?;
        self.statements.push(compiled);
        Ok(self.statements.len() - 1)
    }

    fn compile(&self, statement: &steelyard_wire::program::Statement) -> Result<Statement, OrderError> {
        let compiler = ValueCompiler::new(self.order.seed, self.program, statement)?;
        let sources = |field: &str, values: &[steelyard_wire::program::Value]| {
            let source = |(number, value)| {
                let source = compiler.source(value, number as u64);
                source.map_err(|error| error.within(format!("{field}.{number}")))
            };
            values
                .iter()
                .enumerate()
                .map(source)
                .collect::<Result<Vec<ValueSource>, OrderError>>()
        };
        let values = sources("values", &statement.values)?;
        let expect = sources("expect", &statement.expect)?;
        if let Some(why) = expect.iter().find_map(ValueSource::unexpected) {
            let allowed = "values that follow from the key and a version that they carry";
            return Err(OrderError::new("expect", why, allowed));
        }
        if values.iter().any(ValueSource::is_any) {
            return Err(OrderError::because("values.make", "any is allowed only in expect"));
        }
        let is_part = |number: &u16| values.get(usize::from(*number)).is_some_and(|value| !value.is_null());
        if !statement.partition_key.iter().all(is_part) {
            let read = format!("{:?}", statement.partition_key);
            return Err(OrderError::new(
                "partition_key",
                read,
                "places of values that are not null",
            ));
        }
        let pages = statement.max_pages;
        let page_rows = statement.page_rows.unwrap_or(1);
        if pages == 0 || pages > MOST_PAGES || page_rows == 0 || page_rows > MOST_PAGE_ROWS {
            let read = format!("{pages} pages of {page_rows} rows");
            return Err(OrderError::new("max_pages", read, "at least 1 page of at least 1 row"));
        }
        Ok(Statement {
            name: statement.name.clone(),
            cql: statement.cql.clone(),
            values,
            partition_key: statement.partition_key.clone(),
            writes: statement.writes,
            consistency: statement.consistency.clone(),
            conditional: statement.conditional,
            page_rows: statement.page_rows.map(|rows| rows as i32),
            max_pages: pages,
            wants_row: statement.wants_row,
            expect,
            table: compiler.table,
        })
    }
}
