//! A tap between a client and the router: passes every byte on, and reads the frames to check what the router sends.
//!
//! Clients forgive much. So what the router may send is checked here, with a reader that shares nothing with the codec
//! under test and knows just what it needs: frame sizes (AMQP 1.0 §2.3.1, §2.7.1), session windows (§2.5.6), delivery-ids
//! (§2.7.5) and link credit (§2.6.7). Bytes are looked at before they are passed on, so a grant is known here before the
//! router can have used it, and whatever was sent beyond the highest grant so far is a breach.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// The smallest max-frame-size, which holds before the peer's open (§2.7.1).
const MIN_MAX_FRAME_SIZE: u32 = 512;

/// The pass-through. It listens on a port of its own and takes one connection.
pub struct Tap {
    address: SocketAddr,
    wire: Arc<Mutex<Wire>>,
}

impl Tap {
    pub fn start(router: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("the listener is bound");
        let wire = Arc::new(Mutex::new(Wire::default()));
        let shared = Arc::clone(&wire);
        thread::spawn(move || {
            let Ok((client, _)) = listener.accept() else { return };
            let Ok(router) = TcpStream::connect(router) else { return };
            let _ = client.set_nodelay(true);
            let _ = router.set_nodelay(true);
            let (Ok(client_end), Ok(router_end)) = (client.try_clone(), router.try_clone()) else { return };
            let towards_router = Arc::clone(&shared);
            thread::spawn(move || pass(client_end, router_end, &towards_router, Side::Client));
            pass(router, client, &shared, Side::Router);
        });
        Self { address, wire }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().expect("no panic while held")
    }
}

/// Copies until either end closes, then closes the other.
fn pass(mut from: TcpStream, mut to: TcpStream, wire: &Mutex<Wire>, side: Side) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        wire.lock().expect("no panic while held").saw(side, &buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

/// Who sent something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Client,
    Router,
}

/// One connection as the tap has seen it so far.
#[derive(Default)]
pub struct Wire {
    unread_of_client: Vec<u8>,
    unread_of_router: Vec<u8>,
    max_frame_size_of_client: Option<u32>,
    largest_frame_of_router: u32,
    begins_of_client: HashMap<u16, Begin>,
    /// Attaches of the client as receiver that the router has not answered yet: channel, name and handle. They may come
    /// before the router's begin, since a client may pipeline.
    asked: Vec<(u16, Vec<u8>, u32)>,
    sessions: Vec<Session>,
    deliveries: usize,
    drained: usize,
    breaches: Vec<String>,
}

/// What the client's begin and flows say about what it can take.
#[derive(Clone, Copy)]
struct Begin {
    incoming_window: u32,
}

struct Session {
    channel_of_client: u16,
    channel_of_router: u16,
    first_outgoing_id: u32,
    /// Id of the router's next transfer frame.
    next_outgoing_id: u32,
    /// The first id that the client's window hasn't granted.
    window_end: u32,
    last_delivery_id: Option<u32>,
    links: Vec<Link>,
}

/// A link on which the router sends.
struct Link {
    handle_of_client: u32,
    handle_of_router: u32,
    initial_delivery_count: u32,
    delivery_count: u32,
    /// The first delivery-count that the client's credit hasn't granted.
    credit_end: u32,
    within_delivery: bool,
}

impl Wire {
    /// What the router did against the specification, one line each.
    pub fn breaches(&self) -> &[String] {
        &self.breaches
    }

    /// How many deliveries the router began.
    pub fn deliveries(&self) -> usize {
        self.deliveries
    }

    /// How often the router reported a link drained: a flow for it with drain set and no credit left.
    pub fn drained(&self) -> usize {
        self.drained
    }

    /// What the client's open said; 2^32−1 where it said nothing.
    pub fn max_frame_size_of_client(&self) -> Option<u32> {
        self.max_frame_size_of_client
    }

    /// In bytes, header included.
    pub fn largest_frame_of_router(&self) -> u32 {
        self.largest_frame_of_router
    }

