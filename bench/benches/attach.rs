//! Attaching: a client's receiver attaches to the 1,000th, the 100,000th and the 1,000,000th distinct address of a
//! router, from its attach until the router's answer.
//!
//! The answer to an attach that makes an address reachable is held until all shards can see the address, so the
//! time has everything in it that publishing takes: the shard's report, the control thread's new snapshot, and
//! the shard being told. Publication by itself is in `publication`.
//!
//! The client that attaches is on shard 0 of each, and what isn't a shard runs on the last CPU: whether a wake-up crosses
//! CPUs changes more than the table's size does.
//! Each table is a router of its own, with two shards, in this process; they take turns, so that whatever else the
//! machine does concerns all of them.

use ringmain::control::config::Config;
use ringmain::control::router;
use ringmain_bench::frames;
use ringmain_bench::samples::{Samples, clock_ns};
use ringmain_codec::{Attach, Begin, Detach, Open, Performative, Role, Source, split_frame};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// The tables' sizes.
const SIZES: [u32; 3] = [1_000, 100_000, 1_000_000];

/// What the thread-per-core design asks for: the last size's time, at the most, in those of the first.
const RATIO_MAX: f64 = 2.0;

/// Receivers that one connection holds.
const RECEIVERS_PER_CONNECTION: u32 = 50_000;

/// Attaches that are on their way at once while a table is filled, and in a storm.
const STORM: u32 = 1_000;

/// Attaches of one table, one by one, before it is the next one's turn; and how many turns each has.
const TURN: u32 = 50;
const TURNS: u32 = 40;

/// A client's connection with one session.
struct Client {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Client {
    fn open(router: SocketAddr) -> Self {
        let stream = TcpStream::connect(router).expect("the router listens");
        stream.set_nodelay(true).expect("a TCP socket");
        let mut client = Self { stream, input: Vec::new() };
        let begin = Begin { handle_max: u32::MAX, ..frames::begin() };
        let open = Open { idle_time_out: None, ..frames::open() };
        client.send(b"AMQP\0\x01\0\0");
        client.send(&frames::frame(&open, &[]));
        client.send(&frames::frame(&begin, &[]));
        client.answers(1, |performative| matches!(performative, Performative::Begin(_)));
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the router reads");
    }

    /// Attaches a receiver, or detaches it.
    fn attach(handle: u32, address: u32) -> Vec<u8> {
        let address = format!("market.prices.{address}");
        let name = format!("receiver-{handle}");
        frames::frame(
            &Attach {
                handle,
                role: Role::Receiver,
                source: Some(Source { address: Some(&address), ..Source::default() }),
                ..frames::attach(&name, Role::Receiver)
            },
            &[],
        )
    }

    fn detach(handle: u32) -> Vec<u8> {
        frames::frame(&Detach { handle, closed: true, error: None }, &[])
    }

    /// Waits until `count` performatives have come that `wanted` names.
    fn answers(&mut self, count: u32, wanted: impl Fn(&Performative<'_>) -> bool) {
        let mut left = count;
        let mut room = [0; 65_536];
        while left > 0 {
            let read = self.stream.read(&mut room).expect("the router answers");
            assert!(read > 0, "the router closed the connection");
            self.input.extend_from_slice(&room[..read]);
            let mut taken = 0;
            if self.input.starts_with(b"AMQP") {
                taken = 8;
            }
            while let Some((frame, rest)) =
                split_frame(&self.input[taken..], u32::MAX).expect("frames of the router")
            {
                let after = self.input.len() - rest.len();
                if !frame.body.is_empty() {
                    let (performative, _) = Performative::decode(frame.body).expect("a performative");
                    left -= u32::from(wanted(&performative));
                }
                taken = after;
            }
            self.input.drain(..taken);
        }
    }

    fn attached(&mut self, count: u32) {
        self.answers(count, |performative| matches!(performative, Performative::Attach(_)));
    }

    fn detached(&mut self, count: u32) {
        self.answers(count, |performative| matches!(performative, Performative::Detach(_)));
    }
}

/// A router with receivers on so many addresses, less than it is called after.
struct Table {
    size: u32,
    /// They hold the receivers, whom nobody sends anything.
    _holders: Vec<Client>,
    client: Client,
    next: u32,
    singly: Samples,
    in_storms: Samples,
}

impl Table {
    fn new(size: u32) -> Self {
        let [router, timed] = start_router();
        let mut holders = Vec::new();
        let wanted = size - TURN / 2;
        let mut next = 0;
        while next < wanted {
            let mut holder = Client::open(router);
            let end = (next + RECEIVERS_PER_CONNECTION).min(wanted);
            for (number, first) in (next..end).step_by(STORM as usize).enumerate() {
                let count = STORM.min(end - first);
                let handles = (0..count).map(|index| number as u32 * STORM + index);
                let attaches: Vec<u8> = handles
                    .zip(first..)
                    .flat_map(|(handle, address)| Client::attach(handle, address))
                    .collect();
                holder.send(&attaches);
                holder.attached(count);
            }
            next = end;
            holders.push(holder);
        }
        let client = Client::open(timed);
        Self {
            size,
            _holders: holders,
            client,
            next,
            singly: Samples::default(),
            in_storms: Samples::default(),
        }
    }

