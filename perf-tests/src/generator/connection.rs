//! A connection of the generator: its socket, what waits to be sent, and the sessions and links on it.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::rc::Rc;

use ringmain_codec::Flow;

use super::frames::{DispositionTemplate, Template, append_disposition, append_flow};
use super::topology::Purpose;

/// Stands for a link that isn't there.
pub const NO_LINK: u32 = u32::MAX;

/// The window that we announce, in frames. It is renewed with every flow.
pub const INCOMING_WINDOW: u32 = 0xffff;

/// While so much waits on a connection, nothing is added to it.
pub const BACKLOG_BYTES_MAX: usize = 128 * 1024;

/// Handles and channels that a peer may use: beyond them it is taken for broken.
pub const HANDLES_MAX: usize = 1 << 16;

/// How far a connection has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The peer's open is due.
    Opening,
    /// Frames may go.
    Open,
    /// The peer has said close, or hung up; why.
    Closed(String),
}

/// One connection.
pub struct Connection {
    pub socket: TcpStream,
    pub stage: Stage,
    /// What waits to be sent, from `written` on.
    pub out: Vec<u8>,
    written: usize,
    /// The front of a frame that isn't all there yet.
    pub partial: Vec<u8>,
    /// Whether it is on the list of connections to flush.
    pub is_dirty: bool,
    /// Whether the poller is asked to say when the socket can be written again.
    pub awaits_room: bool,
    /// Whether it isn't read for now.
    pub is_paused: bool,
    /// Our sessions, by our channel.
    pub sessions: Vec<Session>,
    /// Our channel by the peer's.
    pub by_remote_channel: Vec<Option<u16>>,
    /// The largest frame that the peer takes.
    pub frame_bytes_max: usize,
    /// How often we let it know that we are there, in nanoseconds; 0 for never.
    pub heartbeat: u64,
    /// When we wrote last, by the generator's clock.
    pub spoke: u64,
}

/// A session on a connection.
pub struct Session {
    pub channel: u16,
    pub is_begun: bool,
    pub next_outgoing_id: u32,
    /// Frames that the peer takes.
    pub remote_incoming_window: u32,
    pub next_incoming_id: u32,
    /// The next delivery of ours.
    pub next_delivery_id: u32,
    /// The link of each delivery under way, by delivery id modulo its length.
    owners: Vec<u32>,
    /// Our link by the peer's handle.
    pub by_remote_handle: Vec<u32>,
    /// Deliveries that are to be settled as one range.
    pub range: Option<(u32, u32)>,
    pub dispositions: DispositionTemplate,
}

/// A link, in either role.
pub struct Link {
    pub connection: usize,
    pub channel: u16,
    pub handle: u32,
    pub purpose: Purpose,
    pub name: String,
    pub is_attached: bool,
    /// Set when the peer has refused or detached it.
    pub fault: Option<String>,
    /// The address that the peer has made up for a receiver.
    pub dynamic_address: Option<String>,
    /// Deliveries, as both ends count them.
    pub delivery_count: u32,
    /// What may still be sent, or come.
    pub credit: u32,
    /// A sender's deliveries that aren't done.
    pub in_flight: u32,
    /// A sender's messages.
    pub template: Option<Rc<Template>>,
    /// Which message of its pace a sender sends next.
    pub paced: u64,
    /// Answers that wait for credit: their time stamps.
    pub replies: std::collections::VecDeque<u64>,
    /// The id and settled flag of a delivery that isn't all there yet.
    pub current: Option<(u32, bool)>,
    /// All that a receiver has got since it was attached.
    pub received: u64,
}

impl Session {
    /// A session that hasn't begun.
    pub fn new(channel: u16) -> Self {
        Self {
            channel,
            is_begun: false,
            next_outgoing_id: 0,
            remote_incoming_window: 0,
            next_incoming_id: 0,
            next_delivery_id: 0,
            owners: vec![NO_LINK; 1 << 10],
            by_remote_handle: Vec::new(),
            range: None,
            dispositions: DispositionTemplate::new(channel),
        }
    }

    /// Notes whose the next delivery is, and gives its id.
    #[inline]
    pub fn begin_delivery(&mut self, link: u32) -> u32 {
        let id = self.next_delivery_id;
        self.next_delivery_id = id.wrapping_add(1);
        let mask = self.owners.len() - 1;
        if self.owners[id as usize & mask] != NO_LINK {
            self.grow_owners();
        }
        let mask = self.owners.len() - 1;
        self.owners[id as usize & mask] = link;
        id
    }

    /// The link of an unsettled delivery, which is settled now; `None` if there is no such delivery.
    #[inline]
    pub fn end_delivery(&mut self, id: u32) -> Option<u32> {
        let mask = self.owners.len() - 1;
        let owner = std::mem::replace(&mut self.owners[id as usize & mask], NO_LINK);
        (owner != NO_LINK).then_some(owner)
    }