    fn saw(&mut self, side: Side, bytes: &[u8]) {
        let mut unread = match side {
            Side::Client => std::mem::take(&mut self.unread_of_client),
            Side::Router => std::mem::take(&mut self.unread_of_router),
        };
        unread.extend_from_slice(bytes);
        let mut read = 0;
        loop {
            let rest = &unread[read..];
            let Some(first) = rest.first_chunk::<4>() else { break };
            if first == b"AMQP" {
                if rest.len() < 8 {
                    break;
                }
                read += 8;
                continue;
            }
            let size = u32::from_be_bytes(*first) as usize;
            if size < 8 {
                self.breach(side, format!("a frame of {size} octets"));
                read = unread.len();
                break;
            }
            // The size is looked at before the frame is complete: one that is too long may never be.
            if side == Side::Router {
                self.check_size(size);
            }
            if rest.len() < size {
                break;
            }
            self.saw_frame(side, &rest[..size]);
            read += size;
        }
        unread.drain(..read);
        match side {
            Side::Client => self.unread_of_client = unread,
            Side::Router => self.unread_of_router = unread,
        }
    }

    fn breach(&mut self, side: Side, what: String) {
        // A client's breach is not the router's fault, but the test should not have caused it either.
        let line = format!("{side:?}: {what}");
        if !self.breaches.contains(&line) {
            self.breaches.push(line);
        }
    }

    fn check_size(&mut self, size: usize) {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        self.largest_frame_of_router = self.largest_frame_of_router.max(size);
        let limit = self.max_frame_size_of_client.unwrap_or(MIN_MAX_FRAME_SIZE);
        if size > limit {
            self.breach(
                Side::Router,
                format!("a frame of {size} octets, but the client takes {limit} (§2.7.1)"),
            );
        }
    }

    fn saw_frame(&mut self, side: Side, frame: &[u8]) {
        let (data_offset, kind) = (usize::from(frame[4]) * 4, frame[5]);
        let channel = u16::from_be_bytes([frame[6], frame[7]]);
        let Some(body) = frame.get(data_offset..) else {
            return self
                .breach(side, format!("a frame whose data offset {data_offset} is past its end (§2.3.1)"));
        };
        // SASL frames and empty frames say nothing about sessions.
        if kind != 0 || body.is_empty() {
            return;
        }
        let Some((descriptor, fields)) = performative(body) else {
            return self.breach(side, format!("a frame body that can't be read: {body:02x?}"));
        };
        match (descriptor, side) {
            (0x10, Side::Client) => {
                self.max_frame_size_of_client = Some(fields.uint(2).unwrap_or(u32::MAX));
            }
            (0x11, Side::Client) => {
                let begin = Begin { incoming_window: fields.uint(2).unwrap_or(0) };
                self.begins_of_client.insert(channel, begin);
            }
            (0x11, Side::Router) => self.saw_begin_of_router(channel, &fields),
            (0x12, _) => self.saw_attach(side, channel, &fields),
            (0x13, Side::Client) => self.saw_flow_of_client(channel, &fields),
            (0x13, Side::Router) => self.saw_flow_of_router(channel, &fields),
            (0x14, Side::Router) => self.saw_transfer_of_router(channel, &fields),
            (0x16, Side::Router) => {
                let handle = fields.uint(0);
                if let Some(session) = self.session_of_router(channel) {
                    session.links.retain(|link| Some(link.handle_of_router) != handle);
                }
            }
            (0x17, Side::Router) => self.sessions.retain(|session| session.channel_of_router != channel),
            // The others grant nothing and need no grant.
            (_, Side::Client | Side::Router) => {}
        }
    }

