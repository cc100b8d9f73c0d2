//! TLS between the driver and the engine (AMQP 1.0 §5.2): records come in and go out here.
//!
//! The first bytes tell what a client speaks: a record of TLS, AMQP's header for TLS (then a record of TLS), or AMQP
//! without it, where the listener takes that. What takes long of a handshake, the signatures and the checks of
//! certificates, is done by the threads of [`Workers`](super::authentication::Workers): the session goes there with the
//! bytes that came and comes back with those to send. Meanwhile nothing of the connection is decrypted.
//!
//! Plain text waits in the connection's output as on every connection, and is encrypted when it is sent: so
//! back-pressure works the same way, and a connection has at most one send's worth of records.
//!
//! # Cost
//! One look at an `Option` for each received buffer and each send of a plain connection. For the others see
//! [`Session`].

use super::Core;
use super::slots::Slot;
use super::turn::Shard;
use crate::base::buffer::{BufferPool, Chunk, Output};
use crate::base::id::ConnectionKey;
use crate::base::limits::{CHUNKS_PER_SEND_MAX, TLS_EARLY_BYTES_MAX};
use crate::engine::sasl::{Encryption, Transport};
use crate::engine::{Cause, Fault};
use crate::io::driver::{Chunks, Driver};
use crate::log;
use crate::log::{Level, Module};
use crate::tls::session::{RECORD_OVERHEAD_MAX, RECORD_PLAIN_MAX};
use crate::tls::{Facts, Peers, Profile, Session};
use ringmain_codec::{Condition, ProtocolHeader, ProtocolId};
use std::fmt;
use std::io;
use std::sync::Arc;

/// AMQP's header for TLS (AMQP 1.0 §5.2.1).
const TLS_HEADER: ProtocolHeader = ProtocolHeader { id: ProtocolId::Tls, major: 1, minor: 0, revision: 0 };

/// The type of the record that a handshake begins with (RFC 8446 §5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// How the connections of a listener or connector are encrypted.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// The profile.
    pub profile: Arc<Profile>,
    /// Which end of it we are.
    pub role: TlsRole,
}

/// What an end needs to know beside its profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TlsRole {
    /// Clients connect to us.
    Server {
        /// Whether they must use it (`requireSsl`).
        is_required: bool,
        /// Whether they show a certificate.
        peers: Peers,
    },
    /// We connect.
    Client {
        /// The host that we connect to.
        host: String,
        /// Whether its certificate must be for it (`verifyHostname`).
        is_name_verified: bool,
    },
}

impl TlsSettings {
    /// The same, to connect to another host.
    #[must_use]
    pub fn to_host(&self, host: &str) -> Self {
        let mut settings = self.clone();
        match &mut settings.role {
            TlsRole::Client { host: old, .. } => host.clone_into(old),
            TlsRole::Server { .. } => {}
        }
        settings
    }

    /// Which of a profile's clients' certificates a server asks for, and what rustls is to do for it.
    ///
    /// # Errors
    /// The profile has no certificate, or it isn't for a server: a sentence for the user.
    pub fn server(&self) -> Result<Arc<rustls::ServerConfig>, String> {
        match &self.role {
            TlsRole::Server { peers, .. } => self.profile.current().server(*peers),
            TlsRole::Client { .. } => Err("it is for a connector".to_owned()),
        }
    }

    fn begin(&self) -> Result<Session, String> {
        let material = self.profile.current();
        match &self.role {
            TlsRole::Server { peers, .. } => Session::server(material.server(*peers)?, material.ordinal),
            TlsRole::Client { host, is_name_verified } => {
                Session::client(material.client(*is_name_verified), host, material.ordinal)
            }
        }
    }
}

/// A connection's TLS.
pub(super) struct Tls {
    settings: Arc<TlsSettings>,
    stage: Stage,
    /// Records on their way out.
    wire: Output,
    /// Whether the peer's end came while a worker had the session: it counts when what came before has been heard.
    is_end_due: bool,
    /// Whether we have said that nothing more comes from us (close_notify).
    is_goodbye_said: bool,
}

