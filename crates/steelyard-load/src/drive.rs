//! The driving loop of an order: starts the workers for each phase sequence, merges what they count, prints the records.
//!
//! Numbers of an order that has shares: `stop.operations`, `stop.duration_s` and a schedule's rate are over all shares;
//! `threads` and `in_flight` are this process's. Within a process each worker thread takes a share of the share.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use steelyard_wire::{Action, Order, Schedule, Share, Word, Work};

use crate::client::Client;
use crate::clock::{Clock, Nanos};
use crate::read_back::read_back;
use crate::schedule::expected_operations;
pub use crate::sequence::DriveError;
use crate::sequence::{
    PhasePlan, READ_BACK, START_MARGIN_NS, STOP_CHECK, SequenceContext, nanos, plan, run_sequence, share_of_worker,
};
use crate::worker::Worker;
use steelyard_workload::OrderError;
use steelyard_workload::insert_lag::with_insert_lag;
use steelyard_workload::operation::Kinds;
use steelyard_workload::stream::{Stream, kinds};

/// Most operations that one worker keeps in flight: leaves half of a connection's 32,768 streams for answers that are
/// still to come after their time-out.
pub const MAX_SLOTS_PER_WORKER: u32 = 16_384;
/// Most tries of one request.
const MAX_TRIES: u32 = 1000;
/// Shortest interval: handing over and printing one takes about a millisecond.
const MIN_INTERVAL_S: f64 = 0.1;
/// Longest drain that an order may name.
const MAX_DRAIN_S: f64 = 86_400.0;
/// How late a process may be for the instant at which it should start.
const START_LATE_LIMIT_S: f64 = 1.0;
/// How far ahead that instant may lie.
const START_AHEAD_LIMIT_S: f64 = 3600.0;
/// Processes that start together leave each other so long to answer what their warm-up has sent.
const WARM_UP_DRAIN_S: f64 = 0.25;
/// Names that phases of an order may not have, because they mean something else in records.
const TAKEN_NAMES: [&str; 4] = [POPULATE, WARM_UP, READ_BACK[0], READ_BACK[1]];
const SETTLE: &str = "search-settle";
const POPULATE: &str = "populate";
const WARM_UP: &str = "warm-up";
const MEASURE: &str = "measure";

/// Slots of each worker: the most threads or places in flight of the order's phases, spread over at most `workers` threads.
/// There are no more workers than the phase with the fewest places in flight has, so that each worker has one in every phase.
///
/// Errors: no place in flight at all, or more than `MAX_SLOTS_PER_WORKER` on a worker.
pub fn slots(order: &Order, workers: u32) -> Result<Vec<u32>, OrderError> {
    let schedules = order.phases.iter().map(|phase| &phase.schedule);
    let all = std::iter::once(&order.schedule).chain(schedules);
    let limits: Vec<(&str, u32)> = all.map(Schedule::in_flight).collect();
    let fewest = limits.iter().map(|(_, limit)| *limit).min().unwrap_or(0);
    let workers = workers.clamp(1, fewest.max(1));
    let mut most = 0;
    for (field, total) in limits {
        if total == 0 || total.div_ceil(workers) > MAX_SLOTS_PER_WORKER {
            return Err(OrderError::new(field, total, "1 to 16384 for each worker thread"));
        }
        most = most.max(total);
    }
    Ok((0..workers)
        .map(|worker| share_of_worker(most, workers, worker))
        .collect())
}

