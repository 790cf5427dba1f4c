//! A blocking connection over the native protocol: handshake, single statements, preparation. The load engine starts on
//! it and then takes its socket.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use steelyard_cql::response::{Response, Rows};
use steelyard_cql::{Consistency, CqlError, Frame, HEADER_LENGTH, Header, Value, request};
use thiserror::Error;

/// Variables that hold the name and password, where a cluster wants them; they are in no order, so in no store.
pub const USER_VARIABLE: &str = "STEELYARD_CQL_USER";
pub const PASSWORD_VARIABLE: &str = "STEELYARD_CQL_PASSWORD";

const READ_CHUNK_BYTES: usize = 16 << 10;

/// Why a contact could not be used or asked.
#[derive(Debug, Error)]
pub enum LinkError {
    #[error("{contact} is no address:port ({reason})")]
    Address { contact: String, reason: String },
    #[error("{contact} {}: {source}", connect_verb(source))]
    Connect { contact: String, source: std::io::Error },
    #[error("{contact} closed the connection")]
    Closed { contact: String },
    #[error("{contact} did not answer within {timeout_s} s")]
    Timeout { contact: String, timeout_s: f64 },
    #[error("{contact}: {source}")]
    Io { contact: String, source: std::io::Error },
    #[error("{contact} does not speak the native protocol version 4: {source}")]
    Protocol { contact: String, source: CqlError },
    #[error("{contact} answered {what} where {wanted} was due")]
    Unexpected {
        contact: String,
        what: String,
        wanted: &'static str,
    },
    #[error("{contact} wants a user and a password ({authenticator}); set {USER_VARIABLE} and {PASSWORD_VARIABLE}")]
    NoCredentials { contact: String, authenticator: String },
    #[error("{contact} refused: {message} (error {code:#06x})")]
    Server {
        contact: String,
        code: i32,
        message: String,
    },
}

fn connect_verb(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::ConnectionRefused => "refused",
        _ => "cannot be reached",
    }
}

/// User and password for the server's password authenticator.
#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl Credentials {
    /// Those of the environment, if a user is named there.
    pub fn from_environment() -> Option<Self> {
        let user = std::env::var(USER_VARIABLE).ok()?;
        Some(Self {
            user,
            password: std::env::var(PASSWORD_VARIABLE).unwrap_or_default(),
        })
    }
}

/// One connection, past its handshake.
pub struct Link {
    contact: String,
    stream: TcpStream,
    timeout: Duration,
    out: Vec<u8>,
    input: Vec<u8>,
    /// Bytes of `input` that belong to frames already handed out.
    read: usize,
}

impl Link {
    /// Connects and shakes hands. Each wait, for the connection and for each answer, takes `timeout` at most.
    pub fn open(contact: &str, credentials: Option<&Credentials>, timeout: Duration) -> Result<Self, LinkError> {
        let stream = connect(contact, timeout)?;
        let io = |source| LinkError::Io {
            contact: contact.to_owned(),
            source,
        };
        stream.set_nodelay(true).map_err(io)?;
        stream.set_write_timeout(Some(timeout)).map_err(io)?;
        let contact = contact.to_owned();
        let mut link = Self {
            contact,
            stream,
            timeout,
            out: Vec::new(),
            input: Vec::new(),
            read: 0,
        };
        link.shake_hands(credentials)?;
        Ok(link)
    }

    pub fn contact(&self) -> &str {
        &self.contact
    }

    fn shake_hands(&mut self, credentials: Option<&Credentials>) -> Result<(), LinkError> {
        request::startup(&mut self.out, 0, "steelyard-agent", env!("CARGO_PKG_VERSION"));
        self.send()?;
        let contact = self.contact.clone();
        let authenticator = match self.receive()? {
            Response::Ready => return Ok(()),
            Response::Authenticate(class) => class.to_owned(),
            other => return Err(unexpected(contact, format!("{other:?}"), "READY")),
        };
        let Some(credentials) = credentials else {
            return Err(LinkError::NoCredentials {
                contact: self.contact.clone(),
                authenticator,
            });
        };
        request::auth_response_plain(&mut self.out, 0, &credentials.user, &credentials.password);
        self.send()?;
        match self.receive()? {
            Response::AuthSuccess => Ok(()),
            other => Err(unexpected(contact, format!("{other:?}"), "AUTH_SUCCESS")),
        }
    }

