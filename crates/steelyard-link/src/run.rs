//! The live link: one thread that moves frames between TAP devices through a medium.
//!
//! The medium's virtual clock is the monotonic clock since the start. A timer that rings late makes one delivery late; the next
//! is due when the medium says, not so long after the late one, so lateness (*slip*) does not accumulate.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime, timerfd_create,
    timerfd_settime,
};
use serde::Serialize;

use crate::frames::Frames;
use crate::late::{Late, Lateness};
use crate::medium::{Delivery, Frame, Loss, Medium};
use crate::tap::{Mac, Tap};

/// Bytes of an Ethernet header: two addresses and a type.
const HEADER_BYTES: usize = 14;
/// Bytes of the tag of a virtual network, which the MTU does not count.
const TAG_BYTES: usize = 4;
/// The lowest bit of a destination's first byte: for all, or for a group, which here is all.
const GROUP: u8 = 1;
/// Frames that are read from one device before the others have their turn.
const READ_AT_ONCE: usize = 32;
const EVENTS_AT_ONCE: usize = 64;
const TIMER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const SECOND_NS: u64 = 1_000_000_000;
/// The program wakes at least so often, so that it sees its own pauses also where nothing is under way.
const BEAT_NS: u64 = 5_000_000;
/// Pauses from here on are counted; shorter ones are what waking takes.
const PAUSE_NS: u64 = 1_000_000;

/// What went wrong while frames were moved.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The kernel refused.
    #[error("cannot {what}: {source}")]
    Kernel {
        /// To do what.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A word is not possible.
    #[error("word: {0}")]
    Word(String),
    /// A device can no longer be read.
    #[error("cannot read from the device of port {port}: {source}; was its interface removed?")]
    Port {
        /// Place of the port in the configuration, from 0.
        port: usize,
        /// Why.
        source: io::Error,
    },
}

/// What a link has moved since it was ready. A receiver is a port that a frame is for: one, or with a broadcast all others;
/// `receivers` = `delivered` + `dropped` + `lost` + `under_way`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Seconds since the link was ready.
    pub t_s: f64,
    /// Frames that nodes sent to other ports.
    pub frames: u64,
    /// Their bytes, without Ethernet headers.
    pub bytes: u64,
    /// Their receivers.
    pub receivers: u64,
    /// Receivers that have got their frame.
    pub delivered: u64,
    /// Receivers whose frame met a full queue.
    pub dropped: u64,
    /// Receivers whose frame was lost: at random, at the retry limit, or because the interface was down.
    pub lost: u64,
    /// Receivers whose frame is in the medium.
    pub under_way: u64,
    /// Frames to a hardware address that no port has; not among `frames`.
    pub unknown: u64,
    /// Frames that the kernel dropped before this program could read them; not among `frames`.
    pub kernel_dropped: u64,
    /// Mean lateness of deliveries, in microseconds.
    pub slip_us_mean: f64,
    /// Most lateness since the report before; in the last report, since the start.
    pub slip_us_max: f64,
    /// Time for which this program stood still, in seconds: by how much it woke later than it wanted to, where that was 1 ms or
    /// more.
    pub paused_s: f64,
    /// Processor time of this program, in seconds.
    pub cpu_s: f64,
}

/// The monotonic clock from an origin.
#[derive(Clone, Copy)]
struct Clock {
    origin_ns: u64,
}

impl Clock {
    fn start() -> Self {
        Self {
            origin_ns: time_ns(ClockId::Monotonic),
        }
    }

    fn now_ns(self) -> u64 {
        time_ns(ClockId::Monotonic) - self.origin_ns
    }
}

#[allow(clippy::cast_sign_loss)] // neither clock is ever below 0
fn time_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

/// A medium between devices.
pub struct Live {
    medium: Late,
    /// Of the ports.
    names: Vec<String>,
    taps: Vec<Tap>,
    ports: Ports,
    frames: Frames,
    epoll: OwnedFd,
    timer: OwnedFd,
    clock: Clock,
    armed_ns: u64,
    report: Report,
    slip_ns: u64,
    slip_max_ns: u64,
    slip_max_since_report_ns: u64,
    paused_ns: u64,
    deliveries: Vec<Delivery>,
    losses: Vec<(u64, Loss)>,
}

