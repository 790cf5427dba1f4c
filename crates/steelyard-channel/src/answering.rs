//! Servers that answer at once: every connection on one thread, what has come in, what is answered out.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};

use rustix::event::epoll;

use crate::events::Events;
use crate::line::Line;
use crate::{Channel, Pipe};

const LISTENER: u64 = 0;
const MAX_EVENTS: usize = 64;
const MAX_CLIENTS: usize = 10_000;
/// Most bytes that a client may leave unread.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// What was done with the bytes that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// How many of them are answered; the others are given again, with more.
    pub used: usize,
    /// Whether the connection is closed once the answers are sent.
    pub closes: bool,
}

#[derive(Default)]
struct Client<S> {
    line: Line,
    state: S,
    closes: bool,
}

/// Listens and serves, on one thread, until the kernel refuses. `prepare` is called with the bound address, and gives what appends
/// the answers to the bytes of a connection, which has a state of its own; an error closes that connection.
///
/// # Errors
///
/// What the kernel says.
pub fn serve<S, A>(listen: SocketAddr, prepare: impl FnOnce(SocketAddr) -> A) -> io::Result<()>
where
    S: Default,
    A: FnMut(&mut S, &[u8], &mut Vec<u8>) -> io::Result<Answered>,
{
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let mut events = Events::new()?;
    let mark = epoll::EventData::new_u64(LISTENER);
    epoll::add(&events, &listener, mark, epoll::EventFlags::IN)?;
    let (mut clients, mut next): (HashMap<u64, Client<S>>, _) = (HashMap::new(), LISTENER + 1);
    let mut answer = prepare(listener.local_addr()?);
    let mut room = [const { MaybeUninit::uninit() }; MAX_EVENTS];
    loop {
        for ready in events.ready(&mut room, 0, None)? {
            let number = ready.mark;
            if number == LISTENER {
                // Until the backlog is empty; a failure concerns that one connection only.
                while let Ok((stream, _)) = listener.accept() {
                    let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
                    let mut client = Client::default();
                    let attached = client.line.attach(Pipe::new(Channel::Plain(stream)), &events, next);
                    if ready.and(attached).is_ok() && clients.len() < MAX_CLIENTS {
                        clients.insert(next, client);
                        next += 1;
                    }
                }
                continue;
            }
            let served = clients
                .get_mut(&number)
                .map(|client| client.serve(number, &events, &mut answer));
            if !matches!(served, None | Some(Ok(true))) {
                clients.remove(&number);
            }
        }
    }
}

impl<S> Client<S> {
    /// Reads what has come and answers it; whether the connection goes on.
    fn serve(
        &mut self,
        number: u64,
        events: &Events,
        mut answer: impl FnMut(&mut S, &[u8], &mut Vec<u8>) -> io::Result<Answered>,
    ) -> io::Result<bool> {
        while self.line.read()? {}
        let input = self.line.take_input();
        if !self.closes {
            let Answered { used, closes } = answer(&mut self.state, &input, &mut self.line.out)?;
            self.closes = closes;
            self.line.give_back(input, used);
        }
        self.line.flush(events, number)?;
        if self.line.out.len() > MAX_WAITING_BYTES {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(!self.closes || self.line.wants_flush())
    }
}
