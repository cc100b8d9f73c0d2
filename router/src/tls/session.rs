//! The records of one connection (TLS 1.2: RFC 5246 §6, TLS 1.3: RFC 8446 §5): bytes in, bytes out.
//!
//! # Cost
//! Received bytes are copied once into a buffer that the caller lends, and decrypted there. rustls allocates a buffer for
//! each record it decrypts or encrypts; what is encrypted is copied from there to where it is sent from.

use super::ciphers::{protocol_name, suite_name};
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{CertificateError, ClientConfig, CommonState, Error, ServerConfig};
use std::fmt;
use std::sync::Arc;

/// The most of the plain text that goes into one record (RFC 8446 §5.1).
pub const RECORD_PLAIN_MAX: usize = 16 * 1024;

/// What a record has beside its plain text, and the message that announces new keys before it: less than this.
pub const RECORD_OVERHEAD_MAX: usize = 256;

/// One connection's records.
pub struct Session {
    records: Records,
    /// The beginning of a record whose rest hasn't come yet.
    incoming: Vec<u8>,
    /// The version of the profile that it was made with.
    ordinal: u64,
}

enum Records {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// What the peers have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The protocol's version, as OpenSSL calls it.
    pub version: &'static str,
    /// The cipher suite, as OpenSSL calls it.
    pub cipher: &'static str,
    /// The strength of the encryption: the bits of its key.
    pub key_bits: u16,
}

/// What came of received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Whether the peer has said that nothing more comes (close_notify).
    pub is_peer_closed: bool,
}

/// What is to be done next.
enum Next {
    Again,
    PeerClosed,
    Done,
    Failed(String),
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("ordinal", &self.ordinal).finish_non_exhaustive()
    }
}

impl Session {
    /// The accepting side. `ordinal` is the version of the profile that `config` was made of.
    ///
    /// # Errors
    /// rustls refuses the configuration: a sentence for the user.
    pub fn server(config: Arc<ServerConfig>, ordinal: u64) -> Result<Self, String> {
        let records = UnbufferedServerConnection::new(config).map_err(|error| error.to_string())?;
        Ok(Self { records: Records::Server(records), incoming: Vec::new(), ordinal })
    }

    /// The side that connects to `host`, a name or an address: which it wants the certificate to be for.
    ///
    /// # Errors
    /// `host` is neither, or rustls refuses the configuration: a sentence for the user.
    pub fn client(config: Arc<ClientConfig>, host: &str, ordinal: u64) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            format!("'{host}' is neither a host's name nor its address, so no certificate can be for it")
        })?;
        let records = UnbufferedClientConnection::new(config, name).map_err(|error| error.to_string())?;
        Ok(Self { records: Records::Client(records), incoming: Vec::new(), ordinal })
    }

    /// The version of the profile that it was made with.
    #[must_use]
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    fn state(&self) -> &CommonState {
        match &self.records {
            Records::Server(records) => records,
            Records::Client(records) => records,
        }
    }

    /// Whether the peers are still agreeing on keys.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.state().is_handshaking()
    }

    /// What the peers have agreed on; `None`: nothing yet.
    #[must_use]
    pub fn facts(&self) -> Option<Facts> {
        let state = self.state();
        let version = protocol_name(state.protocol_version()?)?;
        let (cipher, key_bits) = suite_name(state.negotiated_cipher_suite()?.suite());
        Some(Facts { version, cipher, key_bits })
    }

    /// The certificate of the peer, in DER; `None`: it has shown none.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        self.state().peer_certificates()?.first().map(AsRef::as_ref)
    }

    /// Takes bytes of the peer, gives the plain text in them to `take`, and adds to `outgoing` what is to be sent for the
    /// sake of the protocol itself. `scratch` is only used meanwhile.
    ///
    /// # Errors
    /// The peer's fault, or it isn't who it should be: a sentence for the user. What is then in `outgoing` tells it.
    pub fn recv(
        &mut self,
        bytes: &[u8],
        scratch: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<Received, String> {
        scratch.clear();
        scratch.extend_from_slice(&self.incoming);
        scratch.extend_from_slice(bytes);
        let mut received = Received::default();
        let mut consumed = 0;
        loop {
            let input = &mut scratch[consumed..];
            let (discard, next) = match &mut self.records {
                Records::Server(records) => drive(records.process_tls_records(input), outgoing, &mut take),
                Records::Client(records) => drive(records.process_tls_records(input), outgoing, &mut take),
            };
            consumed += discard;
            match next {
                Next::Again => {}
                Next::PeerClosed => received.is_peer_closed = true,
                Next::Done => break,
                Next::Failed(reason) => {
                    self.incoming = Vec::new();
                    self.take_alert(outgoing);
                    return Err(reason);
                }
            }
        }
        let rest = &scratch[consumed..];
        if rest.is_empty() {
            // A connection holds memory for this only while a record straddles buffers.
            self.incoming = Vec::new();
        } else {
            self.incoming.clear();
            self.incoming.extend_from_slice(rest);
        }
        Ok(received)
    }

    /// Adds the alert that tells the peer what it did. Only while there is one: rustls must not look once more at the bytes
    /// that it found the fault in.
    fn take_alert(&mut self, outgoing: &mut Vec<u8>) {
        let mut nothing = |_: &[u8]| {};
        while self.state().wants_write() {
            let (_, next) = match &mut self.records {
                Records::Server(records) => {
                    drive(records.process_tls_records(&mut []), outgoing, &mut nothing)
                }
                Records::Client(records) => {
                    drive(records.process_tls_records(&mut []), outgoing, &mut nothing)
                }
            };
            match next {
                Next::Again => {}
                Next::PeerClosed | Next::Done | Next::Failed(_) => return,
            }
        }
    }

    /// Encrypts at most [`RECORD_PLAIN_MAX`] bytes into `out`, which has room for [`RECORD_OVERHEAD_MAX`] more. Returns how
    /// much it wrote.
    ///
    /// # Errors
    /// It isn't ready for that, or it has no keys left: a sentence for the user.
    pub fn send(&mut self, plain: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let incoming = &mut self.incoming;
        match &mut self.records {
            Records::Server(records) => encrypt(records.process_tls_records(incoming), plain, out),
            Records::Client(records) => encrypt(records.process_tls_records(incoming), plain, out),
        }
    }

    /// Writes into `out`, of [`RECORD_OVERHEAD_MAX`] bytes, that nothing more comes from us (close_notify).
    ///
    /// # Errors
    /// It isn't ready for that: a sentence for the user.
    pub fn send_close(&mut self, out: &mut [u8]) -> Result<usize, String> {
        let incoming = &mut self.incoming;
        match &mut self.records {
            Records::Server(records) => notify(records.process_tls_records(incoming), out),
            Records::Client(records) => notify(records.process_tls_records(incoming), out),
        }
    }
}