impl Live {
    /// Between devices with these hardware addresses, in the order of the medium's ports and their `names`. Its clock starts now.
    pub fn new(medium: Late, names: Vec<String>, taps: Vec<(Mac, Tap)>, mtu: u32) -> Result<Self, LinkError> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed("create an epoll"))?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )
        .map_err(failed("create a timer"))?;
        // Edge-triggered: a timer that is set again needs no reading.
        watch(
            &poll,
            timer.as_fd(),
            TIMER,
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        for (port, (_, tap)) in taps.iter().enumerate() {
            watch(&poll, tap.as_fd(), port as u64, epoll::EventFlags::IN)?;
        }
        let ports = Ports {
            by_mac: taps.iter().enumerate().map(|(port, (mac, _))| (*mac, port)).collect(),
            count: taps.len(),
        };
        Ok(Self {
            medium,
            names,
            taps: taps.into_iter().map(|(_, tap)| tap).collect(),
            ports,
            frames: Frames::new(mtu as usize + HEADER_BYTES + TAG_BYTES),
            epoll: poll,
            timer,
            clock: Clock::start(),
            armed_ns: 0,
            report: Report::default(),
            slip_ns: 0,
            slip_max_ns: 0,
            slip_max_since_report_ns: 0,
            paused_ns: 0,
            deliveries: Vec::new(),
            losses: Vec::new(),
        })
    }

    /// Moves frames until `stop` can be read, or `tell`, which gets a report at every interval, says false. Words are taken within
    /// 5 ms; one that is not possible ends it with an error. Returns the last report.
    pub fn run(
        &mut self,
        stop: BorrowedFd<'_>,
        every: Option<Duration>,
        words: &Receiver<Result<Lateness, String>>,
        tell: &mut dyn FnMut(&Report) -> bool,
    ) -> Result<Report, LinkError> {
        watch(&self.epoll, stop, STOP, epoll::EventFlags::IN)?;
        let every_ns = every.map(|every| u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1));
        let mut report_ns = every_ns;
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_AT_ONCE];
        let mut wanted_ns = u64::MAX;
        loop {
            let now_ns = self.clock.now_ns();
            self.paused_ns += pause_ns(wanted_ns, now_ns);
            self.step(now_ns);
            for word in words.try_iter() {
                let set = word.and_then(|word| self.medium.set(now_ns, &word, &self.names));
                set.map_err(LinkError::Word)?;
            }
            if let (Some(due_ns), Some(every_ns)) = (report_ns, every_ns) {
                if now_ns >= due_ns {
                    report_ns = Some(now_ns - now_ns % every_ns + every_ns);
                    let report = self.report(now_ns)?;
                    if !tell(&report) {
                        break;
                    }
                }
            }
            let beat_ns = now_ns + BEAT_NS;
            wanted_ns = self
                .medium
                .wake_ns()
                .into_iter()
                .chain(report_ns)
                .chain([beat_ns])
                .min()
                .unwrap_or(beat_ns);
            let limit = self.wait_until(wanted_ns)?;
            let events = match epoll::wait(&self.epoll, &mut events, limit.as_ref()) {
                Ok((events, _)) => events,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(failed("wait for frames")(error)),
            };
            let mut stopped = false;
            for event in &*events {
                match event.data.u64() {
                    TIMER => {}
                    STOP => stopped = true,
                    port => self.read(usize::try_from(port).unwrap_or(usize::MAX))?,
                }
            }
            if stopped {
                break;
            }
        }
        let mut report = self.report(self.clock.now_ns())?;
        report.slip_us_max = microseconds(self.slip_max_ns);
        Ok(report)
    }

    /// Sets the timer. Returns no time to wait if the instant is over.
    fn wait_until(&mut self, wake_ns: u64) -> Result<Option<Timespec>, LinkError> {
        if wake_ns <= self.clock.now_ns() {
            return Ok(Some(Timespec::default()));
        }
        if wake_ns != self.armed_ns {
            let at = Duration::from_nanos(self.clock.origin_ns + wake_ns);
            let setting = Itimerspec {
                it_interval: Timespec::default(),
                it_value: Timespec::try_from(at).unwrap_or_default(),
            };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting).map_err(failed("set the timer"))?;
            self.armed_ns = wake_ns;
        }
        Ok(None)
    }

    /// Carries out what is due and hands over what arrives.
    fn step(&mut self, now_ns: u64) {
        self.medium.advance(now_ns, &mut self.deliveries);
        for delivery in self.deliveries.drain(..) {
            let Some(frame) = self.frames.get(delivery.id) else {
                continue;
            };
            let slip_ns = self.clock.now_ns().saturating_sub(delivery.at_ns);
            // An interface that is down takes nothing.
            if self.taps[delivery.to].write(frame).is_ok() {
                self.report.delivered += 1;
                self.slip_ns += slip_ns;
                self.slip_max_since_report_ns = self.slip_max_since_report_ns.max(slip_ns);
            } else {
                self.report.lost += 1;
            }
            self.frames.settle(delivery.id);
        }
        self.medium.losses(&mut self.losses);
        for (id, loss) in self.losses.drain(..) {
            match loss {
                Loss::QueueFull => self.report.dropped += 1,
                Loss::Lost => self.report.lost += 1,
            }
            self.frames.settle(id);
        }
        // What an idle medium has not delivered it has lost, also if it did not say so.
        if self.frames.owed() > 0 && self.medium.due_ns().is_none() {
            self.report.lost += self.frames.clear();
        }
    }

    /// Reads what a node sent and offers it to the medium.
    fn read(&mut self, port: usize) -> Result<(), LinkError> {
        for _ in 0..READ_AT_ONCE {
            let Some(place) = self.frames.take() else {
                return self.discard(port);
            };
            let length = match self.taps[port].read(self.frames.buffer(place)) {
                Ok(length) => length,
                Err(source) => return Err(LinkError::Port { port, source }),
            };
            let Some(length) = length else {
                self.frames.give_back(place);
                break;
            };
            let route = self.ports.route(port, &self.frames.buffer(place)[..length]);
            let (Some(route), Some(bytes)) = (route, length.checked_sub(HEADER_BYTES)) else {
                self.report.unknown += 1;
                self.frames.give_back(place);
                continue;
            };
            self.count(bytes, route.receivers);
            let now_ns = self.clock.now_ns();
            if self.medium.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                self.step(now_ns);
            }
            let id = self.frames.keep(place, length, route.receivers);
            let frame = Frame {
                id,
                from: port,
                to: route.to,
                bytes,
            };
            if !self.medium.offer(now_ns, frame) {
                self.report.dropped += route.receivers as u64;
                (0..route.receivers).for_each(|_| self.frames.settle(id));
            }
        }
        Ok(())
    }

    /// Reads one frame for which there is no room.
    fn discard(&mut self, port: usize) -> Result<(), LinkError> {
        let mut header = [0; HEADER_BYTES];
        let read = self.taps[port].read(&mut header);
        let Some(length) = read.map_err(|source| LinkError::Port { port, source })? else {
            return Ok(());
        };
        match self.ports.route(port, &header[..length]) {
            Some(route) => {
                self.count(0, route.receivers);
                self.report.dropped += route.receivers as u64;
            }
            None => self.report.unknown += 1,
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize, receivers: usize) {
        self.report.frames += 1;
        self.report.bytes += bytes as u64;
        self.report.receivers += receivers as u64;
    }

    /// What was moved so far; begins a new interval of the most slip.
    #[allow(clippy::cast_precision_loss)] // counts stay below 2^53
    fn report(&mut self, now_ns: u64) -> Result<Report, LinkError> {
        self.slip_max_ns = self.slip_max_ns.max(self.slip_max_since_report_ns);
        let slip_max_ns = std::mem::take(&mut self.slip_max_since_report_ns);
        let mut kernel_dropped = 0;
        for (port, tap) in self.taps.iter().enumerate() {
            kernel_dropped += tap
                .dropped_by_kernel()
                .map_err(|source| LinkError::Port { port, source })?;
        }
        Ok(Report {
            t_s: now_ns as f64 / 1e9,
            under_way: self.frames.owed(),
            kernel_dropped,
            slip_us_mean: microseconds(self.slip_ns) / (self.report.delivered.max(1) as f64),
            slip_us_max: microseconds(slip_max_ns),
            paused_s: self.paused_ns as f64 / 1e9,
            cpu_s: time_ns(ClockId::ProcessCPUTime) as f64 / 1e9,
            ..self.report.clone()
        })
    }
}

