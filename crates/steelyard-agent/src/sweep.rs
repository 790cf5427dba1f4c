//! `sweep`: ends every process of a lease on this node, found by the mark in its environment, and every disruption.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::disrupt;
use crate::exit::Exit;
use crate::process::{MARK, Process, has_variable, ids, with_ancestors};

/// Looks in a row that must find nothing: a process may have forked while the list of processes was read.
const EMPTY_LOOKS: u32 = 2;
const PAUSE: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub struct Arguments {
    /// Id of the lease, as in its record.
    #[arg(long, value_name = "ID", value_parser = parse_lease)]
    lease: String,
    /// Only print the ids of its processes.
    #[arg(long)]
    ask: bool,
}

/// Exit code 1 if some of them still run after 20 s.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    // Those who ask may be marked themselves, as they came through a node of the lease.
    let spared = with_ancestors(std::process::id());
    let look = || marked(&arguments.lease, &spared).map_err(|error| format!("sweep: cannot list /proc: {error}"));
    if arguments.ask {
        let pids: Vec<u32> = look()?.iter().map(|process| process.pid).collect();
        println!("{}", json!({"pids": pids}));
        return Ok(());
    }
    // First, as the end of its processes leaves the record of a disruption. An error ends nothing here, and is returned at the end.
    let healed = disrupt::heal(&arguments.lease).map_err(|error| format!("sweep: cannot end a disruption: {error}"));
    let deadline = Instant::now() + LIMIT;
    let mut killed = BTreeSet::new();
    let mut empty_looks = 0;
    let mut refusal: Option<io::Error> = None;
    while empty_looks < EMPTY_LOOKS {
        let left = look()?;
        empty_looks = if left.is_empty() { empty_looks + 1 } else { 0 };
        if Instant::now() > deadline && !left.is_empty() {
            println!("{}", json!({"killed": killed.len()}));
            return Err(Exit::boxed(1, still_there(&left, refusal.as_ref())));
        }
        for process in left {
            match process.signal(Signal::KILL) {
                Ok(()) => {
                    killed.insert(process);
                }
                Err(error) => refusal = Some(error),
            }
        }
        std::thread::sleep(PAUSE);
    }
    println!("{}", json!({"killed": killed.len()}));
    Ok(healed?)
}

/// Processes of a lease that have not ended.
fn marked(lease: &str, spared: &[u32]) -> io::Result<Vec<Process>> {
    let of_lease = |pid: &u32| !spared.contains(pid) && has_variable(*pid, MARK, lease);
    Ok(ids()?.into_iter().filter(of_lease).filter_map(Process::of).collect())
}

fn still_there(left: &[Process], refusal: Option<&io::Error>) -> String {
    let pids: Vec<String> = left.iter().map(|process| process.pid.to_string()).collect();
    let why = refusal.map_or_else(String::new, |error| format!(" ({error})"));
    format!(
        "sweep: after {} s these processes of the lease still run: {}{why}; end them as the user who started them",
        LIMIT.as_secs(),
        pids.join(", ")
    )
}

fn parse_lease(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the id of a lease must not be empty".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_with_exactly_this_mark_are_found() {
        let lease = format!("test-{}", std::process::id());
        let start = |value: &str| {
            let mut command = std::process::Command::new("sleep");
            command.arg("60").env(MARK, value).spawn().unwrap()
        };
        let mut children = [start(&lease), start(&format!("{lease}-longer")), start("other")];
        // For a moment after it is executed, a program has no environment.
        let all_executed = crate::process::within(Duration::from_secs(5), || {
            children
                .iter()
                .all(|child| crate::process::command_line(child.id()).is_some())
        });
        let found = marked(&lease, &[]);
        let spared = marked(&lease, &[children[0].id()]);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(all_executed);
        let pids: Vec<u32> = found.unwrap().iter().map(|process| process.pid).collect();
        assert_eq!(pids, [children[0].id()]);
        assert!(spared.unwrap().is_empty());
    }

    #[test]
    fn an_empty_id_would_be_of_any_lease() {
        assert!(parse_lease(" ").is_err());
        assert_eq!(parse_lease("a1"), Ok("a1".to_owned()));
    }
}
