//! Server loop: one thread, one epoll; each answer is sent at the instant that the queue gives.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use rustix::event::{EventfdFlags, epoll, eventfd};
use steelyard_channel::events::{Events, INSTANT};
use steelyard_channel::{Channel, ClientTls, ServerTls};
use steelyard_cql::{Frame, HEADER_LENGTH, code};
use steelyard_wire::Verify;

use crate::config::Growth;
use crate::connection::Connection;
use crate::failure_detector::watch;
use crate::log::Log;
use crate::membership::Way;
use crate::moving::{Learnt, Moving};
use crate::node::{Delivery, Node, Session, put_error};
use crate::queue::Queue;
use crate::refusal::Refusal;
use crate::schema_broadcast::broadcast;
use crate::{SimError, TlsFiles};

/// The ordinary port, and that at which the client's port chooses a shard.
const LISTENER: u64 = 0;
const SHARD_LISTENER: u64 = 1;
const WAKE: u64 = 2;
const FIRST_CONNECTION: u64 = 3;
/// Versions that exist, those of a vendor included; what is not spoken here of these is refused in words.
const VERSIONS: [u8; 8] = [1, 2, 3, 4, 5, 6, 0x41, 0x42];
const EVENTS_AT_ONCE: usize = 256;
const MOST_CONNECTIONS: usize = 10_000;

/// An answer that waits for its instant.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    /// Equal instants go out in the order of arrival.
    order: u64,
    connection: u64,
    bytes: Vec<u8>,
}

/// The other nodes have (or have not) carried out a statement.
struct Agreed {
    connection: u64,
    answer: Vec<u8>,
    truncates: bool,
    outcome: Result<(), String>,
}

/// What a thread that talks to other nodes says to the server.
enum Word {
    Agreed(Agreed),
    /// This node has left the cluster.
    End,
}

/// How a thread reaches the server.
#[derive(Clone)]
struct Back {
    words: Sender<Word>,
    wake: Arc<OwnedFd>,
}

