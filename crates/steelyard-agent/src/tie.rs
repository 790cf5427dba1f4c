//! `tie`: a command whose life hangs on standard input, so that the end of the connection that started it is its end.
//!
//! `ssh` and `docker exec` pass no signal on when their client is killed, but they close standard input on the node.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{Exit, KILLED_BY, NOT_EXECUTED};
use crate::seconds;

const BUFFER_BYTES: usize = 64 << 10;

#[derive(clap::Args)]
pub struct Arguments {
    /// Seconds from the end of standard input to SIGTERM, and from SIGTERM to SIGKILL.
    #[arg(long, default_value = "2", value_name = "S", value_parser = seconds::grace)]
    grace_s: Duration,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "ARGV")]
    argv: Vec<OsString>,
}

/// The command's process group, and whether it has been asked to end.
#[derive(Clone)]
struct Group {
    id: Pid,
    grace: Duration,
    ending: Arc<AtomicBool>,
}

impl Group {
    /// SIGTERM now, SIGKILL after the grace; in the meantime the command's end mostly ends this process.
    fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.send(Signal::TERM);
        thread::sleep(self.grace);
        self.send(Signal::KILL);
    }

    /// A group that is gone needs no signal.
    fn send(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
    }
}

/// Ends with the command's exit code, or with 128 + N if signal N killed it; 127 if it cannot be executed.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let (program, rest) = arguments.argv.split_first().ok_or("tie: no command")?;
    // Before the command starts: a signal in between would leave it alone.
    let (signalled, signals) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, signals.try_clone()?)?;
    }
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| {
            let program = program.to_string_lossy();
            Exit::boxed(NOT_EXECUTED, format!("tie: cannot execute {program}: {error}"))
        })?;
    let group = Group {
        id: Pid::from_child(&child),
        grace: arguments.grace_s,
        ending: Arc::new(AtomicBool::new(false)),
    };
    let input = child.stdin.take();
    for_ever(&group, move |group| {
        pass_on(&mut io::stdin().lock(), input);
        thread::sleep(group.grace);
        group.end();
    });
    for_ever(&group, move |group| {
        if (&signalled).read(&mut [0]).is_ok_and(|bytes| bytes > 0) {
            group.end();
        }
    });
    let status = child.wait()?;
    if group.ending.load(Ordering::Relaxed) {
        // Children of the command that did not end with it.
        group.send(Signal::KILL);
    }
    std::process::exit(code(status))
}

/// A thread that ends with this process.
fn for_ever(group: &Group, work: impl FnOnce(&Group) + Send + 'static) {
    let group = group.clone();
    thread::spawn(move || work(&group));
}

/// Copies to the command's standard input until the source ends, then closes it. A command that reads no more is no reason
/// to stop: the end of the source still has to be seen.
fn pass_on(source: &mut impl Read, mut target: Option<ChildStdin>) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return,
            Ok(bytes) => {
                if target
                    .as_mut()
                    .is_some_and(|target| target.write_all(&buffer[..bytes]).is_err())
                {
                    target = None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| KILLED_BY + status.signal().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_a_code_above_128() {
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
        assert_eq!(code(ExitStatus::from_raw(0)), 0);
    }
}
