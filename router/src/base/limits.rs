//! Every maximum of the router, with its consequence in memory.
//!
//! | what | most | memory |
//! |---|---|---|
//! | bytes before the peer's open | one frame of 512 bytes | 512 B a connection |
//! | bytes sent ahead of a SASL outcome | [`SASL_EARLY_BYTES_MAX`], then the connection is closed | 4 KiB a connection that isn't open |
//! | bytes sent while a TLS handshake is worked at | [`TLS_EARLY_BYTES_MAX`], then the connection is closed | 64 KiB a connection that isn't open |
//! | addresses whose failed authentications are remembered | [`AUTHENTICATION_SOURCES_MAX`] | up to 0.5 KiB each |
//! | passwords that wait to be checked | [`PASSWORD_CHECKS_MAX`], then who comes is sent away | 1 KiB each |
//! | bytes of an incomplete frame | our max-frame-size | 16 KiB a connection by default, only while a frame is incomplete |
//! | output waiting on a connection | [`OUTPUT_BACKLOG_MAX`], then its links wait and it isn't read | 1 MiB a stalled connection |
//! | output for a peer that takes nothing | [`OUTPUT_MAX`], then the connection is closed | 8 MiB for a moment |
//! | payload held for slow receivers | [`SESSION_BUFFER_BYTES`] a session, then its window is closed; [`HELD_BYTES_MAX`] a shard, then who sent it isn't read | 4 MiB a session, 256 MiB a shard |
//! | deliveries a sender may have open | its credit (`linkCapacity`, 250) | about 100 B each beside their payload |
//! | deliveries a receiver leaves unsettled | [`UNSETTLED_PER_LINK_MAX`] a link, then it gets no more | about 64 B each |
//! | settled deliveries waiting for a receiver | [`WAITING_SETTLED_CAPACITIES_MAX`] times its capacity, or [`CONGESTED_BYTES_MAX`]; the oldest are dropped | 1 MiB a link |
//! | links of a connection | [`LINKS_PER_CONNECTION_MAX`], then attaches are refused | about 0.5 KiB each |
//! | sessions of a connection | `maxSessions` of its listener | about 0.5 KiB each |
//! | connections of a shard | [`CONNECTIONS_MAX`], then they are closed at once | about 3 KiB each with two links |
//! | hand-offs to another shard | [`HAND_OFFS_MAX`], then they wait as on a connection | 16 MiB a pair of shards |
//! | management requests | [`REQUESTS_MAX`] on each of two links, of [`REQUEST_BYTES_MAX`] | 32 MiB |
//! | management replies that wait | [`REPLY_BYTES_MAX`], and the one that goes over it | 16 MiB |
//! | messages in a shard's mailbox | [`MESSAGES_MAX`], then who sends them tries again | 16 KiB a shard |
//! | reports of shards to control | [`REPORTS_MAX`], then they go together with the next | 64 KiB beside their names |
//! | HTTP connections | [`HTTP_CONNECTIONS_MAX`], then they wait in the kernel | about 20 KiB each |
//! | AMQP over WebSocket | [`WEBSOCKETS_MAX`], then they are refused | 32 KiB each, and the message under way |
//! | a WebSocket client's message | [`WEBSOCKET_MESSAGE_BYTES_MAX`], then its connection is closed | as much, while it comes |
//! | addresses with metrics of their own | [`METRICS_ADDRESSES_MAX`], the rest is left out | 1 KiB of the answer each |
//! | time to a client's open | [`HANDSHAKE_TIMEOUT_DEFAULT`] unless its listener says otherwise | |
//! | received buffers | the driver's ring | 8 MiB a shard |

use core::time::Duration;

/// The largest frame that is taken before the peer's open has said otherwise (AMQP 1.0 §2.4.1, §5.3.1).
pub const FRAME_BEFORE_OPEN_MAX: u32 = 512;

/// What a peer may send ahead while it is found out who it is: its next protocol header and its open.
pub const SASL_EARLY_BYTES_MAX: usize = 4 * 1024;

/// What a peer may send while a worker has its TLS handshake: the end of it, and what it sends ahead behind that.
pub const TLS_EARLY_BYTES_MAX: usize = 64 * 1024;

/// How long a peer waits to hear that it isn't who it says, the first time; each time from the same address it is twice as
/// long.
pub const AUTHENTICATION_DELAY_MIN: Duration = Duration::from_millis(200);