enum Stage {
    /// What the client speaks isn't known; the bytes that have come, fewer than a protocol header has.
    FirstBytes(Vec<u8>),
    /// The peer has the word.
    Handshake(Box<Session>),
    /// A worker has the session; the bytes that came meanwhile.
    Working(Vec<u8>),
    /// Records come and go.
    Established(Box<Session>),
    /// Nothing does any more; or the session is just at work.
    Over,
}

/// Memory that the records of one connection after the other use.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    records: Vec<u8>,
    outgoing: Vec<u8>,
}

/// A handshake that goes to a worker.
pub(super) struct Shake {
    connection: ConnectionKey,
    settings: Arc<TlsSettings>,
    session: Option<Box<Session>>,
    bytes: Vec<u8>,
}

/// A handshake that comes back.
pub(super) struct Shaken {
    connection: ConnectionKey,
    outgoing: Vec<u8>,
    plain: Vec<u8>,
    result: Result<(Box<Session>, bool), String>,
    /// Who the client is by its certificate.
    identity: Option<Arc<str>>,
}

impl fmt::Debug for Shaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shaken").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl Shake {
    fn work(self) -> Shaken {
        let Self { connection, settings, session, bytes } = self;
        let mut shaken = Shaken {
            connection,
            outgoing: Vec::new(),
            plain: Vec::new(),
            result: Err(String::new()),
            identity: None,
        };
        let session = match session {
            Some(session) => Ok(session),
            None => settings.begin().map(Box::new),
        };
        shaken.result = session.and_then(|mut session| {
            let plain = &mut shaken.plain;
            let take = |bytes: &[u8]| plain.extend_from_slice(bytes);
            let received = session.recv(&bytes, &mut Vec::new(), &mut shaken.outgoing, take)?;
            Ok((session, received.is_peer_closed))
        });
        if let Ok((session, _)) = &shaken.result
            && !session.is_handshaking()
        {
            let material = settings.profile.current();
            shaken.identity = match settings.role {
                TlsRole::Server { .. } => {
                    let name = |certificate| material.naming.name(certificate);
                    session.peer_certificate().and_then(name).map(Arc::from)
                }
                TlsRole::Client { .. } => material.own_name.clone(),
            };
        }
        shaken
    }
}

impl Tls {
    pub(super) fn new(settings: &Arc<TlsSettings>, pool: BufferPool) -> Self {
        Self {
            settings: settings.clone(),
            stage: Stage::FirstBytes(Vec::new()),
            wire: Output::new(pool),
            is_end_due: false,
            is_goodbye_said: false,
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(RECORD_PLAIN_MAX) {
            self.wire.write(piece.len(), |room| {
                room[..piece.len()].copy_from_slice(piece);
                (piece.len(), ())
            });
        }
    }

    /// Encrypts what a chunk has.
    fn encrypt(&mut self, chunk: &Chunk) -> Result<(), String> {
        let Stage::Established(session) = &mut self.stage else { return Ok(()) };
        for piece in chunk.bytes[..chunk.filled].chunks(RECORD_PLAIN_MAX) {
            self.wire.write(piece.len() + RECORD_OVERHEAD_MAX, |room| match session.send(piece, room) {
                Ok(written) => (written, Ok(())),
                Err(reason) => (0, Err(reason)),
            })?;
        }
        Ok(())
    }
}

impl Slot {
    /// Whether its bytes go as they are.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Whether nothing waits to be sent.
    #[inline]
    pub(super) fn is_all_sent(&self) -> bool {
        self.out.pending() == 0 && self.tls.as_ref().is_none_or(|tls| tls.wire.pending() == 0)
    }

    /// Takes what goes with the next send, encrypted where that is agreed on.
    #[inline]
    pub(super) fn next_chunks(&mut self, pool: &BufferPool) -> Chunks {
        if self.tls.is_some() {
            return self.next_records(pool);
        }
        let chunks: Chunks = self.out.take_chunks(CHUNKS_PER_SEND_MAX).collect();
        if !chunks.is_empty() && self.is_traced() {
            self.trace_sent(&chunks);
        }
        chunks
    }

