//! A connection of a client: the socket, the engine, and the loop that moves bytes between them.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::failure::Failure;
use super::interrupt::interrupts;
use super::sasl::SaslOptions;
use super::tls::TlsOptions;
use super::url::Target;
use crate::base::buffer::{BufferPool, Output};
use crate::base::time::Instant;
use crate::engine::sasl::{Duty, Transport};
use crate::engine::settings::SaslPolicy;
use crate::engine::{Connection, Event, Settings, Side};
use crate::tls::Session;
use crate::tls::session::{RECORD_OVERHEAD_MAX, RECORD_PLAIN_MAX};

/// How long a TCP connection may take to be made where the user sets no time-out.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How much is read at once.
const READ_BYTES: usize = 256 * 1024;

/// The largest frame that a client takes.
const FRAME_BYTES_MAX: u32 = 64 * 1024;

/// While so much waits to be sent, nothing is added to it.
const BACKLOG_BYTES_MAX: usize = 256 * 1024;

/// One end of a connection, with its socket.
pub(super) struct Wire {
    socket: TcpStream,
    interrupts: UnixStream,
    /// What encrypts; `None`: nothing does.
    tls: Option<Session>,
    /// Who we are by our certificate.
    own_name: Option<Arc<str>>,
    /// The engine's end.
    pub(super) connection: Connection<()>,
    /// What the engine has to say.
    pub(super) out: Output,
    /// Where the socket's bytes go first.
    received: Box<[u8]>,
    /// What came and isn't a whole frame yet.
    input: Vec<u8>,
    /// What goes to the socket now, from `sent` on.
    sending: Vec<u8>,
    sent: usize,
    is_eof: bool,
    /// Signals that came so far.
    signals: usize,
    started: std::time::Instant,
}

/// What a client makes of its connection.
pub(super) trait User {
    /// Something happened on the connection.
    fn on_event(&mut self, event: Event<'_>, wire: &mut Wire) -> Result<(), Failure>;

    /// Time to send what can be sent, and to look at the clock. Called before each wait. True if there is
    /// more to send and [`Wire::has_room`] was all that stood against it.
    fn on_turn(&mut self, wire: &mut Wire) -> Result<bool, Failure>;

    /// The user wants it to stop; called for the first signal only.
    fn on_interrupt(&mut self, wire: &mut Wire);

    /// When `on_turn` is to be called if nothing happens before.
    fn next_turn(&self) -> Option<Instant>;
}

impl Wire {
    /// Connects and begins the conversation.
    pub(super) fn connect(
        target: &Target,
        timeout: Option<Duration>,
        sasl: &SaslOptions,
        tls: &TlsOptions,
    ) -> Result<Self, Failure> {
        let (tls, own_name) = tls.session(target).map_err(Failure::Failed)?.unzip();
        let credentials = sasl.credentials(target.login.as_ref()).map_err(Failure::Failed)?;
        let failed = |error: io::Error| Failure::Failed(format!("can't connect to {target}: {error}"));
        let interrupts = interrupts().map_err(failed)?;
        let socket = connect_any(target, timeout.unwrap_or(CONNECT_TIMEOUT)).map_err(|error| {
            if error.kind() == ErrorKind::TimedOut {
                Failure::TimedOut(format!("can't connect to {target}: {error}"))
            } else {
                failed(error)
            }
        })?;
        socket.set_nodelay(true).and_then(|()| socket.set_nonblocking(true)).map_err(failed)?;
        let settings = Rc::new(Settings {
            container_id: format!("ringmain-client-{}-{:08x}", std::process::id(), fastrand::u32(..)),
            hostname: Some(target.host.clone()),
            max_frame_size: FRAME_BYTES_MAX,
            sasl: SaslPolicy::Required,
            credentials: Some(credentials),
            ..Settings::default()
        });
        let mut out = Output::new(BufferPool::default());
        let connection = Connection::new(settings, Side::Initiator, Instant(0), &mut out);
        let mut wire = Self {
            socket,
            interrupts,
            tls,
            own_name: own_name.flatten(),
            connection,
            out,
            received: vec![0; READ_BYTES].into_boxed_slice(),
            input: Vec::new(),
            sending: Vec::new(),
            sent: 0,
            is_eof: false,
            signals: 0,
            started: std::time::Instant::now(),
        };
        // With TLS we speak first.
        wire.take_records(0)?;
        Ok(wire)
    }