    /// Deliveries that [`begin_delivery`](Self::begin_delivery) can have under way without growing: the most
    /// that a disposition can settle.
    pub fn owners_len(&self) -> u32 {
        u32::try_from(self.owners.len()).unwrap_or(u32::MAX)
    }

    /// Doubles the room for deliveries until the oldest one no longer stands in the way of the next.
    #[cold]
    fn grow_owners(&mut self) {
        let next = self.next_delivery_id.wrapping_sub(1);
        let length = self.owners.len();
        let mut owners = vec![NO_LINK; length * 2];
        let mask = owners.len() - 1;
        // The slots hold the ids next - length .. next.
        for back in 1..=length {
            let id = next.wrapping_sub(u32::try_from(back).unwrap_or(u32::MAX));
            owners[id as usize & mask] = self.owners[id as usize & (length - 1)];
        }
        self.owners = owners;
    }

    /// The flow state of the session alone.
    pub fn flow(&self) -> Flow<'static> {
        Flow {
            next_incoming_id: Some(self.next_incoming_id),
            incoming_window: INCOMING_WINDOW,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: INCOMING_WINDOW,
            ..Flow::default()
        }
    }

    /// Settles the deliveries that were put together.
    pub fn flush_range(&mut self, out: &mut Vec<u8>) {
        use ringmain_codec::{DeliveryState, Disposition, Role};
        let Some((first, last)) = self.range.take() else { return };
        let disposition = Disposition {
            role: Role::Receiver,
            first,
            last: (last != first).then_some(last),
            settled: true,
            state: Some(DeliveryState::Accepted),
            batchable: false,
        };
        append_disposition(out, self.channel, &disposition);
    }
}

impl Link {
    /// A link that isn't attached.
    pub fn new(connection: usize, channel: u16, handle: u32, purpose: Purpose, name: String) -> Self {
        Self {
            connection,
            channel,
            handle,
            purpose,
            name,
            is_attached: false,
            fault: None,
            dynamic_address: None,
            delivery_count: 0,
            credit: 0,
            in_flight: 0,
            template: None,
            paced: 0,
            replies: std::collections::VecDeque::new(),
            current: None,
            received: 0,
        }
    }
}

impl Connection {
    /// A connection whose socket is there and whose open hasn't been sent.
    pub fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            stage: Stage::Opening,
            out: Vec::new(),
            written: 0,
            partial: Vec::new(),
            is_dirty: false,
            awaits_room: false,
            is_paused: false,
            sessions: Vec::new(),
            by_remote_channel: Vec::new(),
            frame_bytes_max: 512,
            heartbeat: 0,
            spoke: 0,
        }
    }

    /// Whether more may be added to what waits.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.out.len() - self.written < BACKLOG_BYTES_MAX
    }

    /// Writes what waits, as far as the socket takes it. True if all of it is gone.
    ///
    /// # Errors
    /// The socket's.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.written < self.out.len() {
            match self.socket.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Keeps the buffer from creeping upwards while the socket stays full.
                    if self.written > BACKLOG_BYTES_MAX {
                        self.out.drain(..self.written);
                        self.written = 0;
                    }
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(true)
    }

    /// Reads once into `buffer`, behind the front of a frame that was there before, and says how much of the
    /// buffer is filled; `None` if nothing is there to be read.
    ///
    /// # Errors
    /// The socket's; an end of the stream is an error too.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let kept = self.partial.len();
        match self.socket.read(&mut buffer[kept..]) {
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the peer closed the connection")),
            Ok(count) => {
                buffer[..kept].copy_from_slice(&self.partial);
                self.partial.clear();
                Ok(Some(kept + count))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a session's flow, or a link's when `link` gives its handle, delivery count and credit.
    pub fn send_flow(&mut self, channel: u16, link: Option<(u32, u32, u32)>) {
        let session = &self.sessions[usize::from(channel)];
        let mut flow = session.flow();
        if let Some((handle, delivery_count, credit)) = link {
            flow.handle = Some(handle);
            flow.delivery_count = Some(delivery_count);
            flow.link_credit = Some(credit);
        }
        append_flow(&mut self.out, channel, &flow);
    }
}

#[cfg(test)]
mod tests {
    use super::Session;

    #[test]
    fn deliveries_keep_their_links_while_the_room_grows() {
        let mut session = Session::new(0);
        session.next_delivery_id = u32::MAX - 100;
        let ids: Vec<u32> = (0..5000).map(|link| session.begin_delivery(link)).collect();
        assert_eq!(ids[101], 0);
        for (link, id) in ids.iter().enumerate() {
            assert_eq!(session.end_delivery(*id), Some(u32::try_from(link).unwrap()));
            assert_eq!(session.end_delivery(*id), None);
        }
        let again = session.begin_delivery(7);
        assert_eq!(session.end_delivery(again), Some(7));
    }
}