/// Carries out an order with one client a worker; `clients` and `slots(order, ...)` have the same length. Prints the
/// intervals and ends of all phases to `out`. Setting `stop` ends it early, with its `Done`.
pub fn run<C: Client>(
    clients: Vec<C>,
    order: &Order,
    clock: Clock,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<(), DriveError> {
    run_from(clients, order, clock, stop, out, || Ok(start(order, clock)?))
}

/// Carries out an order that waits for the word `go`, with everything else made ready; clients as for `run`. Any other word ends the
/// load with an error, and setting `stop` before the word ends it without a phase.
pub fn run_on_go<C: Client>(
    clients: Vec<C>,
    order: &Order,
    words: &Receiver<Result<Word, String>>,
    clock: Clock,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<(), DriveError> {
    if order.action == Action::Populate || order.words || order.start_at_s.is_some() {
        let problem = "requires action load without words and start_at_s";
        return Err(OrderError::because("go", problem).into());
    }
    run_from(clients, order, clock, stop, out, || {
        let Some(word) = next_word(words, stop)? else {
            return Ok(None);
        };
        let read = clock.now();
        match word {
            Word::Go { in_s } => Ok(Some(read + ahead(in_s)?)),
            _ => Err(DriveError::Word(
                "word: an order with go accepts no other word".to_owned(),
            )),
        }
    })
}

/// Carries out an order from the instant that `start` gives, when all is ready; `None`: as soon as it can.
fn run_from<C: Client>(
    clients: Vec<C>,
    order: &Order,
    clock: Clock,
    stop: &AtomicBool,
    out: &mut impl Write,
    start: impl FnOnce() -> Result<Option<Nanos>, DriveError>,
) -> Result<(), DriveError> {
    let sequences = phase_plans(order)?;
    let kinds = kinds(order)?;
    let mut workers = workers(clients, order, &kinds)?;
    let mut start = start()?;
    let mut first = true;
    for plans in sequences {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let begin = start.unwrap_or(0).max(clock.now() + START_MARGIN_NS);
        // Where an instant was asked for, the first sequence keeps to it even if it has passed.
        let begin = start.filter(|_| first).unwrap_or(begin);
        let context = SequenceContext {
            order,
            kinds: &kinds,
            clock,
            stop,
        };
        run_sequence(&mut workers, plans, begin, context, out)?;
        first = false;
        start = start.map(|_| begin + nanos(order.warm_up_s + WARM_UP_DRAIN_S));
    }
    if let Some(again_s) = order.read_again_s {
        let context = SequenceContext {
            order,
            kinds: &kinds,
            clock,
            stop,
        };
        read_back(&mut workers, again_s, context, out)?;
    }
    Ok(())
}

/// Carries out an order whose phases come as words, until the word `stop`; clients as for `run`. A word that is not possible ends
/// the load with an error. `stop` ends the phase under way and the load; whoever reads words for this sets it with `stop`, and
/// with an error. Between phases the connections are idle, and nothing is in flight.
pub fn run_by_words<C: Client>(
    clients: Vec<C>,
    order: &Order,
    words: &Receiver<Result<Word, String>>,
    clock: Clock,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<(), DriveError> {
    let mut warm_up = word_plans(order)?;
    let kinds = kinds(order)?;
    let mut workers = workers(clients, order, &kinds)?;
    let context = SequenceContext {
        order,
        kinds: &kinds,
        clock,
        stop,
    };
    let mut gone = false;
    let mut names = BTreeSet::new();
    while let Some(word) = next_word(words, stop)? {
        let read = clock.now();
        let (plans, in_s) = match word {
            Word::Stop {} => return Ok(()),
            Word::Go { .. } if gone => return Err(DriveError::Word("word: go was already sent".to_owned())),
            Word::Go { in_s } => {
                gone = true;
                (std::mem::take(&mut warm_up), in_s)
            }
            Word::Phase { name, .. } if !gone => {
                return Err(DriveError::Word(format!("word: phase {name:?} before go")));
            }
            Word::Phase {
                name,
                schedule,
                duration_s,
                settle_s,
                in_s,
            } => {
                let number = names.len() as u64;
                let reserved = TAKEN_NAMES.contains(&name.as_str()) || name == SETTLE;
                let taken = reserved || !names.insert(name.clone());
                if name.is_empty() || taken {
                    let allowed = "a new name other than populate, warm-up or search-settle";
                    return Err(refused(OrderError::new(
                        "word phase: name",
                        format!("{name:?}"),
                        allowed,
                    )));
                }
                in_flight_fits(&schedule, order, workers.len() as u32).map_err(refused)?;
                (
                    phase_of_word(&name, &schedule, duration_s, settle_s, order.seed, number).map_err(refused)?,
                    in_s,
                )
            }
        };
        let begin = read + ahead(in_s)?;
        if !plans.is_empty() {
            let begin = begin.max(clock.now() + START_MARGIN_NS);
            run_sequence(&mut workers, plans, begin, context, out)?;
        }
    }
    Ok(())
}

/// How far ahead a word puts the start of its phase.
fn ahead(in_s: f64) -> Result<Nanos, DriveError> {
    if !(0.0..=START_AHEAD_LIMIT_S).contains(&in_s) {
        return Err(refused(OrderError::new("word: in_s", in_s, "0 to 3600")));
    }
    Ok(nanos(in_s))
}

/// What is wrong with a word, and not with the order that it belongs to.
fn refused(error: OrderError) -> DriveError {
    DriveError::Word(error.to_string())
}

/// The next word; `None` if the load was told to stop by other means. Words that were not carried out when it stopped are passed
/// over, but not what is wrong with one.
fn next_word(words: &Receiver<Result<Word, String>>, stop: &AtomicBool) -> Result<Option<Word>, DriveError> {
    loop {
        if stop.load(Ordering::Relaxed) {
            let wrong = words.try_iter().find_map(Result::err);
            return wrong.map_or(Ok(None), |message| Err(DriveError::Word(message)));
        }
        match words.recv_timeout(STOP_CHECK) {
            Ok(word) => return word.map(Some).map_err(DriveError::Word),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

/// The warm-up of an order with words, and what such an order may not have.
fn word_plans(order: &Order) -> Result<Vec<PhasePlan>, OrderError> {
    limits(order)?;
    if order.action == Action::Populate {
        return Err(OrderError::because("words", "requires action load, not populate"));
    }
    if !order.phases.is_empty() || order.stop.operations.is_some() || order.stop.duration_s.is_some() {
        return Err(OrderError::because(
            "words",
            "cannot be combined with phases or stop, which arrive as words",
        ));
    }
    if order.warm_up_s <= 0.0 {
        return Ok(Vec::new());
    }
    let seed = order.seed.wrapping_add(1);
    Ok(vec![plan(WARM_UP, &order.schedule, None, Some(order.warm_up_s), seed)?])
}

/// The phase of a word, after its settle time.
fn phase_of_word(
    name: &str,
    schedule: &Schedule,
    duration_s: f64,
    settle_s: f64,
    seed: u64,
    number: u64,
) -> Result<Vec<PhasePlan>, OrderError> {
    // Gaps are each phase's own.
    let seed = seed.wrapping_add(2 * (number + 1));
    let mut plans = Vec::new();
    if settle_s != 0.0 {
        plans.push(plan(SETTLE, schedule, None, Some(settle_s), seed.wrapping_add(1))?);
    }
    plans.push(plan(name, schedule, None, Some(duration_s), seed)?);
    Ok(plans)
}

/// Checks that a phase fits the connections and in-flight slots that the order's schedule requested.
fn in_flight_fits(schedule: &Schedule, order: &Order, workers: u32) -> Result<(), OrderError> {
    let (_, there) = order.schedule.in_flight();
    let (field, wanted) = schedule.in_flight();
    if (workers..=there).contains(&wanted) {
        return Ok(());
    }
    let allowed = format!("{workers} to {there}, as in the order");
    Err(OrderError::new(field, wanted, allowed))
}

/// One worker a client, each with its share of the order's share.
fn workers<C: Client>(clients: Vec<C>, order: &Order, kinds: &Arc<Kinds>) -> Result<Vec<Worker<C>>, OrderError> {
    let slots = slots(order, clients.len() as u32)?;
    let count = slots.len() as u64;
    let whole = with_insert_lag(order);
    let expected_operations = expected_operations(order);
    let mut workers = Vec::new();
    for (number, (client, slots)) in clients.into_iter().zip(slots).enumerate() {
        let share = Share {
            index: order.share.index + number as u64 * order.share.of,
            of: order.share.of * count,
        };
        let stream = Stream::from_order(&Order { share, ..whole.clone() }, expected_operations, 0)?;
        let mut worker = Worker::new(client, stream, Arc::clone(kinds), share, slots);
        if order.read_again_s.is_some() {
            worker.keep_written();
        }
        workers.push(worker);
    }
    Ok(workers)
}

/// The instant at which the order's first phase starts; None: as soon as it can.
fn start(order: &Order, clock: Clock) -> Result<Option<Nanos>, OrderError> {
    let Some(at_s) = order.start_at_s else { return Ok(None) };
    let now_s = clock.wall_s(clock.now());
    if !(-START_LATE_LIMIT_S..=START_AHEAD_LIMIT_S).contains(&(at_s - now_s)) {
        let read = format!("{at_s} at {now_s}");
        return Err(OrderError::new(
            "start_at_s",
            read,
            "at most 1 s ago, and at most an hour ahead",
        ));
    }
    Ok(Some(nanos((at_s - clock.wall_s(0)).max(0.0))))
}

/// What no order may have.
fn limits(order: &Order) -> Result<(), OrderError> {
    if !(MIN_INTERVAL_S..=3600.0).contains(&order.interval_s) {
        return Err(OrderError::new("interval_s", order.interval_s, "0.1 to 3600"));
    }
    if order.timeout_ms == 0 || order.timeout_ms > 86_400_000 {
        return Err(OrderError::new("timeout_ms", order.timeout_ms, "1 to 86400000"));
    }
    if let Some(drain_s) = order.drain_s.filter(|drain_s| !(0.0..=MAX_DRAIN_S).contains(drain_s)) {
        return Err(OrderError::new("drain_s", drain_s, "0 to 86400"));
    }
    if let Some(again_s) = order.read_again_s {
        let possible =
            order.share.of == 1 && order.action == Action::Load && !order.words && order.work.ycsb().is_some();
        if !possible || !(0.0..=MAX_DRAIN_S).contains(&again_s) {
            let allowed = "0 to 86400, and only for action load of YCSB's workload by one process, without words";
            return Err(OrderError::new("read_again_s", again_s, allowed));
        }
    }
    if !(1..=MAX_TRIES).contains(&order.tries) {
        return Err(OrderError::new("tries", order.tries, "1 to 1000"));
    }
    Ok(())
}

/// Sequences of phases: each phase begins when the previous one has ended, answered or not; between sequences all answers are awaited.
fn phase_plans(order: &Order) -> Result<Vec<Vec<PhasePlan>>, OrderError> {
    limits(order)?;
    let stop = order.stop;
    let single = |name: &str, operations, duration_s, salt| {
        plan(
            name,
            &order.schedule,
            operations,
            duration_s,
            order.seed.wrapping_add(salt),
        )
    };
    if order.action == Action::Populate {
        let whole = populate_operations(&order.work);
        let operations = Some(stop.operations.map_or(whole, |operations| operations.min(whole)));
        return Ok(vec![vec![single(POPULATE, operations, stop.duration_s, 0)?]]);
    }
    let mut sequences = Vec::new();
    if order.warm_up_s > 0.0 {
        // The warm-up has gaps of its own, so that the measured phase's do not depend on it.
        sequences.push(vec![single(WARM_UP, None, Some(order.warm_up_s), 1)?]);
    }
    if !order.phases.is_empty() {
        sequences.push(phases(order)?);
        return Ok(sequences);
    }
    let ends_by_itself = matches!(order.schedule, Schedule::Trace { .. });
    if stop.operations.is_none() && stop.duration_s.is_none() && !ends_by_itself {
        return Err(OrderError::because("stop", "requires operations, duration_s or both"));
    }
    sequences.push(vec![single(MEASURE, stop.operations, stop.duration_s, 0)?]);
    Ok(sequences)
}

fn phases(order: &Order) -> Result<Vec<PhasePlan>, OrderError> {
    if order.stop.operations.is_some() || order.stop.duration_s.is_some() {
        return Err(OrderError::because(
            "stop",
            "cannot be combined with phases, which have their own durations",
        ));
    }
    let mut plans: Vec<PhasePlan> = Vec::new();
    for (phase, number) in order.phases.iter().zip(0..) {
        let name = phase.name.as_str();
        let known = TAKEN_NAMES.contains(&name) || plans.iter().any(|plan| plan.name == name);
        if name.is_empty() || known {
            let allowed = "unique names other than populate and warm-up";
            return Err(OrderError::new("phases.name", format!("{name:?}"), allowed));
        }
        // Gaps are each phase's own; the first one's are those that it would have alone.
        let seed = order.seed.wrapping_add(if number == 0 { 0 } else { number + 1 });
        plans.push(plan(name, &phase.schedule, None, Some(phase.duration_s), seed)?);
    }
    Ok(plans)
}

/// Operations that fill the whole table.
fn populate_operations(workload: &Work) -> u64 {
    match workload {
        Work::Ycsb(ycsb) => ycsb.records,
        Work::Program(program) => program.records.div_ceil(program.populate_stride.max(1)),
        Work::Requests(_) => 0,
    }
}
