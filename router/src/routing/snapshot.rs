//! What all shards know of addresses: immutable, replaced as a whole.

use super::address::{Address, Class};
use super::pattern::PatternTree;
use super::persistent::PersistentMap;
use super::policy::Policy;
use crate::base::id::ShardId;
use smallvec::SmallVec;
use std::sync::Arc;

/// How deliveries to an address are spread over its receivers (its distribution).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Treatment {
    /// Each receiver gets a copy.
    Multicast,
    /// One of the nearest receivers gets it, in turn.
    Closest,
    /// The receiver with the fewest outstanding deliveries gets it.
    Balanced,
    /// Nobody may use the address.
    Unavailable,
}

/// The text of the address of a router's management node (router-protocol reference §10.1). No configuration applies
/// to it.
pub const MANAGEMENT_NODE: &str = "$management";

/// What the configuration says of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressSettings {
    /// Its treatment.
    pub treatment: Treatment,
    /// The priority of all its deliveries, 0 to 9, whatever their headers say.
    pub priority: Option<u8>,
    /// The phase to which clients send, 0 to 9. Those of one address differ where it leads through a waypoint.
    pub ingress_phase: u8,
    /// The phase from which clients receive, 0 to 9.
    pub egress_phase: u8,
}

impl AddressSettings {
    /// What such a treatment means by itself.
    #[must_use]
    pub const fn of(treatment: Treatment) -> Self {
        Self { treatment, priority: None, ingress_phase: 0, egress_phase: 0 }
    }
}

/// A shard with receivers of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Consumer {
    /// The shard.
    pub shard: ShardId,
    /// How many receivers it has.
    pub receivers: u32,
    /// How many of them count as destinations, for which senders get credit.
    pub destinations: u32,
}

/// The shards with receivers of an address.
pub type Consumers = SmallVec<[Consumer; 1]>;

/// The router's id, the configuration of addresses, and who consumes which, as all shards see it.
///
/// A copy shares everything with its original; changing one costs the change.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The router's id.
    pub router_id: Arc<str>,
    /// The treatment of addresses that aren't configured.
    pub default_treatment: Treatment,
    /// Who may connect, and what they may do.
    pub policy: Arc<Policy>,
    patterns: Arc<PatternTree<AddressSettings>>,
    /// Whether an ingress phase other than 0 was ever configured.
    has_phases: bool,
    consumers: PersistentMap<Consumers>,
}

impl Snapshot {
    /// A snapshot without any configured address.
    #[must_use]
    pub fn new(router_id: &str, default_treatment: Treatment) -> Self {
        Self {
            router_id: router_id.into(),
            default_treatment,
            policy: Arc::default(),
            patterns: Arc::default(),
            has_phases: false,
            consumers: PersistentMap::default(),
        }
    }

    /// Configures the addresses that match `pattern`. Returns what the same pattern said before.
    pub fn configure(&mut self, pattern: &str, settings: AddressSettings) -> Option<AddressSettings> {
        self.has_phases |= settings.ingress_phase > 0;
        Arc::make_mut(&mut self.patterns).insert(pattern, settings)
    }

    /// Takes the configuration of the addresses that match `pattern` back. Returns what it said.
    pub fn unconfigure(&mut self, pattern: &str) -> Option<AddressSettings> {
        Arc::make_mut(&mut self.patterns).remove(pattern)
    }

    /// The phase to which clients send to `address`. While no address is configured to be sent to in another
    /// phase than 0, this looks nothing up.
    #[must_use]
    pub fn ingress_phase(&self, address: Address<'_>) -> u8 {
        if self.has_phases { self.settings(address).ingress_phase } else { 0 }
    }

    /// What applies to `address`.
    #[must_use]
    pub fn settings(&self, address: Address<'_>) -> AddressSettings {
        match address.class {
            Class::Mobile | Class::Local if address.text == MANAGEMENT_NODE => {
                AddressSettings::of(Treatment::Closest)
            }
            Class::Mobile | Class::Phase(_) => self
                .patterns
                .find(address.text)
                .copied()
                .unwrap_or(AddressSettings::of(self.default_treatment)),
            Class::Local | Class::Edge => AddressSettings::of(Treatment::Balanced),
            Class::Topological => AddressSettings::of(Treatment::Multicast),
            Class::Router | Class::Area => AddressSettings::of(Treatment::Closest),
        }
    }

    /// The shards with receivers of the address of that key.
    #[must_use]
    pub fn consumers(&self, key: &str) -> &[Consumer] {
        self.consumers.get(key).map_or(&[], |consumers| consumers.as_slice())
    }

    /// Notes what receivers a shard has of the address of that key.
    pub fn set_consumer(&mut self, key: &str, consumer: Consumer) {
        let mut consumers = self.consumers.get(key).cloned().unwrap_or_default();
        consumers.retain(|other| other.shard != consumer.shard);
        if consumer.receivers > 0 {
            consumers.push(consumer);
        }
        if consumers.is_empty() {
            self.consumers.remove(key);
        } else {
            self.consumers.insert(key, consumers);
        }
    }
}
