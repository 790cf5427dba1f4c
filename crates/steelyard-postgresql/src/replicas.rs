//! Replicas that come and go while a load runs, as their primary names them.

use std::net::SocketAddr;

use steelyard_protocol::ConnectError;

use crate::session::{Access, Session};

/// Names of the replicas that stream; null where the role may not see that.
///
/// Why not their addresses: a replica's connection may come from another one than it listens on, as on one machine, and has
/// another port.
const NAMES: &str = "SELECT CASE WHEN pg_has_role('pg_read_all_stats', 'USAGE') THEN (SELECT \
    coalesce(string_agg(application_name, ' '), '') FROM pg_stat_replication WHERE state = 'streaming') END";

/// The primary, which is asked for its replicas.
pub(crate) struct Replicas {
    /// None: it is to be found again.
    primary: Option<Session>,
    /// Contacts of all that were in service when it was asked.
    pub in_service: Vec<String>,
}

impl Replicas {
    /// Those of the primary at a contact. Errors: it does not answer, or does not show them.
    pub fn of(access: &Access, contact: &str) -> Result<Self, ConnectError> {
        let mut primary = Session::begin(access, contact)?;
        Ok(Self {
            in_service: ask(&mut primary, access)?,
            primary: Some(primary),
        })
    }

    /// Who is in service now; after a promotion the new primary says it. `None`: nobody does.
    pub fn again(&mut self, access: &Access) -> Option<Vec<String>> {
        let begin = |contact: &String| Session::begin(access, contact).ok();
        let mut begun = self.in_service.iter().filter_map(begin);
        let primary = self.primary.take();
        let mut primary = primary.or_else(|| begun.find(|session| session.peer.is_primary))?;
        self.in_service = ask(&mut primary, access).ok()?;
        self.primary = Some(primary);
        Some(self.in_service.clone())
    }
}

/// Contacts of a primary and of its replicas. One whose name is no address is not known to be anywhere.
fn ask(primary: &mut Session, access: &Access) -> Result<Vec<String>, ConnectError> {
    let names = primary.ask(NAMES)?.ok_or_else(|| ConnectError::Refused {
        message: format!("{} does not show its replicas to {}", primary.contact(), access.user),
        hint: "GRANT pg_read_all_stats to the user of the order, or leave out discover",
        is_away: false,
    })?;
    let replicas = names.split(' ').filter(|name| name.parse::<SocketAddr>().is_ok());
    let contacts = [primary.contact()].into_iter().chain(replicas);
    Ok(contacts.map(str::to_owned).collect())
}
