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
        let facts = ControlFacts {
            auto_links: endpoints.auto_links().len() as u64,
            connectors: connectors.collect(),
        };
        // Whoever asked may have stopped waiting.
        let _gone = reply.send(facts);
    }
}
