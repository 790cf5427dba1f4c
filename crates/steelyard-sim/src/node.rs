//! What one node answers to one request. Bytes in, bytes out; when they are sent is the server's business.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Bound;
use std::rc::Rc;

use steelyard_cql::request::{self, Parameters, Request};
use steelyard_cql::response::{self, Columns, Detail};
use steelyard_cql::{ColumnType, CqlError, Header, V3, V4, Value, code, murmur3, put_bytes, put_null};

use crate::catalog::{Catalog, Change, Refusal, invalid};
use crate::plan::{Action, Plan};
use crate::ring::{self, Ring};
use crate::statement::{self, Statement, Term};
use crate::system_tables::{self, Question};

/// A driver's name by which a node tells the others a change of the schema; they do not tell it on.
pub const FORWARDER: &str = "steelyard-sim";
/// Rows of an answer, however large the LIMIT.
const MOST_ROWS_ANSWERED: usize = 100_000;

/// What a connection has said about itself.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub keyspace: Option<String>,
    pub forwarded: bool,
}

/// What to do with the answer that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Send it.
    AtOnce,
    /// It is an operation: it takes the node's time.
    Queued,
    /// Send it when all other nodes have carried out the statement too.
    WhenAllAgree { statement: String, truncates: bool },
    /// Send it; tables were emptied.
    AfterTruncate,
}

enum Prepared {
    Plan(Plan),
    /// SELECT from a system table, kept as it was said.
    System(Statement),
}

/// The state of a node, but for its queue.
pub struct Node {
    ring: Ring,
    catalog: Catalog,
    prepared: HashMap<Vec<u8>, Rc<Prepared>>,
    remember: bool,
}

type Frame = (u8, i16);

impl Node {
    /// Without `remember`, writes are forgotten and every key exists, with a made-up row.
    pub fn new(ring: Ring, remember: bool) -> Self {
        Self {
            ring,
            catalog: Catalog::default(),
            prepared: HashMap::new(),
            remember,
        }
    }

    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Append the answer to a request to `out`.
    pub fn answer(&mut self, session: &mut Session, header: &Header, body: &[u8], out: &mut Vec<u8>) -> Delivery {
        if header.version != V3 && header.version != V4 {
            let message = format!(
                "Invalid or unsupported protocol version ({}); supported versions are (3/v3, 4/v4)",
                header.version
            );
            response::error(out, V4, header.stream, code::PROTOCOL, &message, &Detail::None);
            return Delivery::AtOnce;
        }
        let frame = (header.version, header.stream);
        let start = out.len();
        let outcome = match Request::decode(header, body) {
            Ok(request) => self.request(session, frame, &request, out),
            Err(error) => Err(malformed(&error)),
        };
        outcome.unwrap_or_else(|refusal| {
            out.truncate(start);
            put_error(out, frame, &refusal);
            Delivery::AtOnce
        })
    }