    /// The time since the connection was made.
    pub(super) fn now(&self) -> Instant {
        Instant(0) + self.started.elapsed()
    }

    /// Whether more may be added to what waits to be sent.
    pub(super) fn has_room(&self) -> bool {
        self.out.pending() + (self.sending.len() - self.sent) < BACKLOG_BYTES_MAX
    }

    /// Runs the conversation to its end: both have closed, or the peer has closed the socket after we did.
    pub(super) fn run(&mut self, user: &mut impl User) -> Result<(), Failure> {
        while !self.step(user)? {}
        Ok(())
    }

    /// One round of the conversation: sends what is to be sent, waits for something to happen (no longer than
    /// the user wants), and takes it. True when the conversation is over; it must not be called again then.
    pub(super) fn step(&mut self, user: &mut impl User) -> Result<bool, Failure> {
        let wants_room = user.on_turn(self)?;
        self.connection.flush(&mut self.out);
        self.write()?;
        let is_all_sent = self.sent == self.sending.len()
            && (self.out.pending() == 0 || self.tls.as_ref().is_some_and(Session::is_handshaking));
        if (self.connection.is_finished() && is_all_sent) || (self.is_eof && self.connection.is_closing()) {
            self.say_goodbye();
            return Ok(true);
        }
        if self.is_eof {
            return Err(Failure::Failed("the router closed the connection without a word".to_owned()));
        }
        // With room made, the next turn is due at once; the peer is listened to in between.
        let next_turn = if wants_room && self.has_room() { Some(self.now()) } else { user.next_turn() };
        self.wait(next_turn, is_all_sent).map_err(lost)?;
        let signals = self.interrupts.read(&mut [0; 16]).unwrap_or(0);
        if signals > 0 && self.signals == 0 {
            user.on_interrupt(self);
        }
        self.signals += signals;
        if self.signals > 1 {
            return Err(Failure::Stopped);
        }
        self.read()?;
        self.take_events(user)?;
        let now = self.now();
        if let Some(event) = self.connection.handle_timeout(now, &mut self.out) {
            user.on_event(event, self)?;
        }
        Ok(false)
    }

