//! `keep start`: three processes at first, so that a command executes only after its record is on disk.
//!
//! The caller forks the supervisor, which forks the command. The command says its id and waits for the caller's word; the caller
//! reads its start time from /proc, writes the record and gives the word. The supervisor says that the command executes, or why
//! it cannot; then the caller ends, and the supervisor stays until the command has ended. The command runs without capabilities.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, waitpgid, waitpid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::record::{Ended, Record};
use crate::atomic_file::{PRIVATE, create_parents};
use crate::exit::{Exit, NOT_EXECUTED};
use crate::privileges;
use crate::process::{Process, boot_id};
use crate::wall_clock::WallClock;

/// Time limit for the supervisor to start the command: a program on a slow disk.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The caller's word that the record is on disk.
const GO: [u8; 1] = [1];

#[derive(clap::Args)]
pub struct Arguments {
    /// Where to write who the process is; folders above it are created.
    #[arg(long, value_name = "FILE")]
    record: PathBuf,
    /// Append the command's standard output to this file; default: discarded.
    #[arg(long, value_name = "FILE")]
    stdout: Option<PathBuf>,
    /// Append the command's standard error to this file; default: discarded.
    #[arg(long, value_name = "FILE")]
    stderr: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "ARGV")]
    argv: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("keep: process {pid} ({argv}) of the record {path} still runs; `keep stop` ends it")]
    Alive { pid: u32, argv: String, path: PathBuf },
    #[error("keep: cannot write the record {path}: {source}")]
    Record { path: PathBuf, source: io::Error },
    #[error("keep: cannot open {path} for the output of the command: {source}")]
    Output { path: PathBuf, source: io::Error },
    #[error("keep: cannot start the supervisor: {0}; is there a limit on processes or memory?")]
    Supervisor(io::Error),
    #[error("keep: the supervisor does not say whether the command was executed: {0}; the command was killed")]
    Silent(io::Error),
    #[error("keep: program {program} not found in PATH ({source})")]
    NoProgram { program: String, source: io::Error },
    #[error("keep: cannot execute {program}: {source}")]
    Execute { program: String, source: io::Error },
}

/// What the supervisor and the command say to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// The command, with its process id: it waits for the word.
    Waits(i32),
    /// The supervisor: the command was executed.
    Executed,
    /// The supervisor: it was not, for this error of the operating system.
    Failed(i32),
}

impl Message {
    /// Allocates nothing, as is right between fork and exec.
    fn send(self, mut line: &UnixStream) -> io::Result<()> {
        let (tag, number) = match self {
            Self::Waits(pid) => (b'w', pid),
            Self::Executed => (b'e', 0),
            Self::Failed(code) => (b'f', code),
        };
        let [a, b, c, d] = number.to_le_bytes();
        line.write_all(&[tag, a, b, c, d])
    }