const NOT_READY: &str = "the peers are still agreeing on keys, or are done";

fn drive<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    outgoing: &mut Vec<u8>,
    take: &mut impl FnMut(&[u8]),
) -> (usize, Next) {
    let UnbufferedStatus { mut discard, state } = status;
    let next = match state {
        Err(error) => Next::Failed(words(&error)),
        Ok(ConnectionState::ReadTraffic(mut traffic)) => {
            let mut next = Next::Again;
            while let Some(record) = traffic.next_record() {
                match record {
                    Ok(record) => {
                        discard += record.discard;
                        take(record.payload);
                    }
                    Err(error) => next = Next::Failed(words(&error)),
                }
            }
            next
        }
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let start = outgoing.len();
            let mut room = RECORD_OVERHEAD_MAX;
            loop {
                outgoing.resize(start + room, 0);
                match data.encode(&mut outgoing[start..]) {
                    Ok(written) => {
                        outgoing.truncate(start + written);
                        break Next::Again;
                    }
                    Err(EncodeError::InsufficientSize(size)) if size.required_size > room => {
                        room = size.required_size;
                    }
                    Err(error) => {
                        outgoing.truncate(start);
                        break Next::Failed(error.to_string());
                    }
                }
            }
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Next::Again
        }
        Ok(ConnectionState::PeerClosed) => Next::PeerClosed,
        // Early data isn't asked for: it could be replayed.
        Ok(_) => Next::Done,
    };
    (discard, next)
}

