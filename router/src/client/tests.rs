//! Both clients against a scripted peer on a real socket: what they do, and how their process would end.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant as StdInstant};

use super::{Status, receive, send};
use crate::base::buffer::{BufferPool, Output};
use crate::base::time::Instant;
use crate::cli::{Cli, Command};
use crate::engine::{Attachment, Connection, Event, Fault, LinkRef, NewDelivery, Settings, Side};
use ringmain_codec::{
    Attach, Condition, DeliveryState, Error, Modified, Rejected, Role, Source, Target, TargetNode,
};

/// What the peer does.
#[derive(Clone, Debug)]
enum Script {
    /// Takes messages with this outcome.
    Take(Outcome),
    /// Grants no credit.
    NoCredit,
    /// Refuses the link.
    Refuse,
    /// Accepts the TCP connection and says nothing.
    Mute,
    /// Closes the connection with an error after so many messages.
    CloseAfter(usize),
    /// Sends so many messages of one body, settled or not.
    Give { count: u32, body: Vec<u8>, settled: bool },
}

#[derive(Clone, Copy, Debug)]
enum Outcome {
    Accepted,
    Rejected,
    Released,
    Modified,
}

/// What the peer saw.
#[derive(Default, Debug)]
struct Seen {
    messages: Vec<Vec<u8>>,
    settled: usize,
    /// The states that the client gave, by name.
    states: Vec<&'static str>,
    credit_max: u32,
    source: Option<String>,
    target: Option<String>,
    was_closed: bool,
}

/// One conversation of the peer.
struct Peer {
    script: Script,
    connection: Connection<()>,
    out: Output,
    seen: Seen,
    link: Option<LinkRef>,
    partial: Vec<u8>,
    given: u32,
}

impl Peer {
    fn run(script: Script, mut socket: TcpStream) -> Seen {
        let started = StdInstant::now();
        let mut out = Output::new(BufferPool::default());
        let settings = Rc::new(Settings { container_id: "peer".to_owned(), ..Settings::default() });
        let connection = Connection::new(settings, Side::Acceptor, Instant(0), &mut out);
        let seen = Seen::default();
        let mut peer = Self { script, connection, out, seen, link: None, partial: Vec::new(), given: 0 };
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut input = Vec::new();
        let mut buffer = [0; 65536];
        loop {
            match socket.read(&mut buffer) {
                Ok(0) => return peer.seen,
                Ok(count) if !matches!(peer.script, Script::Mute) => {
                    input.extend_from_slice(&buffer[..count])
                }
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return peer.seen,
            }
            let now = Instant(0) + started.elapsed();
            let mut done = 0;
            loop {
                let progress = peer.connection.recv(&input[done..], now, &mut peer.out);
                done += progress.consumed;
                match progress.event {
                    Some(event) => peer.on_event(event, now),
                    None => break,
                }
            }
            input.drain(..done);
            peer.give();
            peer.connection.flush(&mut peer.out);
            let bytes = peer.out.take_bytes();
            if socket.write_all(&bytes).is_err() || peer.connection.is_finished() {
                return peer.seen;
            }
        }
    }

    fn on_event(&mut self, event: Event<'_>, now: Instant) {
        match event {
            Event::Opened(_) => self.connection.send_open(&mut self.out),
            Event::AttachRequested { link, attach } => self.on_attach(link, &attach),
            Event::Transfer(arrived) => {
                self.partial.extend_from_slice(arrived.payload);
                if !arrived.more {
                    self.seen.messages.push(std::mem::take(&mut self.partial));
                    self.seen.settled += usize::from(arrived.settled);
                    self.on_message(arrived.link, arrived.delivery_id, now);
                }
            }
            Event::Disposition(mut disposed) => {
                let name = match disposed.state {
                    Some(DeliveryState::Accepted) => "accepted",
                    Some(DeliveryState::Rejected(_)) => "rejected",
                    Some(DeliveryState::Released) => "released",
                    Some(DeliveryState::Modified(Modified { delivery_failed: Some(true), .. })) => "modified",
                    other => panic!("an outcome that the client doesn't have: {other:?}"),
                };
                while self.connection.next_disposed(&mut disposed).is_some() {
                    self.seen.states.push(name);
                }
            }
            Event::Closed(_) => self.seen.was_closed = true,
            Event::Flow { link, .. } => {
                let credit = self.connection.link(link).map_or(0, |link| link.credit);
                self.seen.credit_max = self.seen.credit_max.max(credit);
            }
            Event::Detached { link, .. } => {
                self.link = None;
                self.connection.clear_link(link);
            }
            Event::Sasl(_)
            | Event::Begun(_)
            | Event::Attached { .. }
            | Event::SenderFlow { .. }
            | Event::WindowOpened(_)
            | Event::Ended { .. } => {}
        }
    }

