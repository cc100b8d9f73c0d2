//! From sockets to attached links.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use ringmain_codec::{
    Attach, Begin, Encode as _, FrameKind, Open, Role, SaslCode, SaslFrame, SaslInit, SenderSettleMode,
    Source, Symbol, Target, TargetNode, split_frame, write_frame,
};
use rustix::event::epoll;

use super::connection::{Connection, INCOMING_WINDOW, Link, NO_LINK, Session, Stage};
use super::frames::{MessageShape, Template, encoded, frame};
use super::receive::FRAME_BYTES_TAKEN_MAX;
use super::topology::{ConnectionPlan, LoadSpec, Purpose};
use super::{Counters, Drive, Endpoint, Generator, SCRATCH_BYTES};

/// How long the target may take over each step.
const PATIENCE: Duration = Duration::from_secs(10);

/// The protocol headers of §2.2 and §5.3.1.
const AMQP_HEADER: [u8; 8] = *b"AMQP\x00\x01\x00\x00";
const SASL_HEADER: [u8; 8] = *b"AMQP\x03\x01\x00\x00";

impl Generator {
    /// Makes all connections, sessions and links of `spec`; `address` names the addresses.
    ///
    /// # Errors
    /// The target can't be reached, refuses something, or doesn't speak AMQP 1.0.
    pub fn connect(endpoint: &Endpoint, spec: &LoadSpec, address: &dyn Fn(usize) -> String) -> Result<Self> {
        spec.check().map_err(|fault| anyhow!(fault))?;
        let plans = spec.connections();
        let sockets = connect_all(endpoint, plans.len())?;
        let mut generator = Self {
            spec: spec.clone(),
            poll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(256),
            connections: Vec::new(),
            links: Vec::new(),
            driven: Vec::new(),
            repliers: Vec::new(),
            pairs: vec![(NO_LINK, NO_LINK); if spec.is_request_response { spec.senders } else { 0 }],
            dirty: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            started: Instant::now(),
            drive: Drive::Idle,
            paced_links: 0,
            counters: Counters::default(),
            latencies: None,
            is_blocking: false,
            next_heartbeat: 0,
        };
        for (socket, plan) in sockets.into_iter().zip(&plans) {
            generator.add(socket, plan)?;
        }
        generator.paced_links = generator.driven.len() as u64;
        match endpoint {
            Endpoint::Amqp { .. } => generator.open_all(address)?,
            Endpoint::Raw(_) | Endpoint::Itself => generator.take_all_for_granted(),
        }
        if !generator.grants_by_the_clock() {
            for link in 0..generator.links.len() {
                if !generator.links[link].purpose.is_sender() {
                    generator.grant(link, spec.credit);
                }
            }
        }
        generator.flush()?;
        Ok(generator)
    }

    fn add(&mut self, socket: TcpStream, plan: &ConnectionPlan) -> Result<()> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let index = self.connections.len();
        epoll::add(&self.poll, &socket, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
        let mut connection = Connection::new(socket);
        connection.sessions = (0..u16::try_from(plan.sessions)?).map(Session::new).collect();
        self.connections.push(connection);
        for (at, purpose) in plan.links.iter().enumerate() {
            let channel = u16::try_from(at % plan.sessions)?;
            let handle = u32::try_from(at / plan.sessions)?;
            let number = self.links.len();
            let name = format!("perf-{}-{number}", if purpose.is_sender() { "sender" } else { "receiver" });
            self.links.push(Link::new(index, channel, handle, *purpose, name));
            let link = u32::try_from(number)?;
            match *purpose {
                Purpose::Request { pair, .. } => self.pairs[pair].0 = link,
                Purpose::Reply { pair } => {
                    self.pairs[pair].1 = link;
                    self.repliers.push(number);
                }
                Purpose::Produce { .. }
                | Purpose::Consume { .. }
                | Purpose::ConsumeReplies { .. }
                | Purpose::Serve { .. } => {}
            }
            if purpose.is_driven() {
                self.driven.push(number);
            }
        }
        Ok(())
    }

