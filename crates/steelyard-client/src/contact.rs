//! Contacts as they are given, `address:port` or `name:port`: their addresses, the TCP connection to one, and why one hangs up.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;

use steelyard_channel::{Channel, ClientTls, answered_in_tls, under_tls, without_tls};
use steelyard_wire::{Tls, Verify};

use crate::blocking_connection::{Access, BlockingConnection};
use crate::deadline::Deadline;
use crate::error::ConnectionError;

/// The reason why a server hung up: TLS against none, or none against TLS, if trying the other shows so; else the error itself.
/// It costs a connection: for what is asked before a load, not while a server is measured.
pub(crate) fn told_apart(error: ConnectionError, access: &Access, deadline: &Deadline) -> ConnectionError {
    if !error.is_hung_up() {
        return error;
    }
    let contact = deadline.contact();
    let Some(stream) = connect(deadline).ok().filter(|stream| stream.set_nodelay(true).is_ok()) else {
        return error;
    };
    if access.tls.is_some() {
        let mut plain = BlockingConnection::through(Channel::Plain(stream), deadline.clone());
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
    let encrypted = channel.is_ok_and(|mut channel| answered_in_tls(&channel.shake_hands(deadline.at())));
    if encrypted {
        ConnectionError::tls(contact, under_tls())
    } else {
        error
    }
}

/// The addresses that a contact stands for, one at least.
pub(crate) fn addresses(deadline: &Deadline) -> Result<Vec<SocketAddr>, ConnectionError> {
    let contact = deadline.contact();
    if let Ok(address) = contact.parse() {
        return Ok(vec![address]);
    }
    let bad = |reason: String| ConnectionError::Address {
        contact: contact.to_owned(),
        reason,
    };
    // The resolver has limits of its own, minutes where its servers are silent: it is left behind when the time is over.
    let (sender, receiver) = mpsc::channel();
    let name = contact.to_owned();
    thread::spawn(move || {
        // Fails when nobody waits any more.
        let _ = sender.send(name.to_socket_addrs().map(Iterator::collect::<Vec<SocketAddr>>));
    });
    let found = receiver.recv_timeout(deadline.left()?).map_err(|_| deadline.over())?;
    let addresses = found.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => bad(error.to_string()),
        _ => ConnectionError::UnknownName {
            contact: contact.rsplit_once(':').map_or(contact, |(name, _)| name).to_owned(),
            reason: error.to_string(),
        },
    })?;
    if addresses.is_empty() {
        return Err(bad("it stands for no address".to_owned()));
    }
    Ok(addresses)
}

/// The first address that answers. An address that does not leaves half of what time there is to those behind it.
pub(crate) fn connect(deadline: &Deadline) -> Result<TcpStream, ConnectionError> {
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    let addresses = addresses(deadline)?;
    for (number, address) in addresses.iter().enumerate() {
        let left = deadline.left()?;
        let share = if number + 1 < addresses.len() { left / 2 } else { left };
        match TcpStream::connect_timeout(address, share) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(ConnectionError::Connect {
        contact: deadline.contact().to_owned(),
        source: last,
    })
}
