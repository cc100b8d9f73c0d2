//! Two ends face to face: the wire between them, the clock, and what they do next.

use crate::end::{Book, End};
use crate::seeds::trace;
use crate::state::State;
use ringmain::base::id::Channel;
use ringmain::base::time::Instant;
use ringmain::engine::settings::SaslPolicy;
use ringmain::engine::{Fault, LinkRef, Settings, Side};
use ringmain_codec::{Condition, Role};
use std::time::Duration;

pub struct Pair {
    pub ends: [End; 2],
    pub book: Book,
    pub random: fastrand::Rng,
    pub now: Instant,
    /// Whether both ends use the same names for links, in one session, so that attaches cross.
    has_shared_names: bool,
    /// Sessions that each end may begin, so that even begins that cross leave channels enough.
    shares: [usize; 2],
}

fn settings(name: &str, sasl: SaslPolicy, random: &mut fastrand::Rng) -> Settings {
    Settings {
        container_id: name.to_owned(),
        max_frame_size: [512, 512, 600, 1024, 4096, 65_536][random.usize(0..6)],
        channel_max: [0, 1, 3, 32_767][random.usize(0..4)],
        idle_timeout: [None, Some(Duration::from_secs(16)), Some(Duration::from_secs(1))][random.usize(0..3)],
        handshake_timeout: [None, Some(Duration::from_secs(5))][random.usize(0..2)],
        session_frames_max: [1, 2, 5, 8, 100, u32::MAX >> 1][random.usize(0..6)],
        sasl,
        ..Settings::default()
    }
}

