//! Asking the shards, each for itself: one that doesn't answer hides nothing of the others.

use crate::io::uring::UringDriver;
use crate::shard::mailbox::{Mailbox, Message};
use crate::shard::survey::{Findings, Subject, Survey};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
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

    /// Puts a question into the mailbox, unless an earlier one is still there.
    fn send(&mut self, subject: Subject) -> bool {
        if let Some(pending) = &mut self.pending {
            match pending.try_recv() {
                Err(TryRecvError::Empty) => return false,
                // An answer that came too late, or never will.
                Ok(_) | Err(TryRecvError::Closed) => {}
            }
        }
        let (reply, answer) = oneshot::channel();
        let is_sent = self.mailbox.send(Message::Survey(Survey { subject, reply })).is_ok();
        self.pending = is_sent.then_some(answer);
        is_sent
    }

    /// Waits for the answer to what was sent.
    async fn receive(&mut self, deadline: Instant) -> Answer {
        let Some(pending) = &mut self.pending else { return Answer::Silent };
        match timeout_at(deadline, pending).await {
            Err(_) => Answer::Silent,
            Ok(answer) => {
                self.pending = None;
                answer.map_or(Answer::Ended, |findings| Answer::Found(Box::new(findings)))
            }
        }
    }
}

/// Asks all shards, and waits for their answers until `deadline`.
pub(super) async fn ask_all(probes: &mut [Probe], subject: Subject, deadline: Instant) -> Vec<Answer> {
    let sent: Vec<bool> = probes.iter_mut().map(|probe| probe.send(subject)).collect();
    let mut answers = Vec::with_capacity(probes.len());
    for (probe, is_sent) in probes.iter_mut().zip(sent) {
        answers.push(if is_sent { probe.receive(deadline).await } else { Answer::Silent });
    }
    answers
}