    fn next_records(&mut self, pool: &BufferPool) -> Chunks {
        let Some(tls) = &self.tls else { return Chunks::new() };
        let is_established = matches!(tls.stage, Stage::Established(_));
        if self.over && !is_established {
            // Nobody can read it.
            self.out.clear();
        }
        if is_established && tls.wire.pending() == 0 {
            let plain: Chunks = self.out.take_chunks(CHUNKS_PER_SEND_MAX).collect();
            if !plain.is_empty() && self.is_traced() {
                self.trace_sent(&plain);
            }
            for chunk in plain {
                let encrypted = self.tls.as_mut().map_or(Ok(()), |tls| tls.encrypt(&chunk));
                pool.give_back(chunk);
                if let Err(reason) = encrypted {
                    // It can't be: the peer is told nothing more.
                    log!(Module::Server, Level::Error, "[C{}] TLS: {reason}", self.id);
                    self.out.clear();
                    self.peer_ended = true;
                }
            }
        }
        self.tls.as_mut().map_or_else(Chunks::new, |tls| tls.wire.take_chunks(CHUNKS_PER_SEND_MAX).collect())
    }

    /// Says that nothing more comes from us, once. Tells whether there is something to be sent for that.
    pub(super) fn say_goodbye(&mut self) -> bool {
        let Some(tls) = &mut self.tls else { return false };
        let Stage::Established(session) = &mut tls.stage else { return false };
        if std::mem::replace(&mut tls.is_goodbye_said, true) {
            return false;
        }
        tls.wire.write(RECORD_OVERHEAD_MAX, |room| (session.send_close(room).unwrap_or(0), ()));
        tls.wire.pending() > 0
    }

    /// Whether its TLS was made with a version of a profile before `oldest`.
    fn is_outdated(&self, profile: &Arc<Profile>, oldest: u64) -> bool {
        let Some(tls) = self.tls.as_ref().filter(|tls| Arc::ptr_eq(&tls.settings.profile, profile)) else {
            return false;
        };
        match &tls.stage {
            Stage::Established(session) | Stage::Handshake(session) => session.ordinal() < oldest,
            Stage::FirstBytes(_) | Stage::Working(_) | Stage::Over => false,
        }
    }

    /// The version of the profile that its TLS was made with.
    pub(super) fn tls_ordinal(&self) -> Option<u64> {
        match &self.tls.as_ref()?.stage {
            Stage::Established(session) => Some(session.ordinal()),
            Stage::FirstBytes(_) | Stage::Handshake(_) | Stage::Working(_) | Stage::Over => None,
        }
    }
}

impl Core {
    /// Begins TLS on a connection that we dialled, if it is to have it: we speak first.
    pub(super) fn begin_tls(&mut self, key: ConnectionKey) {
        if self.connections.get(key).is_some_and(|slot| slot.tls.is_some()) {
            self.shake(key, None, Vec::new());
        }
    }

    fn set_stage(&mut self, key: ConnectionKey, stage: Stage) {
        if let Some(tls) = self.connections.get_mut(key).and_then(|slot| slot.tls.as_mut()) {
            tls.stage = stage;
        }
    }

    fn shake(&mut self, connection: ConnectionKey, session: Option<Box<Session>>, bytes: Vec<u8>) {
        let Some(tls) = self.connections.get_mut(connection).and_then(|slot| slot.tls.as_mut()) else {
            return;
        };
        tls.stage = Stage::Working(Vec::new());
        let settings = tls.settings.clone();
        self.handshakes_due.push(Shake { connection, settings, session, bytes });
    }

    /// Takes what came for a connection, as it came.
    #[inline]
    pub(super) fn recv_raw(&mut self, key: ConnectionKey, bytes: &[u8]) {
        if self.connections.get(key).is_some_and(|slot| slot.tls.is_some()) {
            self.recv_tls(key, bytes);
        } else {
            self.recv(key, bytes);
        }
    }

    fn recv_tls(&mut self, key: ConnectionKey, bytes: &[u8]) {
        let Some(tls) = self.connections.get_mut(key).and_then(|slot| slot.tls.as_mut()) else { return };
        match std::mem::replace(&mut tls.stage, Stage::Over) {
            Stage::Established(session) => self.recv_records(key, session, bytes),
            Stage::FirstBytes(mut first) => {
                first.extend_from_slice(bytes);
                self.recv_first(key, first);
            }
            Stage::Handshake(session) => self.shake(key, Some(session), bytes.to_vec()),
            Stage::Working(mut early) => {
                if early.len() + bytes.len() > TLS_EARLY_BYTES_MAX {
                    self.tls_failed(key, "too much came before the handshake was over");
                } else {
                    early.extend_from_slice(bytes);
                    self.set_stage(key, Stage::Working(early));
                }
            }
            Stage::Over => {}
        }
    }