/// The longest such wait. It is less than the time that a peer has to its open, or it wouldn't hear.
pub const AUTHENTICATION_DELAY_MAX: Duration = Duration::from_secs(5);

/// How long after its last failure an address is forgotten.
pub const AUTHENTICATION_FORGET: Duration = Duration::from_secs(60);

/// Addresses whose failures are remembered; then those are forgotten that failed longest ago.
pub const AUTHENTICATION_SOURCES_MAX: usize = 4096;

/// Failures from one address that wait to be told, while which no further password from there is checked: some ten tries a
/// second.
pub const AUTHENTICATION_WAITS_MAX: usize = 64;

/// Passwords that wait to be checked, of all shards; then whoever comes is sent away.
pub const PASSWORD_CHECKS_MAX: usize = 256;

/// Descriptors that strangers don't get, so that there are some for operators on the machine itself, for files and for health
/// checks; where there are few in all, as many as [`DESCRIPTORS_KEPT_PART`] says.
pub const DESCRIPTORS_KEPT_MAX: u64 = 64;

/// The part of all descriptors that strangers don't get, as its inverse.
pub const DESCRIPTORS_KEPT_PART: u64 = 8;

const _: () = assert!(AUTHENTICATION_DELAY_MAX.as_millis() < HANDSHAKE_TIMEOUT_DEFAULT.as_millis());

/// A buffer for a connection that has little to send.
pub const SMALL_CHUNK_BYTES: usize = 4 * 1024;

/// A buffer for a connection that has much to send. No frame of ours is larger.
pub const LARGE_CHUNK_BYTES: usize = 64 * 1024;

/// Small buffers kept for the next use: 2 MiB a shard.
pub const SMALL_CHUNKS_KEPT_MAX: usize = 512;

/// Large buffers kept for the next use: 4 MiB a shard.
pub const LARGE_CHUNKS_KEPT_MAX: usize = 64;

/// Bytes that a shard keeps to use again, of each kind: payload that waited, beginnings of frames, lists of pieces,
/// lists of copies.
pub const SPARE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of the largest thing kept so: twice a frame of the usual largest size, since what grows doubles.
pub const SPARE_THING_BYTES_MAX: usize = 32 * 1024;

/// The largest frame that we send, whatever the peer accepts: it must fit one buffer.
pub const SENT_FRAME_MAX: u32 = 32 * 1024;

/// Output waiting on a connection beyond which its links send nothing more until some of it has gone.
pub const OUTPUT_BACKLOG_MAX: usize = 1024 * 1024;

/// Output waiting on a connection beyond which the connection isn't read until some of it has gone.
///
/// Deliveries don't reach this, only answers to what the peer goes on sending: a receiver that takes its
/// deliveries slowly is still heard, so that its empty frames keep it alive and its close is seen.
pub const OUTPUT_ANSWERS_MAX: usize = 2 * OUTPUT_BACKLOG_MAX;

/// HTTP connections at a time, without those that have become WebSockets.
pub const HTTP_CONNECTIONS_MAX: usize = 512;

/// Connections over WebSocket at a time.
pub const WEBSOCKETS_MAX: usize = 16_384;

/// The largest WebSocket message that is taken, in bytes. What is in it is AMQP's frames, any number of them.
pub const WEBSOCKET_MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Addresses with metrics of their own: each is some time series, and whoever keeps them pays for each.
pub const METRICS_ADDRESSES_MAX: usize = 100;

/// Completions that a shard deals with before it sends what they led to.
pub const COMPLETIONS_PER_TURN_MAX: usize = 256;

/// What a connection is heard of in one turn: when it is reached, the buffer at hand is its last. The rest waits
/// for the next turn.
pub const CONNECTION_BYTES_PER_TURN_MAX: u32 = 64 * 1024;

/// Received buffers of a connection that wait for later turns, beyond which it isn't read until they are done.
/// (Those that the kernel has filled already still come.)
pub const BUFFERS_DEFERRED_MAX: u16 = 16;

/// What a shard takes from each other shard in one turn, beside the chunk at hand.
pub const HAND_OFF_BYTES_PER_TURN_MAX: usize = 256 * 1024;

/// Hand-offs that a shard takes from each other shard in one turn.
pub const HAND_OFFS_PER_TURN_MAX: usize = 64;

/// Places of each ring between two shards. Of a chunk's 64 KiB each, 16 MiB for a shard that takes nothing.
pub const HAND_OFFS_MAX: usize = 256;

/// Messages that wait in a shard's mailbox at the most. Who finds it full tries again later.
pub const MESSAGES_MAX: usize = 256;

