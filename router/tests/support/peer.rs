//! The scripted peer.
//!
//! It does what a test tells it, right or wrong, and holds the router to the specification while it does: a
//! frame that is larger than the peer announced, a transfer without window or credit, a delivery-id out of
//! order, a channel beyond channel-max or an outcome of a delivery that isn't unsettled fail the test at
//! once.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use ringmain_codec::{
    Attach, Begin, Close, DeliveryState, Detach, Disposition, Encode, End, Flow, FrameKind, Open,
    Performative, ProtocolHeader, Role, Source, Symbol, Target, TargetNode, Transfer, Writer, split_frame,
    write_frame,
};
use rustix::net::RecvFlags;

use super::frame::Frame;
use super::link::{Delivery, Link, LinkId, Outcomes};
use super::session::Session;

/// How long the router may take to anything that it must do. Only a fault makes a test wait so long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// What an open of the peer says.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// The largest frame that the peer takes.
    pub max_frame_size: u32,
    /// The highest channel that the peer takes.
    pub channel_max: u16,
    /// Its idle time-out in milliseconds.
    pub idle_time_out: Option<u32>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { max_frame_size: 65_536, channel_max: u16::MAX, idle_time_out: None }
    }
}

/// One end of a connection with the router.
pub struct Peer {
    pub(super) stream: TcpStream,
    /// Where bytes are read to.
    buffer: Vec<u8>,
    /// Bytes that came and aren't taken yet, from `taken` on.
    pub(super) input: Vec<u8>,
    pub(super) taken: usize,
    /// Frames to be sent.
    pub(super) output: Vec<u8>,
    /// Whether the router has closed its side of the socket.
    pub(super) ended: bool,
    pub(super) frames: u64,
    pub(super) max_frame_size: u32,
    pub(super) channel_max: u16,
    pub(super) router_max_frame_size: u32,
    /// By the peer's channel.
    pub(super) sessions: BTreeMap<u16, Session>,
    /// The peer's channels, by the router's.
    pub(super) channels: BTreeMap<u16, u16>,
    /// Frames that came while the test waited for others.
    pub(super) pending: VecDeque<(u64, Frame)>,
    /// Dispositions of several deliveries, and those of which they were taken as the outcome.
    pub(super) ranges: Vec<(Frame, Vec<u32>)>,
    /// Complete deliveries that the test hasn't taken.
    pub(super) deliveries: VecDeque<Delivery>,
    /// What became of the peer's own deliveries.
    pub outcomes: Outcomes,
    /// Flows that came without a handle.
    pub session_flows: usize,
    /// Flows that came with one.
    pub link_flows: usize,
    pub(super) next_link: u32,
    /// Whether it plays a broker, in whose sessions the router attaches links.
    pub(super) is_broker: bool,
}

impl Peer {
    /// Connects and sends nothing.
    pub fn connect(address: SocketAddr) -> Self {
        Self::on(TcpStream::connect(address).expect("the router accepts connections"))
    }

