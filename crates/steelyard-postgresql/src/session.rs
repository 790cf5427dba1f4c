//! Sessions: what a connection needs until operations can be sent over it: TLS, a login, the statements.

use std::io::{self, Read, Write};
use std::sync::Arc;

use steelyard_channel::{Channel, ClientTls, ContactError, Deadline, Explanation, Pipe, explain};
use steelyard_protocol::exchange::{Exchange, TIMEOUT, dial};
use steelyard_protocol::{ConnectError, Language, Malformed};

use crate::messages::{Row, ServerError, code, first, put, put_text, put_value, text};
use crate::peer::Peer;
use crate::scram::{MECHANISM, Scram};
use crate::statements::Statements;

/// The variable that holds the password, where the servers want one; it is in no order, so in no store.
pub const PASSWORD_VARIABLE: &str = "STEELYARD_POSTGRESQL_PASSWORD";
/// PostgreSQL's protocol, as errors name it.
pub const POSTGRESQL: Language = Language {
    name: "PostgreSQL's protocol",
    short: "PostgreSQL",
    port: 5432,
};
const OTHER: Malformed = Malformed("an answer to something else than a login or a statement");

/// What every connection needs, apart from an address.
pub struct Access {
    pub(crate) tls: Option<ClientTls>,
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) database: String,
    pub(crate) statements: Arc<Statements>,
}

/// A connection that is logged in, with its statements prepared.
pub(crate) fn open(access: &Access, contact: &str) -> Result<(Pipe, Peer), ConnectError> {
    let mut session = Session::begin(access, contact)?;
    session.prepare(access)?;
    Ok((session.exchange.into_pipe()?, session.peer))
}

/// A TCP connection, under TLS where that is wanted.
fn channel(access: &Access, deadline: &Deadline) -> Result<Channel, ConnectError> {
    let (mut stream, contact) = (dial(deadline)?, deadline.contact());
    let Some(tls) = &access.tls else {
        return Ok(Channel::Plain(stream));
    };
    let (mut question, mut answer) = (Vec::new(), [0]);
    put(None, &mut question, |out| {
        out.extend_from_slice(&code::TLS.to_be_bytes())
    });
    let left = Some(deadline.left()?);
    // Whatever came behind the one byte would not be encrypted.
    let asked: io::Result<()> = stream
        .set_read_timeout(left)
        .and_then(|()| stream.set_write_timeout(left))
        .and_then(|()| stream.write_all(&question))
        .and_then(|()| stream.read_exact(&mut answer));
    asked.map_err(|source| deadline.explain(source))?;
    if answer != [b'S'] {
        let explanation = Explanation {
            problem: "answers without TLS".to_owned(),
            hint: "set ssl = on, ssl_cert_file and ssl_key_file in the servers' settings, or leave out tls",
        };
        return Err(ConnectError::tls(contact, explanation));
    }
    let mut channel = tls.wrap(stream, contact)?;
    let shaken = channel.shake_hands(deadline.at());
    shaken.map_err(|source| match explain(&source, true) {
        Some(explanation) => ConnectError::tls(contact, explanation),
        None => deadline.explain(source).into(),
    })?;
    Ok(channel)
}

/// A connection over which one thing at a time is asked.
pub(crate) struct Session {
    exchange: Exchange,
    pub peer: Peer,
}

impl Session {
    /// A connection that is logged in.
    pub fn begin(access: &Access, contact: &str) -> Result<Self, ConnectError> {
        let deadline = Deadline::new(contact, TIMEOUT);
        let mut session = Self {
            exchange: Exchange::over(channel(access, &deadline)?, deadline),
            peer: Peer::default(),
        };
        session.log_in(access)?;
        Ok(session)
    }

    pub fn contact(&self) -> &str {
        self.exchange.contact()
    }

    /// The one value of the one row that a statement gives; `None`: it is null.
    pub fn ask(&mut self, statement: &str) -> Result<Option<String>, ConnectError> {
        self.exchange.deadline.restart();
        self.say(Some(b'Q'), |out| put_text(statement.as_bytes(), out))?;
        let mut answer = None;
        loop {
            match self.next()? {
                // Names of the columns, and that it has ended.
                (b'T' | b'C', _) => {}
                (b'D', body) => {
                    let value = Row::read(&body).and_then(|mut row| row.value());
                    let value = value.map_err(|error| self.broken(error))?;
                    answer = Some(value.map(|text| String::from_utf8_lossy(text).into_owned()));
                }
                (b'Z', _) => return answer.ok_or_else(|| self.broken(OTHER)),
                _ => return Err(self.broken(OTHER)),
            }
        }
    }

    fn log_in(&mut self, access: &Access) -> Result<(), ConnectError> {
        let (user, database) = (access.user.as_bytes(), access.database.as_bytes());
        let names: [&[u8]; 6] = [b"user", user, b"database", database, b"application_name", b"steelyard"];
        self.say(None, |out| {
            out.extend_from_slice(&code::VERSION.to_be_bytes());
            names.iter().for_each(|name| put_text(name, out));
            out.push(0);
        })?;
        loop {
            match self.next()? {
                (b'R', body) => self.authenticate(&body, access)?,
                // The key for cancelling, and which parts of a newer protocol are not known.
                (b'K' | b'v', _) => {}
                (b'Z', _) => return Ok(()),
                _ => return Err(self.broken(OTHER)),
            }
        }
    }

