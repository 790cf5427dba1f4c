//! Contacts as they are given, `address:port` or `name:port`: their addresses, and the TCP connection to one.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;

use crate::{ContactError, Deadline};

/// The addresses that a contact stands for, one at least.
///
/// # Errors
///
/// It is no address, or there is none for the name, or the time is over.
pub fn addresses(deadline: &Deadline) -> Result<Vec<SocketAddr>, ContactError> {
    let contact = deadline.contact();
    if let Ok(address) = contact.parse() {
        return Ok(vec![address]);
    }
    let bad = |reason: String| ContactError::Address {
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
        ErrorKind::InvalidInput => bad(error.to_string()),
        _ => ContactError::UnknownName {
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
///
/// # Errors
///
/// As `addresses`; none of them answers.
pub fn connect(deadline: &Deadline) -> Result<TcpStream, ContactError> {
    let mut last = io::Error::from(ErrorKind::NotFound);
    let addresses = addresses(deadline)?;
    for (number, address) in addresses.iter().enumerate() {
        let left = deadline.left()?;
        let share = if number + 1 < addresses.len() { left / 2 } else { left };
        match TcpStream::connect_timeout(address, share) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(ContactError::Connect {
        contact: deadline.contact().to_owned(),
        source: last,
    })
}

/// What was opened, by contact, and why the other contacts are away.
pub type Opened<T> = (Vec<(String, T)>, Vec<String>);

/// Opens something at each contact, all at the same time. Where `some` are enough, those that `is_away` says cannot be reached
/// are left out.
///
/// # Errors
///
/// The first contact that fails, in their order; where some are enough, the first that refuses, or all if none answers.
pub fn open_each<T, E>(
    contacts: &[String],
    some: bool,
    is_away: impl Fn(&E) -> bool,
    open: impl Fn(&str) -> Result<T, E> + Sync,
) -> Result<Opened<T>, E>
where
    T: Send,
    E: Send + Display + From<ContactError> + From<io::Error>,
{
    let all: Vec<Result<T, E>> = thread::scope(|scope| {
        let open = &open;
        let threads: Vec<_> = contacts
            .iter()
            .map(|contact| scope.spawn(move || open(contact)))
            .collect();
        let panicked = |_| Err(io::Error::other("connecting panicked").into());
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked))
            .collect()
    });
    let (mut opened, mut absent) = (Vec::new(), Vec::new());
    for (contact, result) in contacts.iter().zip(all) {
        match result {
            Ok(found) => opened.push((contact.clone(), found)),
            Err(error) if some && is_away(&error) => absent.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    if opened.is_empty() && some {
        return Err(ContactError::NoContact { causes: absent }.into());
    }
    Ok((opened, absent))
}
