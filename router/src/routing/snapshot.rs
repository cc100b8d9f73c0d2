//! What all shards know of addresses: immutable, replaced as a whole.

use super::address::{Address, Class};
use super::pattern::PatternTree;

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

/// What the configuration says of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressSettings {
    /// Its treatment.
    pub treatment: Treatment,
    /// The priority of all its deliveries, 0 to 9, whatever their headers say.
    pub priority: Option<u8>,
}

/// The router's id and the configuration of addresses, as all shards see it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The router's id.
    pub router_id: String,
    /// The treatment of addresses that aren't configured.
    pub default_treatment: Treatment,
    patterns: PatternTree<AddressSettings>,
}

impl Snapshot {
    /// A snapshot without any configured address.
    #[must_use]
    pub fn new(router_id: String, default_treatment: Treatment) -> Self {
        Self { router_id, default_treatment, patterns: PatternTree::default() }
    }

    /// Configures the addresses that match `pattern`. Returns what the same pattern said before.
    pub fn configure(&mut self, pattern: &str, settings: AddressSettings) -> Option<AddressSettings> {
        self.patterns.insert(pattern, settings)
    }

    /// What applies to `address`.
    #[must_use]
    pub fn settings(&self, address: Address<'_>) -> AddressSettings {
        match address.class {
            Class::Mobile => self
                .patterns
                .find(address.text)
                .copied()
                .unwrap_or(AddressSettings { treatment: self.default_treatment, priority: None }),
            Class::Local | Class::Edge => AddressSettings { treatment: Treatment::Balanced, priority: None },
            Class::Topological => AddressSettings { treatment: Treatment::Multicast, priority: None },
            Class::Router | Class::Area => AddressSettings { treatment: Treatment::Closest, priority: None },
        }
    }
}
