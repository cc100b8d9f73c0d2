//! What the control thread alone knows, for those on the HTTP thread who ask it.

use crate::control::connectors::ConnectorState;
use crate::control::endpoints::Endpoints;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

/// What the control thread tells.
#[derive(Clone, Debug, Default)]
pub(super) struct ControlFacts {
    /// How many auto-links there are.
    pub(super) auto_links: u64,
    /// The connectors.
    pub(super) connectors: Vec<ConnectorFacts>,
    /// The profiles of TLS in use.
    pub(super) profiles: Vec<ProfileFacts>,
}

/// A profile of TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ProfileFacts {
    /// Its name.
    pub(super) name: String,
    /// How often its files couldn't be read again.
    pub(super) failures: u64,
    /// When its certificate expires, in seconds since 1970; 0: it has none.
    pub(super) not_after: u64,
}

/// A connector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ConnectorFacts {
    /// Its name; empty: it has none.
    pub(super) name: String,
    /// HOST:PORT as configured.
    pub(super) address: String,
    /// Whether its connection is open.
    pub(super) is_up: bool,
}

/// Answers, on the control thread, for as long as somebody may ask.
pub(super) async fn answer(endpoints: Endpoints, mut questions: Receiver<oneshot::Sender<ControlFacts>>) {
    while let Some(reply) = questions.recv().await {
        let connectors = endpoints.connectors().into_iter().map(|(_, config, status)| ConnectorFacts {
            address: config.host_port(),
            name: config.name.unwrap_or_default(),
            is_up: status.state == ConnectorState::Success,
        });
        let profiles = endpoints.tls().statuses().into_iter().map(|(name, status, not_after)| ProfileFacts {
            name,
            failures: status.failures,
            not_after: not_after.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0),
        });
        let facts = ControlFacts {
            auto_links: endpoints.auto_links().len() as u64,
            connectors: connectors.collect(),
            profiles: profiles.collect(),
        };
        // Whoever asked may have stopped waiting.
        let _gone = reply.send(facts);
    }
}