    fn session_of_client(&mut self, channel: u16) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.channel_of_client == channel)
    }

    fn session_of_router(&mut self, channel: u16) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.channel_of_router == channel)
    }

    fn saw_begin_of_router(&mut self, channel: u16, fields: &Fields<'_>) {
        let begin =
            fields.uint(0).and_then(|channel| u16::try_from(channel).ok()).and_then(|channel_of_client| {
                self.begins_of_client.get(&channel_of_client).map(|begin| (channel_of_client, *begin))
            });
        let Some((channel_of_client, begin)) = begin else {
            return self
                .breach(Side::Router, "a begin that answers none of the client's (§2.5.1)".to_owned());
        };
        let Some(next_outgoing_id) = fields.uint(1) else {
            return self.breach(Side::Router, "a begin without next-outgoing-id (§2.7.2)".to_owned());
        };
        self.sessions.push(Session {
            channel_of_client,
            channel_of_router: channel,
            first_outgoing_id: next_outgoing_id,
            next_outgoing_id,
            window_end: next_outgoing_id.wrapping_add(begin.incoming_window),
            last_delivery_id: None,
            links: Vec::new(),
        });
    }

    fn saw_attach(&mut self, side: Side, channel: u16, fields: &Fields<'_>) {
        let (Some(name), Some(handle), Some(is_receiver)) = (fields.text(0), fields.uint(1), fields.bool(2))
        else {
            return self.breach(side, "an attach without name, handle or role (§2.7.3)".to_owned());
        };
        match (side, is_receiver) {
            (Side::Client, true) => self.asked.push((channel, name.to_vec(), handle)),
            (Side::Router, false) => self.saw_sender_of_router(channel, name, handle, fields.uint(9)),
            // A link on which the client sends.
            (Side::Client, false) | (Side::Router, true) => {}
        }
    }

    fn saw_sender_of_router(&mut self, channel: u16, name: &[u8], handle: u32, delivery_count: Option<u32>) {
        let session = self.sessions.iter_mut().find(|session| session.channel_of_router == channel);
        let Some(session) = session else {
            return self.breach(Side::Router, format!("an attach on channel {channel}, where no session is"));
        };
        let asked = self
            .asked
            .iter()
            .position(|(asked_on, asked, _)| *asked_on == session.channel_of_client && asked == name);
        let Some(asked) = asked else {
            return self.breach(Side::Router, "an attach as sender that nobody asked for".to_owned());
        };
        let (_, _, handle_of_client) = self.asked.swap_remove(asked);
        match delivery_count {
            Some(count) => session.links.push(Link {
                handle_of_client,
                handle_of_router: handle,
                initial_delivery_count: count,
                delivery_count: count,
                credit_end: count,
                within_delivery: false,
            }),
            None => self
                .breach(Side::Router, "a sender's attach without initial-delivery-count (§2.7.3)".to_owned()),
        }
    }

    fn saw_flow_of_client(&mut self, channel: u16, fields: &Fields<'_>) {
        let Some(session) = self.session_of_client(channel) else { return };
        let next_incoming_id = fields.uint(0).unwrap_or(session.first_outgoing_id);
        let window_end = next_incoming_id.wrapping_add(fields.uint(1).unwrap_or(0));
        if is_after(window_end, session.window_end) {
            session.window_end = window_end;
        }
        let Some(handle) = fields.uint(4) else { return };
        let Some(link) = session.links.iter_mut().find(|link| link.handle_of_client == handle) else {
            return;
        };
        let delivery_count = fields.uint(5).unwrap_or(link.initial_delivery_count);
        let credit_end = delivery_count.wrapping_add(fields.uint(6).unwrap_or(0));
        if is_after(credit_end, link.credit_end) {
            link.credit_end = credit_end;
        }
    }

    fn saw_flow_of_router(&mut self, channel: u16, fields: &Fields<'_>) {
        let Some(session) = self.session_of_router(channel) else {
            return self.breach(Side::Router, format!("a flow on channel {channel}, where no session is"));
        };
        let mut breaches = Vec::new();
        if fields.uint(2) != Some(session.next_outgoing_id) {
            breaches.push(format!(
                "a flow with next-outgoing-id {:?} after transfer {} (§2.7.4)",
                fields.uint(2),
                session.next_outgoing_id
            ));
        }
        let link = fields
            .uint(4)
            .and_then(|handle| session.links.iter_mut().find(|link| link.handle_of_router == handle));
        let mut is_drained = false;
        if let Some(link) = link {
            match fields.uint(5) {
                Some(count) if is_after(count, link.credit_end) => breaches.push(format!(
                    "a flow with delivery-count {count}, but credit only up to {} (§2.6.7)",
                    link.credit_end
                )),
                Some(count) => link.delivery_count = count,
                None => breaches.push("a sender's flow without delivery-count (§2.7.4)".to_owned()),
            }
            is_drained = fields.bool(8) == Some(true) && fields.uint(6) == Some(0);
        }
        self.drained += usize::from(is_drained);
        for breach in breaches {
            self.breach(Side::Router, breach);
        }
    }

    fn saw_transfer_of_router(&mut self, channel: u16, fields: &Fields<'_>) {
        let Some(session) = self.session_of_router(channel) else {
            return self
                .breach(Side::Router, format!("a transfer on channel {channel}, where no session is"));
        };
        let mut breaches = Vec::new();
        let mut is_first = false;
        if !is_after(session.window_end, session.next_outgoing_id) {
            breaches.push(format!(
                "transfer {} is outside the client's window (§2.5.6)",
                session.next_outgoing_id
            ));
        }
        session.next_outgoing_id = session.next_outgoing_id.wrapping_add(1);
        let handle = fields.uint(0);
        match session.links.iter_mut().find(|link| Some(link.handle_of_router) == handle) {
            None => breaches.push(format!("a transfer on handle {handle:?}, which is not attached (§2.7.5)")),
            Some(link) => {
                is_first = !link.within_delivery;
                if is_first {
                    match (fields.uint(1), session.last_delivery_id) {
                        (None, _) => breaches.push("a delivery without delivery-id (§2.7.5)".to_owned()),
                        (Some(id), Some(last)) if id != last.wrapping_add(1) => {
                            breaches.push(format!("delivery-id {id} after {last} (§2.7.5)"));
                        }
                        (Some(id), Some(_) | None) => session.last_delivery_id = Some(id),
                    }
                    if !is_after(link.credit_end, link.delivery_count) {
                        breaches
                            .push(format!("delivery {} is beyond the credit (§2.6.7)", link.delivery_count));
                    }
                    link.delivery_count = link.delivery_count.wrapping_add(1);
                }
                let is_aborted = fields.bool(9).unwrap_or(false);
                link.within_delivery = fields.bool(5).unwrap_or(false) && !is_aborted;
            }
        }
        self.deliveries += usize::from(is_first);
        for breach in breaches {
            self.breach(Side::Router, breach);
        }
    }
}

