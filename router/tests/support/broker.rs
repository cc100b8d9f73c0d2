//! The scripted peer as a broker: the router connects to it and attaches links to its nodes.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use ringmain_codec::{
    Attach, Begin, Detach, End, Error, Open, Performative, ProtocolHeader, Role, SaslCode, SaslMechanisms,
    SaslOutcome, Symbol, Symbols, Value,
};
use socket2::{Domain, Socket, Type};

use super::frame::Frame;
use super::link::LinkId;
use super::peer::{PATIENCE, Peer};

/// A port of a broker's own. Until it listens connections are refused, and nobody else gets the port.
pub struct BrokerSocket {
    socket: Socket,
    address: SocketAddr,
}

impl BrokerSocket {
    /// A port on which nobody listens.
    pub fn bind() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port");
        let address = socket.local_addr().expect("it is bound").as_socket().expect("of IPv4");
        Self { socket, address }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Listens from now on.
    pub fn listen(self) -> TcpListener {
        self.socket.listen(16).expect("a bound socket can listen");
        self.socket.into()
    }
}

impl Peer {
    /// Waits for the router to connect to a listener.
    #[track_caller]
    pub fn accept_on(listener: &TcpListener) -> Self {
        listener.set_nonblocking(true).expect("a listener of TCP");
        let deadline = Instant::now() + PATIENCE;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).expect("a socket of TCP");
                    let mut peer = Self::on(stream);
                    peer.is_broker = true;
                    return peer;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("the listener fails: {error}"),
            }
            assert!(Instant::now() < deadline, "the router doesn't connect");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Makes this peer one that answers the router's begins, as a broker does.
    pub fn become_broker(&mut self) {
        self.is_broker = true;
    }

    /// As the side that was connected to: the SASL layer with ANONYMOUS, then the opens. Returns the router's.
    #[track_caller]
    pub fn serve_open(&mut self, container: &str) -> Frame {
        self.serve_open_with(container, None)
    }

    /// The same, the open having properties (an encoded map).
    #[track_caller]
    pub fn serve_open_with(&mut self, container: &str, properties: Option<Value<'_>>) -> Frame {
        self.serve_sasl(&["ANONYMOUS"]);
        let init = self.expect("sasl-init");
        match init.sasl() {
            ringmain_codec::SaslFrame::Init(init) => assert_eq!(init.mechanism, Symbol("ANONYMOUS")),
            other => panic!("expected sasl-init, got {other:?}"),
        }
        self.send_sasl(&SaslOutcome { code: SaslCode::Ok, additional_data: None });
        self.expect_header(ProtocolHeader::AMQP);
        self.send_header(ProtocolHeader::AMQP);
        let open = Open {
            container_id: container,
            max_frame_size: 65_536,
            channel_max: u16::MAX,
            properties,
            ..Open::default()
        };
        self.send(0, Performative::Open(open), &[]);
        self.expect("open")
    }

    /// As the side that was connected to: begins the SASL layer, and offers these mechanisms.
    #[track_caller]
    pub fn serve_sasl(&mut self, mechanisms: &[&str]) {
        self.expect_header(ProtocolHeader::SASL);
        self.send_header(ProtocolHeader::SASL);
        self.send_sasl(&SaslMechanisms { sasl_server_mechanisms: Symbols::Slice(mechanisms) });
    }

    /// Answers a begin of the router. Returns the peer's channel for the session.
    pub(super) fn answer_begin(&mut self, router_channel: u16) -> u16 {
        let channel = (0..).find(|channel| !self.sessions.contains_key(channel)).expect("a free channel");
        let begin = Begin {
            remote_channel: Some(router_channel),
            incoming_window: 1_000_000,
            outgoing_window: u32::MAX >> 1,
            ..Begin::default()
        };
        self.send(channel, Performative::Begin(begin), &[]);
        channel
    }

    /// Waits for an attach of the router whose terminus at the broker has this address.
    #[track_caller]
    pub fn expect_attach_to(&mut self, address: &str) -> Frame {
        self.expect_where("attach", |frame| node_of(&frame.attach()) == Some(address))
    }

    /// Takes a link that the router attaches, with the termini that it asks for.
    #[track_caller]
    pub fn take_link(&mut self, frame: &Frame) -> LinkId {
        let attach = frame.attach();
        self.answer_attach(
            frame,
            Attach { source: attach.source, target: attach.target, ..Attach::default() },
        )
    }

    /// Refuses a link that the router attaches: its terminus isn't there, and a detach says why.
    #[track_caller]
    pub fn refuse_link(&mut self, frame: &Frame, condition: &str, description: &str) {
        let link = self.answer_attach(frame, Attach::default());
        self.give_up_link(link, condition, description);
        self.expect_end_of_link(frame);
    }

    /// Waits for the router to answer a detach, and to end the session that it had begun for the link alone.
    #[track_caller]
    pub fn expect_end_of_link(&mut self, attach: &Frame) {
        let (router_channel, router_handle) = (attach.channel, attach.attach().handle);
        let channel = *self.channels.get(&router_channel).expect("the router began the session");
        self.expect_where("detach", |frame| {
            frame.channel == router_channel && frame.detach().handle == router_handle
        });
        self.expect_where("end", |frame| frame.channel == router_channel);
        self.send(channel, Performative::End(End::default()), &[]);
        self.sessions.remove(&channel);
    }

    /// Detaches a link with an error, and doesn't wait for the answer.
    #[track_caller]
    pub fn give_up_link(&mut self, link: LinkId, condition: &str, description: &str) {
        let error = Error { condition: Symbol(condition), description: Some(description), info: None };
        let detach = Detach { handle: link.handle, closed: true, error: Some(error) };
        self.send(link.channel, Performative::Detach(detach), &[]);
    }

    /// Answers an attach of the router: what it has to repeat is repeated, the rest is as `answer` says.
    #[track_caller]
    pub fn answer_attach(&mut self, frame: &Frame, answer: Attach<'_>) -> LinkId {
        let attach = frame.attach();
        let channel = *self.channels.get(&frame.channel).expect("the router began the session");
        let session = self.sessions.get(&channel).expect("a session that is mapped");
        let handle = (0..).find(|handle| !session.links.contains_key(handle)).expect("a free handle");
        let role = match attach.role {
            Role::Sender => Role::Receiver,
            Role::Receiver => Role::Sender,
        };
        let answer = Attach {
            name: attach.name,
            handle,
            role,
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            initial_delivery_count: (role == Role::Sender).then_some(0),
            ..answer
        };
        self.send(channel, Performative::Attach(answer), &[]);
        let session = self.sessions.get_mut(&channel).expect("a session that is mapped");
        session.links.get_mut(&handle).expect("it was attached").attached(&attach);
        session.handles.insert(attach.handle, handle);
        LinkId { channel, handle }
    }
}

/// The address of the broker's own terminus that an attach of the router asks for.
fn node_of<'a>(attach: &Attach<'a>) -> Option<&'a str> {
    match attach.role {
        Role::Receiver => attach.source?.address,
        Role::Sender => match attach.target? {
            ringmain_codec::Target::Node(node) => node.address,
            ringmain_codec::Target::Coordinator(_) => None,
        },
    }
}