/// Reports of shards that wait for the control thread.
pub const REPORTS_MAX: usize = 1024;

/// How long a client may take to its open where the configuration doesn't say.
pub const HANDSHAKE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Output waiting on a connection beyond which it is closed: its peer takes nothing while others have much
/// to tell it.
pub const OUTPUT_MAX: usize = 8 * OUTPUT_BACKLOG_MAX;

/// What one link sends of its queue before the others of its connection have their turn.
pub const PUMP_BYTES_MAX: usize = 64 * 1024;

/// Chunks given to the kernel in one send: 256 KiB.
pub const CHUNKS_PER_SEND_MAX: usize = 4;

/// Payload of one incoming session that the router may hold for receivers that don't take it yet.
/// The window that we announce to the session's peer is what is left of it, in frames.
pub const SESSION_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Payload that a shard may hold for all of its sessions. Beyond it the connections that it is held for aren't
/// read.
pub const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What a piece of payload that is held costs beside its bytes; a session is charged for it too.
pub const PIECE_OVERHEAD_BYTES: usize = 192;

/// The window announced to a peer is at least this many frames while nothing of its session is held.
pub const SESSION_WINDOW_FRAMES_MIN: u32 = 8;

/// Deliveries that a receiver may leave unsettled on one link; it gets no more until it settles some.
pub const UNSETTLED_PER_LINK_MAX: u32 = 1 << 20;

/// Settled deliveries that may wait for one receiver, in times its link's capacity.
pub const WAITING_SETTLED_CAPACITIES_MAX: u32 = 4;

/// Links of one connection.
pub const LINKS_PER_CONNECTION_MAX: usize = 65_536;

/// Connections of one shard.
pub const CONNECTIONS_MAX: usize = 1 << 20;

/// Links of one session.
pub const LINKS_PER_SESSION_MAX: usize = 65_536;

/// The bytes of a message that are searched for what routing needs (annotations; for anonymous senders
/// the properties too). A message whose front part is longer is rejected.
pub const MESSAGE_FRONT_BYTES_MAX: usize = 64 * 1024;

/// Payload of settled deliveries that a congested outgoing link keeps, the newest first.
pub const CONGESTED_BYTES_MAX: usize = 1024 * 1024;

/// The longest description of an error that we send, so that the frame fits the smallest max-frame-size.
pub const DESCRIPTION_BYTES_MAX: usize = 256;

/// The shortest idle time-out of a peer that is honoured, in milliseconds. A shorter one is refused: it
/// would cost a frame each few milliseconds for a connection that has nothing to say.
pub const PEER_IDLE_TIMEOUT_MS_MIN: u32 = 100;

/// Places of its tables that a shard looks at in one turn for what management asks; the rest waits for the
/// next turn, which doesn't block meanwhile.
pub const SURVEY_PLACES_PER_TURN_MAX: usize = 256;

/// The largest management request that is taken.
pub const REQUEST_BYTES_MAX: u64 = 256 * 1024;

/// Management requests that may be on their way to the agent on each of its links. Others wait in the shard
/// that they came to.
pub const REQUESTS_MAX: u32 = 64;

/// Management replies that may wait in a shard for their receivers. Those for a receiver that takes nothing count
/// only until it is congested.
pub const REPLIES_MAX: u32 = 4096;

/// Replies that wait for credit or for their socket. Beyond it no further request is looked at.
pub const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Output of the management agent for its shard beyond which no further reply is begun.
pub const AGENT_OUTPUT_MAX: usize = 256 * 1024;

const _: () = assert!(SENT_FRAME_MAX as usize <= LARGE_CHUNK_BYTES);
const _: () = assert!(FRAME_BEFORE_OPEN_MAX as usize <= SMALL_CHUNK_BYTES);
const _: () = assert!(DESCRIPTION_BYTES_MAX < FRAME_BEFORE_OPEN_MAX as usize);
const _: () = assert!(MESSAGE_FRONT_BYTES_MAX < SESSION_BUFFER_BYTES);
const _: () = assert!(OUTPUT_BACKLOG_MAX < OUTPUT_ANSWERS_MAX && OUTPUT_ANSWERS_MAX < OUTPUT_MAX);
const _: () = assert!(CHUNKS_PER_SEND_MAX * LARGE_CHUNK_BYTES <= OUTPUT_BACKLOG_MAX);
const _: () = assert!(SESSION_BUFFER_BYTES < HELD_BYTES_MAX);
