//! Session flow control (AMQP 1.0 §2.5.6): transfer-ids and windows, in serial arithmetic.

use crate::base::id::Serial;
use crate::base::limits::{SESSION_BUFFER_BYTES, SESSION_WINDOW_FRAMES_MIN};
use ringmain_codec::{Begin, Flow};

/// What we announce as our outgoing-window: we never hold transfers back on its account.
pub const OUTGOING_WINDOW: u32 = i32::MAX as u32;

/// A window is worth telling when it is at least one part in this many of a whole one.
const WORTH_PARTS: u32 = 8;

/// The flow state of one session.
#[derive(Debug)]
pub struct SessionFlow {
    /// The transfer-id expected next (§2.5.6).
    pub next_incoming_id: Serial,
    /// How many more frames the peer may send, by what we told it.
    pub incoming_window: u32,
    /// Bytes of this session's payload that the router still holds.
    held_bytes: usize,
    /// The largest frame that the peer may send us.
    max_frame_size: u32,
    /// The most frames to announce.
    frames_max: u32,
    /// The window of a session of which nothing is held: looked at with each transfer, so it isn't worked out each time.
    whole_window: u32,
    /// The transfer-id of our next frame.
    pub next_outgoing_id: Serial,
    /// How many more frames we may send, by what the peer told us.
    pub remote_incoming_window: u32,
}

impl SessionFlow {
    /// A fresh session's state, before the peer's begin.
    #[must_use]
    pub fn new(max_frame_size: u32, frames_max: u32) -> Self {
        let frames = SESSION_BUFFER_BYTES / max_frame_size.max(1) as usize;
        let frames = u32::try_from(frames).unwrap_or(u32::MAX);
        let whole_window = frames.max(SESSION_WINDOW_FRAMES_MIN).min(frames_max);
        Self {
            next_incoming_id: Serial(0),
            incoming_window: whole_window,
            held_bytes: 0,
            max_frame_size,
            frames_max,
            whole_window,
            next_outgoing_id: Serial(0),
            remote_incoming_window: 0,
        }
    }

    /// The window that the bytes held leave room for, in frames.
    #[inline]
    fn window(&self) -> u32 {
        if self.held_bytes == 0 { self.whole_window } else { self.window_beside_held() }
    }

    fn window_beside_held(&self) -> u32 {
        let room = SESSION_BUFFER_BYTES.saturating_sub(self.held_bytes) / self.max_frame_size.max(1) as usize;
        u32::try_from(room).unwrap_or(u32::MAX).min(self.frames_max)
    }

    /// Takes over the peer's begin.
    pub fn recv_begin(&mut self, begin: &Begin<'_>) {
        self.next_incoming_id = Serial(begin.next_outgoing_id);
        self.remote_incoming_window = begin.incoming_window;
    }

    /// Takes over a flow's session part.
    pub fn recv_flow(&mut self, flow: &Flow<'_>) {
        // Without next-incoming-id the peer hasn't seen our begin: it counts from our initial id, zero.
        let seen = Serial(flow.next_incoming_id.unwrap_or(0));
        let limit = seen.plus(flow.incoming_window);
        let under_way = u32::try_from(self.next_outgoing_id.distance_from(seen)).unwrap_or(0);
        self.remote_incoming_window = if flow.incoming_window > i32::MAX as u32 {
            flow.incoming_window - under_way.min(flow.incoming_window)
        } else {
            u32::try_from(limit.distance_from(self.next_outgoing_id)).unwrap_or(0)
        };
    }

    /// Counts a transfer frame of the peer; `false` if it had no window for it.
    #[inline]
    #[must_use]
    pub fn recv_transfer(&mut self) -> bool {
        let Some(left) = self.incoming_window.checked_sub(1) else { return false };
        self.incoming_window = left;
        self.next_incoming_id = self.next_incoming_id.next();
        true
    }

    /// Counts a transfer frame of ours.
    #[inline]
    pub fn send_transfer(&mut self) {
        debug_assert!(self.remote_incoming_window > 0, "the window is checked before a frame is made");
        self.remote_incoming_window -= 1;
        self.next_outgoing_id = self.next_outgoing_id.next();
    }

    /// Notes that the router holds `bytes` more of this session's payload.
    pub fn hold(&mut self, bytes: usize) {
        self.held_bytes += bytes;
    }

    /// Notes that `bytes` of the payload have gone on.
    pub fn release(&mut self, bytes: usize) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    /// Whether the peer should be told of a larger window: it has used half of what there is room for.
    #[inline]
    #[must_use]
    pub fn wants_refresh(&self) -> bool {
        let window = self.window();
        // A crowded session isn't told of each frame's room on its own.
        let worth = self.held_bytes == 0 || window >= self.whole_window / WORTH_PARTS;
        window > 0 && worth && self.incoming_window <= window / 2
    }

    /// The session part of a flow, which tells the peer of the window as it is now.
    pub fn send_flow(&mut self) -> Flow<'static> {
        // What was promised stays promised, even if less would be announced now.
        self.incoming_window = self.incoming_window.max(self.window());
        Flow {
            next_incoming_id: Some(self.next_incoming_id.0),
            incoming_window: self.incoming_window,
            next_outgoing_id: self.next_outgoing_id.0,
            outgoing_window: OUTGOING_WINDOW,
            handle: None,
            delivery_count: None,
            link_credit: None,
            available: None,
            drain: false,
            echo: false,
            properties: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(next_incoming_id: Option<u32>, incoming_window: u32) -> Flow<'static> {
        let mut flow = SessionFlow::new(512, 100).send_flow();
        flow.next_incoming_id = next_incoming_id;
        flow.incoming_window = incoming_window;
        flow
    }

    /// §2.5.6: remote-incoming-window = next-incoming-id(flow) + incoming-window(flow) - next-outgoing-id.
    #[test]
    fn the_remote_window_counts_what_is_under_way() {
        let mut session = SessionFlow::new(16_384, u32::MAX);
        session.next_outgoing_id = Serial(5);
        session.recv_flow(&flow(Some(u32::MAX - 4), 20));
        assert_eq!(session.remote_incoming_window, 10);
        session.recv_flow(&flow(Some(0), 3));
        assert_eq!(session.remote_incoming_window, 0, "less than is under way means none");
        session.recv_flow(&flow(None, 8));
        assert_eq!(session.remote_incoming_window, 3);
        session.recv_flow(&flow(Some(5), u32::MAX));
        assert_eq!(session.remote_incoming_window, u32::MAX);
    }

    #[test]
    fn the_announced_window_follows_the_bytes_held() {
        let mut session = SessionFlow::new(16_384, u32::MAX);
        let whole = session.incoming_window;
        assert_eq!(whole as usize, SESSION_BUFFER_BYTES / 16_384);
        for _ in 0..whole {
            assert!(session.recv_transfer());
            session.hold(16_000);
        }
        assert!(!session.recv_transfer(), "beyond the window");
        session.release(16_000);
        assert!(!session.wants_refresh(), "room for one frame isn't worth a flow");
        session.release(16_000 * (whole / 4) as usize);
        assert!(session.wants_refresh());
        assert!(session.send_flow().incoming_window < whole / 3);
        session.release(16_000 * whole as usize);
        assert_eq!(session.send_flow().incoming_window, whole);
    }
}
