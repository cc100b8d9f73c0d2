//! What the generator makes of the frames that come.

use anyhow::{Context as _, Result, anyhow, bail};
use ringmain_codec::{
    Attach, Begin, Close, DeliveryState, Detach, Disposition, Error, Flow, Frame, Open, Performative, Role,
    Transfer, split_frame,
};

use super::Generator;
use super::connection::{Connection, HANDLES_MAX, NO_LINK, Stage};
use super::frames::{append_disposition, frame, stamp_of};
use super::topology::{Purpose, Settle};
use ringmain_codec::Encode as _;

/// The largest frame that we say we take.
pub const FRAME_BYTES_TAKEN_MAX: u32 = 128 * 1024;

/// An error as a peer gives it.
fn describe(error: Option<&Error<'_>>) -> String {
    error.map_or_else(
        || "no error is given".to_owned(),
        |error| format!("{} {}", error.condition.0, error.description.unwrap_or_default()),
    )
}

impl Generator {
    /// Reads from a connection once, and handles all whole frames.
    pub(super) fn read(&mut self, index: usize) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = self.read_into(index, &mut scratch);
        self.scratch = scratch;
        result
    }

    fn read_into(&mut self, index: usize, scratch: &mut [u8]) -> Result<()> {
        let connection = &mut self.connections[index];
        let filled = match connection.read(scratch) {
            Ok(Some(filled)) => filled,
            Ok(None) => return Ok(()),
            Err(error) => match &connection.stage {
                Stage::Closed(_) => {
                    connection.out.clear();
                    rustix::event::epoll::delete(&self.poll, &connection.socket)?;
                    return Ok(());
                }
                Stage::Opening | Stage::Open => return Err(error).context("connection lost"),
            },
        };
        // The time at which a program would have the messages.
        let now = self.now();
        let mut rest = &scratch[..filled];
        while let Some((frame, after)) = split_frame(rest, FRAME_BYTES_TAKEN_MAX)
            .map_err(|malformed| anyhow!("malformed frame from the target: {malformed}"))?
        {
            rest = after;
            self.recv_frame(index, frame, now)?;
        }
        let connection = &mut self.connections[index];
        connection.partial.extend_from_slice(rest);
        let Connection { sessions, out, .. } = connection;
        for session in sessions {
            session.flush_range(out);
        }
        if !connection.out.is_empty() {
            self.mark_dirty(index);
        }
        Ok(())
    }

    fn recv_frame(&mut self, index: usize, frame: Frame<'_>, now: u64) -> Result<()> {
        if frame.body.is_empty() {
            return Ok(());
        }
        let (performative, payload) = Performative::decode(frame.body)
            .map_err(|malformed| anyhow!("malformed frame from the target: {malformed}"))?;
        match performative {
            Performative::Transfer(transfer) => {
                let channel = self.channel(index, frame.channel)?;
                self.recv_transfer(index, channel, &transfer, payload, now)
            }
            Performative::Disposition(disposition) => {
                let channel = self.channel(index, frame.channel)?;
                self.recv_disposition(index, channel, &disposition);
                Ok(())
            }
            Performative::Flow(flow) => {
                let channel = self.channel(index, frame.channel)?;
                self.recv_flow(index, channel, &flow)
            }
            Performative::Open(open) => {
                self.recv_open(index, &open);
                Ok(())
            }
            Performative::Begin(begin) => self.recv_begin(index, frame.channel, &begin),
            Performative::Attach(attach) => {
                let channel = self.channel(index, frame.channel)?;
                self.recv_attach(index, channel, &attach)
            }
            Performative::Detach(detach) => {
                let channel = self.channel(index, frame.channel)?;
                self.recv_detach(index, channel, &detach);
                Ok(())
            }
            Performative::End(end) => bail!("the target ended a session: {}", describe(end.error.as_ref())),
            Performative::Close(close) => {
                self.recv_close(index, &close);
                Ok(())
            }
        }
    }

    /// Our channel by the peer's.
    #[inline]
    fn channel(&self, index: usize, remote: u16) -> Result<u16> {
        match self.connections[index].by_remote_channel.get(usize::from(remote)) {
            Some(&Some(channel)) => Ok(channel),
            Some(None) | None => bail!("a frame on channel {remote}, where no session is"),
        }
    }

    fn recv_open(&mut self, index: usize, open: &Open<'_>) {
        let limit = self.spec.frame_bytes_max;
        let connection = &mut self.connections[index];
        connection.stage = Stage::Open;
        connection.frame_bytes_max = usize::try_from(open.max_frame_size).unwrap_or(limit).min(limit);
        // Half of the time-out is what §2.4.5 advises; a third is on the safe side.
        connection.heartbeat = open.idle_time_out.map_or(0, |millis| u64::from(millis) * 1_000_000 / 3);
    }

    fn recv_begin(&mut self, index: usize, remote: u16, begin: &Begin<'_>) -> Result<()> {
        let connection = &mut self.connections[index];
        let channel = begin.remote_channel.context("the target began a session of its own")?;
        let session = connection
            .sessions
            .get_mut(usize::from(channel))
            .context("the target answers no begin of ours")?;
        session.is_begun = true;
        session.next_incoming_id = begin.next_outgoing_id;
        session.remote_incoming_window = begin.incoming_window;
        let at = usize::from(remote);
        if connection.by_remote_channel.len() <= at {
            connection.by_remote_channel.resize(at + 1, None);
        }
        connection.by_remote_channel[at] = Some(channel);
        Ok(())
    }

    fn recv_attach(&mut self, index: usize, channel: u16, attach: &Attach<'_>) -> Result<()> {
        let link = self
            .links
            .iter()
            .position(|link| link.connection == index && link.channel == channel && link.name == attach.name)
            .with_context(|| format!("the target attached a link of its own: {}", attach.name))?;
        let at = usize::try_from(attach.handle).unwrap_or(HANDLES_MAX);
        if at >= HANDLES_MAX {
            bail!("the target uses handle {}", attach.handle);
        }
        let handles = &mut self.connections[index].sessions[usize::from(channel)].by_remote_handle;
        if handles.len() <= at {
            handles.resize(at + 1, NO_LINK);
        }
        handles[at] = u32::try_from(link).unwrap_or(NO_LINK);
        let state = &mut self.links[link];
        let is_refused =
            if state.purpose.is_sender() { attach.target.is_none() } else { attach.source.is_none() };
        if is_refused {
            // A detach with the reason follows.
            state.fault = Some("refused by the target".to_owned());
            return Ok(());
        }
        state.is_attached = true;
        if !state.purpose.is_sender() {
            state.delivery_count = attach.initial_delivery_count.unwrap_or(0);
            state.dynamic_address = attach.source.and_then(|source| source.address).map(str::to_owned);
        }
        Ok(())
    }

    fn recv_detach(&mut self, index: usize, channel: u16, detach: &Detach<'_>) {
        let session = &self.connections[index].sessions[usize::from(channel)];
        let link =
            usize::try_from(detach.handle).ok().and_then(|at| session.by_remote_handle.get(at).copied());
        let Some(state) = link.and_then(|link| self.links.get_mut(link as usize)) else { return };
        state.is_attached = false;
        if detach.error.is_some() {
            state.fault = Some(describe(detach.error.as_ref()));
        }
    }

    fn recv_close(&mut self, index: usize, close: &Close<'_>) {
        let why = format!("the target closed the connection: {}", describe(close.error.as_ref()));
        self.connections[index].stage = Stage::Closed(why);
    }

    fn recv_flow(&mut self, index: usize, channel: u16, flow: &Flow<'_>) -> Result<()> {
        let connection = &mut self.connections[index];
        let session = &mut connection.sessions[usize::from(channel)];
        // §2.5.6; before it has seen our begin the peer leaves next-incoming-id out, and ours began with 0.
        session.remote_incoming_window = flow
            .next_incoming_id
            .unwrap_or(0)
            .wrapping_add(flow.incoming_window)
            .wrapping_sub(session.next_outgoing_id);
        let Some(handle) = flow.handle else {
            if flow.echo {
                connection.send_flow(channel, None);
            }
            return Ok(());
        };
        let link = usize::try_from(handle).ok().and_then(|at| session.by_remote_handle.get(at).copied());
        let Some(link) = link.filter(|link| *link != NO_LINK) else {
            bail!("a flow for handle {handle}, where no link is");
        };
        let link = &mut self.links[link as usize];
        if link.purpose.is_sender() {
            // §2.6.7
            let granted = flow.delivery_count.unwrap_or(0).wrapping_add(flow.link_credit.unwrap_or(0));
            let credit = granted.wrapping_sub(link.delivery_count).cast_signed();
            link.credit = u32::try_from(credit).unwrap_or(0);
            if flow.drain {
                link.delivery_count = link.delivery_count.wrapping_add(link.credit);
                link.credit = 0;
            }
        }
        if flow.echo || flow.drain {
            let state = (link.handle, link.delivery_count, link.credit);
            connection.send_flow(channel, Some(state));
        }
        Ok(())
    }

    #[inline]
    fn recv_transfer(
        &mut self,
        index: usize,
        channel: u16,
        transfer: &Transfer<'_>,
        payload: &[u8],
        now: u64,
    ) -> Result<()> {
        let connection = &mut self.connections[index];
        let session = &mut connection.sessions[usize::from(channel)];
        session.next_incoming_id = session.next_incoming_id.wrapping_add(1);
        let link = session.by_remote_handle.get(transfer.handle as usize).copied().unwrap_or(NO_LINK);
        let Some(state) = self.links.get_mut(link as usize) else {
            bail!("a transfer for handle {}, where no link is", transfer.handle);
        };
        let (id, was_settled) = match state.current.take() {
            Some(current) => current,
            None => (transfer.delivery_id.context("a first transfer without a delivery id")?, false),
        };
        let is_settled = was_settled || transfer.settled == Some(true);
        if transfer.more {
            state.current = Some((id, is_settled));
            return Ok(());
        }
        state.delivery_count = state.delivery_count.wrapping_add(1);
        state.credit = state.credit.saturating_sub(1);
        if !transfer.aborted {
            state.received += 1;
            if !is_settled {
                match self.spec.settle {
                    Settle::Each => session.dispositions.append(&mut connection.out, id),
                    Settle::Range => match &mut session.range {
                        Some((_, last)) if last.wrapping_add(1) == id => *last = id,
                        Some(_) | None => {
                            session.flush_range(&mut connection.out);
                            session.range = Some((id, id));
                        }
                    },
                }
            }
            let stamp = stamp_of(payload).context("a message without our time stamp")?;
            let purpose = state.purpose;
            if purpose.is_measured() {
                self.counters.received += 1;
                if let Some((from, latencies)) = &mut self.latencies
                    && stamp >= *from
                {
                    latencies.saturating_record(now.saturating_sub(stamp).max(1));
                }
            }
            if let Purpose::Serve { pair, .. } = purpose {
                let replier = self.pairs[pair].1;
                self.links[replier as usize].replies.push_back(stamp);
            }
            if let Some(requester) = self.requester_of(purpose) {
                self.links[requester].in_flight = self.links[requester].in_flight.saturating_sub(1);
            }
        }
        let state = &self.links[link as usize];
        if !self.grants_by_the_clock() && state.credit <= self.spec.credit / 2 {
            self.grant(link as usize, self.spec.credit);
        }
        Ok(())
    }

    #[inline]
    fn recv_disposition(&mut self, index: usize, channel: u16, disposition: &Disposition<'_>) {
        if disposition.role == Role::Sender {
            return;
        }
        let is_terminal = disposition.state.as_ref().is_some_and(DeliveryState::is_terminal);
        if !disposition.settled && !is_terminal {
            return;
        }
        let connection = &mut self.connections[index];
        let session = &mut connection.sessions[usize::from(channel)];
        let last = disposition.last.unwrap_or(disposition.first);
        // Never more than can be under way, whatever the peer says.
        let count = last.wrapping_sub(disposition.first).saturating_add(1).min(session.owners_len());
        let is_accepted = matches!(disposition.state, Some(DeliveryState::Accepted));
        for offset in 0..count {
            let Some(link) = session.end_delivery(disposition.first.wrapping_add(offset)) else { continue };
            let state = &mut self.links[link as usize];
            match state.purpose {
                Purpose::Produce { .. } => state.in_flight = state.in_flight.saturating_sub(1),
                // A request is done when its answer is there; the answers themselves aren't counted.
                Purpose::Request { .. } => {}
                Purpose::Reply { .. } => continue,
                Purpose::Consume { .. } | Purpose::ConsumeReplies { .. } | Purpose::Serve { .. } => continue,
            }
            if is_accepted {
                self.counters.accepted += 1;
            } else {
                self.counters.not_accepted += 1;
            }
        }
        if !disposition.settled {
            let settle = Disposition {
                role: Role::Sender,
                first: disposition.first,
                last: disposition.last,
                settled: true,
                state: disposition.state,
                batchable: false,
            };
            append_disposition(&mut connection.out, channel, &settle);
        }
    }

    /// Stops reading where a slow reader is ahead of its rate, and reads again where it isn't any more.
    pub(super) fn pace_reading(&mut self, now: u64) -> Result<()> {
        let Some(rate) = self.spec.receiver_rate else { return Ok(()) };
        let allowed = (now as f64 * rate as f64 / 1e9) as u64;
        for at in 0..self.links.len() {
            let link = &self.links[at];
            let (index, is_ahead) = (link.connection, link.received > allowed);
            if link.purpose.is_measured() && self.connections[index].is_paused != is_ahead {
                self.connections[index].is_paused = is_ahead;
                self.poll_for(index)?;
            }
        }
        Ok(())
    }

    /// Closes all connections in good order, as far as the peer takes part within `patience`.
    pub fn close(mut self, patience: std::time::Duration) {
        self.drive_idle();
        let is_raw = self.connections.iter().all(|connection| connection.frame_bytes_max == 0);
        if !is_raw {
            for index in 0..self.connections.len() {
                let close = frame(0, |writer| Close::default().encode(writer));
                self.connections[index].out.extend_from_slice(&close);
                self.mark_dirty(index);
            }
            // The sockets are closed in any case; a peer that doesn't answer is no reason to fail.
            let _ = self.run_until(patience, "the target's close", |generator| {
                generator.connections.iter().all(|connection| matches!(connection.stage, Stage::Closed(_)))
            });
        }
    }
}
