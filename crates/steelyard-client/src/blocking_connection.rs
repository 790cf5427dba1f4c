//! Blocking connections over the native protocol: handshake, single statements, preparation, events. Load starts on one and
//! then takes its socket.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use steelyard_channel::{
    Channel, ClientTls, Pipe, TlsError, answered_in_tls, explain, looks_like_tls, under_tls, without_tls,
};
use steelyard_cql::response::{Response, Rows};
use steelyard_cql::{Compression, Consistency, CqlError, Frame, HEADER_LENGTH, Header, Value, request};
use steelyard_wire::{Order, Tls, Verify};

use crate::error::{ConnectionError, PASSWORD_VARIABLE, USER_VARIABLE};
use crate::shards::Sharding;

/// Longest wait for a connection, and for each answer of the handshake, of a connection for load.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// User and password for the server's password authenticator.
#[derive(Clone)]
pub struct Credentials {
    /// Name of the user.
    pub user: String,
    /// The password, in clear.
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

/// What every connection to a cluster needs besides an address. The default is none of it.
#[derive(Clone, Default)]
pub struct Access {
    /// Credentials, where the server wants them.
    pub credentials: Option<Credentials>,
    /// Encryption; `None`: none.
    pub tls: Option<ClientTls>,
    /// Compression of frames; `None`: none.
    pub compression: Option<Compression>,
}

impl Access {
    /// What an order says, with the environment's name and password. Errors: files of TLS that are not as they should be.
    pub fn of_order(order: &Order) -> Result<Self, TlsError> {
        Ok(Self {
            credentials: Credentials::from_environment(),
            tls: order.tls.as_ref().map(ClientTls::new).transpose()?,
            compression: order.compression.map(|kind| match kind {
                steelyard_wire::Compression::Lz4 => Compression::Lz4,
                steelyard_wire::Compression::Snappy => Compression::Snappy,
            }),
        })
    }
}

/// One connection, past its handshake.
pub struct BlockingConnection {
    contact: String,
    pipe: Pipe,
    timeout: Duration,
    /// Whether TLS has its keys.
    shaken: bool,
    out: Vec<u8>,
    input: Vec<u8>,
    /// Bytes of `input` that belong to frames already handed out.
    read: usize,
    /// The shard that it leads to, of a node that has shards.
    shard: Option<(u32, Sharding)>,
    /// Whether events came while an answer was waited for.
    events: bool,
}

impl BlockingConnection {
    /// Connects and carries out the handshake. Each wait, for the connection and for each answer, takes `timeout` at most.
    pub fn open(contact: &str, access: &Access, timeout: Duration) -> Result<Self, ConnectionError> {
        let stream = connect(contact, timeout)?;
        Self::over(stream, contact, access, timeout)
    }

    /// Opens a connection for load: at that shard of the node, if one is given. `salt` spreads the local ports that are tried.
    /// Where the shard's own port cannot be reached, the connection may lead to any shard.
    pub(crate) fn open_for_load(
        contact: &str,
        shard: Option<(u32, Sharding)>,
        salt: u32,
        access: &Access,
    ) -> Result<Self, ConnectionError> {
        let port = shard.and_then(|(_, sharding)| sharding.port(access.tls.is_some()));
        if let (Some((shard, sharding)), Some(port)) = (shard, port) {
            for mut address in addresses(contact)? {
                address.set_port(port);
                if let Ok(stream) = sharding.connect(address, shard, salt, CONNECT_TIMEOUT) {
                    return Self::over(stream, contact, access, CONNECT_TIMEOUT);
                }
            }
        }
        Self::open(contact, access, CONNECT_TIMEOUT)
    }

