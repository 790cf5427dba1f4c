//! Waiting for events of connections, to the nanosecond and with as few timers set as possible.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::{Errno, Result};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

/// Mark of the event that says that an instant waited for has come; no file may have it.
pub const INSTANT: u64 = u64::MAX - 1;

/// Mark of the event that announces messages, see `Mailbox`; no file may have it.
pub const MESSAGE: u64 = u64::MAX;

/// What has come to a file that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The mark with which it is watched.
    pub mark: u64,
    flags: epoll::EventFlags,
}

impl Ready {
    /// Whether it takes bytes again. Of a connection that is being made: it stands.
    pub fn can_write(self) -> bool {
        self.flags.contains(epoll::EventFlags::OUT) && !self.has_failed()
    }

    /// Whether a read brings bytes, an end or an error.
    pub fn can_read(self) -> bool {
        self.flags.contains(epoll::EventFlags::IN) || self.is_ending()
    }

    /// Whether no more bytes will come than those that are there.
    pub fn is_ending(self) -> bool {
        self.flags.contains(epoll::EventFlags::RDHUP) || self.has_failed()
    }

    fn has_failed(self) -> bool {
        self.flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP)
    }
}

/// An epoll with a timer of its own.
///
/// A time limit of `epoll_wait` is a timer of the kernel that each wait sets and takes back, and a paced load waits twice
/// for an operation: for its answer, and for the next one's instant. This timer is set only if it would come too late.
pub struct Events {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// When the timer fires; over, if it has fired.
    set_for_ns: u64,
}

impl Events {
    /// Watches nothing yet.
    ///
    /// # Errors
    ///
    /// What the kernel says, such as too many open files.
    pub fn new() -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Edge-triggered: a timer that is set again needs no reading.
        let once = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(INSTANT), once)?;
        Ok(Self {
            epoll,
            timer,
            set_for_ns: 0,
        })
    }

    /// As `wait`, of files that are watched: `INSTANT` is left out, and an interrupt is no event.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    #[inline]
    pub fn ready<'room>(
        &mut self,
        room: &'room mut [MaybeUninit<epoll::Event>],
        now_ns: u64,
        until_ns: Option<u64>,
    ) -> Result<impl Iterator<Item = Ready> + use<'room>> {
        let events = match self.wait(room, now_ns, until_ns) {
            Ok(events) => events,
            Err(Errno::INTR) => &mut [],
            Err(error) => return Err(error),
        };
        let events = events.iter().filter(|event| event.data.u64() != INSTANT);
        Ok(events.map(|event| Ready {
            mark: event.data.u64(),
            flags: event.flags,
        }))
    }

    /// Events that are there, or come by `until_ns`, with `INSTANT` among them perhaps; none where it is `now_ns` or before.
    /// May return before `until_ns` without any other event. `None` waits without a limit. Both instants are of one
    /// monotonic clock, which is the same at each call.
    ///
    /// # Errors
    ///
    /// What the kernel says, such as an interrupt.
    #[inline]
    pub fn wait<'room>(
        &mut self,
        room: &'room mut [MaybeUninit<epoll::Event>],
        now_ns: u64,
        until_ns: Option<u64>,
    ) -> Result<&'room mut [epoll::Event]> {
        let at_once = until_ns.is_some_and(|until_ns| until_ns <= now_ns);
        if let (Some(until_ns), false) = (until_ns, at_once)
            && (self.set_for_ns <= now_ns || self.set_for_ns > until_ns)
        {
            let setting = Itimerspec {
                it_interval: Timespec::default(),
                it_value: Timespec::try_from(Duration::from_nanos(until_ns - now_ns)).unwrap_or_default(),
            };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
            self.set_for_ns = until_ns;
        }
        let limit = at_once.then(Timespec::default);
        let (events, _) = epoll::wait(&self.epoll, room, limit.as_ref())?;
        Ok(events)
    }
}

impl AsFd for Events {
    /// The epoll, to watch files with.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::time::Instant;

    const MS: u64 = 1_000_000;

    fn marks(events: &mut Events, now_ns: u64, until_ns: Option<u64>) -> Vec<u64> {
        let mut room = [const { MaybeUninit::uninit() }; 4];
        let found = events.wait(&mut room, now_ns, until_ns).unwrap();
        found.iter().map(|event| event.data.u64()).collect()
    }

    #[test]
    fn waits_until_the_instant_and_no_longer() {
        let mut events = Events::new().unwrap();
        let began = Instant::now();
        assert!(marks(&mut events, 5 * MS, Some(5 * MS)).is_empty());
        assert_eq!(marks(&mut events, 5 * MS, Some(7 * MS)), [INSTANT]);
        assert!(began.elapsed() >= Duration::from_millis(2));
        // It is over, so it is set again; a fired timer that nobody read is no event.
        assert_eq!(marks(&mut events, 7 * MS, Some(8 * MS)), [INSTANT]);
        assert!(began.elapsed() >= Duration::from_millis(3));
    }

    #[test]
    fn a_timer_that_fires_early_enough_is_not_set_again_and_one_too_late_is() {
        let mut events = Events::new().unwrap();
        let ready = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        epoll::add(&events, &ready, epoll::EventData::new_u64(7), epoll::EventFlags::IN).unwrap();
        assert_eq!(marks(&mut events, 0, Some(60_000 * MS)), [7]);
        assert_eq!(events.set_for_ns, 60_000 * MS);
        assert_eq!(marks(&mut events, MS, Some(2 * MS)), [7]);
        assert_eq!(events.set_for_ns, 2 * MS);
        assert_eq!(marks(&mut events, MS, Some(60_000 * MS)), [7]);
        assert_eq!(events.set_for_ns, 2 * MS);
        assert_eq!(marks(&mut events, MS, None), [7]);
    }
}
