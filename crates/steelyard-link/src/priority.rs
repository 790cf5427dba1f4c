//! Real-time priority of the thread that moves frames: a link that waits for its turn on the processor is a slower link.

use std::io;

/// The lowest of SCHED_FIFO's: before everything ordinary, after everything else that is real-time.
const PRIORITY: libc::c_int = 1;

/// How the kernel schedules the link's thread.
#[derive(Debug)]
pub enum Scheduling {
    /// SCHED_FIFO: as soon as it has something to do.
    Fifo,
    /// As every other process, because the kernel refused.
    Ordinary(io::Error),
}

/// Asks for SCHED_FIFO for the calling thread, which takes CAP_SYS_NICE.
#[allow(unsafe_code)]
pub fn real_time() -> Scheduling {
    // SAFETY: 0 is the calling thread; the structure is plain numbers, for which 0 is a value, and outlives the call.
    let outcome = unsafe {
        let mut parameter: libc::sched_param = std::mem::zeroed();
        parameter.sched_priority = PRIORITY;
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter)
    };
    if outcome == 0 {
        Scheduling::Fifo
    } else {
        Scheduling::Ordinary(io::Error::last_os_error())
    }
}
