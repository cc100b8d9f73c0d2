//! Gathering what is measured, for `/metrics`.

use super::facts::ControlFacts;
use super::families::{self, Facts, Family, ShardFacts};
use super::probe::{Answer, Probe, ask_all};
use super::process;
use crate::base::limits::{METRICS_ADDRESSES_MAX, WEBSOCKETS_MAX};
use crate::control::handle::ShardsHandle;
use crate::control::management::shards::{Gathered, gather};
use crate::routing::{Address, Class};
use crate::shard::survey::{AddressFacts, Findings, Subject};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

/// How long answers may take altogether. Prometheus waits for 10 s unless it is told otherwise.
const PATIENCE: Duration = Duration::from_secs(3);

/// Gathers metrics, one reader after the other.
pub(super) struct Metrics {
    shards: ShardsHandle,
    probes: Vec<Probe>,
    control: Sender<oneshot::Sender<ControlFacts>>,
    websockets: Arc<Semaphore>,
    router_id: String,
    /// What each shard answered last: counters of one that is silent must not seem to begin anew.
    known: Vec<Findings>,
    /// What the control thread answered last.
    known_control: ControlFacts,
    /// The addresses that had metrics of their own last time.
    shown: HashSet<Box<str>>,
}

impl Metrics {
    pub(super) fn new(
        shards: ShardsHandle,
        control: Sender<oneshot::Sender<ControlFacts>>,
        websockets: Arc<Semaphore>,
        router_id: &str,
    ) -> Self {
        let probes = shards.mailboxes().iter().cloned().map(Probe::new).collect();
        let known = (0..shards.count()).map(|_| Findings::default()).collect();
        Self {
            shards,
            probes,
            control,
            websockets,
            router_id: router_id.to_owned(),
            known,
            known_control: ControlFacts::default(),
            shown: HashSet::new(),
        }
    }

    /// All families with their present values.
    pub(super) async fn families(&mut self) -> Vec<Family> {
        let deadline = Instant::now() + PATIENCE;
        let (reply, control) = oneshot::channel();
        let is_asked = self.control.try_send(reply).is_ok();
        let meters = ask_all(&mut self.probes, Subject::Meters, deadline).await;
        for (known, answer) in self.known.iter_mut().zip(meters) {
            match answer {
                Answer::Found(found) => *known = *found,
                Answer::Silent | Answer::Ended => {}
            }
        }
        let addresses = ask_all(&mut self.probes, Subject::Addresses, deadline).await;
        let found = addresses.into_iter().filter_map(|answer| match answer {
            Answer::Found(found) => Some(*found),
            Answer::Silent | Answer::Ended => None,
        });
        let addresses = gather(found.collect()).await;
        if is_asked && let Ok(Ok(facts)) = timeout_at(deadline, control).await {
            self.known_control = facts;
        }
        let (shown, left_out) = self.choose(&addresses);
        let shards = self.known.iter().zip(self.shards.presences()).map(|(findings, presence)| ShardFacts {
            findings,
            turns: presence.activity.sample().turns,
            is_stuck: presence.is_stuck.load(Ordering::Relaxed),
        });
        families::all(&Facts {
            router_id: &self.router_id,
            shards: shards.collect(),
            control: &self.known_control,
            addresses_in_use: addresses.addresses.len(),
            addresses: shown,
            addresses_left_out: left_out,
            websockets: WEBSOCKETS_MAX - self.websockets.available_permits(),
            process: process::read(),
        })
    }

    /// The addresses with metrics of their own, and how many haven't. Those that had stay, so that their series
    /// go on; the busiest of the others get what places are left.
    fn choose<'g>(&mut self, gathered: &'g Gathered) -> (Vec<&'g AddressFacts>, usize) {
        let mut named: Vec<_> = gathered.addresses.iter().filter(|address| is_named(address)).collect();
        let all = named.len();
        let traffic = |address: &AddressFacts| address.counters.ingress + address.counters.egress;
        named
            .sort_by_key(|address| (!self.shown.contains(&address.key), std::cmp::Reverse(traffic(address))));
        named.truncate(METRICS_ADDRESSES_MAX);
        self.shown = named.iter().map(|address| address.key.clone()).collect();
        named.sort_by(|one, other| one.key.cmp(&other.key));
        (named, all.saturating_sub(METRICS_ADDRESSES_MAX))
    }
}

/// Whether an address is one that clients know by its name, and no node of the router itself.
fn is_named(address: &AddressFacts) -> bool {
    let class = Address::from_key(&address.key).map(|address| address.class);
    address.in_process == 0 && matches!(class, Some(Class::Mobile | Class::Phase(_)))
}