/// Whether serial number `a` is greater than `b` (RFC 1982).
fn is_after(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

/// The fields of a performative, each undecoded.
struct Fields<'b>(Vec<&'b [u8]>);

impl<'b> Fields<'b> {
    fn uint(&self, index: usize) -> Option<u32> {
        match *self.0.get(index)? {
            [0x43] => Some(0),
            [0x52 | 0x50, value] => Some(u32::from(*value)),
            [0x60, high, low] => Some(u32::from(u16::from_be_bytes([*high, *low]))),
            [0x70, a, b, c, d] => Some(u32::from_be_bytes([*a, *b, *c, *d])),
            _ => None,
        }
    }

    fn bool(&self, index: usize) -> Option<bool> {
        match *self.0.get(index)? {
            [0x41] | [0x56, 1] => Some(true),
            [0x42] | [0x56, 0] => Some(false),
            _ => None,
        }
    }

    fn text(&self, index: usize) -> Option<&'b [u8]> {
        match *self.0.get(index)? {
            [0xa1, _, text @ ..] => Some(text),
            [0xb1, _, _, _, _, text @ ..] => Some(text),
            _ => None,
        }
    }
}

/// Descriptor code and fields of the described list that a frame body begins with.
fn performative(body: &[u8]) -> Option<(u8, Fields<'_>)> {
    let (descriptor, list) = match *body {
        [0, 0x53, code, ref list @ ..] => (code, list),
        [0, 0x80, 0, 0, 0, 0, 0, 0, 0, code, ref list @ ..] => (code, list),
        _ => return None,
    };
    let mut rest = match *list {
        [0x45, ..] => &[][..],
        [0xc0, size, ref rest @ ..] => rest.get(..usize::from(size))?.get(1..)?,
        [0xd0, a, b, c, d, ref rest @ ..] => {
            rest.get(..u32::from_be_bytes([a, b, c, d]) as usize)?.get(4..)?
        }
        _ => return None,
    };
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (field, after) = rest.split_at_checked(length_of(rest)?)?;
        fields.push(field);
        rest = after;
    }
    Some((descriptor, Fields(fields)))
}

/// Length in octets of the value that `bytes` begins with (AMQP 1.0 §1.2).
fn length_of(bytes: &[u8]) -> Option<usize> {
    let code = *bytes.first()?;
    if code == 0 {
        let descriptor = length_of(bytes.get(1..)?)?;
        return Some(1 + descriptor + length_of(bytes.get(1 + descriptor..)?)?);
    }
    match code >> 4 {
        0x4 => Some(1),
        0x5 => Some(2),
        0x6 => Some(3),
        0x7 => Some(5),
        0x8 => Some(9),
        0x9 => Some(17),
        0xa | 0xc | 0xe => Some(2 + usize::from(*bytes.get(1)?)),
        0xb | 0xd | 0xf => Some(5 + u32::from_be_bytes(*bytes.get(1..5)?.first_chunk()?) as usize),
        _ => None,
    }
}

/// A conversation written by hand, after which the router says something that is right, or not.
mod checker {
    use super::{Side, Wire};