    /// Without a protocol: both ends of a pair use the same channels and handles, so each one's are the other's.
    fn take_all_for_granted(&mut self) {
        for connection in &mut self.connections {
            connection.stage = Stage::Open;
            connection.frame_bytes_max = 0;
            for session in &mut connection.sessions {
                session.is_begun = true;
                session.remote_incoming_window = INCOMING_WINDOW;
                connection.by_remote_channel.push(Some(session.channel));
            }
        }
        for number in 0..self.links.len() {
            let link = &mut self.links[number];
            link.is_attached = true;
            let session = &mut self.connections[link.connection].sessions[usize::from(link.channel)];
            // Handles were given in order.
            session.by_remote_handle.push(u32::try_from(number).unwrap_or(NO_LINK));
        }
        self.make_templates(&|_| String::new());
    }

    fn open_all(&mut self, address: &dyn Fn(usize) -> String) -> Result<()> {
        for index in 0..self.connections.len() {
            let open = Open {
                container_id: &format!("ringmain-perf-{}-{index}", std::process::id()),
                hostname: Some("localhost"),
                max_frame_size: FRAME_BYTES_TAKEN_MAX,
                ..Open::default()
            };
            let bytes = frame(0, |writer| open.encode(writer));
            self.connections[index].out.extend_from_slice(&bytes);
            self.mark_dirty(index);
        }
        self.run_until(PATIENCE, "the target's open", |generator| {
            generator.connections.iter().all(|connection| connection.stage != Stage::Opening)
        })?;
        self.check_connections()?;
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            for session in &connection.sessions {
                let begin = Begin {
                    incoming_window: INCOMING_WINDOW,
                    outgoing_window: INCOMING_WINDOW,
                    ..Begin::default()
                };
                connection.out.extend_from_slice(&frame(session.channel, |writer| begin.encode(writer)));
            }
            self.mark_dirty(index);
        }
        self.run_until(PATIENCE, "the target's begin", |generator| {
            let mut sessions = generator.connections.iter().flat_map(|connection| &connection.sessions);
            sessions.all(|session| session.is_begun) || generator.is_closed()
        })?;
        self.check_connections()?;
        // Receivers first, so that nothing is sent to an address without any, and so that answers have one.
        self.attach_all(false, address)?;
        self.make_templates(address);
        self.attach_all(true, address)
    }

    fn is_closed(&self) -> bool {
        self.connections.iter().any(|connection| matches!(connection.stage, Stage::Closed(_)))
    }

    fn check_connections(&self) -> Result<()> {
        for connection in &self.connections {
            if let Stage::Closed(why) = &connection.stage {
                bail!("{why}");
            }
        }
        Ok(())
    }

    fn attach_all(&mut self, are_senders: bool, address: &dyn Fn(usize) -> String) -> Result<()> {
        for number in 0..self.links.len() {
            let link = &self.links[number];
            if link.purpose.is_sender() != are_senders {
                continue;
            }
            let bytes = self.attach_frame(link, address);
            let connection = link.connection;
            self.connections[connection].out.extend_from_slice(&bytes);
            self.mark_dirty(connection);
        }
        self.run_until(PATIENCE, "the target's attach", |generator| {
            let mut links = generator.links.iter().filter(|link| link.purpose.is_sender() == are_senders);
            generator.is_closed() || links.all(|link| link.is_attached || link.fault.is_some())
        })?;
        if self.links.iter().any(|link| link.fault.is_some()) {
            // The detach that says why may be a frame away.
            let _ = self.run_for(Duration::from_millis(50));
        }
        self.check_connections()?;
        self.check_links()
    }

    fn attach_frame(&self, link: &Link, address: &dyn Fn(usize) -> String) -> Vec<u8> {
        let node = |index: Option<usize>| index.map(address);
        let remote = match link.purpose {
            Purpose::Produce { address } => node((!self.spec.is_anonymous).then_some(address)),
            Purpose::Consume { address }
            | Purpose::Request { address, .. }
            | Purpose::Serve { address, .. } => node(Some(address)),
            Purpose::ConsumeReplies { .. } | Purpose::Reply { .. } => None,
        };
        let is_dynamic = matches!(link.purpose, Purpose::ConsumeReplies { .. });
        let is_sender = link.purpose.is_sender();
        let here = "ringmain-perf";
        let source = if is_sender { Some(here) } else { remote.as_deref() };
        let target = if is_sender { remote.as_deref() } else { Some(here) };
        let attach = Attach {
            name: &link.name,
            handle: link.handle,
            role: if is_sender { Role::Sender } else { Role::Receiver },
            snd_settle_mode: if self.spec.is_presettled {
                SenderSettleMode::Settled
            } else {
                SenderSettleMode::Unsettled
            },
            source: Some(Source { address: source, dynamic: is_dynamic, ..Source::default() }),
            target: Some(Target::Node(TargetNode { address: target, ..TargetNode::default() })),
            initial_delivery_count: is_sender.then_some(0),
            ..Attach::default()
        };
        frame(link.channel, |writer| attach.encode(writer))
    }

    /// The senders' messages. Links whose messages are the same share them.
    fn make_templates(&mut self, address: &dyn Fn(usize) -> String) {
        let mut made: Vec<(MessageShape, Rc<Template>)> = Vec::new();
        for number in 0..self.links.len() {
            let link = &self.links[number];
            let (to, reply_to) = match link.purpose {
                Purpose::Produce { address: index } => (self.spec.is_anonymous.then(|| address(index)), None),
                Purpose::Request { pair, .. } => (None, self.reply_address(pair)),
                Purpose::Reply { pair } => (self.reply_address(pair), None),
                Purpose::Consume { .. } | Purpose::ConsumeReplies { .. } | Purpose::Serve { .. } => continue,
            };
            let frame_bytes_max = match self.connections[link.connection].frame_bytes_max {
                0 => self.spec.frame_bytes_max,
                agreed => agreed,
            };
            let shape = MessageShape {
                handle: link.handle,
                channel: link.channel,
                is_settled: self.spec.is_presettled,
                body_bytes: self.spec.body_bytes,
                frame_bytes_max,
                to,
                reply_to,
            };
            let template = match made.iter().find(|(other, _)| *other == shape) {
                Some((_, template)) => Rc::clone(template),
                None => {
                    let template = Rc::new(Template::new(&shape));
                    made.push((shape, Rc::clone(&template)));
                    template
                }
            };
            self.links[number].template = Some(template);
        }
    }

    /// The address that the target made up for the answers of a pair.
    fn reply_address(&self, pair: usize) -> Option<String> {
        self.links.iter().find_map(|link| match link.purpose {
            Purpose::ConsumeReplies { pair: of } if of == pair => link.dynamic_address.clone(),
            Purpose::Produce { .. }
            | Purpose::Consume { .. }
            | Purpose::Request { .. }
            | Purpose::ConsumeReplies { .. }
            | Purpose::Serve { .. }
            | Purpose::Reply { .. } => None,
        })
    }
}

