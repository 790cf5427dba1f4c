//! Failure detection: after a planted time the members go on without one that has died.
//!
//! The member with the lowest address of those that live watches all others; each of these watches those below it, up to the first
//! that lives. So one of them speaks for all, whoever dies.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use steelyard_channel::ClientTls;

use crate::config::Growth;
use crate::log::Log;
use crate::membership::Way;
use crate::moving::{Moving, members};

/// Time between two looks at the other members.
const EVERY: Duration = Duration::from_millis(100);
/// From when this node began: one that is not there before that may not have begun yet.
const ALL_BEGIN_WITHIN: Duration = Duration::from_secs(60);
/// Longest wait for a connection: one to a server that has died is refused at once, one to a server that is paused for long waits.
const REACH_TIMEOUT: Duration = Duration::from_millis(500);

/// Watches the other members for as long as this node's process runs.
pub fn watch(own: SocketAddr, detect: Duration, growth: Growth, log: Log, tls: Option<&ClientTls>) {
    let lives = |address| {
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        !TcpStream::connect_timeout(&address, REACH_TIMEOUT).is_err_and(refused)
    };
    let mut dead_since = BTreeMap::new();
    let (began, mut all_began) = (Instant::now(), false);
    loop {
        thread::sleep(EVERY);
        // This node is busy or paused: it looks again, until its process ends.
        let Ok(mut members) = members(own, tls) else {
            continue;
        };
        members.sort_unstable();
        all_began = all_began || began.elapsed() > ALL_BEGIN_WITHIN || members.iter().all(|member| lives(*member));
        if !all_began {
            continue;
        }
        let now = Instant::now();
        let living = look(own, &members, &mut dead_since, now, lives);
        let over = |since: &Instant| now.duration_since(*since) >= detect;
        for (dead, _) in dead_since.iter().filter(|(_, since)| !living.is_empty() && over(since)) {
            // Refused while another node joins or leaves: the next look tries again.
            let _ = Moving::begin(Way::Down, *dead, &living, growth, log, tls).and_then(|mut said| said.switch());
        }
    }
}

/// The members that live, in the order of their addresses as `members` are; none if one with a lower address lives, which then
/// watches. Notes since when others are dead.
fn look(
    own: SocketAddr,
    members: &[SocketAddr],
    dead_since: &mut BTreeMap<SocketAddr, Instant>,
    now: Instant,
    lives: impl Fn(SocketAddr) -> bool,
) -> Vec<SocketAddr> {
    dead_since.retain(|dead, _| members.contains(dead));
    let mut living = Vec::new();
    for address in members {
        if *address != own && !lives(*address) {
            dead_since.entry(*address).or_insert(now);
            continue;
        }
        dead_since.remove(address);
        if *address < own {
            dead_since.retain(|below, _| below < address);
            return Vec::new();
        }
        living.push(*address);
    }
    living
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(last: &str) -> Vec<SocketAddr> {
        let node = |last| SocketAddr::from(([10, 0, 0, last], 9042));
        last.bytes().map(node).collect()
    }

    #[test]
    fn the_lowest_that_lives_watches_all_and_knows_since_when_each_is_dead() {
        let began = Instant::now();
        // Who looks; at each look the members and those that live; the living and the dead, each with its look, at the end.
        for (own, looks, living, dead) in [
            ("1", "123/123 123/123", "123", vec![]),
            ("1", "123/12 123/123 123/12 123/12", "12", vec![("3", 2)]),
            ("1", "123/12 12/12", "12", vec![]),
            ("2", "1234/1234 1234/24 1234/24", "24", vec![("1", 1), ("3", 1)]),
            ("4", "1234/1234 1234/24 1234/24", "", vec![("1", 1)]),
            ("4", "1234/34 1234/134 1234/34", "", vec![("1", 2), ("2", 2)]),
        ] {
            let (mut dead_since, mut last) = (BTreeMap::new(), Vec::new());
            for (at, step) in (0..).zip(looks.split(' ')) {
                let (members, answering) = step.split_once('/').unwrap();
                let now = began + Duration::from_secs(at);
                let lives = |address| nodes(answering).contains(&address);
                last = look(nodes(own)[0], &nodes(members), &mut dead_since, now, lives);
            }
            assert_eq!(last, nodes(living), "{own} {looks}");
            let dead = dead
                .into_iter()
                .map(|(last, at)| (nodes(last)[0], began + Duration::from_secs(at)));
            assert_eq!(dead_since, dead.collect(), "{own} {looks}");
        }
    }
}
