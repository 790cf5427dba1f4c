//! Protocols: the client that drives an order, and the server with which `sim` answers it.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use steelyard_load::client::{CannotBegin, Client};
use steelyard_wire::{Connected, Order, Target};

/// A load that takes the clients of any protocol.
pub trait Drives {
    /// Carries it out with these clients, or reports why there are none.
    fn drive<C: Client>(
        &self,
        connected: Result<(Vec<C>, Connected), impl Into<CannotBegin>>,
    ) -> Result<(), Box<dyn Error>>;
}

/// Carries out an order with the clients of its protocol.
pub fn drive(load: &impl Drives, order: &Order, slots: &[u32]) -> Result<(), Box<dyn Error>> {
    match &order.target {
        Target::Cql(_) => load.drive(steelyard_client::connect::connect(order, slots)),
        Target::Resp(target) => {
            let connected = steelyard_resp::connect(order, target, slots);
            load.drive(connected.map_err(|error| error.cannot_begin(&steelyard_resp::RESP)))
        }
        Target::Postgresql(target) => {
            let connected = steelyard_postgresql::connect(order, target, slots);
            load.drive(connected.map_err(|error| error.cannot_begin(&steelyard_postgresql::POSTGRESQL)))
        }
        Target::Http(_) | Target::Etcd(_) => {
            let connected = steelyard_http::connect(order, slots);
            load.drive(connected.map_err(|error| error.cannot_begin(&steelyard_http::HTTP)))
        }
    }
}

/// What `sim` speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Protocol {
    /// Cassandra's native protocol.
    Cql,
    /// Redis' protocol.
    Resp,
    /// HTTP/1.1, with a document of any length at /LENGTH.bin.
    Http,
    /// The JSON gateway of etcd.
    Etcd,
    /// PostgreSQL's protocol.
    Postgresql,
}

impl Protocol {
    /// Serves made-up answers, each after `service`, until the kernel refuses. CQL has nodes of its own.
    pub fn serve(self, listen: SocketAddr, service: Duration, listening: impl FnOnce(SocketAddr)) -> io::Result<()> {
        match self {
            Self::Cql => Err(io::ErrorKind::Unsupported.into()),
            Self::Resp => steelyard_resp::null::serve(listen, service, listening),
            Self::Http | Self::Etcd => steelyard_http::null::serve(listen, service, listening),
            Self::Postgresql => steelyard_postgresql::null::serve(listen, service, listening),
        }
    }
}