    /// Attaches to addresses around the table's size, one after the other, and detaches again. Only the former
    /// is timed.
    fn attach_singly(&mut self) {
        for handle in 0..TURN {
            let attach = Client::attach(handle, self.next);
            self.next += 1;
            let start = Instant::now();
            self.client.send(&attach);
            self.client.attached(1);
            self.singly.push(start.elapsed());
        }
        self.detach(TURN);
    }

    /// The same, all at once.
    fn attach_in_a_storm(&mut self) {
        let attaches: Vec<u8> = (0..STORM)
            .zip(self.next..)
            .flat_map(|(handle, address)| Client::attach(handle, address))
            .collect();
        self.next += STORM;
        let start = Instant::now();
        self.client.send(&attaches);
        self.client.attached(STORM);
        self.in_storms.push(start.elapsed() / STORM);
        self.detach(STORM);
    }

    fn detach(&mut self, count: u32) {
        let detaches: Vec<u8> = (0..count).flat_map(Client::detach).collect();
        self.client.send(&detaches);
        self.client.detached(count);
    }
}

/// Starts a router with two shards, and returns where it listens: for both of them, and for shard 0 alone.
fn start_router() -> [SocketAddr; 2] {
    // Whoever else takes the port meanwhile makes the router fail to start, which shows.
    let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let addresses = sockets.map(|free| free.local_addr().expect("an address"));
    let text = format!(
        "router {{\n    workerThreads: 2\n}}\nlog {{\n    module: DEFAULT\n    enable: warning+\n}}\n\
         listener {{\n    host: 127.0.0.1\n    port: {}\n    idleTimeoutSeconds: 0\n}}\n\
         listener {{\n    host: 127.0.0.1\n    port: {}\n    idleTimeoutSeconds: 0\n    shard: 0\n}}\n",
        addresses[0].port(),
        addresses[1].port()
    );
    let config = Config::parse(&text, "attach.conf").expect("the configuration is in order");
    ringmain::log::apply(&config.log_settings()).expect("the log goes to standard error");
    thread::spawn(move || {
        if let Err(error) = router::run(&config, || ()) {
            eprintln!("the router doesn't run: {error}");
            std::process::exit(1);
        }
    });
    for address in addresses {
        while TcpStream::connect(address).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
    }
    addresses
}

/// Keeps all threads of this process that aren't shards on the last CPU that it may use.
fn pin_what_is_no_shard() {
    let allowed = sched_getaffinity(None).expect("the kernel tells the CPUs");
    let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)) else { return };
    let mut set = CpuSet::new();
    set.set(last);
    for task in std::fs::read_dir("/proc/self/task").expect("the kernel lists the threads").flatten() {
        // A thread that has just ended needs no CPU.
        let Ok(name) = std::fs::read_to_string(task.path().join("comm")) else { continue };
        let id = task.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
        if !name.starts_with("shard-") {
            sched_setaffinity(id, &set).expect("a CPU that the process may use");
        }
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let mut tables: Vec<Table> = SIZES
        .into_iter()
        .map(|size| {
            let start = Instant::now();
            let table = Table::new(size);
            println!("{size:>9} addresses attached in {:.1} s", start.elapsed().as_secs_f64());
            table
        })
        .collect();
    pin_what_is_no_shard();
    for _ in 0..TURNS {
        for table in &mut tables {
            table.attach_singly();
            table.attach_in_a_storm();
        }
    }
    println!(
        "\nAll sizes in turn, {TURNS} times; attach to answer (reading the clock: {} ns of each):",
        clock_ns()
    );
    println!("{}", Samples::head());
    for table in &mut tables {
        println!("{}", table.singly.line(&format!("attach to address {}", table.size), 1));
    }
    for table in &mut tables {
        println!(
            "{}",
            table.in_storms.line(&format!("{STORM} at once from address {}, each", table.size), 1)
        );
    }
    for (what, medians) in [
        ("one by one", tables.iter_mut().map(|table| table.singly.median_ns()).collect::<Vec<_>>()),
        ("in storms", tables.iter_mut().map(|table| table.in_storms.median_ns()).collect()),
    ] {
        if let [first, .., last] = medians[..] {
            #[allow(clippy::cast_precision_loss)]
            let ratio = last as f64 / first as f64;
            println!(
                "ratio of the last size to the first, {what}: {ratio:.2} (at most {RATIO_MAX} is asked for)"
            );
        }
    }
    // The routers would run on.
    std::process::exit(0);
}