    /// Waits for the socket, a signal, or the time at which something is due.
    fn wait(&self, next_turn: Option<Instant>, is_all_sent: bool) -> io::Result<()> {
        let wanted = if is_all_sent { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut files = [PollFd::new(&self.socket, wanted), PollFd::new(&self.interrupts, PollFlags::IN)];
        let deadline = [next_turn, self.connection.poll_timeout()].into_iter().flatten().min();
        let timeout = deadline.map(|deadline| deadline.since(self.now()));
        // A wait of more than an hour may as well be looked at in between.
        let timeout = timeout.map(|timeout| timeout.min(Duration::from_secs(3600))).map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(3600),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is there, up to one buffer full.
    fn read(&mut self) -> Result<(), Failure> {
        match self.socket.read(&mut self.received) {
            Ok(0) => self.is_eof = true,
            Ok(length) => {
                self.connection.heard(self.now());
                self.take_records(length)?;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // Whatever it said before is worth more than how it hung up.
            Err(error) if error.kind() == ErrorKind::ConnectionReset && self.connection.is_closing() => {
                self.is_eof = true;
            }
            Err(error) => return Err(lost(error)),
        }
        Ok(())
    }

    /// Takes the first `length` bytes of what was received, decrypted where the connection is encrypted.
    fn take_records(&mut self, length: usize) -> Result<(), Failure> {
        let Some(tls) = &mut self.tls else {
            self.input.extend_from_slice(&self.received[..length]);
            return Ok(());
        };
        let was_handshaking = tls.is_handshaking();
        let (input, mut outgoing) = (&mut self.input, Vec::new());
        let taken = tls.recv(&self.received[..length], &mut Vec::new(), &mut outgoing, |plain| {
            input.extend_from_slice(plain);
        });
        self.sending.extend_from_slice(&outgoing);
        match taken {
            Ok(received) => self.is_eof |= received.is_peer_closed,
            Err(reason) => {
                // It is told what it did; if it isn't, we hang up all the same.
                let _told = self.socket.write(&self.sending[self.sent..]);
                return Err(Failure::Failed(format!("TLS: {reason}")));
            }
        }
        if was_handshaking && !tls.is_handshaking() {
            let external_identity = self.own_name.take();
            let transport = Transport { is_encrypted: true, external_identity, ..Transport::default() };
            self.connection.set_transport(transport);
        }
        Ok(())
    }

    /// Takes what is to be sent next, encrypted where the connection is; nothing before that is agreed on.
    fn take_output(&mut self) -> Result<Vec<u8>, Failure> {
        let Some(tls) = &mut self.tls else { return Ok(self.out.take_bytes()) };
        if tls.is_handshaking() {
            return Ok(Vec::new());
        }
        let plain = self.out.take_bytes();
        let mut records = Vec::with_capacity(plain.len() + RECORD_OVERHEAD_MAX);
        for piece in plain.chunks(RECORD_PLAIN_MAX) {
            let start = records.len();
            records.resize(start + piece.len() + RECORD_OVERHEAD_MAX, 0);
            let written = tls.send(piece, &mut records[start..]);
            records.truncate(start + written.map_err(|reason| Failure::Failed(format!("TLS: {reason}")))?);
        }
        Ok(records)
    }

    /// Says that nothing more comes from us (RFC 8446 §6.1). The conversation is over, heard or not.
    fn say_goodbye(&mut self) {
        let mut goodbye = [0; RECORD_OVERHEAD_MAX];
        if let Some(Ok(length)) = self.tls.as_mut().map(|tls| tls.send_close(&mut goodbye)) {
            let _heard = self.socket.write(&goodbye[..length]);
        }
    }

    /// Gives what came to the engine, and what that makes of it to the user.
    fn take_events(&mut self, user: &mut impl User) -> Result<(), Failure> {
        let mut input = std::mem::take(&mut self.input);
        let mut done = 0;
        loop {
            let now = self.now();
            let progress = self.connection.recv(&input[done..], now, &mut self.out);
            done += progress.consumed;
            match progress.event {
                Some(Event::Sasl(Duty::Work(mut exchange))) => {
                    let answer = exchange.work();
                    let now = self.now();
                    if let Some(event) = self.connection.recv_worked(exchange, answer, now, &mut self.out) {
                        user.on_event(event, self)?;
                    }
                }
                Some(event) => user.on_event(event, self)?,
                None => break,
            }
        }
        input.drain(..done);
        self.input = input;
        Ok(())
    }

    fn write(&mut self) -> Result<(), Failure> {
        loop {
            if self.sent == self.sending.len() {
                if self.out.pending() == 0 {
                    return Ok(());
                }
                self.sending = self.take_output()?;
                self.sent = 0;
                if self.sending.is_empty() {
                    return Ok(());
                }
            }
            match self.socket.write(&self.sending[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.connection.spoke(self.now());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The peer has hung up; what it said before that is still to be read.
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                    self.out.clear();
                    self.sending.clear();
                    self.sent = 0;
                    return Ok(());
                }
                Err(error) => return Err(lost(error)),
            }
        }
    }
}

fn lost(error: io::Error) -> Failure {
    Failure::Failed(format!("the connection is lost: {error}"))
}

/// Tries the addresses of the host one after the other.
fn connect_any(target: &Target, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in (target.host.as_str(), target.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}
