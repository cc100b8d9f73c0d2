//! Messages to a shard from other threads.

use crate::io::driver::Wake;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Messages that wait at the most. Control sends few, and waits for the shard when it is behind.
const MESSAGES_MAX: usize = 64;

/// What another thread tells a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Stop accepting, close all connections, then end.
    Shutdown,
}

/// The sending end of a shard's mailbox.
#[derive(Clone)]
pub struct Mailbox {
    messages: SyncSender<Message>,
    wake: Arc<dyn Wake>,
}

impl Mailbox {
    /// A mailbox, and the shard's end of it.
    #[must_use]
    pub fn new(wake: Arc<dyn Wake>) -> (Self, Receiver<Message>) {
        let (messages, receiver) = sync_channel(MESSAGES_MAX);
        (Self { messages, wake }, receiver)
    }

    /// Puts a message in and wakes the shard. `false` if the shard is gone or doesn't look at its mailbox.
    #[must_use]
    pub fn send(&self, message: Message) -> bool {
        match self.messages.try_send(message) {
            Ok(()) => {
                self.wake.wake();
                true
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}
