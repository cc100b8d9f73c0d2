//! What one end says of itself, the same for many connections.

use super::sasl::{Authenticator, Credentials};
use crate::base::limits::FRAME_BEFORE_OPEN_MAX;
use std::sync::Arc;
use std::time::Duration;

/// Which end of the connection this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The peer connected to us: it speaks first.
    Acceptor,
    /// We connected: we speak first.
    Initiator,
}

/// Whether the SASL layer is used (AMQP 1.0 §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SaslPolicy {
    /// As acceptor: the peer may leave it out. As initiator: it is left out.
    Optional,
    /// As acceptor: a peer that leaves it out is sent away. As initiator: it is used.
    Required,
}

/// What our end announces in its open and keeps to, for all connections of one listener.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The container-id.
    pub container_id: String,
    /// The hostname of the open: as initiator, the host that we connected to.
    pub hostname: Option<String>,
    /// The largest frame that we accept, in bytes; at least 512.
    pub max_frame_size: u32,
    /// The highest channel that the peer may use; one less than the number of sessions.
    pub channel_max: u16,
    /// How long the peer may be silent before the connection is given up. Half of it is announced as
    /// idle-time-out (§2.4.5). `None`: for ever.
    pub idle_timeout: Option<Duration>,
    /// How long the peer may take to its open. `None`: for ever.
    pub handshake_timeout: Option<Duration>,
    /// How many sessions the peer is told that it may have; `None`: as many as there are channels. A further one
    /// is begun all the same, for the connection's user to end.
    pub sessions_announced: Option<u16>,
    /// The most frames that a session's incoming-window announces.
    pub session_frames_max: u32,
    /// Whether SASL is used.
    pub sasl: SaslPolicy,
    /// As acceptor: who finds out who the peer is. `None`: whoever comes is taken as anonymous.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// As initiator: as whom we introduce ourselves. `None`: as anonymous.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// The largest SASL frame that we accept, in bytes; at least 512, which is what the specification has (§5.3.1).
    pub sasl_frame_max: u32,
    /// As acceptor: whether a connection that isn't encrypted is sent away.
    pub is_encryption_required: bool,
    /// The offered-capabilities of the open.
    pub offered_capabilities: &'static [&'static str],
    /// The desired-capabilities of the open.
    pub desired_capabilities: &'static [&'static str],
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            container_id: String::new(),
            hostname: None,
            max_frame_size: 16_384,
            channel_max: 32_767,
            idle_timeout: Some(Duration::from_secs(16)),
            handshake_timeout: None,
            sessions_announced: None,
            session_frames_max: u32::MAX >> 1,
            sasl: SaslPolicy::Optional,
            authenticator: None,
            credentials: None,
            sasl_frame_max: FRAME_BEFORE_OPEN_MAX,
            is_encryption_required: false,
            offered_capabilities: &[],
            desired_capabilities: &[],
        }
    }
}
