//! Two engines that both keep to the rules: whatever they do in whatever order, neither finds fault with the
//! other, no credit and no delivery is lost, and nothing is left behind.

use crate::end::End;
use crate::pair::Pair;
use crate::seeds::for_seeds;
use ringmain::engine::link::LinkState;
use ringmain_codec::Role;
use std::collections::BTreeMap;

/// Both ends' ideas of sessions and links are the same, now that nothing is under way.
fn check_agreement(pair: &Pair) {
    let [a, b] = &pair.ends;
    for (one, other) in [(a, b), (b, a)] {
        for channel in one.connection.channels() {
            let session = one.connection.session(channel).expect("a session has its channel");
            let remote = session.remote_channel.expect("at rest, each begin is answered");
            let other_channel = other
                .connection
                .channels()
                .into_iter()
                .find(|channel| channel.0 == remote)
                .expect("the other end has the session too");
            let mirrored = other.connection.session(other_channel).expect("it is there");
            assert_eq!(mirrored.remote_channel, Some(channel.0));
            assert_eq!(session.flow.next_outgoing_id, mirrored.flow.next_incoming_id, "transfer-ids");
            assert_eq!(session.flow.remote_incoming_window, mirrored.flow.incoming_window, "windows");
            assert!(mirrored.flow.incoming_window > 0, "a window that nothing closes is open");
            assert_eq!(session.incoming.len(), 0, "all that came is settled");
            assert_eq!(session.outgoing.len(), 0, "all that went is settled");
        }
    }
    let by_number: BTreeMap<u32, &End> =
        [a, b].iter().flat_map(|end| end.links.values().map(|link| (link.number, *end))).collect();
    for end in [a, b] {
        for (link, known) in &end.links {
            let state = end.connection.link(*link).expect("the engine knows it too");
            assert_eq!(state.state, LinkState::Attached, "at rest, each attach is answered");
            let peer = known.peer_number.expect("the other end has told its number");
            let other = by_number.get(&peer).expect("the other end has the link too");
            let (other_link, mirrored) =
                other.links.iter().find(|(_, link)| link.number == peer).expect("it was just found");
            assert_eq!(mirrored.role, known.role.opposite());
            if known.role == Role::Sender {
                let receiver = other.connection.link(*other_link).expect("the engine knows it too");
                assert_eq!(state.delivery_count, receiver.delivery_count, "delivery-count");
                assert_eq!(state.credit, receiver.credit, "link-credit");
                assert!(known.active.is_none(), "what was begun is through");
                assert!(known.backlog == 0 || state.credit == 0, "what waits lacks credit only");
                assert!(!state.drain || state.credit == 0, "a drain is over");
            }
        }
    }
}

/// Both ends take everything down, at the same time.
fn take_down(pair: &mut Pair) {
    for who in 0..2 {
        let links: Vec<_> = pair.ends[who].links.keys().copied().collect();
        for link in links {
            if pair.random.u8(0..4) > 0 {
                let closed = pair.random.bool();
                pair.ends[who].detach(link, closed, None, &mut pair.book);
            }
        }
    }
    pair.deliver_all();
    for who in 0..2 {
        let sessions: Vec<_> = pair.ends[who].sessions.iter().copied().collect();
        for channel in sessions {
            if pair.random.u8(0..4) > 0 {
                pair.ends[who].end(channel, None, &mut pair.book);
            }
        }
    }
    pair.deliver_all();
    for who in 0..2 {
        let sessions: Vec<_> = pair.ends[who].sessions.iter().copied().collect();
        for channel in sessions {
            pair.ends[who].end(channel, None, &mut pair.book);
        }
    }
    pair.deliver_all();
    for end in &pair.ends {
        assert!(end.links.is_empty() && end.sessions.is_empty());
        let holdings = end.connection.holdings();
        assert_eq!(holdings, ringmain::engine::Holdings::default(), "{} holds nothing", end.name);
    }
}

fn close(pair: &mut Pair, who: &[usize]) {
    for &who in who {
        let end = &mut pair.ends[who];
        end.connection.send_close(None, pair.now, &mut end.out);
    }
    pair.deliver_all();
    for end in &mut pair.ends {
        assert_eq!(end.closed, 1, "{} hears of the close once", end.name);
        assert!(end.connection.is_finished());
        assert!(!end.connection.is_open());
        // Sessions whose end wasn't exchanged go with the connection, but hold nothing any more.
        let holdings = end.connection.holdings();
        assert_eq!((holdings.links, holdings.names, holdings.unsettled), (0, 0, 0));
    }
}

fn handshake(pair: &mut Pair) {
    for _ in 0..pair.random.usize(0..30) {
        pair.step();
    }
    pair.deliver_all();
    assert!(pair.is_usable());
}

#[test]
fn whatever_two_ends_do_they_agree_in_the_end() {
    let mut deliveries = 0;
    for_seeds("whatever_two_ends_do_they_agree_in_the_end", 250, |seed| {
        let mut pair = Pair::new(seed);
        handshake(&mut pair);
        for _ in 0..3 {
            for _ in 0..pair.random.usize(0..500) {
                pair.step();
            }
            pair.come_to_rest();
            check_agreement(&pair);
        }
        pair.book.deliveries.iter().for_each(crate::delivery::Delivery::check);
        deliveries += pair.book.deliveries.len();
        take_down(&mut pair);
        let who: &[usize] = [&[0][..], &[1], &[0, 1]][pair.random.usize(0..3)];
        close(&mut pair, who);
    });
    assert!(deliveries > 0);
    println!("{deliveries} deliveries");
}

#[test]
fn a_close_at_any_moment_leaves_nothing_behind() {
    for_seeds("a_close_at_any_moment_leaves_nothing_behind", 200, |seed| {
        let mut pair = Pair::new(seed ^ 0xC105E);
        handshake(&mut pair);
        for _ in 0..pair.random.usize(0..400) {
            pair.step();
        }
        let who: &[usize] = [&[0][..], &[1], &[0, 1]][pair.random.usize(0..3)];
        close(&mut pair, who);
        pair.book.deliveries.iter().for_each(crate::delivery::Delivery::check);
    });
}
