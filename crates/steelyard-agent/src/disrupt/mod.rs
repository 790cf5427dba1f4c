//! `disrupt`: disturbs a node for a limited time, and lets go whatever happens.
//!
//! It heals when its time is over, when standard input ends (its conductor is gone), and on SIGTERM. A watchdog, another process of
//! another session, heals if this one is killed or does not let go. What has to be undone is in a record before it is done. What
//! the kernel undoes at the end of a process (threads, memory, a file without a name) needs no more than that end.

mod act;
mod ahead;
mod clock;
mod disk_full;
mod disk_slow;
mod filter;
mod kernel_file;
mod partition;
mod pause;
mod record;
mod stress;
mod watch;

use std::error::Error;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::act::{Act, Held};
use self::record::Record;
use crate::process::{MARK, Process, boot_id};
use crate::seconds;
use crate::wall_clock::WallClock;

/// How long the watchdog waits beyond the time of a disruption.
const GRACE: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Stop processes and all that descend from them (SIGSTOP); SIGCONT ends it.
    Pause(pause::Arguments),
    /// Keep processor cores busy.
    StressCpu(stress::CpuArguments),
    /// Use memory.
    StressMemory(stress::MemoryArguments),
    /// Leave little space on a disk.
    DiskFull(disk_full::Arguments),
    /// Throttle a disk.
    DiskSlow(disk_slow::Arguments),
    /// Set this node's clock.
    Clock(clock::Arguments),
    /// Drop packets between this node and others: all, or some.
    #[command(visible_alias = "packet")]
    Partition(partition::Arguments),
    /// Print boot and start times of processes, by which `pause` knows them.
    Identify {
        /// Id of a process; may be repeated.
        #[arg(long, required = true, value_name = "PID")]
        pid: Vec<u32>,
    },
    /// End every disruption of a lease, and undo what is left of those whose process is gone.
    Heal {
        /// Id of the lease.
        #[arg(long, value_name = "ID")]
        lease: String,
    },
    /// The watchdog of a disruption.
    #[command(hide = true)]
    Watch {
        #[arg(long)]
        record: PathBuf,
        #[arg(long, value_parser = seconds::grace)]
        limit_s: Duration,
    },
}

/// Prints a line of JSON when a disruption has begun, and another when it has ended, with the times of this node's clock.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    match &arguments.action {
        Action::Pause(arguments) => hold(&arguments.held, pause::Pause::of(arguments)?),
        Action::StressCpu(arguments) => hold(&arguments.held, stress::Cpu::of(arguments)),
        Action::StressMemory(arguments) => hold(&arguments.held, stress::Memory::of(arguments)?),
        Action::DiskFull(arguments) => hold(&arguments.held, disk_full::DiskFull::of(arguments)?),
        Action::DiskSlow(arguments) => hold(&arguments.held, disk_slow::DiskSlow::of(arguments)?),
        Action::Clock(arguments) => hold(&arguments.held, clock::Clock::of(arguments)?),
        Action::Partition(arguments) => hold(&arguments.held, partition::Partition::of(arguments)?),
        Action::Identify { pid } => identify(pid),
        Action::Heal { lease } => Ok(heal(lease)?),
        Action::Watch { record, limit_s } => Ok(watch::run(record, *limit_s)?),
    }
}

/// Heals what belongs to a lease, also where its process lives: all of it, even if a part fails. Idempotent. Errors: the
/// first.
pub(crate) fn heal(lease: &str) -> io::Result<()> {
    let heal = |path: &PathBuf| Record::read(path)?.map_or(Ok(()), |record| record.heal());
    let outcomes: Vec<io::Result<()>> = record::of_lease(lease)?.iter().map(heal).collect();
    outcomes.into_iter().collect()
}

fn hold(held: &Held, mut act: impl Act) -> Result<(), Box<dyn Error>> {
    let clock = WallClock::from_environment()?;
    let lease = held.lease.clone().or_else(|| std::env::var(MARK).ok());
    let lease = lease.ok_or("disrupt: no lease: give --lease, or run it on a node of one")?;
    // Before anything is done: a signal in between would leave it as it is.
    let (signalled, signals) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, signals.try_clone()?)?;
    }
    let mut record = Record::new(&lease, act.undo()?)?;
    record
        .write()
        .map_err(|error| format!("disrupt: cannot write the record: {error}"))?;
    let until = Instant::now() + held.for_s;
    let begun = watch::start(record.path(), held.for_s + GRACE)
        .map_err(|error| format!("disrupt: cannot start the watchdog: {error}").into())
        .and_then(|()| act.begin(&mut record));
    let why = begun.map(|()| {
        let ends = endings(signalled);
        match say(&json!({"disruption": "began", "t_s": clock.now_s()})) {
            // Nobody hears it.
            Err(_) => "input",
            Ok(()) => ends
                .recv_timeout(until.saturating_duration_since(Instant::now()))
                .unwrap_or("time"),
        }
    });
    // The record stays if something could not be undone: the watchdog tries again.
    act.end(&record)?;
    record.remove()?;
    // Whoever is gone hears nothing.
    let _ = say(&json!({"disruption": "ended", "t_s": clock.now_s(), "by": why?}));
    Ok(())
}

/// The first reason to end early: the end of standard input, or a signal.
fn endings(mut signalled: UnixStream) -> Receiver<&'static str> {
    let (by_input, ends) = mpsc::channel();
    let by_signal = by_input.clone();
    thread::spawn(move || {
        // An error is an end, too; whatever comes is no word to this program.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = by_input.send("input");
    });
    thread::spawn(move || {
        if signalled.read(&mut [0]).is_ok_and(|bytes| bytes > 0) {
            let _ = by_signal.send("signal");
        }
    });
    ends
}

fn say(line: &serde_json::Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn identify(pids: &[u32]) -> Result<(), Box<dyn Error>> {
    let known = |pid: &u32| Process::of(*pid).ok_or_else(|| format!("disrupt: there is no process {pid}"));
    let processes = pids.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    let processes: Vec<String> = processes.iter().map(ToString::to_string).collect();
    say(&json!({"boot_id": boot_id(), "processes": processes}))?;
    Ok(())
}