    fn over(stream: TcpStream, contact: &str, access: &Access, timeout: Duration) -> Result<Self, ConnectionError> {
        prepare(&stream, timeout).map_err(|source| ConnectionError::Io {
            contact: contact.to_owned(),
            source,
        })?;
        let mut channel = match &access.tls {
            Some(tls) => tls.wrap(stream, contact)?,
            None => Channel::Plain(stream),
        };
        let shaken = channel.shake_hands();
        let mut connection = Self::through(channel, contact, timeout);
        let begun = match shaken {
            Ok(()) => {
                connection.shaken = true;
                connection.start(access)
            }
            Err(source) => Err(connection.io_error(source)),
        };
        begun.map_err(|error| {
            if error.is_hung_up() {
                told_apart(error, contact, access, timeout)
            } else {
                error
            }
        })?;
        Ok(connection)
    }

    /// A connection over which nothing was said yet.
    fn through(channel: Channel, contact: &str, timeout: Duration) -> Self {
        Self {
            contact: contact.to_owned(),
            pipe: Pipe::new(channel),
            timeout,
            shaken: false,
            out: Vec::new(),
            input: Vec::new(),
            read: 0,
            shard: None,
            events: false,
        }
    }

    /// The contact (`address:port`) that was asked for.
    pub fn contact(&self) -> &str {
        &self.contact
    }

    /// The shard that it leads to, of a node that has shards.
    pub(crate) fn shard(&self) -> Option<(u32, Sharding)> {
        self.shard
    }

    /// The handshake of the native protocol.
    fn start(&mut self, access: &Access) -> Result<(), ConnectionError> {
        self.ask_options(access.compression)?;
        let version = env!("CARGO_PKG_VERSION");
        request::startup(&mut self.out, 0, "steelyard-agent", version, access.compression);
        self.send()?;
        if let Some(kind) = access.compression {
            self.pipe.compress(kind);
        }
        let contact = self.contact.clone();
        let authenticator = match self.receive()? {
            Response::Ready => return Ok(()),
            Response::Authenticate(class) => class.to_owned(),
            other => return Err(ConnectionError::unexpected(contact, format!("{other:?}"), "READY")),
        };
        let Some(credentials) = &access.credentials else {
            return Err(ConnectionError::NoCredentials {
                contact: self.contact.clone(),
                authenticator,
            });
        };
        request::auth_response_plain(&mut self.out, 0, &credentials.user, &credentials.password);
        self.send()?;
        match self.receive()? {
            Response::AuthSuccess => Ok(()),
            other => Err(ConnectionError::unexpected(
                contact,
                format!("{other:?}"),
                "AUTH_SUCCESS",
            )),
        }
    }

    /// Asks what the node supports: the compression that is wanted, and shards.
    fn ask_options(&mut self, wanted: Option<Compression>) -> Result<(), ConnectionError> {
        request::options(&mut self.out, 0);
        self.send()?;
        let contact = self.contact.clone();
        let options = match self.receive()? {
            Response::Supported(options) => options,
            other => return Err(ConnectionError::unexpected(contact, format!("{other:?}"), "SUPPORTED")),
        };
        let compressions = options.iter().find(|(name, _)| *name == "COMPRESSION");
        let offered: Vec<&str> = compressions.map(|(_, names)| names.clone()).unwrap_or_default();
        let shard = Sharding::announced(&options);
        let offers = |wanted: &Compression| offered.iter().any(|name| Compression::from_name(name) == Some(*wanted));
        if let Some(wanted) = wanted.filter(|wanted| !offers(wanted)) {
            let offered = if offered.is_empty() {
                "none".to_owned()
            } else {
                offered.join(", ")
            };
            let asked = wanted.name();
            return Err(ConnectionError::NoCompression {
                contact,
                asked,
                offered,
            });
        }
        self.shard = shard;
        Ok(())
    }

    /// Asks for events: `TOPOLOGY_CHANGE`, `STATUS_CHANGE`, `SCHEMA_CHANGE`.
    pub(crate) fn register(&mut self, events: &[&str]) -> Result<(), ConnectionError> {
        request::register(&mut self.out, 0, events);
        self.send()?;
        self.receive().map(|_| ())
    }

