//! A simulated node: its answer to each request. Bytes in, bytes out; the server decides when they are sent.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

use steelyard_cql::request::{self, Parameters, Request};
use steelyard_cql::response::{self, Columns, Detail};
use steelyard_cql::{Compression, CqlError, Header, V3, V4, Value, code};
use steelyard_workload::murmur3;

use crate::catalog::{Catalog, Change};
use crate::membership::{self, Step};
use crate::peer::FORWARDER;
use crate::plan::{Action, Plan};
use crate::queue::Queue;
use crate::refusal::{Refusal, invalid};
use crate::ring::{self, Ring};
use crate::rows;
use crate::shards::Shards;
use crate::statement::{self, Statement};
use crate::system_tables::{self, Question, State};

/// What a connection has said about itself.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub keyspace: Option<String>,
    pub forwarded: bool,
    /// Compression that STARTUP has just agreed on.
    pub agreed: Option<Compression>,
    /// Shard that the connection arrived at, on a sharded node.
    pub shard: u32,
    /// Version of the protocol, and the kinds of events that it has registered for.
    pub registered: Option<(u8, Vec<String>)>,
    /// The node that said here that it joins or leaves.
    pub moves: Option<SocketAddr>,
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
    /// Send it when all members know that this node leaves.
    WhenAllKnow,
}

enum Prepared {
    Plan(Plan),
    /// SELECT from a system table, kept as it was said.
    System(Statement),
}