fn connect_all(endpoint: &Endpoint, count: usize) -> Result<Vec<TcpStream>> {
    match endpoint {
        Endpoint::Amqp { address, login } => (0..count)
            .map(|_| {
                let mut socket = connect(*address)?;
                authenticate(&mut socket, login.as_ref())?;
                Ok(socket)
            })
            .collect(),
        Endpoint::Raw(address) => (0..count).map(|_| connect(*address)).collect(),
        Endpoint::Itself => {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            let mut sockets = Vec::new();
            for _ in 0..count.div_ceil(2) {
                sockets.push(connect(listener.local_addr()?)?);
                sockets.push(listener.accept()?.0);
            }
            Ok(sockets)
        }
    }
}

/// Connects a socket.
///
/// # Errors
/// Nobody listens there.
pub fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, PATIENCE)
        .with_context(|| format!("can't connect to {address}"))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Goes through SASL (AMQP 1.0 §5.3) and exchanges the AMQP headers, on a blocking socket.
///
/// # Errors
/// The target doesn't speak AMQP 1.0, or wants to know who we are.
pub fn authenticate(socket: &mut TcpStream, login: Option<&(String, String)>) -> Result<()> {
    socket.write_all(&SASL_HEADER)?;
    expect_header(socket, SASL_HEADER)?;
    let mechanism = if login.is_some() { "PLAIN" } else { "ANONYMOUS" };
    let offered = read_sasl(socket, |sasl| match sasl {
        SaslFrame::Mechanisms(mechanisms) => {
            Ok(mechanisms.sasl_server_mechanisms.iter().map(|name| name.to_owned()).collect::<Vec<_>>())
        }
        other => bail!("expected sasl-mechanisms, got {}", other.name()),
    })?;
    if !offered.iter().any(|name| name == mechanism) {
        bail!("the target offers {} and not {mechanism}", offered.join(", "));
    }
    let response = match login {
        Some((user, password)) => format!("\0{user}\0{password}").into_bytes(),
        None => b"anonymous".to_vec(),
    };
    let init = SaslInit {
        mechanism: Symbol(mechanism),
        initial_response: Some(&response),
        hostname: Some("localhost"),
    };
    socket.write_all(&encoded(|writer| {
        write_frame(writer, FrameKind::Sasl, 0, |writer| init.encode(writer))
    }))?;
    read_sasl(socket, |sasl| match sasl {
        SaslFrame::Outcome(outcome) if outcome.code == SaslCode::Ok => Ok(()),
        SaslFrame::Outcome(outcome) => bail!("the target refuses SASL {mechanism}: {:?}", outcome.code),
        other => bail!("expected sasl-outcome, got {}", other.name()),
    })?;
    socket.write_all(&AMQP_HEADER)?;
    expect_header(socket, AMQP_HEADER)
}