    /// Whether an event came within `wait`. Errors: the connection is lost.
    pub(crate) fn event_within(&mut self, wait: Duration) -> Result<bool, ConnectionError> {
        if std::mem::take(&mut self.events) {
            return Ok(true);
        }
        match self.next_frame(Instant::now() + wait) {
            Ok(header) => Ok(header.stream < 0),
            Err(ConnectionError::Timeout { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Executes one statement; `None` where the answer has no rows. Errors: `ConnectionError::Server` if the server refuses.
    pub fn query(&mut self, statement: &str, consistency: Consistency) -> Result<Option<Rows<'_>>, ConnectionError> {
        request::query(&mut self.out, 0, statement, consistency);
        self.send()?;
        match self.receive()? {
            Response::Rows(rows) => Ok(Some(rows)),
            _ => Ok(None),
        }
    }

    /// Executes one statement at consistency ONE and hands each row to `each` by its columns' names.
    pub fn rows(
        &mut self,
        statement: &str,
        mut each: impl FnMut(&BTreeMap<&str, Value<'_>>),
    ) -> Result<(), ConnectionError> {
        let contact = self.contact.clone();
        let Some(mut rows) = self.query(statement, Consistency::One)? else {
            return Ok(());
        };
        if rows.columns.is_empty() {
            return Err(ConnectionError::unexpected(
                contact,
                "rows without columns".to_owned(),
                "their names",
            ));
        }
        for _ in 0..rows.count {
            let values = rows.row().map_err(|source| ConnectionError::Protocol {
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
    pub fn prepare(&mut self, statements: &[String]) -> Result<Vec<Vec<u8>>, ConnectionError> {
        for (stream, statement) in statements.iter().enumerate() {
            request::prepare(&mut self.out, stream as i16, statement);
        }
        self.send()?;
        let mut ids = vec![Vec::new(); statements.len()];
        for _ in statements {
            let contact = self.contact.clone();
            let (stream, prepared) = match self.receive_any()? {
                (header, Response::Prepared(prepared)) => (header.stream, prepared),
                (_, other) => {
                    return Err(ConnectionError::unexpected(
                        contact,
                        format!("{other:?}"),
                        "a prepared statement",
                    ));
                }
            };
            if let Some(id) = usize::try_from(stream).ok().and_then(|stream| ids.get_mut(stream)) {
                *id = prepared.id;
            }
        }
        Ok(ids)
    }

    /// The connection, non-blocking; nothing may be outstanding.
    pub(crate) fn into_pipe(self) -> Result<Pipe, ConnectionError> {
        let non_blocking = self.pipe.channel().socket().set_nonblocking(true);
        match non_blocking {
            Ok(()) => Ok(self.pipe),
            Err(source) => Err(ConnectionError::Io {
                contact: self.contact,
                source,
            }),
        }
    }

    fn send(&mut self) -> Result<(), ConnectionError> {
        let sent = self.pipe.send(&mut self.out);
        match sent {
            Ok(false) => Ok(()),
            Ok(true) => Err(self.timed_out()),
            Err(source) => Err(self.io_error(source)),
        }
    }

    /// The next answer; the server's errors become `ConnectionError::Server`.
    fn receive(&mut self) -> Result<Response<'_>, ConnectionError> {
        self.receive_any().map(|(_, response)| response)
    }

    fn receive_any(&mut self) -> Result<(Header, Response<'_>), ConnectionError> {
        let deadline = Instant::now() + self.timeout;
        let header = loop {
            let header = self.next_frame(deadline)?;
            // Events have stream -1.
            if header.stream >= 0 {
                break header;
            }
            self.events = true;
        };
        let contact = &self.contact;
        let body = &self.input[self.read - header.body_length as usize..self.read];
        match Response::decode(&header, body) {
            Ok(Response::Error(error)) => Err(ConnectionError::Server {
                contact: contact.clone(),
                code: error.code,
                message: error.message.to_owned(),
            }),
            Ok(response) => Ok((header, response)),
            Err(source) => Err(ConnectionError::Protocol {
                contact: contact.clone(),
                source,
            }),
        }
    }

    /// Reads until one more whole frame is in `input`, ending at `read`.
    fn next_frame(&mut self, deadline: Instant) -> Result<Header, ConnectionError> {
        self.input.drain(..self.read);
        self.read = 0;
        loop {
            if looks_like_tls(&self.input) {
                return Err(ConnectionError::tls(&self.contact, under_tls()));
            }
            let header = Frame::header(&self.input).map_err(|source| self.protocol_error(source))?;
            if let Some(header) = header.filter(|header| header.frame_length() <= self.input.len()) {
                if !header.response {
                    let what = format!("{:02x?}", &self.input[..HEADER_LENGTH]);
                    return Err(ConnectionError::unexpected(self.contact.clone(), what, "a response"));
                }
                self.read = header.frame_length();
                return Ok(header);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.timed_out());
            }
            let socket = self.pipe.channel().socket();
            let limited = socket.set_read_timeout(Some(left));
            let got = limited.and_then(|()| self.pipe.receive(&mut self.input));
            got.map_err(|source| self.io_error(source))?;
        }
    }

    fn timed_out(&self) -> ConnectionError {
        ConnectionError::Timeout {
            contact: self.contact.clone(),
            timeout_s: self.timeout.as_secs_f64(),
        }
    }

    fn io_error(&self, source: std::io::Error) -> ConnectionError {
        let contact = self.contact.clone();
        let encrypted = matches!(self.pipe.channel(), Channel::Tls(_));
        if let Some(explanation) = encrypted.then(|| explain(&source, !self.shaken)).flatten() {
            return ConnectionError::tls(&contact, explanation);
        }
        match source.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => self.timed_out(),
            std::io::ErrorKind::UnexpectedEof => ConnectionError::Closed { contact },
            _ => ConnectionError::Io { contact, source },
        }
    }

    fn protocol_error(&self, source: CqlError) -> ConnectionError {
        ConnectionError::Protocol {
            contact: self.contact.clone(),
            source,
        }
    }
}

/// The reason why a server hung up: TLS against none, or none against TLS, if trying the other shows so; else the error itself.
fn told_apart(error: ConnectionError, contact: &str, access: &Access, timeout: Duration) -> ConnectionError {
    let timeout = timeout.min(CONNECT_TIMEOUT);
    let Some(stream) = connect(contact, timeout)
        .ok()
        .filter(|stream| prepare(stream, timeout).is_ok())
    else {
        return error;
    };
    if access.tls.is_some() {
        let mut plain = BlockingConnection::through(Channel::Plain(stream), contact, timeout);
        return if plain.ask_options(None).is_ok() {
            ConnectionError::tls(contact, without_tls())
        } else {
            error
        };
    }
    let anyone = Tls {
        verify: Verify::None,
        ..Tls::default()
    };
    let channel = ClientTls::new(&anyone).and_then(|tls| tls.wrap(stream, contact));
    let encrypted = channel.is_ok_and(|mut channel| answered_in_tls(&channel.shake_hands()));
    if encrypted {
        ConnectionError::tls(contact, under_tls())
    } else {
        error
    }
}

fn prepare(stream: &TcpStream, timeout: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(timeout))?;
    stream.set_read_timeout(Some(timeout))
}

fn addresses(contact: &str) -> Result<Vec<SocketAddr>, ConnectionError> {
    let bad = |reason: String| ConnectionError::Address {
        contact: contact.to_owned(),
        reason,
    };
    let addresses: Vec<SocketAddr> = contact
        .to_socket_addrs()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidInput => bad(error.to_string()),
            _ => ConnectionError::UnknownName {
                contact: contact.rsplit_once(':').map_or(contact, |(name, _)| name).to_owned(),
                reason: error.to_string(),
            },
        })?
        .collect();
    if addresses.is_empty() {
        return Err(bad("it stands for no address".to_owned()));
    }
    Ok(addresses)
}

fn connect(contact: &str, timeout: Duration) -> Result<TcpStream, ConnectionError> {
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    for address in addresses(contact)? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(ConnectionError::Connect {
        contact: contact.to_owned(),
        source: last,
    })
}
