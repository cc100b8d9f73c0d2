//! What a test waits for, and what may not come.

use std::time::{Duration, Instant};

use ringmain_codec::{Close, End, FrameKind, Performative, ProtocolHeader, Role};

use super::frame::Frame;
use super::link::{Delivery, LinkId};
use super::peer::{PATIENCE, Peer};

impl Peer {
    /// Waits for a frame with a performative of that name. Frames that the test hasn't asked for yet are kept
    /// for when it does, but an end that it hasn't asked for fails it.
    #[track_caller]
    pub fn expect(&mut self, name: &str) -> Frame {
        self.expect_where(name, |_| true)
    }

    /// Waits for a frame with a performative of that name for which `is_it` holds.
    #[track_caller]
    pub fn expect_where(&mut self, name: &str, mut is_it: impl FnMut(&Frame) -> bool) -> Frame {
        let place = self.pending.iter().position(|(_, frame)| frame.name() == name && is_it(frame));
        if let Some((_, frame)) = place.and_then(|place| self.pending.remove(place)) {
            return frame;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) else {
                let why = if self.ended { "the router closed the socket" } else { "nothing came" };
                panic!("expected {name}, but {why}; other frames before: {:?}", self.pending);
            };
            if frame.name() == name && is_it(&frame) {
                return frame;
            }
            self.keep(name, frame);
        }
    }

    #[track_caller]
    pub(super) fn keep(&mut self, expected: &str, frame: Frame) {
        let is_end = matches!(frame.name(), "detach" | "end" | "close");
        assert!(!is_end, "expected {expected}, got {frame:?}");
        if !frame.is_empty() {
            self.pending.push_back((self.frames, frame));
        }
    }

    /// The next frame that isn't empty, whatever it is.
    #[track_caller]
    pub fn expect_any(&mut self) -> Frame {
        if let Some((_, frame)) = self.pending.pop_front() {
            return frame;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let frame = self.poll(deadline.saturating_duration_since(Instant::now())).expect("a frame");
            if !frame.is_empty() {
                return frame;
            }
        }
    }

    /// Waits for a complete delivery, on any link.
    #[track_caller]
    pub fn expect_delivery(&mut self) -> Delivery {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(delivery) = self.deliveries.pop_front() {
                let LinkId { channel, handle } = delivery.link;
                let router_handle =
                    self.sessions.get(&channel).and_then(|session| session.links.get(&handle)?.router_handle);
                self.pending.retain(|(number, frame)| {
                    let is_part = frame.name() == "transfer"
                        && Some(frame.transfer().handle) == router_handle
                        && *number <= delivery.last_frame;
                    !is_part
                });
                return delivery;
            }
            let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) else {
                let why = if self.ended { "the router closed the socket" } else { "nothing came" };
                panic!("expected a delivery, but {why}; other frames before: {:?}", self.pending);
            };
            if frame.name() != "transfer" {
                self.keep("a delivery", frame);
            }
        }
    }

    /// Waits for a disposition, by the router as receiver, that speaks of this delivery. What it says of
    /// others is kept for when the test asks.
    #[track_caller]
    pub fn expect_outcome(&mut self, id: u32) -> Frame {
        // One that was taken already for another delivery may speak of this one as well.
        let known = self.ranges.iter_mut().find(|(frame, told)| speaks_of(frame, id) && !told.contains(&id));
        if let Some((frame, told)) = known {
            told.push(id);
            return frame.clone();
        }
        let frame = self.expect_where("disposition", |frame| speaks_of(frame, id));
        if frame.disposition().last.is_some() {
            self.ranges.push((frame.clone(), vec![id]));
        }
        frame
    }

    /// Waits for the router to close the connection with an error of this condition, answers, and waits for
    /// it to close the socket. Its open may come before. Returns the error's description.
    #[track_caller]
    pub fn expect_closed_with(&mut self, condition: &str) -> String {
        let close = self.expect_close();
        let error =
            close.close().error.unwrap_or_else(|| panic!("a close with {condition}, not without error"));
        assert_eq!(error.condition.0, condition, "{:?}", error.description);
        let description = error.description.unwrap_or_default().to_owned();
        self.append_frame(FrameKind::Amqp, 0, &Performative::Close(Close::default()), &[]);
        self.try_flush();
        self.expect_end_of_stream();
        description
    }

    /// Waits for a close, whatever comes before it.
    #[track_caller]
    pub fn expect_close(&mut self) -> Frame {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) else {
                let why = if self.ended { "the router closed the socket" } else { "nothing came" };
                panic!("expected a close, but {why}");
            };
            if frame.name() == "close" {
                return frame;
            }
        }
    }

    /// Waits for the router to close its side of the socket.
    #[track_caller]
    pub fn expect_end_of_stream(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        if let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) {
            panic!("expected the end of the stream, got {frame:?}");
        }
        assert!(self.ended, "the router didn't close the socket");
    }

    /// Waits for the router to detach a link with an error of this condition, and answers. Returns the
    /// error's description.
    #[track_caller]
    pub fn expect_detached_with(&mut self, link: LinkId, condition: &str) -> String {
        let router_handle = self.link(link).router_handle;
        let frame = self.expect_where("detach", |frame| Some(frame.detach().handle) == router_handle);
        let detach = frame.detach();
        assert!(detach.closed, "a link that can't go on is closed, not only detached (§2.6.5)");
        let error = detach.error.unwrap_or_else(|| panic!("a detach with {condition}, not without error"));
        assert_eq!(error.condition.0, condition, "{:?}", error.description);
        self.answer_detach(link);
        error.description.unwrap_or_default().to_owned()
    }

    /// Waits for the router to end a session with an error, and answers. Returns its condition.
    #[track_caller]
    pub fn expect_ended(&mut self, channel: u16) -> String {
        let frame = self.expect("end");
        let condition = frame.end().error.expect("an end with an error").condition.0.to_owned();
        self.send(channel, Performative::End(End::default()), &[]);
        condition
    }

    /// Makes sure that no frame comes for so many milliseconds, and that none came unasked before; flows and
    /// empty frames may.
    #[track_caller]
    pub fn expect_nothing_for(&mut self, ms: u64) {
        self.expect_only_for(ms, &["flow"]);
    }

    /// Makes sure that for so many milliseconds only frames of these names (and empty ones) come, and that no
    /// others came unasked before.
    #[track_caller]
    pub fn expect_only_for(&mut self, ms: u64, names: &[&str]) {
        let deadline = Instant::now() + Duration::from_millis(ms);
        let mut unasked = self.pending.iter().map(|(_, frame)| frame);
        if let Some(frame) = unasked.find(|frame| !names.contains(&frame.name())) {
            panic!("expected nothing, got {frame:?}");
        }
        while let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) {
            assert!(frame.is_empty() || names.contains(&frame.name()), "expected nothing, got {frame:?}");
            if !frame.is_empty() {
                self.pending.push_back((self.frames, frame));
            }
        }
        assert!(!self.ended, "the router closed the socket");
    }

    /// Takes deliveries until none comes for so many milliseconds.
    #[track_caller]
    pub fn take_deliveries(&mut self, quiet_ms: u64) -> Vec<Delivery> {
        while self.absorb(Duration::from_millis(quiet_ms)) {}
        self.pending.retain(|(_, frame)| frame.name() != "transfer");
        self.deliveries.drain(..).collect()
    }

    /// Forgets the frames that came unasked.
    pub fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// A complete delivery that has come already, if there is one.
    pub fn take_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }
}

/// Whether a disposition, by the router as receiver, speaks of this delivery.
fn speaks_of(frame: &Frame, id: u32) -> bool {
    let disposition = frame.disposition();
    let last = disposition.last.unwrap_or(disposition.first);
    disposition.role == Role::Receiver && (disposition.first..=last).contains(&id)
}
