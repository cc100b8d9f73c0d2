//! Asking the shards, and adding up what they say.

use crate::base::id::{ConnectionKey, ShardId};
use crate::io::uring::{UringDriver, UringSocket};
use crate::routing::AddressCounters;
use crate::shard::mailbox::{Mailbox, Message};
use crate::shard::meters::Meters;
use crate::shard::survey::{
    AddressFacts, ConnectionFacts, Findings, LinkFacts, Load, Subject, Survey, Totals,
};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How soon a full mailbox is tried again.
const MAILBOX_PAUSE: Duration = Duration::from_millis(1);

/// How long a shard may take to an answer. A shard that turns needs no more than milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the later pages of a long answer are served from what was found for the first one.
const PAGES_FOR: Duration = Duration::from_secs(10);

/// What is dealt with before other tasks of the control thread have their turn.
pub(super) const AT_ONCE: usize = 512;

/// What all shards together say, in the order in which it is shown.
#[derive(Debug, Default)]
pub(in crate::control) struct Gathered {
    /// Of each shard.
    pub(in crate::control) totals: Vec<Totals>,
    /// By number.
    pub(super) connections: Vec<ConnectionFacts>,
    /// By number.
    pub(super) links: Vec<LinkFacts>,
    /// By key, each once.
    pub(in crate::control) addresses: Vec<AddressFacts>,
    /// Of each shard, if that was asked for.
    pub(in crate::control) meters: Vec<Meters>,
    /// Of each shard; nothing unless that was asked for.
    pub(in crate::control) loads: Vec<Load>,
}

impl Gathered {
    /// A number of all shards together.
    pub(in crate::control) fn sum(&self, number: impl Fn(&Totals) -> u64) -> u64 {
        self.totals.iter().map(number).sum()
    }
}

/// The shards, as the agent knows them.
pub(super) struct Shards {
    mailboxes: Vec<Mailbox<UringDriver>>,
    /// What was found last, for later pages.
    pages: Option<(Subject, Instant, Rc<Gathered>)>,
}

impl Shards {
    /// The shards of these mailboxes.
    pub(super) fn new(mailboxes: Vec<Mailbox<UringDriver>>) -> Self {
        Self { mailboxes, pages: None }
    }

    /// Asks all shards. With `is_later_page`, what was found for an earlier page will do.
    ///
    /// # Errors
    /// A shard doesn't answer: a sentence for whoever asked.
    pub(super) async fn ask(
        &mut self,
        subject: Subject,
        is_later_page: bool,
    ) -> Result<Rc<Gathered>, String> {
        if is_later_page
            && let Some((found, at, gathered)) = &self.pages
            && *found == subject
            && at.elapsed() < PAGES_FOR
        {
            return Ok(gathered.clone());
        }
        self.pages = None;
        let mut answers = Vec::new();
        for shard in 0..self.mailboxes.len() {
            let (reply, answer) = oneshot::channel();
            self.send(shard, Message::Survey(Survey { subject, reply })).await?;
            answers.push(answer);
        }
        let mut all = Vec::new();
        for (shard, answer) in answers.into_iter().enumerate() {
            let findings = tokio::time::timeout(PATIENCE, answer).await.ok().and_then(Result::ok);
            all.push(findings.ok_or_else(|| no_answer(shard))?);
        }
        let gathered = Rc::new(gather(all).await);
        let at = Instant::now();
        match subject {
            Subject::Totals | Subject::Meters | Subject::Stuck(_) => {}
            Subject::Connections | Subject::Links | Subject::Addresses => {
                self.pages = Some((subject, at, gathered.clone()));
            }
        }
        Ok(gathered)
    }

    /// Forgets what was kept for later pages, once nobody can want it any more.
    pub(super) fn forget_pages(&mut self) {
        self.pages.take_if(|(_, at, _)| at.elapsed() >= PAGES_FOR);
    }

    /// Closes a client's connection. Tells whether it was there.
    ///
    /// # Errors
    /// The shard doesn't answer: a sentence for whoever asked.
    pub(super) async fn close(&self, shard: ShardId, connection: ConnectionKey) -> Result<bool, String> {
        let shard = usize::from(shard.0);
        let (reply, answer) = oneshot::channel();
        self.send(shard, Message::Close { connection, reply }).await?;
        let closed = tokio::time::timeout(PATIENCE, answer).await.ok().and_then(Result::ok);
        closed.ok_or_else(|| no_answer(shard))
    }

    /// Logs the frames of a client's connection, or does so no more. Tells whether it was there.
    ///
    /// # Errors
    /// The shard doesn't answer: a sentence for whoever asked.
    pub(super) async fn trace(
        &self,
        shard: ShardId,
        connection: ConnectionKey,
        is_on: bool,
    ) -> Result<bool, String> {
        let shard = usize::from(shard.0);
        let (reply, answer) = oneshot::channel();
        self.send(shard, Message::Trace { connection, is_on, reply }).await?;
        let found = tokio::time::timeout(PATIENCE, answer).await.ok().and_then(Result::ok);
        found.ok_or_else(|| no_answer(shard))
    }

    /// Gives the shard's end of the agent's connection to the first shard.
    ///
    /// # Errors
    /// The shard doesn't take it: a sentence for the log.
    pub(super) async fn adopt(&self, socket: UringSocket) -> Result<(), String> {
        self.send(0, Message::Agent(socket)).await
    }

    /// Puts a message into a shard's mailbox. A full one is emptied within a turn.
    async fn send(&self, shard: usize, mut message: Message<UringDriver>) -> Result<(), String> {
        let mailbox = self.mailboxes.get(shard).ok_or_else(|| no_answer(shard))?;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match mailbox.send(message) {
                Ok(()) => return Ok(()),
                Err(again) => message = again,
            }
            tokio::time::sleep(MAILBOX_PAUSE).await;
        }
        Err(no_answer(shard))
    }
}

fn no_answer(shard: usize) -> String {
    format!("shard {shard} doesn't answer")
}

/// Puts together what the shards say: an address that several use is one address.
pub(in crate::control) async fn gather(all: Vec<Findings>) -> Gathered {
    let mut gathered = Gathered::default();
    let mut addresses: BTreeMap<Box<str>, AddressFacts> = BTreeMap::new();
    for findings in all {
        gathered.totals.push(findings.totals);
        gathered.meters.extend(findings.meters.map(|meters| *meters));
        gathered.loads.push(findings.load);
        gathered.connections.extend(findings.connections);
        gathered.links.extend(findings.links);
        for (number, facts) in (1..).zip(findings.addresses) {
            if number % AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
            match addresses.get_mut(&facts.key) {
                Some(known) => merge(known, &facts),
                None => {
                    addresses.insert(facts.key.clone(), facts);
                }
            }
        }
    }
    gathered.connections.sort_unstable_by_key(|connection| connection.id);
    gathered.links.sort_unstable_by_key(|link| link.id);
    gathered.addresses = addresses.into_values().collect();
    gathered
}

fn merge(known: &mut AddressFacts, other: &AddressFacts) {
    let AddressFacts { key: _, settings: _, subscribers, in_process, counters } = other;
    known.subscribers += subscribers;
    known.in_process += in_process;
    let AddressCounters {
        ingress,
        egress,
        to_container,
        from_container,
        ingress_route_container,
        egress_route_container,
    } = counters;
    known.counters.ingress += ingress;
    known.counters.egress += egress;
    known.counters.to_container += to_container;
    known.counters.from_container += from_container;
    known.counters.ingress_route_container += ingress_route_container;
    known.counters.egress_route_container += egress_route_container;
}