    fn receive(mut line: &UnixStream) -> io::Result<Self> {
        let mut bytes = [0; 5];
        line.read_exact(&mut bytes)?;
        let [tag, a, b, c, d] = bytes;
        let number = i32::from_le_bytes([a, b, c, d]);
        match tag {
            b'w' => Ok(Self::Waits(number)),
            b'e' => Ok(Self::Executed),
            b'f' => Ok(Self::Failed(number)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Prints the record as a JSON line. Exit codes: 127 if the command cannot be executed, 1 for anything else.
pub(super) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let clock = WallClock::from_environment()?;
    let path = std::path::absolute(&arguments.record)?;
    if let Some(former) = Record::read(&path)? {
        refuse_living(&former, &path)?;
    }
    match start(arguments, &path, clock) {
        Ok(record) => {
            writeln!(io::stdout(), "{}", record.to_line()?)?;
            Ok(())
        }
        Err(error @ (StartError::NoProgram { .. } | StartError::Execute { .. })) => {
            Err(Exit::boxed(NOT_EXECUTED, error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// A process whose record is replaced would run on, and nobody would know.
fn refuse_living(former: &Record, path: &Path) -> Result<(), StartError> {
    if former.alive() {
        return Err(StartError::Alive {
            pid: former.pid,
            argv: former.argv.join(" "),
            path: path.to_path_buf(),
        });
    }
    former.settle();
    Ok(())
}

fn start(arguments: &Arguments, path: &Path, clock: WallClock) -> Result<Record, StartError> {
    let command = command(arguments)?;
    let (caller, supervisor) = UnixStream::pair().map_err(StartError::Supervisor)?;
    // SAFETY: this process has one thread, so its copy may do whatever this one may, and no lock is held by anybody else.
    match unsafe { libc::fork() } {
        -1 => Err(StartError::Supervisor(io::Error::last_os_error())),
        0 => {
            drop(caller);
            supervise(command, supervisor, path, clock);
            std::process::exit(0)
        }
        id => {
            drop(supervisor);
            follow(&caller, id.unsigned_abs(), arguments, path)
        }
    }
}

/// The command with its outputs, in the caller's folder and environment.
fn command(arguments: &Arguments) -> Result<Command, StartError> {
    let (program, rest) = arguments
        .argv
        .split_first()
        .ok_or_else(|| StartError::Supervisor(io::ErrorKind::InvalidInput.into()))?;
    let mut command = Command::new(program);
    command
        .args(rest)
        .stdin(Stdio::null())
        .stdout(output(arguments.stdout.as_deref())?)
        .stderr(output(arguments.stderr.as_deref())?);
    Ok(command)
}

fn output(path: Option<&Path>) -> Result<Stdio, StartError> {
    let Some(path) = path else {
        return Ok(Stdio::null());
    };
    create_parents(path)
        .and_then(|()| OpenOptions::new().append(true).create(true).mode(PRIVATE).open(path))
        .map(Stdio::from)
        .map_err(|source| StartError::Output {
            path: path.to_path_buf(),
            source,
        })
}

/// The caller's part: writes the record, gives the word, and hears what came of it.
fn follow(line: &UnixStream, supervisor: u32, arguments: &Arguments, path: &Path) -> Result<Record, StartError> {
    line.set_read_timeout(Some(START_LIMIT))
        .map_err(StartError::Supervisor)?;
    let pid = match Message::receive(line) {
        Ok(Message::Waits(pid)) => pid,
        Ok(Message::Failed(code)) => return Err(StartError::Supervisor(io::Error::from_raw_os_error(code))),
        Ok(Message::Executed) => return Err(StartError::Supervisor(io::ErrorKind::InvalidData.into())),
        Err(error) => return Err(StartError::Supervisor(error)),
    };
    // If anything fails here, the line closes without the word and the command ends without having been executed.
    let record = record_of(pid, supervisor, arguments).map_err(StartError::Supervisor)?;
    record.write(path).map_err(|source| StartError::Record {
        path: path.to_path_buf(),
        source,
    })?;
    let mut word = line;
    let outcome = word.write_all(&GO).and_then(|()| Message::receive(line));
    if matches!(outcome, Ok(Message::Executed)) {
        return Ok(record);
    }
    // What failed counts, not that its traces could not be removed.
    let _ = record.process().kill_with_group();
    let _ = fs::remove_file(path);
    Err(match outcome {
        Ok(Message::Failed(code)) => not_executed(arguments, io::Error::from_raw_os_error(code)),
        Ok(_) => StartError::Silent(io::ErrorKind::InvalidData.into()),
        Err(error) => StartError::Silent(error),
    })
}

/// The start time is read here, not by the command: an emulator gives a process its own idea of itself.
fn record_of(pid: i32, supervisor: u32, arguments: &Arguments) -> io::Result<Record> {
    let process = u32::try_from(pid)
        .ok()
        .and_then(Process::of)
        .ok_or(io::ErrorKind::NotFound)?;
    Ok(Record {
        pid: process.pid,
        started_ticks: process.started_ticks,
        boot_id: boot_id(),
        argv: arguments
            .argv
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        supervisor,
        ended: None,
        ended_s: None,
    })
}

fn not_executed(arguments: &Arguments, source: io::Error) -> StartError {
    let program = arguments
        .argv
        .first()
        .map(|program| program.to_string_lossy().into_owned())
        .unwrap_or_default();
    if source.kind() == io::ErrorKind::NotFound {
        StartError::NoProgram { program, source }
    } else {
        StartError::Execute { program, source }
    }
}

/// The supervisor's part: starts the command, waits for its end and writes it into the record.
fn supervise(command: Command, line: UnixStream, path: &Path, clock: WallClock) {
    let executed = detach().and_then(|()| execute(command, &line));
    let message = match &executed {
        Ok(_) => Message::Executed,
        Err(error) => Message::Failed(error.raw_os_error().unwrap_or(libc::EIO)),
    };
    // If the caller is gone, it has refused the record, or was killed: then the command runs and is kept all the same.
    let _ = message.send(&line);
    drop(line);
    // Folders must not be held by those who only wait; the command has its own.
    let _ = std::env::set_current_dir("/");
    if let Ok(status) = executed.and_then(|child| wait_for_group(&child)) {
        // There is nobody to tell: the record then says that the process is gone, and not how.
        let _ = write_end(status, path, clock);
    }
}

/// A session of its own, and none of the caller's files: whoever started it by ssh or in a container can end.
fn detach() -> io::Result<()> {
    rustix::process::setsid()?;
    match set_child_subreaper(Some(getpid())) {
        // An emulator of another processor may not know it: orphans of the command are then `init`'s, which reaps them too.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

/// Returns when the command has been executed, which the caller's word allows.
fn execute(mut command: Command, line: &UnixStream) -> io::Result<Child> {
    let own = line.try_clone()?;
    let wait_for_word = move || -> io::Result<()> {
        rustix::process::setsid()?;
        privileges::give_up_all()?;
        Message::Waits(getpid().as_raw_pid()).send(&own)?;
        let mut word = GO;
        (&own).read_exact(&mut word)
    };
    // SAFETY: the closure allocates nothing and takes no lock; and the supervisor has one thread.
    unsafe { command.pre_exec(wait_for_word) };
    command.spawn()
}

/// Waits for the command, and ends what it leaves of its process group: workers that outlive their server would hold its port.
fn wait_for_group(child: &Child) -> io::Result<ExitStatus> {
    let leader = Pid::from_child(child);
    loop {
        match next_ended()? {
            Some(pid) if pid == leader => break,
            // An orphan of the command.
            pid => drop(waitpid(pid, WaitOptions::empty())?),
        }
    }
    // The leader is not reaped yet, so that no other group can have its id.
    let _ = kill_process_group(leader, Signal::KILL);
    let mut status = None;
    while let Ok(Some((pid, ended))) = waitpgid(leader, WaitOptions::empty()) {
        if pid == leader {
            status = Some(ExitStatus::from_raw(ended.as_raw()));
        }
    }
    status.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Waits until a child has ended, and does not reap it.
fn next_ended() -> io::Result<Option<Pid>> {
    // SAFETY: all zeros are a valid value, and the kernel writes no more than its size.
    let (failed, ended) = unsafe {
        let mut ended: libc::siginfo_t = std::mem::zeroed();
        let failed = libc::waitid(libc::P_ALL, 0, &raw mut ended, libc::WEXITED | libc::WNOWAIT);
        (failed, ended)
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `waitid` has succeeded, so that the value is that of a child.
    Ok(Pid::from_raw(unsafe { ended.si_pid() }))
}

fn write_end(status: ExitStatus, path: &Path, clock: WallClock) -> Result<(), Box<dyn Error>> {
    let ended = match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, signal) => Ended::Signal(signal.unwrap_or_default()),
    };
    // The record may have been removed, or be another process's by now.
    let Some(record) = Record::read(path)?.filter(|record| record.supervisor == std::process::id()) else {
        return Ok(());
    };
    let ended_s = Some(clock.now_s());
    let record = Record {
        ended: Some(ended),
        ended_s,
        ..record
    };
    Ok(record.write(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let (near, far) = UnixStream::pair().unwrap();
        for message in [
            Message::Waits(123_456),
            Message::Executed,
            Message::Failed(libc::ENOENT),
        ] {
            message.send(&near).unwrap();
            assert_eq!(Message::receive(&far).unwrap(), message);
        }
        (&near).write_all(b"nonsense").unwrap();
        assert!(Message::receive(&far).is_err());
        drop(near);
        assert!(Message::receive(&far).is_err(), "the line is closed");
    }
}
