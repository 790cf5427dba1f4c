//! The watchdog of a disruption: a process in a session of its own, without the environment and, where it may, outside of the node's
//! cgroups, so that whatever ends the others does not end it.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::record::Record;

const POLL: Duration = Duration::from_millis(200);
/// How often it tries to heal what cannot be healed at the moment.
const TRIES: u32 = 10;
const CGROUPS: &str = "/sys/fs/cgroup";

/// Returns once the watchdog runs.
pub(super) fn start(record: &Path, limit: Duration) -> io::Result<()> {
    // Not by its path, which may name another program by now.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["disrupt", "watch", "--record"])
        .arg(record)
        .args(["--limit-s", &limit.as_secs_f64().to_string()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let detach = || -> io::Result<()> {
        // SAFETY: between fork and exec there is one thread, and nothing is allocated.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                rustix::process::setsid()?;
                Ok(())
            }
            // SAFETY: ends at once; the grandchild is nobody's child but `init`'s.
            _ => unsafe { libc::_exit(0) },
        }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(detach) };
    command.spawn()?.wait()?;
    Ok(())
}

/// Waits until the disruption has ended, and ends it if its holder dies or its time is over by `limit`.
pub(super) fn run(path: &Path, limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    leave_cgroups();
    let Some(mut record) = Record::read(path)? else {
        return Ok(());
    };
    while record.holder.alive() && Instant::now() < deadline {
        std::thread::sleep(POLL);
        // More may be recorded by now. What cannot be read at the moment ends no watch.
        match Record::read(path) {
            Ok(Some(newer)) => record = newer,
            Ok(None) => return Ok(()),
            Err(_) => {}
        }
    }
    for _ in 1..TRIES {
        if record.heal().is_ok() {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
    record.heal()
}

/// Into the top of each hierarchy, if it may: what limits or ends the node's processes is not for this one.
fn leave_cgroups() {
    for line in fs::read_to_string("/proc/self/cgroup").unwrap_or_default().lines() {
        let controllers = line.split(':').nth(1).unwrap_or_default();
        let top: PathBuf = Path::new(CGROUPS).join(controllers);
        // Without the right to, or in a container, it stays where it is.
        let _ = fs::write(top.join("cgroup.procs"), "0");
    }
}
