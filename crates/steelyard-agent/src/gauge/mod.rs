//! `gauge`: what a node can do within its limits, measured for a moment each: processor, disk, memory.
//!
//! Runs as a process of the node, charged to it, while nothing else does; the conductor lays the answer beside what was asked for.

mod disk;
mod memory;
mod processor;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use self::memory::spare_mb;
use crate::seconds;

#[derive(clap::Args)]
pub struct Arguments {
    /// How long the processor is measured.
    #[arg(long, default_value = "0.5", value_name = "S", value_parser = seconds::grace)]
    cpu_s: Duration,
    /// Folder on the disk that is measured; without it, no disk is.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// How long each of reading, writing, read operations and write operations is measured.
    #[arg(long, default_value = "0.25", value_name = "S", value_parser = seconds::grace)]
    disk_s: Duration,
    /// Touch memory until the kernel kills, but this many MiB at most, and never the machine's last; 0: touch none.
    #[arg(long, default_value_t = 0, value_name = "MIB")]
    memory_mb: u64,
    /// What the process does that is killed: touch memory, and print a byte for each MiB.
    #[arg(long, hide = true, conflicts_with_all = ["folder", "memory_mb"])]
    touch_mb: Option<u64>,
}

/// Prints one line of JSON, in the units of a study's limits. Errors: the folder cannot be written, no process can be started.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    if let Some(most_mb) = arguments.touch_mb {
        memory::touch(most_mb);
        return Ok(());
    }
    let processor = processor::measure(arguments.cpu_s);
    let mut answer = serde_json::json!({
        "cpus": processor.cpus,
        "threads": processor.threads,
        "work_per_cpu_s": processor.work_per_cpu_s,
    });
    if let Some(folder) = &arguments.folder {
        let disk = disk::measure(folder, arguments.disk_s)
            .map_err(|error| format!("gauge: cannot measure the disk of {}: {error}", folder.display()))?;
        answer["disk_read_mb_per_s"] = disk.read_mb_per_s.into();
        answer["disk_write_mb_per_s"] = disk.write_mb_per_s.into();
        answer["disk_read_ops_per_s"] = disk.read_ops_per_s.into();
        answer["disk_write_ops_per_s"] = disk.write_ops_per_s.into();
        answer["disk_direct"] = disk.direct.into();
    }
    // Last: a kernel that has just taken back gigabytes has other work than the disk.
    if arguments.memory_mb > 0 {
        let memory = memory::measure(arguments.memory_mb)?;
        answer["memory_mb"] = memory.touched_mb.into();
        answer["memory_ended"] = memory.ended.into();
        answer["machine_swap_mb"] = memory.machine_swap_mb.into();
    }
    println!("{answer}");
    Ok(())
}
