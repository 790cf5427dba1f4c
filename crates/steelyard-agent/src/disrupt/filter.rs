//! Packet filters of a network: tables of nf_tables, by the program `nft`.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::ids;

/// Not by a search path, which others may have set.
const NFT: [&str; 4] = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft", "/usr/local/sbin/nft"];
const OWN: &str = "/proc/self/ns/net";
const NAMED: &str = "/run/netns";

/// Number of the network in which this process runs.
pub(super) fn own_network() -> io::Result<u64> {
    Ok(fs::metadata(OWN)?.ino())
}

/// Adds a table to the network in which this process runs.
pub(super) fn add(table: &str) -> io::Result<()> {
    nft(Path::new(OWN), table)
}

/// Removes a table from a network, and leaves one without it as it is. A network that is gone has no tables.
pub(super) fn remove(network: u64, table: &str) -> io::Result<()> {
    match path_of(network)? {
        Some(path) => nft(&path, &format!("add table inet {table}\ndelete table inet {table}\n")),
        None => Ok(()),
    }
}

/// A file of a network: its own, that of one of its processes, or of its name.
fn path_of(network: u64) -> io::Result<Option<PathBuf>> {
    let device = fs::metadata(OWN)?.dev();
    let of_processes = ids()?
        .into_iter()
        .map(|pid| PathBuf::from(format!("/proc/{pid}/ns/net")));
    let named = fs::read_dir(NAMED).into_iter().flatten();
    let named = named.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths = std::iter::once(PathBuf::from(OWN)).chain(of_processes).chain(named);
    Ok(paths.find(|path| fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (device, network))))
}

fn nft(network: &Path, script: &str) -> io::Result<()> {
    let program = NFT.iter().find(|path| Path::new(path).exists());
    let program = program.ok_or_else(|| io::Error::other("there is no program nft (Debian: apt install nftables)"))?;
    let mut command = Command::new(program);
    if network != Path::new(OWN) {
        command = Command::new("/proc/self/exe");
        command.args(["enter", "--netns"]).arg(network).args(["--", program]);
    }
    let mut child = command
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(script.as_bytes())?;
    }
    let ended = child.wait_with_output()?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(io::Error::other(format!("nft: {}", said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_is_gone_needs_no_undo() {
        remove(1, "steelyard_none").unwrap();
    }
}
