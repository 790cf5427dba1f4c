//! Waiting for events of connections, to the nanosecond.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::io::{Errno, Result};
use rustix::time::Timespec;

/// Events that are there, or come within the time limit; none after it. `None` waits without a limit.
///
/// Linux has had time limits to the nanosecond since 5.11 (`epoll_pwait2`). An older kernel, or an emulator that does not
/// know that call, is asked in two steps, which costs a system call more for each wait.
///
/// # Errors
///
/// What the kernel says, such as an interrupt.
#[inline]
pub fn wait<'room>(
    epoll: impl AsFd,
    room: &'room mut [MaybeUninit<epoll::Event>],
    limit: Option<&Timespec>,
) -> Result<&'room mut [epoll::Event]> {
    match epoll::wait(&epoll, &mut *room, limit) {
        Err(Errno::NOSYS) => wait_in_two_steps(epoll.as_fd(), room, limit),
        // By its length, because the borrow of the room would outlive the other arm.
        Ok((events, _)) => {
            let count = events.len();
            Ok(filled(room, count))
        }
        Err(error) => Err(error),
    }
}

#[cold]
fn wait_in_two_steps<'room>(
    epoll: BorrowedFd<'_>,
    room: &'room mut [MaybeUninit<epoll::Event>],
    limit: Option<&Timespec>,
) -> Result<&'room mut [epoll::Event]> {
    if poll(&mut [PollFd::new(&epoll, PollFlags::IN)], limit)? == 0 {
        return Ok(&mut []);
    }
    let most = i32::try_from(room.len()).unwrap_or(i32::MAX);
    // SAFETY: the room holds `most` events, whose layout is that of the kernel's `struct epoll_event` in both libraries.
    #[allow(unsafe_code)]
    let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), room.as_mut_ptr().cast(), most, 0) };
    match usize::try_from(count) {
        Ok(count) => Ok(filled(room, count)),
        Err(_) => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

/// The first events of a room, which the kernel has just written.
fn filled(room: &mut [MaybeUninit<epoll::Event>], count: usize) -> &mut [epoll::Event] {
    let written = &mut room[..count];
    // SAFETY: the kernel has written as many events as it says.
    #[allow(unsafe_code)]
    unsafe {
        &mut *(std::ptr::from_mut(written) as *mut [epoll::Event])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::time::{Duration, Instant};

    type Wait = for<'room> fn(
        BorrowedFd<'_>,
        &'room mut [MaybeUninit<epoll::Event>],
        Option<&Timespec>,
    ) -> Result<&'room mut [epoll::Event]>;

    fn in_one(epoll: BorrowedFd<'_>, room: &mut [MaybeUninit<epoll::Event>], limit: Option<&Timespec>) -> usize {
        wait(epoll, room, limit).unwrap().len()
    }

    #[test]
    fn both_ways_give_the_same_events_and_wait_as_long() {
        let two_steps: Wait = wait_in_two_steps;
        let source = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let ready = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        epoll::add(&source, &ready, epoll::EventData::new_u64(7), epoll::EventFlags::IN).unwrap();
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: 1_500_000,
        };
        let mut room = [const { MaybeUninit::uninit() }; 4];

        let began = Instant::now();
        assert_eq!(two_steps(source.as_fd(), &mut room, Some(&limit)).unwrap().len(), 0);
        assert!(began.elapsed() >= Duration::from_micros(1_500));
        assert_eq!(in_one(source.as_fd(), &mut room, Some(&limit)), 0);

        rustix::io::write(&ready, &1u64.to_ne_bytes()).unwrap();
        let events = two_steps(source.as_fd(), &mut room, None).unwrap();
        assert_eq!(events.iter().map(|event| event.data.u64()).collect::<Vec<_>>(), [7]);
        assert_eq!(in_one(source.as_fd(), &mut room, None), 1);
    }
}
