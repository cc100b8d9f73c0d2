//! Whether the router is well: every shard turns, and the control thread does.

use super::facts::ControlFacts;
use super::probe::{Answer, Probe, ask_all};
use crate::control::handle::ShardsHandle;
use crate::shard::activity::Doing;
use crate::shard::survey::Subject;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// How long an answer may take. A thread that turns needs no more than milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long what was found holds for others who ask.
const HOLDS_FOR: Duration = Duration::from_millis(500);

/// Looks after the router's health.
pub(super) struct Health {
    shards: ShardsHandle,
    probes: Vec<Probe>,
    control: Sender<oneshot::Sender<ControlFacts>>,
    found: Option<(Instant, Vec<String>)>,
}

impl Health {
    pub(super) fn new(shards: ShardsHandle, control: Sender<oneshot::Sender<ControlFacts>>) -> Self {
        let probes = shards.mailboxes().iter().cloned().map(Probe::new).collect();
        Self { shards, probes, control, found: None }
    }

    /// What is wrong, a sentence each; nothing if all is well.
    pub(super) async fn faults(&mut self) -> Vec<String> {
        if let Some((at, faults)) = &self.found
            && at.elapsed() < HOLDS_FOR
        {
            return faults.clone();
        }
        let deadline = Instant::now() + PATIENCE;
        let (reply, answer) = oneshot::channel();
        let is_asked = self.control.try_send(reply).is_ok();
        let mut faults = Vec::new();
        let answers = ask_all(&mut self.probes, Subject::Totals, deadline).await;
        for ((shard, answer), presence) in answers.iter().enumerate().zip(self.shards.presences()) {
            match answer {
                Answer::Found(_) if presence.is_stuck.load(Ordering::Relaxed) => {
                    faults.push(format!("shard {shard} has been stuck for seconds until just now"));
                }
                Answer::Found(_) => {}
                Answer::Silent => match presence.activity.sample().doing {
                    Doing::Waiting => {
                        faults.push(format!("shard {shard} doesn't answer: its thread doesn't run"));
                    }
                    doing => faults.push(format!("shard {shard} doesn't answer: it is stuck while {doing}")),
                },
                Answer::Ended => faults.push(format!("shard {shard} has ended")),
            }
        }
        if !is_asked || !matches!(timeout_at(deadline, answer).await, Ok(Ok(_))) {
            faults.push("the control thread doesn't answer".to_owned());
        }
        self.found = Some((Instant::now(), faults.clone()));
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::ShardId;
    use crate::io::driver::Wake;
    use crate::io::uring::UringDriver;
    use crate::shard::mailbox::{Mailbox, Message};
    use crate::shard::seat::Presence;
    use crate::shard::survey::Findings;
    use std::sync::Arc;
    use std::sync::mpsc::Receiver;
    use tokio::sync::mpsc;

    struct NoWake;

    impl Wake for NoWake {
        fn wake(&self) {}
    }

    type Questions = mpsc::Receiver<oneshot::Sender<ControlFacts>>;

    /// Two shards' mailboxes, and the control thread's questions.
    fn router() -> (Health, Vec<Receiver<Message<UringDriver>>>, Questions) {
        let (mailboxes, letters): (Vec<_>, _) = (0..2).map(|_| Mailbox::new(Arc::new(NoWake))).unzip();
        let presences = (0..2).map(|_| Presence::default()).collect();
        let (control, questions) = mpsc::channel(4);
        (Health::new(ShardsHandle::new(&mailboxes, presences), control), letters, questions)
    }

    /// What a shard that turns does about the questions in its mailbox. Returns how many there were.
    fn turn(shard: u16, letters: &Receiver<Message<UringDriver>>) -> usize {
        let mut count = 0;
        while let Ok(message) = letters.try_recv() {
            if let Message::Survey(survey) = message {
                count += 1;
                // Whoever asked may have stopped waiting.
                let _gone = survey.reply.send(Findings { shard: ShardId(shard), ..Findings::default() });
            }
        }
        count
    }

    /// Asks, while `turning` shards turn, and the control thread does if it is to.
    async fn faults(
        health: &mut Health,
        letters: &[Receiver<Message<UringDriver>>],
        questions: &mut Questions,
        turning: &[u16],
        controls: bool,
    ) -> Vec<String> {
        // Time is virtual here: what was found before holds no more.
        tokio::time::advance(HOLDS_FOR).await;
        let mut asked = std::pin::pin!(health.faults());
        loop {
            tokio::select! {
                biased;
                faults = &mut asked => return faults,
                () = tokio::time::sleep(Duration::from_millis(1)) => {
                    for shard in turning {
                        turn(*shard, &letters[usize::from(*shard)]);
                    }
                    while controls && let Ok(reply) = questions.try_recv() {
                        let _gone = reply.send(ControlFacts::default());
                    }
                }
            }
        }
    }

    #[test]
    fn a_shard_that_does_not_turn_is_named_until_it_does() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let (mut health, letters, mut questions) = router();
            let mut look = async |turning: &[u16], controls| {
                faults(&mut health, &letters, &mut questions, turning, controls).await
            };
            assert!(look(&[0, 1], true).await.is_empty());
            for _ in 0..3 {
                let faults = look(&[0], true).await;
                assert_eq!(faults, ["shard 1 doesn't answer: its thread doesn't run"]);
            }
            assert!(look(&[0, 1], true).await.is_empty(), "it turns again");
            assert_eq!(look(&[0, 1], false).await, ["the control thread doesn't answer"]);
        });
    }

    /// However often somebody asks, a shard that is stuck has one question in its mailbox.
    #[test]
    fn questions_do_not_pile_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let (mut health, letters, mut questions) = router();
            for _ in 0..20 {
                assert_eq!(faults(&mut health, &letters, &mut questions, &[0], true).await.len(), 1);
            }
            assert_eq!(turn(1, &letters[1]), 1);
        });
    }
}