fn expect_header(socket: &mut TcpStream, expected: [u8; 8]) -> Result<()> {
    let mut header = [0; 8];
    socket.read_exact(&mut header).context("the target doesn't answer the protocol header")?;
    if header != expected {
        bail!("the target answers {header:02x?} to the AMQP 1.0 protocol header {expected:02x?}");
    }
    Ok(())
}

/// Reads one SASL frame and nothing behind it.
fn read_sasl<T>(socket: &mut TcpStream, take: impl FnOnce(SaslFrame<'_>) -> Result<T>) -> Result<T> {
    let mut bytes = vec![0; 4];
    socket.read_exact(&mut bytes).context("the target doesn't answer in SASL")?;
    let size = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    // §5.3.1: SASL frames have at most 512 bytes.
    if !(8..=512).contains(&size) {
        bail!("a SASL frame of {size} bytes");
    }
    bytes.resize(size as usize, 0);
    socket.read_exact(&mut bytes[4..])?;
    let (frame, _) =
        split_frame(&bytes, 512).map_err(|fault| anyhow!("{fault}"))?.context("half a SASL frame")?;
    take(SaslFrame::decode(frame.body).map_err(|fault| anyhow!("{fault}"))?)
}

/// Makes a connection, opens it, and leaves: whether the target is there.
///
/// # Errors
/// It isn't, or doesn't speak AMQP 1.0.
pub fn hello(endpoint: &Endpoint) -> Result<()> {
    let Endpoint::Amqp { address, login } = endpoint else { return Ok(()) };
    let mut socket = connect(*address)?;
    authenticate(&mut socket, login.as_ref())?;
    let open = Open { container_id: "ringmain-perf-hello", hostname: Some("localhost"), ..Open::default() };
    socket.write_all(&frame(0, |writer| open.encode(writer)))?;
    let mut size = [0; 4];
    socket.read_exact(&mut size).context("the target doesn't answer the open")?;
    socket.write_all(&frame(0, |writer| ringmain_codec::Close::default().encode(writer)))?;
    Ok(())
}
