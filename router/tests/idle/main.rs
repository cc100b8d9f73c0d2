//! What connections cost that do nothing: memory, and CPU for their idle time-outs (AMQP 1.0 §2.4.5).
//!
//! Ten thousand of them, each with one session, a sender and a receiver, on an address of its own.
//! `RINGMAIN_IDLE_SECONDS` says how long the CPU is watched, `RINGMAIN_IDLE_ANNOUNCED` which idle-time-out, in seconds,
//! the clients announce (how often the router must say something; how often they do is the router's to announce). How much of it is used depends on what else the machine
//! does, so it is only printed; what is compared with a limit is how often the router wakes up.

#[path = "../support/mod.rs"]
mod support;

use ringmain_codec::{
    Attach, Begin, Flow, Open, Performative, ProtocolHeader, Role, Source, Target, TargetNode,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use support::{Router, Setup, frame_bytes};

const CONNECTIONS: usize = 10_000;
/// So many begin at once.
const BATCH: usize = 250;
/// Resident memory for each, in bytes.
const MEMORY_MAX: u64 = 4096;
/// How often the router may wake up for each frame that comes: it looks at many connections at once, and what it sends
/// itself goes along.
const WAKES_MAX: f64 = 0.5;
/// The idle time-out of both ends, in seconds: the default of listeners.
const TIME_OUT_SECONDS: u32 = 16;
/// What a client announces, unless told otherwise: half of the minute that Qpid JMS has by default.
const ANNOUNCED_SECONDS: u32 = 30;
/// One for each connection, and some beside.
const DESCRIPTORS: u64 = CONNECTIONS as u64 + 500;

fn setting(name: &str) -> Option<u32> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

fn announced_seconds() -> u32 {
    setting("RINGMAIN_IDLE_ANNOUNCED").unwrap_or(ANNOUNCED_SECONDS)
}

/// All that a client says to be at rest with both links.
fn opening(number: usize) -> Vec<u8> {
    let address = format!("idle/{number}");
    let mut bytes = ProtocolHeader::AMQP.to_bytes().to_vec();
    let mut add = |performative| bytes.extend(frame_bytes(0, performative));
    let container = format!("client-{number}");
    let idle_time_out = Some(announced_seconds() * 1000);
    add(Performative::Open(Open { container_id: &container, idle_time_out, ..Open::default() }));
    add(Performative::Begin(Begin { incoming_window: 2048, outgoing_window: 2048, ..Begin::default() }));
    let source = Source { address: Some(&address), ..Source::default() };
    let node = TargetNode { address: Some(&address), ..TargetNode::default() };
    add(Performative::Attach(Attach {
        name: "receiver",
        handle: 0,
        role: Role::Receiver,
        source: Some(source),
        target: Some(Target::Node(TargetNode::default())),
        ..Attach::default()
    }));
    add(Performative::Flow(Flow {
        next_incoming_id: Some(0),
        incoming_window: 2048,
        next_outgoing_id: 0,
        outgoing_window: 2048,
        handle: Some(0),
        delivery_count: Some(0),
        link_credit: Some(10),
        ..Flow::default()
    }));
    add(Performative::Attach(Attach {
        name: "sender",
        handle: 1,
        role: Role::Sender,
        source: Some(Source::default()),
        target: Some(Target::Node(node)),
        initial_delivery_count: Some(0),
        ..Attach::default()
    }));
    bytes
}

/// Reads until the router has granted credit to the sender: everything before it is answered then.
fn await_credit(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out that isn't zero");
    let mut input = Vec::new();
    let mut room = [0; 4096];
    let mut at = ProtocolHeader::LEN;
    loop {
        while let Some(frame) = input.get(at..).filter(|rest| rest.len() >= 4) {
            let size = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
            let Some(frame) = frame.get(..size) else { break };
            if let Ok((Performative::Flow(flow), _)) = Performative::decode(&frame[8..])
                && flow.link_credit.is_some_and(|credit| credit > 0)
            {
                return;
            }
            at += size;
        }
        let count = stream.read(&mut room).expect("the router answers");
        assert!(count > 0, "the router has closed the connection");
        input.extend_from_slice(&room[..count]);
    }
}

/// What the router's threads have used.
#[derive(Clone, Copy, Default)]
struct Usage {
    /// CPU time.
    time: Duration,
    /// How often they have gone to sleep.
    sleeps: u64,
    /// Clock ticks of CPU time outside of the kernel, and in it.
    ticks: [u64; 2],
}

fn usage(router: &Router) -> Usage {
    let folder = format!("/proc/{}/task", router.process_id());
    let tasks = std::fs::read_dir(folder).expect("the router's process runs");
    let mut used = Usage::default();
    for task in tasks {
        let task = task.expect("a thread").path();
        let number = |text: &str| text.trim().parse::<u64>().expect("a number");
        let scheduled = std::fs::read_to_string(task.join("schedstat")).expect("the thread runs");
        let (nanoseconds, _) = scheduled.split_once(' ').expect("several numbers");
        let status = std::fs::read_to_string(task.join("status")).expect("the thread runs");
        let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        used.time += Duration::from_nanos(number(nanoseconds));
        used.sleeps += number(sleeps.expect("the kernel counts them"));
        // proc_pid_stat(5): fields 14 and 15, of which the second stands in parentheses and may hold anything.
        let stat = std::fs::read_to_string(task.join("stat")).expect("the thread runs");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("a part").split_whitespace().collect();
        used.ticks = [used.ticks[0] + number(fields[11]), used.ticks[1] + number(fields[12])];
    }
    used
}

#[test]
fn ten_thousand_idle_connections() {
    let hard = getrlimit(Resource::Nofile).maximum;
    if hard.is_some_and(|hard| hard < DESCRIPTORS) {
        println!("SKIPPED: the system allows {hard:?} open files, and this test needs {DESCRIPTORS}");
        return;
    }
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), ..limit })
        .expect("within the hard limit");
    let time_out = format!("    idleTimeoutSeconds: {TIME_OUT_SECONDS}");
    let log = "log {\n    module: DEFAULT\n    enable: warning+\n}\nlog {\n    module: SERVER\n    enable: notice+\n}";
    let router = Router::with(Setup { listener: &time_out, sections: log, ..Setup::default() });
    let memory = router.memory();
    let mut streams = Vec::new();
    for first in (0..CONNECTIONS).step_by(BATCH) {
        let mut batch: Vec<_> = (first..CONNECTIONS.min(first + BATCH))
            .map(|number| {
                let mut stream =
                    TcpStream::connect(router.address()).expect("the router accepts connections");
                stream.set_nodelay(true).expect("a socket of TCP");
                stream.write_all(&opening(number)).expect("the router takes what is sent");
                stream
            })
            .collect();
        batch.iter_mut().for_each(await_credit);
        streams.append(&mut batch);
    }
    for stream in &streams {
        stream.set_nonblocking(true).expect("a socket of TCP");
    }
    let each = (router.memory() - memory) / CONNECTIONS as u64;
    println!("{each} bytes of resident memory for each of {CONNECTIONS} idle connections");

    let seconds = u64::from(setting("RINGMAIN_IDLE_SECONDS").unwrap_or(8));
    // As the specification advises, each says something twice in a time-out.
    let pause = Duration::from_secs(TIME_OUT_SECONDS.into()) / 2 / u32::try_from(CONNECTIONS).expect("small");
    let (mut before, mut start) = (Usage::default(), Instant::now());
    let mut beat = 0_u32;
    let mut measured = false;
    // The first half of a time-out lets everything come to rest.
    let warm_up = Duration::from_secs(TIME_OUT_SECONDS.into()) / 2;
    let mut room = [0; 4096];
    loop {
        if !measured && start.elapsed() >= warm_up {
            (measured, before, start, beat) = (true, usage(&router), Instant::now(), 0);
        }
        if measured && start.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
        while pause * beat <= start.elapsed() {
            let stream = &mut streams[beat as usize % CONNECTIONS];
            stream.write_all(&[0, 0, 0, 8, 2, 0, 0, 0]).expect("the router takes an empty frame");
            match stream.read(&mut room) {
                Ok(0) => panic!("the router closed a connection that isn't silent"),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            beat += 1;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let after = usage(&router);
    let share = (after.time - before.time).as_secs_f64() / start.elapsed().as_secs_f64();
    let wakes = (after.sleeps - before.sleeps) as f64 / f64::from(beat);
    let ticks = [0, 1].map(|mode| after.ticks[mode] - before.ticks[mode]);
    println!(
        "{:.2} % of a core for idle time-outs of {TIME_OUT_SECONDS} s here and {} s there, {:.0} % of that in the kernel: \
         {beat} frames came in {seconds} s, {wakes:.2} wake-ups each",
        share * 100.0,
        announced_seconds(),
        ticks[1] as f64 * 100.0 / (ticks[0] + ticks[1]).max(1) as f64
    );
    assert!(each <= MEMORY_MAX, "{each} bytes for each idle connection");
    assert!(wakes <= WAKES_MAX, "{wakes:.2} wake-ups for each frame that came");
}