impl Back {
    fn say(&self, word: Word) {
        // Both fail only when the server has ended.
        let _ = self.words.send(word);
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

/// Encryption on both sides: for clients that connect, and towards other nodes.
pub struct Tls {
    server: ServerTls,
    client: ClientTls,
}

impl Tls {
    pub fn new(files: &TlsFiles) -> Result<Self, SimError> {
        let server = ServerTls::new(&files.certificate, &files.key, files.client_ca.as_deref())?;
        // The nodes trust each other: they are this machine's.
        let client = ClientTls::new(&steelyard_wire::Tls {
            certificate: Some(files.certificate.clone()),
            key: Some(files.key.clone()),
            verify: Verify::None,
            ..steelyard_wire::Tls::default()
        })?;
        Ok(Self { server, client })
    }

    pub fn client(&self) -> &ClientTls {
        &self.client
    }
}

/// A node that listens.
pub struct Server {
    node: Node,
    growth: Growth,
    log: Log,
    listeners: Vec<TcpListener>,
    tls: Option<Tls>,
    events: Events,
    back: Back,
    words: Receiver<Word>,
    left: bool,
    connections: HashMap<u64, Connection>,
    next_connection: u64,
    waiting: BinaryHeap<Reverse<Due>>,
    order: u64,
    began: Instant,
    spin_ns: u64,
    touched: Vec<u64>,
}

impl Server {
    /// `listeners`: the ordinary one, and on a node with shards that at which clients choose.
    pub fn new(
        listeners: Vec<TcpListener>,
        node: Node,
        spin_ns: u64,
        tls: Option<Tls>,
        (growth, log): (Growth, Log),
    ) -> Result<Self, SimError> {
        let failed = |what: &'static str| {
            move |source: rustix::io::Errno| SimError::Kernel {
                what,
                source: source.into(),
            }
        };
        for listener in &listeners {
            listener.set_nonblocking(true).map_err(|source| SimError::Kernel {
                what: "make the listener non-blocking",
                source,
            })?;
        }
        let events = Events::new().map_err(failed("create an epoll"))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(failed("create an eventfd"))?;
        let numbered = listeners.iter().map(AsFd::as_fd).zip([LISTENER, SHARD_LISTENER]);
        for (fd, id) in numbered.chain([(wake.as_fd(), WAKE)]) {
            let data = epoll::EventData::new_u64(id);
            epoll::add(&events, fd, data, epoll::EventFlags::IN).map_err(failed("watch a file"))?;
        }
        let (sender, words) = mpsc::channel();
        let back = Back {
            words: sender,
            wake: Arc::new(wake),
        };
        Ok(Self {
            node,
            growth,
            log,
            listeners,
            tls,
            events,
            back,
            words,
            left: false,
            connections: HashMap::new(),
            next_connection: FIRST_CONNECTION,
            waiting: BinaryHeap::new(),
            order: 0,
            began: Instant::now(),
            spin_ns,
            touched: Vec::new(),
        })
    }

    /// Takes over what the members know.
    pub fn catch_up(&mut self, learnt: &Learnt) -> Result<(), String> {
        for (keyspace, statement) in &learnt.schema {
            let repeated = self.node.repeat(keyspace, statement);
            repeated.map_err(|refusal| format!("{statement}: {}", refusal.message))?;
        }
        self.node
            .queue
            .iter_mut()
            .for_each(|queue| queue.catch_up(learnt.bursts));
        Ok(())
    }

    /// Serves until this node has left its cluster, or the kernel refuses to wait.
    pub fn run(mut self) -> Result<(), SimError> {
        if let Some(detect) = self.growth.detect {
            let (own, growth, log) = (self.node.ring().own().address, self.growth, self.log);
            let tls = self.tls.as_ref().map(|tls| tls.client.clone());
            std::thread::spawn(move || watch(own, detect, growth, log, tls.as_ref()));
        }
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_AT_ONCE];
        while !self.left {
            let until_ns = self.wait_until();
            let events = match self.events.wait(&mut events, self.now_ns(), until_ns) {
                Ok(events) => events,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    return Err(SimError::Kernel {
                        what: "wait for events",
                        source: error.into(),
                    });
                }
            };
            if !events.is_empty() {
                let now_ns = self.now_ns();
                for event in &*events {
                    match event.data.u64() {
                        listener @ (LISTENER | SHARD_LISTENER) => self.accept(listener),
                        WAKE => self.take_words(),
                        INSTANT => {}
                        id => self.serve(id, event.flags, now_ns),
                    }
                }
            }
            if self.node.change.is_some() {
                self.switch();
            }
            self.deliver_due();
            self.flush();
        }
        Ok(())
    }

    /// Changes the ring if that is due, and tells all who want to know.
    fn switch(&mut self) {
        let Some(change) = self.node.switch(self.now_ns()) else {
            return;
        };
        if change.address != self.node.ring().own().address {
            self.log.info(&change.log_line());
        }
        for (id, connection) in &mut self.connections {
            if let Some((version, kinds)) = &connection.session.registered {
                change.put_events(*version, kinds, &mut connection.output);
                self.touched.push(*id);
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)] // 584 years
    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Until when to sleep: shortly before the next answer or a change of the ring is due, so as not to depend on the timer's
    /// slip.
    fn wait_until(&self) -> Option<u64> {
        let answer = self.waiting.peek().map(|Reverse(next)| next.at_ns);
        let change = self.node.change.as_ref().and_then(|change| change.at_ns);
        let next_ns = answer.into_iter().chain(change).min()?;
        Some(next_ns.saturating_sub(self.spin_ns))
    }

    fn accept(&mut self, number: u64) {
        // Until the backlog is empty; a failure concerns that one connection only.
        while let Ok((stream, client)) = self.listeners[usize::from(number == SHARD_LISTENER)].accept() {
            if self.connections.len() >= MOST_CONNECTIONS {
                continue;
            }
            let id = self.next_connection;
            let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            let data = epoll::EventData::new_u64(id);
            let watched = epoll::add(&self.events, &stream, data, epoll::EventFlags::IN);
            let channel = match &self.tls {
                Some(tls) => tls.server.wrap(stream).ok(),
                None => Some(Channel::Plain(stream)),
            };
            if let (Ok(()), Ok(()), Some(channel)) = (ready, watched, channel) {
                let mut session = Session::default();
                if let Some(shards) = &mut self.node.shards {
                    session.shard = shards.of_connection(client, number == SHARD_LISTENER);
                }
                self.next_connection += 1;
                self.connections.insert(id, Connection::new(channel, session));
            }
        }
    }

    /// Read what came and answer every whole request.
    fn serve(&mut self, id: u64, flags: epoll::EventFlags, now_ns: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        self.touched.push(id);
        self.node.now_ns = now_ns;
        if flags.contains(epoll::EventFlags::OUT) || !connection.fill() {
            // A closed connection is forgotten by flush().
            return;
        }
        let mut at = 0;
        loop {
            let input = connection.input();
            let header = match Frame::header(&input[at..]) {
                // Not the native protocol at all, so its length says nothing either.
                Ok(Some(header)) if !VERSIONS.contains(&header.version) => {
                    connection.close();
                    break;
                }
                Ok(Some(header)) if input.len() - at >= header.frame_length() => header,
                Ok(Some(header)) => {
                    connection.expect(header.frame_length());
                    break;
                }
                Ok(None) => break,
                Err(_) => {
                    connection.close();
                    break;
                }
            };
            let body = at + HEADER_LENGTH..at + header.frame_length();
            at += header.frame_length();
            let start = connection.output.len();
            let (session, body, output) = connection.parts(body);
            let delivery = self.node.answer(session, &header, body, output);
            connection.agree();
            match (delivery, &mut self.node.queue) {
                (Delivery::AtOnce, _) | (Delivery::Queued, None) => {}
                (Delivery::AfterTruncate, queue) => queue.iter_mut().for_each(Queue::renew),
                (Delivery::Queued, Some(queue)) => {
                    connection.operated = true;
                    let bytes = connection.output.split_off(start);
                    self.waiting.push(Reverse(Due {
                        at_ns: queue.admit(now_ns),
                        order: self.order,
                        connection: id,
                        bytes,
                    }));
                    self.order += 1;
                }
                (Delivery::WhenAllAgree { statement, truncates }, _) => {
                    let answer = connection.output.split_off(start);
                    let keyspace = connection.session.keyspace.clone();
                    let peers = self.node.ring().peers().map(|peer| peer.address).collect();
                    let agreed = Agreed {
                        connection: id,
                        answer,
                        truncates,
                        outcome: Ok(()),
                    };
                    let tls = self.tls.as_ref().map(|tls| tls.client.clone());
                    broadcast_in_thread(peers, tls, keyspace, statement, agreed, self.back.clone());
                }
                (Delivery::WhenAllKnow, _) => {
                    let agreed = Agreed {
                        connection: id,
                        answer: connection.output.split_off(start),
                        truncates: false,
                        outcome: Ok(()),
                    };
                    let ring = self.node.ring();
                    let (own, members) = (ring.own().address, ring.addresses().collect());
                    let tls = self.tls.as_ref().map(|tls| tls.client.clone());
                    leave_in_thread(own, members, tls, (self.growth, self.log), agreed, self.back.clone());
                }
            }
        }
        connection.consume(at);
    }

    fn take_words(&mut self) {
        let mut counter = [0; 8];
        // Empty when another event has read it already.
        let _ = rustix::io::read(&*self.back.wake, &mut counter);
        while let Ok(word) = self.words.try_recv() {
            let Word::Agreed(agreed) = word else {
                self.left = true;
                continue;
            };
            if agreed.truncates {
                self.node.queue.iter_mut().for_each(Queue::renew);
            }
            let Some(connection) = self.connections.get_mut(&agreed.connection) else {
                continue;
            };
            self.touched.push(agreed.connection);
            match (agreed.outcome, Frame::header(&agreed.answer)) {
                (Err(message), Ok(Some(header))) => {
                    let refusal = Refusal {
                        code: code::SERVER,
                        message,
                    };
                    put_error(&mut connection.output, (header.version, header.stream), &refusal);
                }
                _ => connection.output.extend_from_slice(&agreed.answer),
            }
        }
    }

    fn deliver_due(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let now_ns = self.now_ns();
        while let Some(next) = self.waiting.peek_mut().filter(|next| next.0.at_ns <= now_ns) {
            let Reverse(due) = std::collections::binary_heap::PeekMut::pop(next);
            if let Some(connection) = self.connections.get_mut(&due.connection) {
                connection.output.extend_from_slice(&due.bytes);
                self.touched.push(due.connection);
            }
        }
    }

    /// Send what is ready; forget connections that have ended.
    fn flush(&mut self) {
        while let Some(id) = self.touched.pop() {
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            if !connection.flush() {
                self.forget(id);
                continue;
            }
            if let Some(wanted) = connection.change_of_interest() {
                let data = epoll::EventData::new_u64(id);
                if epoll::modify(&self.events, &*connection, data, wanted).is_err() {
                    self.forget(id);
                }
            }
        }
    }

    /// When the last client that asked for operations has gone, its burst is over.
    fn forget(&mut self, id: u64) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        self.node.forget(&connection.session);
        if connection.operated && !self.connections.values().any(|other| other.operated) {
            self.node.queue.iter_mut().for_each(Queue::renew);
        }
    }
}