impl Pair {
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let sasl = if random.bool() { SaslPolicy::Required } else { SaslPolicy::Optional };
        let now = Instant(1_000_000_000);
        let initiator = settings("a", sasl, &mut random);
        let acceptor_policy = if random.bool() { SaslPolicy::Optional } else { sasl };
        let acceptor = settings("b", acceptor_policy, &mut random);
        trace!("a: {initiator:?}\nb: {acceptor:?}");
        let channels = usize::from(initiator.channel_max.min(acceptor.channel_max)) + 1;
        let shares = [channels.div_ceil(2).min(3), (channels / 2).min(3)];
        let ends =
            [End::new('a', initiator, Side::Initiator, now), End::new('b', acceptor, Side::Acceptor, now)];
        let has_shared_names = random.u8(0..4) == 0;
        Self { ends, book: Book::default(), random, now, has_shared_names, shares }
    }

    /// Moves bytes from one end to the other; whether there were any.
    fn deliver(&mut self, from: usize, most: usize) -> bool {
        let count = self.ends[from].wire.len().min(most);
        let bytes: Vec<u8> = self.ends[from].wire.drain(..count).collect();
        self.ends[1 - from].recv(&bytes, &mut self.book, &mut self.random, self.now);
        count > 0
    }

    /// Moves all bytes, until none are left.
    pub fn deliver_all(&mut self) -> bool {
        let mut has_moved = false;
        for _ in 0..100_000 {
            let mut moves = false;
            for from in 0..2 {
                self.ends[from].collect(true, self.now);
                let most = match self.random.u8(0..3) {
                    0 => self.random.usize(1..40),
                    1 => self.random.usize(1..2000),
                    _ => usize::MAX,
                };
                moves |= self.deliver(from, most);
            }
            has_moved |= moves;
            if !moves && self.ends.iter().all(|end| end.wire.is_empty()) {
                return has_moved;
            }
        }
        panic!("the ends talk for ever");
    }

    /// Lets time pass, but no longer than both ends bear.
    pub fn pass_time(&mut self) {
        self.deliver_all();
        let deadlines: Vec<Instant> =
            self.ends.iter().filter_map(|end| end.connection.poll_timeout()).collect();
        let Some(next) = deadlines.iter().min() else { return };
        let most = next.since(self.now).as_nanos() as u64;
        self.now = self.now + Duration::from_nanos(self.random.u64(0..=most));
        for end in &mut self.ends {
            let due = end.connection.poll_timeout().is_some_and(|deadline| deadline <= self.now);
            if due && let Some(event) = end.connection.handle_timeout(self.now, &mut end.out) {
                panic!("a peer that answers timed out: {event:?}");
            }
        }
        self.deliver_all();
    }

    pub fn is_usable(&self) -> bool {
        self.ends.iter().all(End::is_usable)
    }

    /// One thing that one of them does.
    pub fn step(&mut self) {
        let who = self.random.usize(0..2);
        let choice = self.random.u32(0..100);
        if choice < 25 {
            let flush = self.random.u8(0..4) > 0;
            self.ends[who].collect(flush, self.now);
            let most = [1, 7, 30, 200, 5000, usize::MAX][self.random.usize(0..6)];
            self.deliver(who, most);
            return;
        }
        if choice == 25 {
            return self.pass_time();
        }
        if !self.ends[who].is_usable() {
            self.ends[who].collect(true, self.now);
            self.deliver(who, 50);
            return;
        }
        match choice {
            26..28 => self.begin(who),
            28 => self.end(who),
            29..33 => self.attach(who),
            33..35 => self.detach(who),
            35..47 => self.grant(who),
            47..50 => self.echo(who),
            50..75 => self.send(who),
            75..77 => self.abort(who),
            77..93 => self.dispose(who),
            93..96 => self.settle_as_sender(who),
            _ => self.release(who),
        }
    }

    fn pick_link(&mut self, who: usize, role: Option<Role>) -> Option<LinkRef> {
        let links: Vec<LinkRef> = self.ends[who]
            .links
            .iter()
            .filter(|(_, link)| role.is_none_or(|role| link.role == role))
            .map(|(link, _)| *link)
            .collect();
        (!links.is_empty()).then(|| links[self.random.usize(0..links.len())])
    }

    fn begin(&mut self, who: usize) {
        if self.has_shared_names && (who == 1 || !self.ends[0].connection.channels().is_empty()) {
            return;
        }
        let end = &mut self.ends[who];
        let known = end.connection.channels();
        end.begun.retain(|channel| known.contains(channel));
        if end.begun.len() < self.shares[who]
            && let Some(channel) = end.connection.send_begin(&mut end.out)
        {
            trace!("{} begins {channel:?}", end.name);
            end.sessions.insert(channel);
            end.begun.insert(channel);
        }
    }

    fn fault(&mut self) -> Option<Fault> {
        self.random.bool().then(|| {
            let length = self.random.usize(0..300);
            Fault::describe(Condition::INTERNAL_ERROR, "y".repeat(length))
        })
    }

    fn pick_session(&mut self, who: usize) -> Option<Channel> {
        let sessions: Vec<Channel> = self.ends[who].sessions.iter().copied().collect();
        (!sessions.is_empty()).then(|| sessions[self.random.usize(0..sessions.len())])
    }

    fn end(&mut self, who: usize) {
        if self.random.u8(0..3) > 0 {
            return;
        }
        let fault = self.fault();
        if let Some(channel) = self.pick_session(who) {
            self.ends[who].end(channel, fault.as_ref(), &mut self.book);
        }
    }

    fn attach(&mut self, who: usize) {
        let Some(channel) = self.pick_session(who) else { return };
        let prefix = if self.has_shared_names { 's' } else { self.ends[who].name };
        let most = if self.has_shared_names { 3 } else { 8 };
        let number = self.random.u8(0..most);
        let role = if self.random.bool() { Role::Sender } else { Role::Receiver };
        let name = format!("{prefix}{number}");
        self.ends[who].attach(channel, &name, role, &mut self.book, &mut self.random);
    }

    fn detach(&mut self, who: usize) {
        let fault = self.fault();
        let closed = self.random.bool();
        if let Some(link) = self.pick_link(who, None) {
            self.ends[who].detach(link, closed, fault.as_ref(), &mut self.book);
        }
    }

    fn grant(&mut self, who: usize) {
        let Some(link) = self.pick_link(who, Some(Role::Receiver)) else { return };
        let credit = match self.random.u8(0..5) {
            0 => 0,
            1 => 1,
            2 | 3 => self.random.u32(0..20),
            _ => self.random.u32(0..1000),
        };
        let drain = self.random.u8(0..5) == 0;
        self.ends[who].grant(link, credit, drain);
    }

    fn echo(&mut self, who: usize) {
        let Some(channel) = self.pick_session(who) else { return };
        let link = self.pick_link(who, None);
        match link.filter(|link| self.ends[who].links[link].is_attached) {
            Some(link) => self.ends[who].echo(link.channel, Some(link), self.now),
            None => self.ends[who].echo(channel, None, self.now),
        }
    }

    fn send(&mut self, who: usize) {
        let Some(link) = self.pick_link(who, Some(Role::Sender)) else { return };
        let end = &mut self.ends[who];
        if self.random.u8(0..3) == 0
            && let Some(known) = end.links.get_mut(&link)
        {
            known.backlog += self.random.u32(1..6);
            known.is_ready = true;
        }
        let all = self.random.bool();
        end.send_some(link, all, &mut self.book, &mut self.random);
    }

    fn abort(&mut self, who: usize) {
        if let Some(link) = self.pick_link(who, Some(Role::Sender)) {
            self.ends[who].abort(link, &mut self.book);
        }
    }

    /// As receiver, says something of a few deliveries.
    fn dispose(&mut self, who: usize) {
        let end = &mut self.ends[who];
        if end.unsettled_in.is_empty() {
            return;
        }
        let mut place = self.random.usize(0..end.unsettled_in.len());
        let common = State::random(&mut self.random);
        let settled = self.random.u8(0..4) > 0;
        for _ in 0..self.random.usize(1..8) {
            if place >= end.unsettled_in.len() {
                return;
            }
            let before = end.unsettled_in.len();
            let told = end.unsettled_in[place].terminal.clone();
            let state = match (told, self.random.u8(0..10)) {
                (Some(told), number) => (number > 0).then_some(told),
                (None, 0) => None,
                (None, 1) => Some(State::Received(self.random.u32(0..3), self.random.u64(..))),
                (None, _) => Some(common.clone()),
            };
            // A state that isn't terminal settles nothing.
            let settled = settled && state.as_ref().is_none_or(State::is_terminal);
            end.dispose_in(place, settled, state, &mut self.book);
            if end.unsettled_in.len() == before {
                place += 1;
            }
        }
    }

    fn settle_as_sender(&mut self, who: usize) {
        let end = &mut self.ends[who];
        if end.unsettled_out.is_empty() {
            return;
        }
        let place = self.random.usize(0..end.unsettled_out.len());
        let state = match &end.unsettled_out[place].terminal {
            Some(told) => Some(told.clone()),
            None => self.random.bool().then(|| State::random(&mut self.random)),
        };
        let settled = self.random.u8(0..4) > 0;
        end.dispose_out(place, settled, state, &mut self.book);
    }

    fn release(&mut self, who: usize) {
        let end = &mut self.ends[who];
        if !end.held.is_empty() {
            let place = self.random.usize(0..end.held.len());
            let (channel, session, bytes) = end.held.swap_remove(place);
            end.connection.release(channel, session, bytes);
        }
    }

    /// Lets both do what they still owe one another, until nothing is under way.
    pub fn come_to_rest(&mut self) {
        for _ in 0..10_000 {
            let mut has_moved = self.deliver_all();
            for who in 0..2 {
                has_moved |= self.pay_debts(who);
            }
            if !has_moved {
                return;
            }
        }
        panic!("the ends never come to rest");
    }

    fn pay_debts(&mut self, who: usize) -> bool {
        let end = &mut self.ends[who];
        if !end.is_usable() {
            return false;
        }
        let mut has_moved = !end.held.is_empty();
        for (channel, session, bytes) in std::mem::take(&mut end.held) {
            end.connection.release(channel, session, bytes);
        }
        let links: Vec<LinkRef> = end.links.keys().copied().collect();
        for link in links {
            let known = &end.links[&link];
            if known.role == Role::Sender && known.is_ready && (known.active.is_some() || known.backlog > 0) {
                has_moved = true;
                end.send_some(link, true, &mut self.book, &mut self.random);
            }
        }
        let is_whole = |number: usize, book: &Book| book.deliveries[number].is_complete;
        while let Some(place) = (0..end.unsettled_in.len()).find(|&place| {
            let unsettled = &end.unsettled_in[place];
            is_whole(unsettled.number, &self.book) && unsettled.terminal.is_none()
        }) {
            has_moved = true;
            end.dispose_in(place, true, Some(State::Accepted), &mut self.book);
        }
        // What was told without settling: the receiver settles if the sender doesn't.
        while let Some(place) =
            (0..end.unsettled_out.len()).find(|&place| end.unsettled_out[place].terminal.is_some())
        {
            has_moved = true;
            let state = end.unsettled_out[place].terminal.clone();
            end.dispose_out(place, true, state, &mut self.book);
        }
        has_moved
    }
}
