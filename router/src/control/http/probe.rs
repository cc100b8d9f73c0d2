//! Asking the shards, each for itself: one that doesn't answer hides nothing of the others.

use crate::io::uring::UringDriver;
use crate::shard::mailbox::{Mailbox, Message};
use crate::shard::survey::{Findings, Subject, Survey};
use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// What became of a question.
#[derive(Debug)]
pub(super) enum Answer {
    /// The shard's answer.
    Found(Box<Findings>),
    /// There was none in time, now or to an earlier question.
    Silent,
    /// The shard has ended.
    Ended,
}

/// Asks one shard. At most one of its questions is in the shard's mailbox, so that those to a shard that is stuck
/// don't fill it.
pub(super) struct Probe {
    mailbox: Mailbox<UringDriver>,
    pending: Option<oneshot::Receiver<Findings>>,
}

impl Probe {
    pub(super) fn new(mailbox: Mailbox<UringDriver>) -> Self {
        Self { mailbox, pending: None }
    }

    /// Asks, and waits for the answer until `deadline`. An earlier question that is still open comes first: the
    /// answer to it is passed over.
    async fn ask(&mut self, subject: Subject, deadline: Instant) -> Answer {
        if let Some(pending) = &mut self.pending {
            if timeout_at(deadline, pending).await.is_err() {
                return Answer::Silent;
            }
            self.pending = None;
        }
        let (reply, answer) = oneshot::channel();
        if self.mailbox.send(Message::Survey(Survey { subject, reply })).is_err() {
            return Answer::Silent;
        }
        match timeout_at(deadline, self.pending.insert(answer)).await {
            Err(_) => Answer::Silent,
            Ok(answer) => {
                self.pending = None;
                answer.map_or(Answer::Ended, |findings| Answer::Found(Box::new(findings)))
            }
        }
    }
}

/// Asks all shards at once, and waits for their answers until `deadline`.
pub(super) async fn ask_all(probes: &mut [Probe], subject: Subject, deadline: Instant) -> Vec<Answer> {
    join_all(probes.iter_mut().map(|probe| probe.ask(subject, deadline))).await
}
