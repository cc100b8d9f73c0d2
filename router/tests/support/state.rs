//! Delivery states that tests keep and compare.

use ringmain_codec::{Condition, DeliveryState, Error, Modified, Received, Rejected, Symbol};

/// A delivery state in full, for comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    Received(u32, u64),
    Accepted,
    Released,
    Rejected(String),
    Modified(Option<bool>, Option<bool>),
}

impl State {
    pub fn random(random: &mut fastrand::Rng) -> Self {
        match random.u8(0..8) {
            0..3 => Self::Accepted,
            3 => Self::Released,
            4 => Self::Rejected("x".repeat(random.usize(0..200))),
            5 => Self::Modified(Some(true), None),
            _ => Self::Modified(optional_bool(random), optional_bool(random)),
        }
    }

    pub fn with<R>(&self, act: impl FnOnce(&DeliveryState<'_>) -> R) -> R {
        match self {
            Self::Received(section_number, section_offset) => act(&DeliveryState::Received(Received {
                section_number: *section_number,
                section_offset: *section_offset,
            })),
            Self::Accepted => act(&DeliveryState::Accepted),
            Self::Released => act(&DeliveryState::Released),
            Self::Rejected(description) => act(&DeliveryState::Rejected(Rejected {
                error: Some(Error {
                    condition: Symbol(Condition::NOT_ALLOWED.as_str()),
                    description: Some(description),
                    info: None,
                }),
            })),
            Self::Modified(delivery_failed, undeliverable_here) => act(&DeliveryState::Modified(Modified {
                delivery_failed: *delivery_failed,
                undeliverable_here: *undeliverable_here,
                message_annotations: None,
            })),
        }
    }

    pub fn of(state: &DeliveryState<'_>) -> Self {
        match state {
            DeliveryState::Received(received) => {
                Self::Received(received.section_number, received.section_offset)
            }
            DeliveryState::Accepted => Self::Accepted,
            DeliveryState::Released => Self::Released,
            DeliveryState::Rejected(rejected) => {
                let description = rejected.error.and_then(|error| error.description);
                Self::Rejected(description.unwrap_or("").to_owned())
            }
            DeliveryState::Modified(modified) => {
                Self::Modified(modified.delivery_failed, modified.undeliverable_here)
            }
            other => panic!("nobody sent {other:?}"),
        }
    }

    pub fn is_terminal(&self) -> bool {
        !matches!(self, Self::Received(..))
    }
}

fn optional_bool(random: &mut fastrand::Rng) -> Option<bool> {
    [None, Some(true), Some(false)][random.usize(0..3)]
}
