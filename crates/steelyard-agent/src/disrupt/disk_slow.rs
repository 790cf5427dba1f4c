//! `disrupt disk-slow`: throttles of a disk, in files of the kernel. What is written at the end is known before the beginning.

use std::error::Error;
use std::io;

use super::act::{Act, Held};
use super::kernel_file::KernelFile;
use super::record::{Record, Undo};
use crate::exit::{Exit, REFUSED};

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub held: Held,
    /// A file of the kernel, and what is written to it at the beginning; may be repeated.
    #[arg(long, num_args = 2, required = true, value_names = ["FILE", "TEXT"])]
    set: Vec<String>,
    /// A file of the kernel, and what is written to it at the end; may be repeated.
    #[arg(long, num_args = 2, required = true, value_names = ["FILE", "TEXT"])]
    back: Vec<String>,
}

pub(super) struct DiskSlow {
    set: Vec<KernelFile>,
    back: Vec<KernelFile>,
}

impl DiskSlow {
    /// Errors: other files than those that throttle disks, or without the right to write them. What could not be undone is not
    /// begun.
    pub(super) fn of(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let of = |words: &[String]| {
            words
                .chunks(2)
                .map(|pair| KernelFile::new(&pair[0], &pair[1]))
                .collect()
        };
        let found = Self {
            set: of(&arguments.set),
            back: of(&arguments.back),
        };
        let checked = found.set.iter().try_for_each(KernelFile::checked);
        checked
            .and_then(|()| found.back.iter().try_for_each(KernelFile::write))
            .map_err(|error| Exit::boxed(REFUSED, format!("disrupt: disks cannot be throttled here: {error}")))?;
        Ok(found)
    }
}

impl Act for DiskSlow {
    fn undo(&self) -> Result<Vec<Undo>, Box<dyn Error>> {
        Ok(self.back.iter().cloned().map(|write| Undo::Write { write }).collect())
    }

    fn begin(&mut self, _: &mut Record) -> Result<(), Box<dyn Error>> {
        let begun = self.set.iter().try_for_each(KernelFile::write);
        begun.map_err(|error| format!("disrupt: cannot throttle the disk: {error}").into())
    }

    fn end(&mut self, record: &Record) -> io::Result<()> {
        record.undone()
    }
}