    /// Looks at the first bytes of a client.
    fn recv_first(&mut self, key: ConnectionKey, first: Vec<u8>) {
        let header = TLS_HEADER.to_bytes();
        let len = first.len().min(header.len());
        if first.first() == Some(&HANDSHAKE_RECORD) {
            self.shake(key, None, first);
        } else if first[..len] != header[..len] {
            self.recv_plain(key, &first);
        } else if len < header.len() {
            self.set_stage(key, Stage::FirstBytes(first));
        } else {
            let Some(tls) = self.connections.get_mut(key).and_then(|slot| slot.tls.as_mut()) else { return };
            tls.put(&header);
            self.shake(key, None, first[header.len()..].to_vec());
            self.mark_dirty(key);
        }
    }

    /// Serves a client without TLS, or sends it away.
    fn recv_plain(&mut self, key: ConnectionKey, first: &[u8]) {
        let Some(slot) = self.connections.get_mut(key) else { return };
        let Some(tls) = &mut slot.tls else { return };
        match &tls.settings.role {
            TlsRole::Server { is_required: true, .. } => {
                // What isn't served is answered with what is (AMQP 1.0 §2.2).
                tls.put(&TLS_HEADER.to_bytes());
                self.tls_failed(key, "the client doesn't begin with TLS, which 'requireSsl' demands");
            }
            TlsRole::Server { is_required: false, .. } | TlsRole::Client { .. } => {
                slot.tls = None;
                self.recv(key, first);
            }
        }
    }

    fn recv_records(&mut self, key: ConnectionKey, mut session: Box<Session>, bytes: &[u8]) {
        let Scratch { mut records, mut outgoing } = std::mem::take(&mut self.record_scratch);
        let received = session.recv(bytes, &mut records, &mut outgoing, |plain| {
            if !plain.is_empty() {
                self.recv(key, plain);
            }
        });
        if let Some(tls) = self.connections.get_mut(key).and_then(|slot| slot.tls.as_mut()) {
            tls.put(&outgoing);
            tls.stage = Stage::Established(session);
        }
        if !outgoing.is_empty() {
            self.mark_dirty(key);
        }
        outgoing.clear();
        self.record_scratch = Scratch { records, outgoing };
        match received {
            Ok(received) if received.is_peer_closed => self.receive_ended(key, None),
            Ok(_) => {}
            Err(reason) => self.tls_failed(key, &reason),
        }
    }

    /// Takes the end of what the peer of a connection with TLS sends, behind what a worker still has of it. Tells whether
    /// it is to be dealt with now.
    pub(super) fn recv_end(&mut self, key: ConnectionKey) -> bool {
        let Some(slot) = self.connections.get_mut(key).filter(|slot| !slot.over) else { return true };
        let Some(tls) = &mut slot.tls else { return true };
        match &tls.stage {
            Stage::Working(_) => {
                tls.is_end_due = true;
                false
            }
            Stage::Handshake(_) => {
                self.handshake_failures += 1;
                log!(
                    Module::Server,
                    Level::Info,
                    "[C{}] Connection {} {} ended in the TLS handshake",
                    slot.id,
                    slot.preposition(),
                    slot.host()
                );
                true
            }
            Stage::FirstBytes(_) | Stage::Established(_) | Stage::Over => true,
        }
    }

    /// Takes a handshake back from a worker.
    fn shaken(&mut self, shaken: Shaken) {
        let key = shaken.connection;
        self.go_on(shaken);
        let tls = self.connections.get_mut(key).and_then(|slot| slot.tls.as_mut());
        if tls.is_some_and(|tls| {
            tls.is_end_due && !matches!(tls.stage, Stage::Working(_)) && std::mem::take(&mut tls.is_end_due)
        }) && self.recv_end(key)
        {
            self.receive_ended(key, None);
        }
    }