fn encrypt<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    plain: &[u8],
    out: &mut [u8],
) -> Result<usize, String> {
    match status.state {
        Ok(ConnectionState::WriteTraffic(mut traffic)) => {
            traffic.encrypt(plain, out).map_err(|error: EncryptError| error.to_string())
        }
        Ok(_) => Err(NOT_READY.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn notify<Data>(status: UnbufferedStatus<'_, '_, Data>, out: &mut [u8]) -> Result<usize, String> {
    match status.state {
        Ok(ConnectionState::WriteTraffic(mut traffic)) => {
            traffic.queue_close_notify(out).map_err(|error: EncryptError| error.to_string())
        }
        Ok(_) => Err(NOT_READY.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What went wrong, in words that say what to do where the library's don't.
fn words(error: &Error) -> String {
    let Error::InvalidCertificate(fault) = error else { return error.to_string() };
    let why = match fault {
        CertificateError::UnknownIssuer => "no authority that is trusted here has issued it".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it isn't valid yet: compare the clocks of both machines".to_owned()
        }
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is an authority's own (CA:TRUE in its basic constraints), which isn't accepted as a peer's, trusted or not: \
             issue one with it, or make it without CA:TRUE"
                .to_owned()
        }
        other => other.to_string(),
    };
    format!("invalid peer certificate: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{Peers, Profile, ProfileFiles};
    use rcgen::{CertificateParams, KeyPair};
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A profile that trusts itself.
    fn profile(version: &str) -> Arc<Profile> {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("ringmain-session-{}-{number}", std::process::id()));
        std::fs::write(&file, certificate.pem() + &key.serialize_pem()).unwrap();
        let files = ProfileFiles {
            protocols: vec![version.to_owned()],
            ca_cert_file: Some(file.clone()),
            cert_file: Some(PathBuf::from(&file)),
            ..ProfileFiles::default()
        };
        let profile = Profile::load(files).unwrap();
        std::fs::remove_file(file).unwrap();
        profile
    }

    /// One end, what it has received, and what is on its way to it.
    struct End {
        session: Session,
        plain: Vec<u8>,
        way: Vec<u8>,
        is_peer_closed: bool,
    }

    impl End {
        fn new(session: Session) -> Self {
            Self { session, plain: Vec::new(), way: Vec::new(), is_peer_closed: false }
        }

        /// Takes some of what is on its way.
        fn recv(&mut self, length: usize, other: &mut Vec<u8>) {
            let rest = self.way.split_off(length.min(self.way.len()));
            let bytes = std::mem::replace(&mut self.way, rest);
            let plain = &mut self.plain;
            let received = self
                .session
                .recv(&bytes, &mut Vec::new(), other, |bytes| plain.extend_from_slice(bytes))
                .unwrap();
            self.is_peer_closed |= received.is_peer_closed;
        }

        fn send(&mut self, plain: &[u8], other: &mut Vec<u8>) {
            let mut room = vec![0; plain.len() + RECORD_OVERHEAD_MAX];
            let written = self.session.send(plain, &mut room).unwrap();
            other.extend_from_slice(&room[..written]);
        }
    }

    #[test]
    fn the_stream_may_be_cut_anywhere() {
        let mut random = fastrand::Rng::with_seed(6);
        for (version, rounds) in [("TLSv1.2", 20), ("TLSv1.3", 20)] {
            let material = profile(version).current();
            for _ in 0..rounds {
                let server = material.server(Peers::MayShow).unwrap();
                let mut server = End::new(Session::server(server, 7).unwrap());
                let mut client = End::new(Session::client(material.client(true), "localhost", 7).unwrap());
                client.recv(0, &mut server.way);
                while server.session.is_handshaking() || client.session.is_handshaking() {
                    server.recv(random.usize(1..300), &mut client.way);
                    client.recv(random.usize(1..300), &mut server.way);
                }
                assert_eq!(server.session.facts(), client.session.facts());
                assert_eq!(server.session.facts().map(|facts| facts.version), Some(version));
                let (mut of_client, mut of_server) = (Vec::new(), Vec::new());
                for _ in 0..30 {
                    let mut piece = vec![0; random.usize(0..=RECORD_PLAIN_MAX)];
                    random.fill(&mut piece);
                    if random.bool() {
                        client.send(&piece, &mut server.way);
                        of_client.extend_from_slice(&piece);
                    } else {
                        server.send(&piece, &mut client.way);
                        of_server.extend_from_slice(&piece);
                    }
                    server.recv(random.usize(1..20_000), &mut client.way);
                    client.recv(random.usize(1..20_000), &mut server.way);
                }
                let mut goodbye = [0; RECORD_OVERHEAD_MAX];
                let written = client.session.send_close(&mut goodbye).unwrap();
                server.way.extend_from_slice(&goodbye[..written]);
                while !server.way.is_empty() || !client.way.is_empty() {
                    assert!(!server.is_peer_closed || server.way.is_empty());
                    server.recv(random.usize(1..20_000), &mut client.way);
                    client.recv(random.usize(1..20_000), &mut server.way);
                }
                assert!(server.is_peer_closed && server.plain == of_client && client.plain == of_server);
                // Each side closes its own direction (RFC 8446 §6.1).
                server.send(b"more", &mut client.way);
                client.recv(usize::MAX, &mut server.way);
                assert!(client.plain.ends_with(b"more"));
            }
        }
    }

    /// Whoever finds that the other isn't to be trusted says so, wherever in its flight that comes.
    #[test]
    fn a_stranger_is_told() {
        for version in ["TLSv1.2", "TLSv1.3"] {
            let (ours, other) = (profile(version).current(), profile(version).current());
            for cut in [usize::MAX, 200, 1] {
                let server = ours.server(Peers::Unasked).unwrap();
                let mut server = End::new(Session::server(server, 0).unwrap());
                let mut client = End::new(Session::client(other.client(true), "localhost", 0).unwrap());
                client.recv(0, &mut server.way);
                server.recv(usize::MAX, &mut client.way);
                let flight = std::mem::take(&mut client.way);
                let mut alert = Vec::new();
                let mut pieces = flight.chunks(cut.min(flight.len()));
                let reason = loop {
                    let piece = pieces.next().expect("it is found out");
                    let outcome =
                        client.session.recv(piece, &mut Vec::new(), &mut alert, |_| panic!("no data"));
                    if let Err(reason) = outcome {
                        break reason;
                    }
                };
                assert!(reason.contains("invalid peer certificate"), "{reason}");
                let outcome = server.session.recv(&alert, &mut Vec::new(), &mut Vec::new(), |_| {});
                assert!(outcome.unwrap_err().contains("fatal alert"));
            }
        }
    }

    /// Whatever comes, it is taken or refused: nothing that a peer sends makes it panic.
    #[test]
    fn spoilt_streams_are_refused() {
        let mut random = fastrand::Rng::with_seed(13);
        for version in ["TLSv1.2", "TLSv1.3"] {
            let material = profile(version).current();
            for _ in 0..200 {
                let server = Session::server(material.server(Peers::MayShow).unwrap(), 0).unwrap();
                let client = Session::client(material.client(true), "localhost", 0).unwrap();
                let mut ends = [client, server];
                // What is on its way to the client, and to the server.
                let mut ways = [Vec::new(), Vec::new()];
                let mut spoil_in = random.usize(1..12);
                'talk: for turn in 0..40 {
                    let to = turn % 2;
                    let mut bytes = std::mem::take(&mut ways[to]);
                    spoil_in = spoil_in.saturating_sub(1);
                    if spoil_in == 0 && !bytes.is_empty() {
                        let place = random.usize(..bytes.len());
                        match random.u8(..4) {
                            0 => bytes[place] ^= 1 << random.u8(..8),
                            1 => bytes.truncate(place),
                            2 => bytes.insert(place, random.u8(..)),
                            _ => bytes.extend_from_within(..place),
                        }
                    }
                    let mut rest = &bytes[..];
                    loop {
                        let (piece, left) = rest.split_at(random.usize(0..=rest.len().min(500)));
                        let outgoing = &mut ways[1 - to];
                        if ends[to].recv(piece, &mut Vec::new(), outgoing, |_| {}).is_err() {
                            break 'talk;
                        }
                        if !ends[to].is_handshaking() {
                            let mut room = [0; 100 + RECORD_OVERHEAD_MAX];
                            let written = ends[to].send(&[7; 100], &mut room).unwrap();
                            outgoing.extend_from_slice(&room[..written]);
                        }
                        rest = left;
                        if rest.is_empty() {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// RFC 8446 §6.2: a peer that changes a byte on the way is found out, and told.
    #[test]
    fn a_changed_record_ends_it() {
        let material = profile("TLSv1.3").current();
        let mut server = End::new(Session::server(material.server(Peers::Unasked).unwrap(), 0).unwrap());
        let mut client = End::new(Session::client(material.client(true), "localhost", 0).unwrap());
        client.recv(0, &mut server.way);
        while server.session.is_handshaking() || client.session.is_handshaking() {
            server.recv(usize::MAX, &mut client.way);
            client.recv(usize::MAX, &mut server.way);
        }
        server.way.clear();
        client.send(b"hello", &mut server.way);
        server.way[8] ^= 1;
        let (bytes, mut alert) = (std::mem::take(&mut server.way), Vec::new());
        let outcome =
            server.session.recv(&bytes, &mut Vec::new(), &mut alert, |_| panic!("it is not given out"));
        assert!(outcome.is_err() && !alert.is_empty());
        let outcome = client.session.recv(&alert, &mut Vec::new(), &mut Vec::new(), |_| {});
        assert!(outcome.unwrap_err().contains("BadRecordMac"));
    }
}