    /// Executes one statement; `None` where the answer has no rows. Errors: `LinkError::Server` if the server refuses.
    pub fn query(&mut self, statement: &str, consistency: Consistency) -> Result<Option<Rows<'_>>, LinkError> {
        request::query(&mut self.out, 0, statement, consistency);
        self.send()?;
        match self.receive()? {
            Response::Rows(rows) => Ok(Some(rows)),
            _ => Ok(None),
        }
    }

    /// Executes one statement at consistency ONE and hands each row to `each` by its columns' names.
    pub fn rows(&mut self, statement: &str, mut each: impl FnMut(&BTreeMap<&str, Value<'_>>)) -> Result<(), LinkError> {
        let contact = self.contact.clone();
        let Some(mut rows) = self.query(statement, Consistency::One)? else {
            return Ok(());
        };
        for _ in 0..rows.count {
            let values = rows.row().map_err(|source| LinkError::Protocol {
                contact: contact.clone(),
                source,
            })?;
            each(
                &rows
                    .columns
                    .iter()
                    .map(|column| column.name.as_str())
                    .zip(values)
                    .collect(),
            );
        }
        Ok(())
    }

    /// Prepares statements, all in one go; their identifiers in the same order.
    pub fn prepare(&mut self, statements: &[String]) -> Result<Vec<Vec<u8>>, LinkError> {
        for (stream, statement) in statements.iter().enumerate() {
            request::prepare(&mut self.out, stream as i16, statement);
        }
        self.send()?;
        let mut ids = vec![Vec::new(); statements.len()];
        for _ in statements {
            let contact = self.contact.clone();
            let (stream, prepared) = match self.receive_any()? {
                (header, Response::Prepared(prepared)) => (header.stream, prepared),
                (_, other) => return Err(unexpected(contact, format!("{other:?}"), "a prepared statement")),
            };
            if let Some(id) = usize::try_from(stream).ok().and_then(|stream| ids.get_mut(stream)) {
                *id = prepared.id;
            }
        }
        Ok(ids)
    }

    /// The socket, non-blocking; nothing may be outstanding.
    pub fn into_stream(self) -> Result<TcpStream, LinkError> {
        self.stream.set_nonblocking(true).map_err(|source| LinkError::Io {
            contact: self.contact,
            source,
        })?;
        Ok(self.stream)
    }

    fn send(&mut self) -> Result<(), LinkError> {
        let sent = self.stream.write_all(&self.out);
        self.out.clear();
        sent.map_err(|source| self.io_error(source))
    }

    /// The next answer; the server's errors become `LinkError::Server`.
    fn receive(&mut self) -> Result<Response<'_>, LinkError> {
        self.receive_any().map(|(_, response)| response)
    }

    fn receive_any(&mut self) -> Result<(Header, Response<'_>), LinkError> {
        let deadline = Instant::now() + self.timeout;
        let header = loop {
            let header = self.next_frame(deadline)?;
            // Events, which have stream -1, were not asked for; pass over them.
            if header.stream >= 0 {
                break header;
            }
        };
        let contact = &self.contact;
        let body = &self.input[self.read - header.body_length as usize..self.read];
        match Response::decode(&header, body) {
            Ok(Response::Error(error)) => Err(LinkError::Server {
                contact: contact.clone(),
                code: error.code,
                message: error.message.to_owned(),
            }),
            Ok(response) => Ok((header, response)),
            Err(source) => Err(LinkError::Protocol {
                contact: contact.clone(),
                source,
            }),
        }
    }

    /// Reads until one more whole frame is in `input`, ending at `read`.
    fn next_frame(&mut self, deadline: Instant) -> Result<Header, LinkError> {
        self.input.drain(..self.read);
        self.read = 0;
        loop {
            let header = Frame::header(&self.input).map_err(|source| self.protocol_error(source))?;
            if let Some(header) = header.filter(|header| header.frame_length() <= self.input.len()) {
                if !header.response {
                    let what = format!("{:02x?}", &self.input[..HEADER_LENGTH]);
                    return Err(unexpected(self.contact.clone(), what, "a response"));
                }
                self.read = header.frame_length();
                return Ok(header);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.timed_out());
            }
            self.stream
                .set_read_timeout(Some(left))
                .map_err(|source| self.io_error(source))?;
            let start = self.input.len();
            self.input.resize(start + READ_CHUNK_BYTES, 0);
            let got = self.stream.read(&mut self.input[start..]);
            self.input.truncate(start + *got.as_ref().unwrap_or(&0));
            match got {
                Ok(0) => {
                    return Err(LinkError::Closed {
                        contact: self.contact.clone(),
                    });
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.io_error(error)),
            }
        }
    }

    fn timed_out(&self) -> LinkError {
        LinkError::Timeout {
            contact: self.contact.clone(),
            timeout_s: self.timeout.as_secs_f64(),
        }
    }

    fn io_error(&self, source: std::io::Error) -> LinkError {
        match source.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => self.timed_out(),
            _ => LinkError::Io {
                contact: self.contact.clone(),
                source,
            },
        }
    }

    fn protocol_error(&self, source: CqlError) -> LinkError {
        LinkError::Protocol {
            contact: self.contact.clone(),
            source,
        }
    }
}

pub(crate) fn unexpected(contact: String, what: String, wanted: &'static str) -> LinkError {
    LinkError::Unexpected { contact, what, wanted }
}

fn connect(contact: &str, timeout: Duration) -> Result<TcpStream, LinkError> {
    let bad = |reason: String| LinkError::Address {
        contact: contact.to_owned(),
        reason,
    };
    let addresses: Vec<SocketAddr> = contact
        .to_socket_addrs()
        .map_err(|error| bad(error.to_string()))?
        .collect();
    let mut last = None;
    for address in &addresses {
        match TcpStream::connect_timeout(address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(source) => Err(LinkError::Connect {
            contact: contact.to_owned(),
            source,
        }),
        None => Err(bad("it stands for no address".to_owned())),
    }
}