    /// Prepares all statements, in one go.
    fn prepare(&mut self, access: &Access) -> Result<(), ConnectError> {
        self.exchange.deadline.restart();
        self.exchange.send(&mut access.statements.prepare.clone())?;
        loop {
            match self.next()? {
                (b'1', _) => {}
                (b'Z', _) => return Ok(()),
                _ => return Err(self.broken(OTHER)),
            }
        }
    }

    /// Does what the server asks for, until it is content with who this is.
    fn authenticate(&mut self, body: &[u8], access: &Access) -> Result<(), ConnectError> {
        const DONE: u32 = 0;
        const SASL: u32 = 10;
        let (wanted, mut mechanisms) = self.part(body)?;
        let scram = std::iter::from_fn(|| text(&mut mechanisms)).any(|name| name == MECHANISM);
        match wanted {
            DONE => Ok(()),
            SASL if scram => self.prove(access),
            _ => Err(ConnectError::Refused {
                message: format!(
                    "{} wants another proof of who this is than SCRAM-SHA-256",
                    self.exchange.contact()
                ),
                hint: "set password_encryption = 'scram-sha-256' and the user's password again, and scram-sha-256 in pg_hba.conf",
                is_away: false,
            }),
        }
    }

    fn prove(&mut self, access: &Access) -> Result<(), ConnectError> {
        const CONTINUE: u32 = 11;
        const FINAL: u32 = 12;
        let Some(password) = &access.password else {
            return Err(ConnectError::Refused {
                message: format!("{} requires a password of {}", self.exchange.contact(), access.user),
                hint: "set STEELYARD_POSTGRESQL_PASSWORD in the environment",
                is_away: false,
            });
        };
        let scram = Scram::new().map_err(|error| self.broken(error))?;
        self.say(Some(b'p'), |out| {
            put_text(MECHANISM, out);
            put_value(out, |out| out.extend_from_slice(scram.first().as_bytes()));
        })?;
        let challenge = self.said(CONTINUE)?;
        let answered = scram.answer(&challenge, password);
        let (answer, proof) = answered.map_err(|error| self.broken(error))?;
        self.say(Some(b'p'), |out| out.extend_from_slice(answer.as_bytes()))?;
        if self.said(FINAL)? == proof {
            Ok(())
        } else {
            Err(self.broken(Malformed("the server does not know the password")))
        }
    }

    /// What the server says at that step of a login.
    fn said(&mut self, step: u32) -> Result<String, ConnectError> {
        let (kind, body) = self.next()?;
        match self.part(&body)? {
            (wanted, said) if kind == b'R' && wanted == step => Ok(String::from_utf8_lossy(said).into_owned()),
            _ => Err(self.broken(OTHER)),
        }
    }

    /// The number that a message of a login begins with, and the rest.
    fn part<'a>(&self, body: &'a [u8]) -> Result<(u32, &'a [u8]), ConnectError> {
        let (number, rest) = body.split_first_chunk().ok_or_else(|| self.broken(OTHER))?;
        Ok((u32::from_be_bytes(*number), rest))
    }

    fn say(&mut self, kind: Option<u8>, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), ContactError> {
        let mut out = Vec::new();
        put(kind, &mut out, body);
        self.exchange.send(&mut out)
    }

    /// The next message that is an answer. Errors: the server's, too.
    fn next(&mut self) -> Result<(u8, Vec<u8>), ConnectError> {
        loop {
            let came = first(&self.exchange.input).map_err(|error| self.broken(error))?;
            let Some((message, bytes)) = came else {
                self.exchange.receive()?;
                continue;
            };
            let (kind, body) = (message.kind, message.body.to_vec());
            self.exchange.input.drain(..bytes);
            match kind {
                b'N' | b'A' => {}
                b'S' => self.peer.note(&body),
                b'E' => return Err(self.refused(&ServerError::read(&body))),
                _ => return Ok((kind, body)),
            }
        }
    }

    fn broken(&self, source: Malformed) -> ConnectError {
        ConnectError::Protocol {
            contact: self.exchange.contact().to_owned(),
            language: &POSTGRESQL,
            source,
        }
    }

    /// The server refuses. One that starts is as good as away.
    fn refused(&self, error: &ServerError) -> ConnectError {
        let contact = self.exchange.contact().to_owned();
        let hint = match error.code.as_str() {
            "57P03" => {
                let source = io::Error::other(error.to_string());
                return ContactError::Io { contact, source }.into();
            }
            "28P01" => "is STEELYARD_POSTGRESQL_PASSWORD that of the role?",
            "28000" => "see pg_hba.conf of the server: user, database, address, and whether it wants TLS",
            "3D000" | "42P01" | "42703" => "create the database and its table first; names are those of the order",
            "42501" => "GRANT the missing privilege to the user of the order",
            "53300" => "raise max_connections of the server, or lower connections_per_node",
            _ => "see the documentation of the server",
        };
        ConnectError::Refused {
            message: format!("{contact} refused: {error}"),
            hint,
            is_away: false,
        }
    }
}
