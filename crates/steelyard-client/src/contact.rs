//! Contacts as they are given, `address:port` or `name:port`: their addresses, and the TCP connection to one.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;

use crate::deadline::Deadline;
use crate::error::ConnectionError;

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
        return Err(bad("it resolves to no address".to_owned()));
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