    fn go_on(&mut self, shaken: Shaken) {
        let Shaken { connection: key, outgoing, plain, result, identity } = shaken;
        let Some(slot) = self.connections.get_mut(key).filter(|slot| !slot.over) else { return };
        let Some(tls) = &mut slot.tls else { return };
        tls.put(&outgoing);
        let Stage::Working(early) = std::mem::replace(&mut tls.stage, Stage::Over) else { return };
        let (session, is_peer_closed) = match result {
            Ok(done) => done,
            Err(reason) => return self.tls_failed(key, &reason),
        };
        self.mark_dirty(key);
        if session.is_handshaking() {
            if is_peer_closed {
                self.tls_failed(key, "the peer gave the handshake up");
            } else if early.is_empty() {
                self.set_stage(key, Stage::Handshake(session));
            } else {
                self.shake(key, Some(session), early);
            }
            return;
        }
        let Some(slot) = self.connections.get_mut(key) else { return };
        let encryption = session.facts().map(|Facts { version, cipher, key_bits }| Encryption {
            version,
            cipher,
            key_bits,
        });
        slot.engine.set_transport(Transport { is_encrypted: true, external_identity: identity, encryption });
        self.set_stage(key, Stage::Established(session));
        if !plain.is_empty() {
            self.recv(key, &plain);
        }
        if !early.is_empty() {
            self.recv_tls(key, &early);
        }
        if is_peer_closed {
            self.receive_ended(key, None);
        }
    }

    /// Ends a connection whose TLS has failed. What tells the peer is still sent.
    fn tls_failed(&mut self, key: ConnectionKey, reason: &str) {
        self.set_stage(key, Stage::Over);
        self.mark_dirty(key);
        let Some(slot) = self.connections.get_mut(key).filter(|slot| !slot.over) else { return };
        slot.out.clear();
        let is_open = slot.engine.is_open_received();
        if !is_open {
            self.handshake_failures += 1;
            // Who dialled tells it otherwise.
            if slot.listener.dialled.is_none() {
                log!(
                    Module::Server,
                    Level::Warning,
                    "[C{}] Connection from {} failed: TLS: {reason}",
                    slot.id,
                    slot.origin
                );
            }
        }
        let error = io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {reason}"));
        self.receive_ended(key, Some(&error));
    }

    /// Closes the connections whose TLS was made with a version of a profile before `oldest`.
    pub(super) fn retire_tls(&mut self, profile: &Arc<Profile>, oldest: u64) {
        let outdated: Vec<ConnectionKey> = self
            .connections
            .iter()
            .filter(|(_, slot)| !slot.over && slot.is_outdated(profile, oldest))
            .map(|(key, _)| key)
            .collect();
        for key in outdated {
            let now = self.now;
            let fault = Fault::new(
                Condition::CONNECTION_FORCED,
                "the certificate that the connection was made with isn't valid any more",
            );
            let Some(slot) = self.connections.get_mut(key) else { continue };
            slot.engine.send_close(Some(&fault), now, &mut slot.out);
            slot.tell_ended(|| "its certificate isn't valid any more ('oldestValidOrdinal')".to_owned());
            self.connection_lost(key, &Cause::Ours(fault));
            self.mark_dirty(key);
        }
    }
}

impl<D: Driver> Shard<D> {
    /// Has the workers do what takes long of handshakes, or does it here if there are none.
    pub(super) fn shake_hands(&mut self) {
        while !self.core.handshakes_due.is_empty() {
            for shake in std::mem::take(&mut self.core.handshakes_due) {
                let connection = shake.connection;
                let (Some(workers), Some(mailbox)) =
                    (&self.workers, self.mailboxes.get(usize::from(self.core.shard.0)))
                else {
                    self.core.shaken(shake.work());
                    continue;
                };
                let (done, waker) = (self.shaken.0.clone(), mailbox.waker());
                let given = workers.give(Box::new(move || {
                    // A shard that is gone has nothing to be told.
                    if done.send(shake.work()).is_ok() {
                        waker.wake();
                    }
                }));
                if given.is_err() {
                    self.core.tls_failed(connection, "too many handshakes are under way");
                }
            }
        }
    }

    /// Takes what the workers are done with. There is never more of it than they take on.
    pub(super) fn take_shaken(&mut self) {
        while let Ok(shaken) = self.shaken.1.try_recv() {
            self.core.shaken(shaken);
        }
    }
}