    /// One end of a connection that somebody else made.
    pub(super) fn on(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a socket of TCP");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time-out that isn't zero");
        Self {
            stream,
            buffer: vec![0; READ_BYTES],
            input: Vec::new(),
            taken: 0,
            output: Vec::new(),
            ended: false,
            frames: 0,
            max_frame_size: ringmain_codec::MIN_MAX_FRAME_SIZE,
            channel_max: u16::MAX,
            router_max_frame_size: ringmain_codec::MIN_MAX_FRAME_SIZE,
            sessions: BTreeMap::new(),
            channels: BTreeMap::new(),
            pending: VecDeque::new(),
            ranges: Vec::new(),
            deliveries: VecDeque::new(),
            outcomes: Outcomes::default(),
            session_flows: 0,
            link_flows: 0,
            next_link: 0,
            is_broker: false,
        }
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        self.flush();
    }

    /// Adds bytes to what `flush` sends.
    pub fn queue_bytes(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Sends bytes written in hexadecimal, blanks ignored.
    #[track_caller]
    pub fn send_raw(&mut self, hex: &str) {
        let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("two digits")).collect();
        self.send_bytes(&bytes);
    }

    /// Sends a protocol header.
    pub fn send_header(&mut self, header: ProtocolHeader) {
        self.send_bytes(&header.to_bytes());
    }

    /// Sends one frame.
    #[track_caller]
    pub fn send(&mut self, channel: u16, performative: Performative<'_>, payload: &[u8]) {
        self.queue(channel, performative, payload);
        self.flush();
    }

    /// Adds a frame to those that `flush` sends.
    pub fn queue(&mut self, channel: u16, performative: Performative<'_>, payload: &[u8]) {
        self.account_sent(channel, &performative);
        self.append_frame(FrameKind::Amqp, channel, &performative, payload);
    }

    /// Sends an empty frame.
    pub fn send_empty_frame(&mut self) {
        self.send_raw("00000008 02000000");
    }

    /// Sends a frame of the SASL layer.
    pub fn send_sasl(&mut self, body: &impl Encode) {
        self.append_frame(FrameKind::Sasl, 0, body, &[]);
        self.flush();
    }

    pub(super) fn append_frame(&mut self, kind: FrameKind, channel: u16, body: &impl Encode, payload: &[u8]) {
        append_frame(&mut self.output, kind, channel, body, payload);
    }

    /// Sends what was queued.
    #[track_caller]
    pub fn flush(&mut self) {
        let output = std::mem::take(&mut self.output);
        self.stream.write_all(&output).expect("the router takes what is sent");
        self.output = output;
        self.output.clear();
    }

    /// The same, but the router may have closed the socket.
    pub fn try_flush(&mut self) -> bool {
        let output = std::mem::take(&mut self.output);
        self.stream.write_all(&output).is_ok()
    }

    /// The next frame, if one comes within `patience`. Everything that the peer keeps account of is brought
    /// up to date with it.
    #[track_caller]
    pub fn poll(&mut self, patience: Duration) -> Option<Frame> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(frame) = self.take_frame() {
                self.frames += 1;
                self.account_received(&frame);
                return Some(frame);
            }
            if self.ended || !self.read(deadline) {
                return None;
            }
        }
    }

    fn take_frame(&mut self) -> Option<Frame> {
        let input = &self.input[self.taken..];
        let (frame, rest) = split_frame(input, u32::MAX).expect("the router's frames are well-formed")?;
        let size = input.len() - rest.len();
        assert!(
            size <= self.max_frame_size as usize,
            "a frame of {size} bytes, though the peer takes no more than {}",
            self.max_frame_size
        );
        let frame = Frame {
            channel: frame.channel,
            size,
            at: Instant::now(),
            sasl: frame.kind == FrameKind::Sasl,
            body: frame.body.to_vec(),
        };
        self.taken += size;
        Some(frame)
    }

    /// Reads what is there, waiting for it until `deadline`; tells whether something came.
    pub(super) fn read(&mut self, deadline: Instant) -> bool {
        self.input.drain(..self.taken);
        self.taken = 0;
        let left = deadline.saturating_duration_since(Instant::now());
        let result = if left.is_zero() {
            rustix::net::recv(&self.stream, &mut self.buffer[..], RecvFlags::DONTWAIT)
                .map(|(count, _)| count)
                .map_err(std::io::Error::from)
        } else {
            self.stream.set_read_timeout(Some(left)).expect("a time-out that isn't zero");
            self.stream.read(&mut self.buffer)
        };
        let count = match result {
            Ok(0) => {
                self.ended = true;
                0
            }
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                self.ended = true;
                0
            }
            Err(error) => panic!("the socket fails: {error}"),
        };
        self.input.extend_from_slice(&self.buffer[..count]);
        count > 0
    }
}

/// Appends a frame to `output`.
fn append_frame(output: &mut Vec<u8>, kind: FrameKind, channel: u16, body: &impl Encode, payload: &[u8]) {
    let mut usual = [0; 1024];
    let mut large = Vec::new();
    let mut room = usual.as_mut_slice();
    loop {
        let mut writer = Writer::new(room);
        if write_frame(&mut writer, kind, channel, |writer| body.encode(writer)).is_ok() {
            let size = u32::try_from(writer.len() + payload.len()).expect("a frame's size has four bytes");
            output.extend_from_slice(&size.to_be_bytes());
            output.extend_from_slice(&writer.written()[4..]);
            output.extend_from_slice(payload);
            return;
        }
        large = vec![0; room.len().max(large.len()) * 4];
        room = large.as_mut_slice();
    }
}

/// The bytes of a frame, for those who send it themselves.
pub fn frame_bytes(channel: u16, performative: Performative<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_frame(&mut bytes, FrameKind::Amqp, channel, &performative, &[]);
    bytes
}