    /// A frame on channel 0 with a performative of these fields.
    fn frame(descriptor: u8, fields: &[&[u8]]) -> Vec<u8> {
        let count = u8::try_from(fields.len()).expect("few");
        let fields = fields.concat();
        let size = u8::try_from(fields.len() + 1).expect("short");
        let body = [&[0, 0x53, descriptor, 0xc0, size, count], &fields[..]].concat();
        let size = u32::try_from(body.len() + 8).expect("short");
        [&size.to_be_bytes(), &[2, 0, 0, 0][..], &body].concat()
    }

    const NULL: &[u8] = &[0x40];
    const TRUE: &[u8] = &[0x41];
    const FALSE: &[u8] = &[0x42];
    const ZERO: &[u8] = &[0x43];
    const NAME: &[u8] = &[0xa1, 1, b'x'];
    const HANDLE_OF_ROUTER: &[u8] = &[0x52, 5];

    fn flow(credit: u8) -> Vec<u8> {
        let window = [0x52, 2];
        frame(0x13, &[ZERO, &window, ZERO, ZERO, ZERO, ZERO, &[0x52, credit]])
    }

    fn transfer(delivery_id: u8, more: bool) -> Vec<u8> {
        let more = if more { TRUE } else { FALSE };
        frame(0x14, &[HANDLE_OF_ROUTER, &[0x52, delivery_id], &[0xa0, 1, 0], ZERO, FALSE, more])
    }

    /// The client takes frames of 1024 octets, two transfers and one delivery.
    fn attached() -> Wire {
        let mut wire = Wire::default();
        wire.saw(Side::Client, b"AMQP\0\x01\0\0");
        wire.saw(Side::Client, &frame(0x10, &[NAME, NULL, &[0x70, 0, 0, 4, 0]]));
        wire.saw(Side::Client, &frame(0x11, &[NULL, ZERO, &[0x52, 2], ZERO]));
        wire.saw(Side::Client, &frame(0x12, &[NAME, ZERO, TRUE]));
        wire.saw(Side::Router, &frame(0x11, &[&[0x60, 0, 0], ZERO, &[0x52, 9], ZERO]));
        let nulls = [NULL; 6];
        let attach = [&[NAME, HANDLE_OF_ROUTER, FALSE][..], &nulls, &[ZERO]].concat();
        wire.saw(Side::Router, &frame(0x12, &attach));
        wire.saw(Side::Client, &flow(1));
        assert_eq!(wire.breaches(), [""; 0]);
        wire
    }

    fn assert_breach(mut wire: Wire, frames: &[Vec<u8>], section: &str) {
        for bytes in frames.concat().chunks(3) {
            wire.saw(Side::Router, bytes);
        }
        assert_eq!(wire.breaches().len(), 1, "{:?}", wire.breaches());
        assert!(wire.breaches()[0].contains(section), "{:?}", wire.breaches());
    }

    #[test]
    fn accepts_what_is_granted() {
        let mut wire = attached();
        wire.saw(Side::Router, &transfer(7, true));
        wire.saw(Side::Router, &transfer(7, false));
        assert_eq!(wire.breaches(), [""; 0]);
        assert_eq!((wire.deliveries(), wire.max_frame_size_of_client()), (1, Some(1024)));
    }

    #[test]
    fn notices_a_frame_that_is_too_large() {
        let header_of_1025 = vec![0, 0, 4, 1, 2, 0, 0, 0];
        assert_breach(attached(), &[header_of_1025], "§2.7.1");
    }

    #[test]
    fn notices_a_delivery_beyond_the_credit() {
        assert_breach(attached(), &[transfer(0, false), transfer(1, false)], "§2.6.7");
    }

    #[test]
    fn notices_a_transfer_beyond_the_window() {
        assert_breach(attached(), &[transfer(0, true), transfer(0, true), transfer(0, false)], "§2.5.6");
    }

    #[test]
    fn notices_a_gap_in_the_delivery_ids() {
        let mut wire = attached();
        wire.saw(Side::Client, &flow(2));
        assert_breach(wire, &[transfer(0, false), transfer(2, false)], "§2.7.5");
    }

    #[test]
    fn notices_a_transfer_without_an_attach() {
        let mut wire = attached();
        wire.saw(Side::Router, &frame(0x16, &[HANDLE_OF_ROUTER]));
        assert_breach(wire, &[transfer(0, false)], "not attached");
    }
}