/// In a thread of its own: the other nodes may at the same time want something of this one.
fn broadcast_in_thread(
    peers: Vec<SocketAddr>,
    tls: Option<ClientTls>,
    keyspace: Option<String>,
    statement: String,
    mut agreed: Agreed,
    back: Back,
) {
    std::thread::spawn(move || {
        agreed.outcome = broadcast(&peers, tls.as_ref(), keyspace.as_deref(), &statement);
        back.say(Word::Agreed(agreed));
    });
}

/// In a thread of its own, which talks to this node too, as to any member.
fn leave_in_thread(
    own: SocketAddr,
    members: Vec<SocketAddr>,
    tls: Option<ClientTls>,
    (growth, log): (Growth, Log),
    mut agreed: Agreed,
    back: Back,
) {
    std::thread::spawn(move || {
        let begun = Moving::begin(Way::Leaves, own, &members, growth, log, tls.as_ref());
        let (outcome, moving) = begun.map_or_else(|error| (Err(error), None), |moving| (Ok(()), Some(moving)));
        agreed.outcome = outcome;
        back.say(Word::Agreed(agreed));
        match moving.map(Moving::leave) {
            Some(Ok(())) => back.say(Word::End),
            Some(Err(error)) => log.error(&format!("could not leave the cluster: {error}")),
            None => {}
        }
    });
}

/// Bind a listener. The address is in the error.
pub fn bind(address: SocketAddr) -> Result<TcpListener, SimError> {
    TcpListener::bind(address).map_err(|source: io::Error| SimError::Bind { address, source })
}
