//! `enter`: execute a command as a process of a node, in its cgroups, network namespace and folder, with fewer privileges.
//!
//! This is what a node's prefix runs (`steelyard-agent enter ... -- ARGV`). It replaces itself with the command (exec), so no
//! wrapper stays in memory, signals and process ids are the command's own, and a server outlives whoever started it.

use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, capabilities, capability_is_in_ambient_set, configure_capability_in_ambient_set,
    move_into_link_name_space, remove_capability_from_bounding_set, set_capabilities,
};

use crate::exit::NOT_EXECUTED;
use crate::privileges;

#[derive(clap::Args)]
pub struct Arguments {
    /// Join this network namespace, a file such as /run/netns/NAME.
    #[arg(long, value_name = "FILE")]
    netns: Option<PathBuf>,
    /// Join this cgroup, a folder with a file cgroup.procs; may be repeated.
    #[arg(long, value_name = "FOLDER")]
    cgroup: Vec<PathBuf>,
    /// Give up a capability for good, such as ipc_lock; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = parse_capability)]
    drop_capability: Vec<CapabilitySet>,
    /// Give up every capability for good, also root's.
    #[arg(long)]
    unprivileged: bool,
    /// Run the command in this folder.
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "ARGV")]
    argv: Vec<OsString>,
}

/// Which step failed, on what.
#[derive(Debug, thiserror::Error)]
enum EnterError {
    #[error("enter: cannot join the cgroup {path}: {source}; does it exist, and may you write its cgroup.procs?")]
    Cgroup { path: PathBuf, source: io::Error },
    #[error("enter: cannot open the network namespace {path}: {source}; `ip netns` lists those that exist")]
    NetworkOpen { path: PathBuf, source: io::Error },
    #[error("enter: cannot join the network namespace {path}: {source}; this requires CAP_SYS_ADMIN")]
    NetworkJoin { path: PathBuf, source: io::Error },
    #[error("enter: cannot drop the capability {name} from the {set} set: {source}")]
    Capability {
        name: String,
        set: &'static str,
        source: io::Error,
    },
    #[error("enter: cannot change to the folder {path}: {source}")]
    Folder { path: PathBuf, source: io::Error },
    #[error("enter: cannot execute {program}: {source}")]
    Execute { program: String, source: io::Error },
}

/// Does not return if all goes well: the process is the command then.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    match enter(arguments) {
        EnterError::Execute { program, source } if source.kind() == io::ErrorKind::NotFound => {
            eprintln!("steelyard-agent: enter: program {program} not found in PATH ({source})");
            std::process::exit(NOT_EXECUTED.into())
        }
        error => Err(error.into()),
    }
}

/// Cgroups first (their paths and rights are the caller's), privileges and folder last.
fn enter(arguments: &Arguments) -> EnterError {
    match prepare(arguments) {
        Ok(()) => execute(&arguments.argv),
        Err(error) => error,
    }
}

fn prepare(arguments: &Arguments) -> Result<(), EnterError> {
    for folder in &arguments.cgroup {
        join_cgroup(folder)?;
    }
    if let Some(path) = &arguments.netns {
        join_network(path)?;
    }
    for capability in &arguments.drop_capability {
        drop_capability(*capability)?;
    }
    if arguments.unprivileged {
        privileges::give_up_all().map_err(|error| EnterError::Capability {
            name: "all".to_owned(),
            set: "permitted",
            source: error.into(),
        })?;
    }
    if let Some(path) = &arguments.cwd {
        std::env::set_current_dir(path).map_err(|source| EnterError::Folder {
            path: path.clone(),
            source,
        })?;
    }
    Ok(())
}

fn join_cgroup(folder: &Path) -> Result<(), EnterError> {
    // 0 means the writer itself, whichever process-id namespace it is in.
    std::fs::OpenOptions::new()
        .write(true)
        .open(folder.join("cgroup.procs"))
        .and_then(|mut file| io::Write::write_all(&mut file, b"0"))
        .map_err(|source| EnterError::Cgroup {
            path: folder.to_path_buf(),
            source,
        })
}

fn join_network(path: &Path) -> Result<(), EnterError> {
    let file = File::open(path).map_err(|source| EnterError::NetworkOpen {
        path: path.to_path_buf(),
        source,
    })?;
    move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(LinkNameSpaceType::Network)).map_err(|error| {
        EnterError::NetworkJoin {
            path: path.to_path_buf(),
            source: error.into(),
        }
    })
}

/// Out of the ambient, bounding, inheritable, effective and permitted sets. A process without it has nothing to give up.
fn drop_capability(capability: CapabilitySet) -> Result<(), EnterError> {
    let failed = |set: &'static str| {
        move |error: rustix::io::Errno| EnterError::Capability {
            name: capability_name(capability),
            set,
            source: error.into(),
        }
    };
    let mut sets = capabilities(None).map_err(failed("permitted"))?;
    let root = rustix::process::geteuid().is_root();
    if !root && !sets.permitted.contains(capability) {
        return Ok(());
    }
    if capability_is_in_ambient_set(capability).map_err(failed("ambient"))? {
        configure_capability_in_ambient_set(capability, false).map_err(failed("ambient"))?;
    }
    // Root gets its permitted set from the bounding set at exec, so that one decides; it takes CAP_SETPCAP.
    remove_capability_from_bounding_set(capability).map_err(failed("bounding"))?;
    sets.inheritable.remove(capability);
    sets.effective.remove(capability);
    sets.permitted.remove(capability);
    set_capabilities(None, sets).map_err(failed("permitted"))
}

fn execute(argv: &[OsString]) -> EnterError {
    let Some((program, arguments)) = argv.split_first() else {
        return EnterError::Execute {
            program: String::new(),
            source: io::ErrorKind::InvalidInput.into(),
        };
    };
    // Returns only if it failed; searches PATH and puts SIGPIPE back to its default.
    let source = Command::new(program).args(arguments).exec();
    EnterError::Execute {
        program: program.to_string_lossy().into_owned(),
        source,
    }
}

/// `ipc_lock`, `IPC_LOCK` and `CAP_IPC_LOCK` are the same.
fn parse_capability(text: &str) -> Result<CapabilitySet, String> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("CAP_").unwrap_or(&upper);
    CapabilitySet::from_name(name).ok_or_else(|| format!("unknown capability {text:?}; see capabilities(7)"))
}

fn capability_name(capability: CapabilitySet) -> String {
    capability
        .iter_names()
        .map(|(name, _)| name.to_ascii_lowercase())
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capability_names_with_and_without_prefix() {
        for text in ["ipc_lock", "IPC_LOCK", "cap_ipc_lock", "CAP_IPC_LOCK"] {
            assert_eq!(parse_capability(text), Ok(CapabilitySet::IPC_LOCK), "{text}");
        }
        assert!(parse_capability("ipclock").is_err_and(|message| message.contains("ipclock")));
        assert_eq!(capability_name(CapabilitySet::IPC_LOCK), "ipc_lock");
    }

    #[test]
    fn errors_name_step_and_path() {
        let gone = PathBuf::from("/nowhere/at/all");
        let cgroup = join_cgroup(&gone).unwrap_err().to_string();
        assert!(cgroup.contains("cgroup /nowhere/at/all"), "{cgroup}");
        let network = join_network(&gone).unwrap_err().to_string();
        assert!(network.contains("network namespace /nowhere/at/all"), "{network}");
        let missing = execute(&[OsString::from("no-such-program-here")]);
        assert!(matches!(missing, EnterError::Execute { source, .. } if source.kind() == io::ErrorKind::NotFound));
    }
}