    fn request(
        &mut self,
        session: &mut Session,
        frame: Frame,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Delivery, Refusal> {
        let (version, stream) = frame;
        match request {
            Request::Execute { id, parameters } => {
                let Some(prepared) = self.prepared.get(*id).cloned() else {
                    let detail = Detail::Unprepared { id };
                    response::error(
                        out,
                        version,
                        stream,
                        code::UNPREPARED,
                        "this node did not prepare that",
                        &detail,
                    );
                    return Ok(Delivery::AtOnce);
                };
                match &*prepared {
                    Prepared::Plan(plan) => self.carry_out(plan, parameters, frame, out),
                    Prepared::System(statement) => self.statement(session, statement, "", parameters, frame, out),
                }
            }
            Request::Query {
                statement: text,
                parameters,
            } => {
                let statement = parse(text)?;
                self.statement(session, &statement, text, parameters, frame, out)
            }
            Request::Prepare { statement } => self.prepare(session, statement, frame, out),
            Request::Batch { statements, .. } => self.batch(session, statements, frame, out),
            Request::Options => {
                let options: [(&str, &[&str]); 3] = [
                    ("CQL_VERSION", &["3.4.5"]),
                    ("COMPRESSION", &[]),
                    ("PROTOCOL_VERSIONS", &["3/v3", "4/v4"]),
                ];
                response::supported(out, version, stream, &options);
                Ok(Delivery::AtOnce)
            }
            Request::Startup(options) => {
                session.forwarded = options.contains(&("DRIVER_NAME", FORWARDER));
                response::ready(out, version, stream);
                Ok(Delivery::AtOnce)
            }
            // Membership and schema of a simulated cluster never change behind a driver's back: there are no events.
            Request::Register(_) => {
                response::ready(out, version, stream);
                Ok(Delivery::AtOnce)
            }
            Request::AuthResponse(_) => Err(Refusal {
                code: code::PROTOCOL,
                message: "nobody asked who you are".into(),
            }),
        }
    }

    fn statement(
        &mut self,
        session: &mut Session,
        statement: &Statement,
        text: &str,
        parameters: &Parameters<'_>,
        frame: Frame,
        out: &mut Vec<u8>,
    ) -> Result<Delivery, Refusal> {
        let (version, stream) = frame;
        if statement::concerns_all_nodes(statement) {
            return self.change(session, statement, text, frame, out);
        }
        if let Statement::Use(keyspace) = statement {
            if !self.catalog.has_keyspace(keyspace) && !keyspace.starts_with("system") {
                return Err(invalid(format!("Keyspace '{keyspace}' does not exist")));
            }
            session.keyspace = Some(keyspace.clone());
            response::set_keyspace(out, version, stream, keyspace);
            return Ok(Delivery::AtOnce);
        }
        if let Some(question) = question(statement, session).filter(Question::is_system) {
            system_tables::select(&question, &self.ring, &self.catalog, frame, out)?;
            return Ok(Delivery::AtOnce);
        }
        let plan = Plan::new(statement, &self.catalog, session.keyspace.as_deref())?;
        // Whoever did not prepare needs the names of the columns.
        self.carry_out(
            &plan,
            &Parameters {
                skip_metadata: false,
                ..*parameters
            },
            frame,
            out,
        )
    }

    fn change(
        &mut self,
        session: &Session,
        statement: &Statement,
        text: &str,
        frame: Frame,
        out: &mut Vec<u8>,
    ) -> Result<Delivery, Refusal> {
        let (version, stream) = frame;
        let change = self.catalog.change(statement, session.keyspace.as_deref())?;
        match &change {
            Change::Schema(what, keyspace, table) => {
                response::schema_change(out, version, stream, what, keyspace, table.as_deref());
            }
            Change::Nothing | Change::Truncated => response::void(out, version, stream),
        }
        let truncates = change == Change::Truncated;
        if !session.forwarded && self.ring.size() > 1 {
            return Ok(Delivery::WhenAllAgree {
                statement: text.to_owned(),
                truncates,
            });
        }
        Ok(if truncates {
            Delivery::AfterTruncate
        } else {
            Delivery::AtOnce
        })
    }

    fn prepare(&mut self, session: &Session, text: &str, frame: Frame, out: &mut Vec<u8>) -> Result<Delivery, Refusal> {
        let (version, stream) = frame;
        let statement = parse(text)?;
        let id = ring::uuid(&format!("{}/{text}", session.keyspace.as_deref().unwrap_or_default())).to_vec();
        if question(&statement, session).is_some_and(|question| question.is_system()) {
            // The columns come with the rows.
            response::prepared(out, version, stream, &id, &[], &[], &[]);
            self.prepared.insert(id, Rc::new(Prepared::System(statement)));
            return Ok(Delivery::AtOnce);
        }
        let plan = Plan::new(&statement, &self.catalog, session.keyspace.as_deref())?;
        response::prepared(
            out,
            version,
            stream,
            &id,
            &plan.markers,
            &plan.key_markers,
            &plan.columns,
        );
        self.prepared.insert(id, Rc::new(Prepared::Plan(plan)));
        Ok(Delivery::AtOnce)
    }

    fn batch(
        &mut self,
        session: &Session,
        statements: &[request::Statement<'_>],
        frame: Frame,
        out: &mut Vec<u8>,
    ) -> Result<Delivery, Refusal> {
        let keyspace = session.keyspace.as_deref();
        for statement in statements {
            match statement {
                request::Statement::Text { statement, values } => {
                    let plan = Plan::new(&parse(statement)?, &self.catalog, keyspace)?;
                    self.write(&plan, &values.collect::<Vec<_>>())?;
                }
                request::Statement::Prepared { id, values } => {
                    let prepared = self.prepared.get(*id).cloned();
                    let Some(Prepared::Plan(plan)) = prepared.as_deref() else {
                        return Err(invalid("a statement of the batch is not prepared on this node"));
                    };
                    self.write(plan, &values.collect::<Vec<_>>())?;
                }
            }
        }
        response::void(out, frame.0, frame.1);
        Ok(Delivery::Queued)
    }

    fn carry_out(
        &mut self,
        plan: &Plan,
        parameters: &Parameters<'_>,
        frame: Frame,
        out: &mut Vec<u8>,
    ) -> Result<Delivery, Refusal> {
        if plan.markers.len() != parameters.values.size_hint().0 {
            let (wanted, got) = (plan.markers.len(), parameters.values.size_hint().0);
            return Err(invalid(format!(
                "the statement has {wanted} markers, but {got} values came"
            )));
        }
        match &plan.action {
            Action::Put { .. } | Action::Delete { .. } => {
                if self.remember {
                    self.write(plan, &parameters.values.collect::<Vec<_>>())?;
                }
                response::void(out, frame.0, frame.1);
            }
            Action::Get { .. } | Action::Scan { .. } | Action::Count => self.read(plan, parameters, frame, out)?,
        }
        Ok(Delivery::Queued)
    }

    fn write(&mut self, plan: &Plan, values: &[Option<&[u8]>]) -> Result<(), Refusal> {
        if !self.remember {
            return Ok(());
        }
        let table = self.catalog.table_mut(plan.table)?;
        let kinds: Vec<ColumnType> = table.columns.iter().map(|column| column.kind.clone()).collect();
        match &plan.action {
            Action::Put { key, cells } => {
                let key = required(value(key, &kinds[table.key], values)?)?;
                let mut put = Vec::with_capacity(cells.len());
                for (column, term) in cells {
                    put.push((
                        *column,
                        value(term, &kinds[*column], values)?.map(|bytes| Box::from(&*bytes)),
                    ));
                }
                table.put(&key, put.into_iter())
            }
            Action::Delete { key } => {
                let key = required(value(key, &kinds[table.key], values)?)?;
                table.delete(&key);
                Ok(())
            }
            _ => Err(invalid("only writes can be in a batch")),
        }
    }

    fn read(&self, plan: &Plan, parameters: &Parameters<'_>, frame: Frame, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let table = self.catalog.table(plan.table)?;
        let columns = if parameters.skip_metadata {
            Columns::Counted(plan.columns.len())
        } else {
            Columns::Named(&plan.columns)
        };
        let values: Vec<Option<&[u8]>> = parameters.values.collect();
        let key_kind = &table.columns[table.key].kind;
        let (version, stream) = frame;
        let put_row = |body: &mut Vec<u8>, key: &[u8], row: &[Option<Box<[u8]>>]| {
            for at in &plan.selected {
                let cell = if *at == table.key {
                    Some(key)
                } else {
                    row[*at].as_deref()
                };
                match cell {
                    Some(cell) => put_bytes(body, cell),
                    None => put_null(body),
                }
            }
        };
        match &plan.action {
            Action::Get { key } => {
                let key = required(value(key, key_kind, &values)?)?;
                if self.remember {
                    let row = table.get(&key);
                    response::rows(out, version, stream, columns, u32::from(row.is_some()), |body| {
                        if let Some(row) = row {
                            put_row(body, &key, row);
                        }
                    });
                } else {
                    response::rows(out, version, stream, columns, 1, |body| plan.made_up.put(&key, body));
                }
            }
            Action::Scan { from, limit } => {
                let from = from
                    .as_ref()
                    .map(|from| value(from, key_kind, &values).and_then(required))
                    .transpose()?;
                let limit = limit
                    .as_ref()
                    .map(|limit| limit_of(limit, &values))
                    .transpose()?
                    .unwrap_or(MOST_ROWS_ANSWERED);
                let limit = limit.min(MOST_ROWS_ANSWERED);
                if self.remember {
                    let first = from.map_or(Bound::Unbounded, |key| {
                        Bound::Included((murmur3::token(&key), Box::default()))
                    });
                    let rows: Vec<_> = table.rows.range((first, Bound::Unbounded)).take(limit).collect();
                    response::rows(out, version, stream, columns, count_of(rows.len()), |body| {
                        rows.iter().for_each(|((_, key), row)| put_row(body, key, row));
                    });
                } else {
                    // Without a beginning nothing says how many there should be.
                    let count = if from.is_some() { limit } else { 0 };
                    let key = from.unwrap_or_default();
                    response::rows(out, version, stream, columns, count_of(count), |body| {
                        (0..count).for_each(|_| plan.made_up.put(&key, body));
                    });
                }
            }
            _ => {
                let count = Value::BigInt(i64::from(count_of(table.rows.len())));
                response::rows(out, version, stream, columns, 1, |body| count.put(body));
            }
        }
        Ok(())
    }
}

/// A SELECT as a question to a system table.
fn question<'a>(statement: &'a Statement, session: &'a Session) -> Option<Question<'a>> {
    let Statement::Select {
        name,
        projection,
        equal,
        ..
    } = statement
    else {
        return None;
    };
    Some(Question {
        name,
        default_keyspace: session.keyspace.as_deref(),
        projection,
        equal,
    })
}

fn parse(text: &str) -> Result<Statement, Refusal> {
    statement::parse(text).map_err(|message| Refusal {
        code: code::SYNTAX,
        message: format!("{message} in {text:.200}"),
    })
}

/// A refusal as a frame.
pub fn put_error(out: &mut Vec<u8>, (version, stream): Frame, refusal: &Refusal) {
    let detail = if refusal.code == code::ALREADY_EXISTS {
        let (keyspace, rest) = refusal.message.split_once(' ').unwrap_or_default();
        Detail::AlreadyExists {
            keyspace,
            table: rest.split(' ').next().unwrap_or_default(),
        }
    } else {
        Detail::None
    };
    response::error(out, version, stream, refusal.code, &refusal.message, &detail);
}

fn malformed(error: &CqlError) -> Refusal {
    Refusal {
        code: code::PROTOCOL,
        message: error.to_string(),
    }
}

fn required(value: Option<Cow<'_, [u8]>>) -> Result<Cow<'_, [u8]>, Refusal> {
    value.ok_or_else(|| invalid("a key cannot be null"))
}

/// The bytes that a term stands for in a column of type `kind`.
fn value<'a>(term: &'a Term, kind: &ColumnType, values: &[Option<&'a [u8]>]) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
    match (term, kind) {
        (Term::Marker(position), _) => Ok(values.get(*position).copied().flatten().map(Cow::Borrowed)),
        (Term::Text(text), ColumnType::Text | ColumnType::Ascii) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
        (Term::Number(number), ColumnType::BigInt) => Ok(Some(Cow::Owned(number.to_be_bytes().to_vec()))),
        (Term::Number(number), ColumnType::Int) => {
            let number = i32::try_from(*number).map_err(|_| invalid(format!("{number} is no int")))?;
            Ok(Some(Cow::Owned(number.to_be_bytes().to_vec())))
        }
        (term, kind) => Err(invalid(format!("{term:?} does not fit a column of type {kind:?}"))),
    }
}

fn limit_of(term: &Term, values: &[Option<&[u8]>]) -> Result<usize, Refusal> {
    let bytes = required(value(term, &ColumnType::Int, values)?)?;
    let number = bytes.as_ref().try_into().map(i32::from_be_bytes);
    let number = number
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| invalid("LIMIT must be strictly positive"))?;
    usize::try_from(number).map_err(|_| invalid("LIMIT must be strictly positive"))
}

fn count_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
