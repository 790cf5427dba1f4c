//! `disrupt pause`: processes that stand still, with all that descend from them.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;

use rustix::process::Signal;

use super::act::{Act, Held};
use super::record::{Record, Undo};
use crate::exit::{Exit, REFUSED};
use crate::process::{Process, Status, boot_id, ids, with_ancestors};

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub held: Held,
    /// A process as `identify` names it: id and start time; may be repeated.
    #[arg(long, required = true, value_name = "PID:TICKS", value_parser = parse)]
    process: Vec<Process>,
    /// The boot in which it was named so.
    #[arg(long, value_name = "ID")]
    boot_id: String,
}

pub(super) struct Pause {
    roots: Vec<Process>,
}

impl Pause {
    /// Errors: a process that is not the one that was named, or that this program descends from.
    pub(super) fn of(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let own = with_ancestors(std::process::id());
        for process in &arguments.process {
            if arguments.boot_id != boot_id() || !process.alive() {
                let what = format!("disrupt: process {process} is gone: it was named before a restart");
                return Err(Exit::boxed(REFUSED, what));
            }
            if own.contains(&process.pid) {
                return Err(Exit::boxed(
                    REFUSED,
                    format!("disrupt: this program descends from process {process}"),
                ));
            }
        }
        Ok(Self {
            roots: arguments.process.clone(),
        })
    }

    fn all(&self) -> io::Result<BTreeSet<Process>> {
        let mut found: BTreeSet<Process> = self.roots.iter().copied().filter(|process| process.alive()).collect();
        let statuses: Vec<(u32, Status)> = ids()?
            .into_iter()
            .filter_map(|pid| Some((pid, Status::of(pid).filter(|status| !status.zombie)?)))
            .collect();
        loop {
            let before = found.len();
            for (pid, status) in &statuses {
                if found.iter().any(|process| process.pid == status.parent) {
                    found.insert(Process {
                        pid: *pid,
                        started_ticks: status.started_ticks,
                    });
                }
            }
            if found.len() == before {
                return Ok(found);
            }
        }
    }
}

impl Act for Pause {
    fn undo(&self) -> Result<Vec<Undo>, Box<dyn Error>> {
        Ok(self.all()?.into_iter().map(continued).collect())
    }

    /// A process may fork until it is stopped, so its descendants are looked for until there are no more.
    fn begin(&mut self, record: &mut Record) -> Result<(), Box<dyn Error>> {
        let mut from = 0;
        while from < record.undo.len() {
            for undo in &record.undo[from..] {
                if let Undo::Continue { process } = undo {
                    let stopped = process.signal(Signal::STOP);
                    stopped.map_err(|error| format!("disrupt: cannot stop process {process}: {error}"))?;
                }
            }
            from = record.undo.len();
            let more: Vec<Undo> = self.all()?.into_iter().map(continued).collect();
            record.undo.extend(
                more.into_iter()
                    .filter(|undo| !record.undo.contains(undo))
                    .collect::<Vec<_>>(),
            );
            if record.undo.len() > from {
                record.write()?;
            }
        }
        Ok(())
    }

    fn end(&mut self, record: &Record) -> io::Result<()> {
        record.undone()
    }
}

fn continued(process: Process) -> Undo {
    Undo::Continue { process }
}

fn parse(text: &str) -> Result<Process, String> {
    let parsed = text.split_once(':').and_then(|(pid, started_ticks)| {
        Some(Process {
            pid: pid.parse().ok().filter(|pid| *pid > 1)?,
            started_ticks: started_ticks.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| "a process is PID:TICKS, as `disrupt identify` names it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_with_its_start() {
        let process = Process {
            pid: 12,
            started_ticks: 34,
        };
        assert_eq!(parse("12:34"), Ok(process));
        assert_eq!(parse(&process.to_string()), Ok(process));
        for refused in ["12", "1:34", "0:1", "-3:1", "12:", ":34", "12:34:56"] {
            assert!(parse(refused).is_err(), "{refused}");
        }
    }
}
