//! The generator against itself, the forwarders, and the router if it is built.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use super::topology::{LoadSpec, Settle, Slow};
use super::{Endpoint, Generator};
use crate::forwarder::{self, Engine};
use crate::pin;
use crate::target::{Kind, Settings, Target, Wait};

const SHORT: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(20);

/// Sends for a short while; everything sent has to arrive and to be settled.
fn exchange(endpoint: &Endpoint, spec: &LoadSpec, address: &dyn Fn(usize) -> String) {
    let mut generator = Generator::connect(endpoint, spec, address).unwrap();
    generator.drive_window();
    generator.run_for(SHORT).unwrap();
    assert!(generator.drain(LONG).unwrap(), "{spec:?}: {:?}", generator.counters);
    let counters = generator.counters;
    assert!(counters.sent > 0, "{spec:?}");
    assert_eq!(counters.received, counters.sent * spec.copies() as u64, "{spec:?}");
    assert_eq!(counters.accepted, if spec.is_presettled { 0 } else { counters.sent }, "{spec:?}");
    assert_eq!(counters.not_accepted, 0, "{spec:?}");
    generator.close(LONG);
}

/// Loads of fixed pairs that differ in everything that matters on the wire.
fn plain_loads() -> Vec<LoadSpec> {
    vec![
        LoadSpec::default(),
        LoadSpec { links_per_connection: 3, sessions_per_connection: 2, in_flight: 5, ..LoadSpec::pairs(7) },
        LoadSpec { settle: Settle::Range, credit: 10, in_flight: 3, ..LoadSpec::pairs(2) },
        LoadSpec { is_presettled: true, ..LoadSpec::pairs(2) },
        LoadSpec { body_bytes: 100_000, credit: 20, in_flight: 20, ..LoadSpec::default() },
        LoadSpec { body_bytes: 8, frame_bytes_max: 512, ..LoadSpec::default() },
    ]
}

fn nobody(_: usize) -> String {
    String::new()
}

#[test]
fn what_it_sends_to_itself_arrives() {
    for spec in plain_loads() {
        exchange(&Endpoint::Itself, &spec, &nobody);
    }
}

#[test]
fn what_it_sends_through_the_forwarders_arrives() {
    for engine in [Engine::Epoll, Engine::Uring] {
        let address = free_address();
        // It forwards until the process ends.
        std::thread::spawn(move || forwarder::run(engine, address, Duration::ZERO));
        let endpoint = Endpoint::Raw(address);
        for spec in plain_loads() {
            let attempt = || Generator::connect(&endpoint, &spec, &nobody).map(drop);
            // Nobody listens yet the first time.
            while attempt().is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(20));
            exchange(&endpoint, &spec, &nobody);
        }
    }
}

#[test]
fn an_open_loop_counts_what_was_due_and_not_what_was_sent() {
    let mut generator = Generator::connect(&Endpoint::Itself, &LoadSpec::pairs(2), &nobody).unwrap();
    generator.drive_paced(10_000.0);
    generator.run_for(SHORT).unwrap();
    let from = generator.record();
    // Everything stands still for 50 ms: 500 messages are late by up to as much.
    std::thread::sleep(Duration::from_millis(50));
    generator.run_for(SHORT).unwrap();
    let due = generator.finish_paced(from, LONG).unwrap();
    let latencies = generator.take_latencies();
    assert!(due >= 790, "{due}");
    assert_eq!(latencies.len(), due);
    assert!(latencies.max() >= 49_000_000, "{}", latencies.max());
    let late = latencies.count_between(10_000_000, u64::MAX);
    assert!(late >= 390, "{late} of {due} messages were more than 10 ms late");
    assert_eq!(generator.overdue(), 0);
}

#[test]
fn a_slow_receiver_keeps_to_its_rate() {
    for slow in [Slow::Credit, Slow::Reading] {
        let spec = LoadSpec {
            is_presettled: true,
            receiver_rate: Some(10_000),
            slow,
            credit: 100,
            ..LoadSpec::default()
        };
        let mut generator = Generator::connect(&Endpoint::Itself, &spec, &nobody).unwrap();
        generator.drive_window();
        generator.run_for(Duration::from_millis(200)).unwrap();
        let (now, received) = (generator.now(), generator.counters.received);
        // A reader gets what lies in its socket all at once.
        let most = now / 100_000 + if slow == Slow::Credit { 0 } else { 100 };
        assert!(received > 0 && received <= most, "{slow:?}: {received} in {now} ns");
    }
}

#[test]
fn every_load_passes_the_router() {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(|deps| deps.parent()).map(|folder| folder.join("ringmain"));
    let Some(program) = program.filter(|program| program.is_file()) else {
        println!("skipped: the router isn't built in this profile");
        return;
    };
    let folder = std::env::temp_dir().join(format!("ringmain-perf-test-{}", std::process::id()));
    let cpus = pin::allowed().unwrap();
    let settings = Settings {
        cpus: cpus.clone(),
        generator_cpus: cpus,
        folder: folder.clone(),
        ringmain: program,
        counted: folder.join("none"),
        router_attributes: Vec::new(),
        link_capacity: 100,
        spin_us: 0,
    };
    let target = Target::start(&Kind::Ringmain(Wait::Block), &settings).unwrap();
    assert!(target.start_time.is_some() && target.pids.len() == 1);
    let mut loads = plain_loads();
    loads.extend([
        LoadSpec { receivers: 4, is_multicast: true, in_flight: 10, ..LoadSpec::default() },
        LoadSpec { senders: 4, in_flight: 10, ..LoadSpec::default() },
        LoadSpec { is_anonymous: true, in_flight: 10, ..LoadSpec::pairs(2) },
        LoadSpec { is_mixed: true, in_flight: 10, ..LoadSpec::pairs(3) },
        LoadSpec { is_request_response: true, in_flight: 4, ..LoadSpec::pairs(3) },
    ]);
    for (at, spec) in loads.iter().enumerate() {
        let address = |index| target.kind.address(spec, &at.to_string(), index);
        exchange(&target.endpoint, spec, &address);
    }
    drop(target);
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn what_does_not_speak_amqp_is_told_from_what_does() {
    use std::io::Write as _;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        socket
    });
    let endpoint = Endpoint::Amqp { address, login: None };
    let error = Generator::connect(&endpoint, &LoadSpec::default(), &nobody).err().unwrap();
    assert!(format!("{error:#}").contains("to the AMQP 1.0 protocol header"), "{error:#}");
    drop(server.join());
}

fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}
