//! `disrupt stress-cpu` and `disrupt stress-memory`: what a node has, used by another program of it. Both end with this process.

use std::error::Error;
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::act::{Act, Held};
use super::record::{Record, Undo};
use crate::exit::{Exit, REFUSED};
use crate::gauge::spare_mb;

const MOST_THREADS: u32 = 1024;
/// Rounds between two looks at the end.
const ROUNDS: u32 = 10_000;
const PAGE_BYTES: usize = 4096;
const MEBIBYTE: usize = 1 << 20;

#[derive(clap::Args)]
pub(super) struct CpuArguments {
    #[command(flatten)]
    pub held: Held,
    /// Number of threads, each of which takes a core as far as the node has one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_THREADS)))]
    threads: u32,
}

#[derive(clap::Args)]
pub(super) struct MemoryArguments {
    #[command(flatten)]
    pub held: Held,
    /// Memory in MiB, every page of which is touched.
    #[arg(long, value_name = "MIB")]
    mb: u64,
}

pub(super) struct Cpu {
    threads: u32,
    ended: Arc<AtomicBool>,
    running: Vec<JoinHandle<()>>,
}

impl Cpu {
    pub(super) fn of(arguments: &CpuArguments) -> Self {
        Self {
            threads: arguments.threads,
            ended: Arc::default(),
            running: Vec::new(),
        }
    }
}

impl Act for Cpu {
    fn undo(&self) -> Result<Vec<Undo>, Box<dyn Error>> {
        Ok(Vec::new())
    }

    fn begin(&mut self, _: &mut Record) -> Result<(), Box<dyn Error>> {
        for seed in 0..self.threads {
            let ended = Arc::clone(&self.ended);
            self.running
                .push(thread::Builder::new().spawn(move || spin(&ended, seed))?);
        }
        Ok(())
    }

    fn end(&mut self, _: &Record) -> io::Result<()> {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.running.drain(..) {
            // One that panicked has ended, too.
            let _ = thread.join();
        }
        Ok(())
    }
}

fn spin(ended: &AtomicBool, seed: u32) {
    let mut number = seed;
    while !ended.load(Ordering::Relaxed) {
        for _ in 0..ROUNDS {
            number = black_box(number.wrapping_mul(0x9e37_79b9).rotate_left(7));
        }
    }
}

pub(super) struct Memory {
    mb: u64,
    held: Vec<Vec<u8>>,
}

impl Memory {
    /// Errors: more than this machine has to spare. Without a limit of the node, others would be killed.
    pub(super) fn of(arguments: &MemoryArguments) -> Result<Self, Box<dyn Error>> {
        let spare = spare_mb();
        if arguments.mb > spare {
            let what = format!(
                "disrupt: {} MiB were asked for, and this machine has {spare} to spare",
                arguments.mb
            );
            return Err(Exit::boxed(REFUSED, what));
        }
        Ok(Self {
            mb: arguments.mb,
            held: Vec::new(),
        })
    }
}

impl Act for Memory {
    fn undo(&self) -> Result<Vec<Undo>, Box<dyn Error>> {
        Ok(Vec::new())
    }

    fn begin(&mut self, _: &mut Record) -> Result<(), Box<dyn Error>> {
        for number in 0..self.mb {
            let mut block = vec![0_u8; MEBIBYTE];
            for place in (0..MEBIBYTE).step_by(PAGE_BYTES) {
                block[place] = (number % 255 + 1) as u8;
            }
            self.held.push(black_box(block));
        }
        Ok(())
    }

    fn end(&mut self, _: &Record) -> io::Result<()> {
        self.held.clear();
        Ok(())
    }
}
