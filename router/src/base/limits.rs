//! Every maximum of the router, with its consequence in memory.
//!
//! | what | most | memory |
//! |---|---|---|
//! | bytes before the peer's open | one frame of 512 bytes | 512 B a connection |
//! | bytes of an incomplete frame | our max-frame-size | 16 KiB a connection by default, only while a frame is incomplete |
//! | output waiting on a connection | [`OUTPUT_BACKLOG_MAX`], then its links wait; [`OUTPUT_ANSWERS_MAX`], then it isn't read | 2 MiB a stalled connection |
//! | payload held for slow receivers | [`SESSION_BUFFER_BYTES`] a session, then its window is closed | 4 MiB a session that sends to them |
//! | deliveries a sender may have open | its credit (`linkCapacity`, 250) | about 100 B each beside their payload |
//! | links of a session | [`LINKS_PER_SESSION_MAX`] | about 0.5 KiB each |
//! | sessions of a connection | `maxSessions` of its listener | about 0.5 KiB each |
//! | received buffers | the driver's ring | 8 MiB a shard |

/// The largest frame that is taken before the peer's open has said otherwise (AMQP 1.0 §2.4.1, §5.3.1).
pub const FRAME_BEFORE_OPEN_MAX: u32 = 512;

/// A buffer for a connection that has little to send.
pub const SMALL_CHUNK_BYTES: usize = 4 * 1024;

/// A buffer for a connection that has much to send. No frame of ours is larger.
pub const LARGE_CHUNK_BYTES: usize = 64 * 1024;

/// Small buffers kept for the next use: 2 MiB a shard.
pub const SMALL_CHUNKS_KEPT_MAX: usize = 512;

/// Large buffers kept for the next use: 4 MiB a shard.
pub const LARGE_CHUNKS_KEPT_MAX: usize = 64;

/// The largest frame that we send, whatever the peer accepts: it must fit one buffer.
pub const SENT_FRAME_MAX: u32 = 32 * 1024;

/// Output waiting on a connection beyond which its links send nothing more until some of it has gone.
pub const OUTPUT_BACKLOG_MAX: usize = 1024 * 1024;

/// Output waiting on a connection beyond which the connection isn't read until some of it has gone.
///
/// Deliveries don't reach this, only answers to what the peer goes on sending: a receiver that takes its
/// deliveries slowly is still heard, so that its empty frames keep it alive and its close is seen.
pub const OUTPUT_ANSWERS_MAX: usize = 2 * OUTPUT_BACKLOG_MAX;

/// Completions that a shard deals with before it sends what they led to.
pub const COMPLETIONS_PER_TURN_MAX: usize = 256;

/// Chunks given to the kernel in one send.
pub const CHUNKS_PER_SEND_MAX: usize = 16;

/// Payload of one incoming session that the router may hold for receivers that don't take it yet.
/// The window that we announce to the session's peer is what is left of it, in frames.
pub const SESSION_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// What a piece of payload that is held costs beside its bytes; a session is charged for it too.
pub const PIECE_OVERHEAD_BYTES: usize = 192;

/// The window announced to a peer is at least this many frames while nothing of its session is held.
pub const SESSION_WINDOW_FRAMES_MIN: u32 = 8;

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

const _: () = assert!(SENT_FRAME_MAX as usize <= LARGE_CHUNK_BYTES);
const _: () = assert!(FRAME_BEFORE_OPEN_MAX as usize <= SMALL_CHUNK_BYTES);
const _: () = assert!(DESCRIPTION_BYTES_MAX < FRAME_BEFORE_OPEN_MAX as usize);
const _: () = assert!(MESSAGE_FRONT_BYTES_MAX < SESSION_BUFFER_BYTES);
