//! Mailboxes: messages of helper threads to a thread that waits for events.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, epoll, eventfd};

use crate::events::{Events, MESSAGE};

/// The end of whoever waits. Messages that have come are announced by an event marked `events::MESSAGE`.
pub struct Mailbox<M> {
    sender: MailSender<M>,
    messages: Receiver<M>,
}

/// The end of a helper thread.
pub struct MailSender<M> {
    messages: Sender<M>,
    /// Wakes who waits: an eventfd that its epoll watches.
    wake_up: Arc<OwnedFd>,
}

impl<M> Mailbox<M> {
    /// A mailbox that is announced among those events.
    ///
    /// # Errors
    ///
    /// What the kernel says, such as too many open files.
    pub fn new(events: &Events) -> io::Result<Self> {
        let wake_up = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mark = epoll::EventData::new_u64(MESSAGE);
        epoll::add(events, &wake_up, mark, epoll::EventFlags::IN)?;
        let (sender, messages) = channel();
        Ok(Self {
            sender: MailSender {
                messages: sender,
                wake_up: Arc::new(wake_up),
            },
            messages,
        })
    }

    /// How other threads reach this mailbox.
    pub fn sender(&self) -> MailSender<M> {
        self.sender.clone()
    }

    /// Everything that has come; the event is over.
    pub fn take(&self) -> Vec<M> {
        let mut count = [0; 8];
        // Only resets the eventfd; nothing to read means that it is reset already.
        let _ = rustix::io::read(&*self.sender.wake_up, &mut count);
        self.messages.try_iter().collect()
    }
}

impl<M> MailSender<M> {
    /// Hands over a message and wakes who waits. One that has ended takes no messages, and needs none.
    pub fn send(&self, message: M) {
        if self.messages.send(message).is_ok() {
            let _ = rustix::io::write(&*self.wake_up, &1_u64.to_ne_bytes());
        }
    }
}

impl<M> Clone for MailSender<M> {
    fn clone(&self) -> Self {
        Self {
            messages: self.messages.clone(),
            wake_up: Arc::clone(&self.wake_up),
        }
    }
}