/// Which ports a frame goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    /// One port; none: all others.
    to: Option<usize>,
    receivers: usize,
}

/// The switch's table: hardware addresses of the configuration, none learnt.
struct Ports {
    by_mac: HashMap<Mac, usize>,
    count: usize,
}

impl Ports {
    /// `None`: nobody has that address, or the sender itself.
    fn route(&self, from: usize, frame: &[u8]) -> Option<Route> {
        let destination: Mac = frame.get(..6)?.try_into().ok()?;
        if destination[0] & GROUP == GROUP {
            return (self.count > 1).then_some(Route {
                to: None,
                receivers: self.count - 1,
            });
        }
        let to = *self.by_mac.get(&destination)?;
        (to != from).then_some(Route {
            to: Some(to),
            receivers: 1,
        })
    }
}

/// How long the program stood still, if it woke at `now_ns` and wanted to at `wanted_ns` at the latest.
fn pause_ns(wanted_ns: u64, now_ns: u64) -> u64 {
    let late_ns = now_ns.saturating_sub(wanted_ns);
    if late_ns < PAUSE_NS { 0 } else { late_ns }
}

#[allow(clippy::cast_precision_loss)] // 2^53 ns are 104 days
fn microseconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1e3
}

fn watch(poll: &OwnedFd, file: BorrowedFd<'_>, id: u64, flags: epoll::EventFlags) -> Result<(), LinkError> {
    epoll::add(poll, file, epoll::EventData::new_u64(id), flags).map_err(failed("watch a file"))
}