    fn on_attach(&mut self, link: LinkRef, attach: &Attach<'_>) {
        self.seen.source = attach.source.and_then(|source| source.address).map(str::to_owned);
        self.seen.target = match attach.target {
            Some(Target::Node(node)) => node.address.map(str::to_owned),
            Some(Target::Coordinator(_)) | None => None,
        };
        if matches!(self.script, Script::Refuse) {
            let fault = Fault::new(Condition::NOT_FOUND, "nothing here");
            self.connection.refuse_link(link, attach, &fault, &mut self.out).unwrap();
            return;
        }
        let attachment = Attachment {
            source: Some(Source { address: self.seen.source.as_deref(), ..Source::default() }),
            target: Some(Target::Node(TargetNode {
                address: self.seen.target.as_deref(),
                ..TargetNode::default()
            })),
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            max_message_size: 0,
        };
        self.connection.accept_link(link, &attachment, &mut self.out).unwrap();
        self.link = Some(link);
        if attach.role == Role::Sender && !matches!(self.script, Script::NoCredit) {
            self.connection.send_credit(link, 10, false, &mut self.out);
        }
    }

    fn on_message(&mut self, link: LinkRef, id: crate::base::id::Serial, now: Instant) {
        let error = Error { description: Some("no thanks"), ..Error::new(Condition::NOT_ALLOWED) };
        let state = match &self.script {
            Script::Take(Outcome::Accepted) => DeliveryState::Accepted,
            Script::Take(Outcome::Rejected) => DeliveryState::Rejected(Rejected { error: Some(error) }),
            Script::Take(Outcome::Released) => DeliveryState::Released,
            Script::Take(Outcome::Modified) => DeliveryState::Modified(Modified::default()),
            Script::CloseAfter(count) => {
                if self.seen.messages.len() == *count {
                    let fault = Fault::new(Condition::CONNECTION_FORCED, "enough");
                    self.connection.send_close(Some(&fault), now, &mut self.out);
                }
                DeliveryState::Accepted
            }
            Script::NoCredit | Script::Refuse | Script::Mute | Script::Give { .. } => {
                panic!("nothing was to come")
            }
        };
        self.connection.dispose_incoming(link, id, true, Some(&state), &mut self.out);
        self.connection.send_credit(link, 10, false, &mut self.out);
    }

    /// Sends what the script has for the client, as far as its credit goes.
    fn give(&mut self) {
        let (Script::Give { count, body, settled }, Some(link)) = (self.script.clone(), self.link) else {
            return;
        };
        while self.given < count {
            let Some(credit) = self.connection.take_credit(link) else { return };
            let tag = u64::from(self.given).to_be_bytes();
            let delivery = NewDelivery { message_format: 0, settled, tag, data: (), stamp: 0 };
            self.connection.begin_delivery(link, credit, delivery).unwrap();
            assert!(self.connection.send_payload(link, &body, false, &mut self.out).complete);
            self.given += 1;
        }
    }
}

/// Runs a command line, in which `URL` stands for the peer, against a peer with this script.
fn run(script: Script, line: &str) -> (Status, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("amqp://{}", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    let peer = std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        sender.send(Peer::run(script, socket)).unwrap();
    });
    let status = command(&line.replace("URL", &url));
    let seen = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    peer.join().unwrap();
    (status, seen)
}

fn command(line: &str) -> Status {
    match Cli::parse_arguments(line.split(' ')).unwrap().command {
        Some(Command::Send(options)) => send(&options),
        Some(Command::Receive(options)) => receive(&options),
        None
        | Some(
            Command::Check(_)
            | Command::Describe(_)
            | Command::Reload(_)
            | Command::Stat(_)
            | Command::Manage(_)
            | Command::Top(_)
            | Command::User(_)
            | Command::Completions(_)
            | Command::Man(_),
        ) => panic!("no client"),
    }
}

/// A message with an amqp-value section (descriptor 0x77) and a str8 (AMQP 1.0 §1.6.20, §3.2.8).
fn hello() -> Vec<u8> {
    b"\0\x53\x77\xa1\x05Hello".to_vec()
}

