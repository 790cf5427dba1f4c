//! Reading back: after the last phase, the rows that a load has written, as phases of their own.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use steelyard_wire::Schedule;
use steelyard_workload::read_back::Written;

use crate::client::Client;
use crate::sequence::{DriveError, READ_BACK, START_MARGIN_NS, STOP_CHECK, SequenceContext, plan, run_sequence};
use crate::worker::Worker;

/// Most seconds of each, and most reads in flight.
const READ_BACK_S: f64 = 30.0;
const READ_BACK_IN_FLIGHT: u32 = 64;

/// Reads the rows that were written: all of them, and those that were not right once more.
pub fn read_back<C: Client>(
    workers: &mut [Worker<C>],
    again_s: f64,
    context: SequenceContext<'_>,
    out: &mut impl Write,
) -> Result<(), DriveError> {
    let mut written = Written::default();
    for worker in workers.iter_mut() {
        written.merge(worker.hand_over_written());
    }
    let mut rows = written.rows();
    let count = workers.len();
    let in_flight = READ_BACK_IN_FLIGHT
        .min(context.order.schedule.in_flight().1)
        .max(count as u32);
    for name in READ_BACK {
        if name != READ_BACK[0] {
            let since = Instant::now();
            while since.elapsed().as_secs_f64() < again_s && !rows.is_empty() && !context.stop.load(Ordering::Relaxed) {
                thread::sleep(STOP_CHECK);
            }
        }
        if rows.is_empty() || context.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let schedule = Schedule::Closed { threads: in_flight };
        let read = plan(name, &schedule, Some(rows.len() as u64), Some(READ_BACK_S), 0)?;
        let mut parts = vec![Vec::new(); count];
        for (place, row) in rows.drain(..).enumerate() {
            parts[place % count].push(row);
        }
        for (worker, part) in workers.iter_mut().zip(parts) {
            worker.read_back(part);
        }
        let begin = context.clock.now() + START_MARGIN_NS;
        run_sequence(workers, vec![read], begin, context, out)?;
        rows = workers.iter_mut().flat_map(Worker::hand_over_missed).collect();
    }
    Ok(())
}