fn failed(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> LinkError {
    move |error| LinkError::Kernel {
        what,
        source: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_wake_is_a_pause_from_one_millisecond_on() {
        assert_eq!(pause_ns(5 * PAUSE_NS, 4 * PAUSE_NS), 0, "woken early, by a frame");
        assert_eq!(pause_ns(5 * PAUSE_NS, 6 * PAUSE_NS - 1), 0, "what waking takes");
        assert_eq!(pause_ns(5 * PAUSE_NS, 9 * PAUSE_NS), 4 * PAUSE_NS);
        assert_eq!(pause_ns(u64::MAX, 9 * PAUSE_NS), 0, "before the first wait");
    }

    #[test]
    fn frames_go_by_hardware_address_and_groups_to_all() {
        let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]];
        let ports = Ports {
            by_mac: macs.iter().copied().zip(0..).collect(),
            count: 3,
        };
        let frame = |destination: Mac| [&destination[..], &macs[0][..], &[8, 0]].concat();
        let one = |to| {
            Some(Route {
                to: Some(to),
                receivers: 1,
            })
        };
        let all = Some(Route { to: None, receivers: 2 });
        for (destination, route) in [
            (macs[2], one(2)),
            ([0xff; 6], all),
            ([0x33, 0x33, 0, 0, 0, 1], all),
            (macs[0], None),
            ([2, 0, 0, 0, 0, 9], None),
        ] {
            assert_eq!(ports.route(0, &frame(destination)), route, "{destination:?}");
        }
        assert_eq!(ports.route(0, &[0xff; 5]), None, "no whole address");
    }
}