#[test]
fn every_message_is_sent_and_accepted() {
    let (status, seen) = run(Script::Take(Outcome::Accepted), "ringmain send URL/a/b -n 25");
    assert_eq!(status, Status::Done);
    assert_eq!(seen.messages, vec![hello(); 25]);
    assert_eq!((seen.target.as_deref(), seen.settled, seen.was_closed), (Some("a/b"), 0, true));
}

#[test]
fn presettled_messages_are_settled_and_all_arrive() {
    let (status, seen) = run(Script::Take(Outcome::Accepted), "ringmain send URL/a -n 25 --presettled");
    assert_eq!(status, Status::Done);
    assert_eq!((seen.messages.len(), seen.settled), (25, 25));
}

#[test]
fn an_anonymous_sender_has_no_address() {
    let (status, seen) = run(Script::Take(Outcome::Accepted), "ringmain send URL/a --anonymous");
    assert_eq!((status, seen.target), (Status::Done, None));
}

#[test]
fn other_outcomes_give_status_2() {
    for outcome in [Outcome::Rejected, Outcome::Released, Outcome::Modified] {
        let (status, seen) = run(Script::Take(outcome), "ringmain send URL/a -n 3");
        assert_eq!((status, seen.messages.len()), (Status::NotAccepted, 3), "{outcome:?}");
    }
}

#[test]
fn a_large_message_goes_in_frames_of_the_peers_size() {
    let (status, seen) = run(Script::Take(Outcome::Accepted), "ringmain send URL/a --size 3M");
    assert_eq!(status, Status::Done);
    // Before the data: descriptor 0x75 in three bytes, vbin32 and its size in five.
    assert_eq!(seen.messages[0].len(), 8 + 3 * 1024 * 1024);
}

#[test]
fn waiting_in_vain_gives_status_3() {
    let (status, seen) = run(Script::NoCredit, "ringmain send URL/a -t 0.2");
    assert_eq!((status, seen.was_closed), (Status::Unfinished, true));
    assert_eq!(run(Script::Mute, "ringmain send URL/a -t 0.2").0, Status::Unfinished);
    assert_eq!(run(Script::Mute, "ringmain receive URL/a -t 0.2").0, Status::Unfinished);
    let give = Script::Give { count: 2, body: hello(), settled: false };
    assert_eq!(run(give, "ringmain receive URL/a -n 3 -t 0.2 --print none").0, Status::Unfinished);
}

#[test]
fn no_connection_no_link_or_a_lost_one_give_status_1() {
    let (status, seen) = run(Script::Refuse, "ringmain send URL/a");
    assert_eq!((status, seen.messages.len()), (Status::Failed, 0));
    assert_eq!(run(Script::Refuse, "ringmain receive URL/a").0, Status::Failed);
    let (status, seen) = run(Script::CloseAfter(5), "ringmain send URL/a -n 100");
    assert_eq!(status, Status::Failed);
    assert!(seen.messages.len() < 100);
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(command(&format!("ringmain receive amqp://{free}/a")), Status::Failed);
}

#[test]
fn exactly_the_messages_asked_for_are_taken() {
    let give = Script::Give { count: 100, body: hello(), settled: false };
    let (status, seen) = run(give, "ringmain receive URL/x -n 25 --credit 10 --print none");
    assert_eq!(status, Status::Done);
    assert_eq!(seen.states, vec!["accepted"; 25]);
    assert_eq!((seen.source.as_deref(), seen.credit_max, seen.was_closed), (Some("x"), 10, true));
}

#[test]
fn outcomes_are_given_as_asked() {
    for (word, name) in [("reject", "rejected"), ("release", "released"), ("modify", "modified")] {
        let give = Script::Give { count: 3, body: hello(), settled: false };
        let (status, seen) = run(give, &format!("ringmain receive URL/x -n 3 --outcome {word} --print none"));
        assert_eq!((status, seen.states), (Status::Done, vec![name; 3]));
    }
}

#[test]
fn settled_messages_get_no_outcome_and_a_timeout_without_count_is_the_end() {
    let give = Script::Give { count: 3, body: hello(), settled: true };
    let (status, seen) = run(give, "ringmain receive URL/x -t 0.3 --print none");
    assert_eq!((status, seen.states.len()), (Status::Done, 0));
}