/// The state of a node.
pub struct Node {
    ring: Ring,
    catalog: Catalog,
    prepared: HashMap<Vec<u8>, Rc<Prepared>>,
    remember: bool,
    pub shards: Option<Shards>,
    /// None: operations are answered at once.
    pub queue: Option<Queue>,
    /// Factor on service times while another node streams.
    pub stream_cost: f64,
    /// When the request that is answered came.
    pub now_ns: u64,
    /// The change of the ring that has begun.
    pub change: Option<membership::Change>,
    /// Statements that made the schema, with their keyspaces: a node that joins repeats them.
    schema: Vec<(String, String)>,
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
            shards: None,
            queue: None,
            stream_cost: 1.0,
            now_ns: 0,
            change: None,
            schema: Vec::new(),
        }
    }

    /// Carries out a statement that made another node's schema.
    pub fn repeat(&mut self, keyspace: &str, text: &str) -> Result<(), Refusal> {
        let keyspace = Some(keyspace).filter(|keyspace| !keyspace.is_empty());
        self.catalog.change(&parse(text)?, keyspace)?;
        self.schema
            .push((keyspace.unwrap_or_default().to_owned(), text.to_owned()));
        Ok(())
    }

    /// Changes the ring, and the law with it, if that is due by now.
    pub fn switch(&mut self, now_ns: u64) -> Option<membership::Change> {
        let due = self
            .change
            .take_if(|change| change.at_ns.is_some_and(|at| at <= now_ns))?;
        due.apply(&mut self.ring);
        if let Some(queue) = &mut self.queue {
            queue.set_nodes(self.ring.size());
        }
        Some(due)
    }

    /// A connection has ended: with it a change whose instant is not set yet.
    pub fn forget(&mut self, session: &Session) {
        let ended = |change: &mut membership::Change| Some(change.address) == session.moves && change.at_ns.is_none();
        if self.change.take_if(ended).is_some() {
            self.set_streaming(false);
        }
    }

    fn set_streaming(&mut self, streams: bool) {
        let factor = if streams { self.stream_cost } else { 1.0 };
        self.queue.iter_mut().for_each(|queue| queue.set_cost(factor));
    }

    fn step(&mut self, session: &mut Session, step: &Step) -> Result<(), Refusal> {
        if !session.forwarded {
            return Err(invalid("only a node that joins or leaves says so"));
        }
        if let Step::Begin(way, address) = step {
            if self.remember {
                return Err(invalid(
                    "the rows of a cluster that remembers them do not move: no node can join or leave it",
                ));
            }
            self.change = Some(membership::Change::begin(
                *way,
                *address,
                &self.ring,
                self.change.as_ref(),
            )?);
            session.moves = Some(*address);
            return Ok(());
        }
        let own = self
            .change
            .as_mut()
            .filter(|change| Some(change.address) == session.moves);
        let change = own.ok_or_else(|| invalid("this node has not said that it joins or leaves"))?;
        match step {
            Step::Switch(in_us) => change.at_ns = Some(self.now_ns.saturating_add(in_us.saturating_mul(1000))),
            Step::Streams(streams) => self.set_streaming(*streams),
            Step::Begin(..) => {}
        }
        Ok(())
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
                        "this node did not prepare that statement",
                        &detail,
                    );
                    return Ok(Delivery::AtOnce);
                };
                match &*prepared {
                    Prepared::Plan(plan) => {
                        self.check_shard(session, plan, parameters)?;
                        self.carry_out(plan, parameters, frame, out)
                    }
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
                self.supported(session, frame, out);
                Ok(Delivery::AtOnce)
            }
            Request::Startup(options) => {
                session.forwarded = options.contains(&("DRIVER_NAME", FORWARDER));
                session.agreed = compression(options)?;
                response::ready(out, version, stream);
                Ok(Delivery::AtOnce)
            }
            Request::Register(kinds) => {
                let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
                session.registered = Some((version, kinds));
                response::ready(out, version, stream);
                Ok(Delivery::AtOnce)
            }
            Request::AuthResponse(_) => Err(Refusal {
                code: code::PROTOCOL,
                message: "no authentication was requested".into(),
            }),
        }
    }

    fn supported(&self, session: &Session, (version, stream): Frame, out: &mut Vec<u8>) {
        let shards = self.shards.as_ref().map(|shards| shards.options(session.shard));
        let shards = shards.unwrap_or_default();
        let values: Vec<(&str, [&str; 1])> = shards.iter().map(|(name, value)| (*name, [value.as_str()])).collect();
        let mut options: Vec<(&str, &[&str])> = vec![
            ("CQL_VERSION", &["3.4.5"]),
            ("COMPRESSION", &["lz4", "snappy"]),
            ("PROTOCOL_VERSIONS", &["3/v3", "4/v4"]),
        ];
        options.extend(values.iter().map(|(name, value)| (*name, &value[..])));
        response::supported(out, version, stream, &options);
    }

    /// A shard refuses what is another's.
    fn check_shard(&self, session: &Session, plan: &Plan, parameters: &Parameters<'_>) -> Result<(), Refusal> {
        let (Some(shards), [key]) = (&self.shards, plan.key_markers.as_slice()) else {
            return Ok(());
        };
        let Some(key) = { parameters.values }.nth(usize::from(*key)).flatten() else {
            return Ok(());
        };
        let owner = shards.of_token(murmur3::token(key));
        if owner == session.shard {
            return Ok(());
        }
        Err(Refusal {
            code: code::SERVER,
            message: format!("shard {owner} owns that key, this connection is at {}", session.shard),
        })
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
            let state = State {
                ring: &self.ring,
                catalog: &self.catalog,
                queue: self.queue.as_ref(),
                schema: &self.schema,
                now_ns: self.now_ns,
            };
            system_tables::select(&question, &state, frame, out)?;
            return Ok(Delivery::AtOnce);
        }
        match statement {
            Statement::Membership(step) => {
                self.step(session, step)?;
                response::void(out, version, stream);
                return Ok(Delivery::AtOnce);
            }
            Statement::Leave => {
                response::void(out, version, stream);
                return Ok(Delivery::WhenAllKnow);
            }
            _ => {}
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
                let within = session.keyspace.clone().unwrap_or_default();
                self.schema.push((within, text.to_owned()));
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
        let (mut applied, mut conditional) = (true, None);
        for statement in statements {
            match statement {
                request::Statement::Text { statement, values } => {
                    let plan = Plan::new(&parse(statement)?, &self.catalog, keyspace)?;
                    applied &= self.write(&plan, &values.collect::<Vec<_>>())?;
                    conditional = conditional.or(plan.is_conditional().then_some(plan.table));
                }
                request::Statement::Prepared { id, values } => {
                    let prepared = self.prepared.get(*id).cloned();
                    let Some(Prepared::Plan(plan)) = prepared.as_deref() else {
                        let detail = Detail::Unprepared { id };
                        response::error(out, frame.0, frame.1, code::UNPREPARED, "not prepared here", &detail);
                        return Ok(Delivery::AtOnce);
                    };
                    applied &= self.write(plan, &values.collect::<Vec<_>>())?;
                    conditional = conditional.or(plan.is_conditional().then_some(plan.table));
                }
            }
        }
        match conditional {
            None => response::void(out, frame.0, frame.1),
            Some(table) => {
                let columns = [rows::applied_column(self.catalog.table(table)?)];
                response::rows(out, frame.0, frame.1, Columns::Named(&columns), 1, |body| {
                    Value::Boolean(applied).put(body);
                });
            }
        }
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
                "the statement has {wanted} markers, but {got} values were sent"
            )));
        }
        match &plan.action {
            Action::Put { .. } | Action::Delete { .. } => {
                rows::write(&mut self.catalog, self.remember, plan, parameters, frame, out)?;
            }
            Action::Get { .. } | Action::Scan { .. } | Action::Count => {
                rows::read(&self.catalog, self.remember, plan, parameters, frame, out)?;
            }
        }
        Ok(Delivery::Queued)
    }

    /// A write as a part of a batch. False: its condition did not hold.
    fn write(&mut self, plan: &Plan, values: &[Option<&[u8]>]) -> Result<bool, Refusal> {
        if self.remember {
            rows::apply(&mut self.catalog, plan, values)
        } else {
            Ok(true)
        }
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

/// The compression that STARTUP asks for.
fn compression(options: &[(&str, &str)]) -> Result<Option<Compression>, Refusal> {
    let Some((_, name)) = options.iter().find(|(option, _)| *option == "COMPRESSION") else {
        return Ok(None);
    };
    let refusal = || Refusal {
        code: code::PROTOCOL,
        message: format!("Unknown compression algorithm: {name}"),
    };
    Compression::from_name(name).map(Some).ok_or_else(refusal)
}

fn malformed(error: &CqlError) -> Refusal {
    Refusal {
        code: code::PROTOCOL,
        message: error.to_string(),
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
