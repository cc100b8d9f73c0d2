//! Health while the router ends.

use crate::client::{connect, get, router};
use crate::support::message;

/// The router stops, HTTP clients or not, and with a WebSocket half made.
#[test]
fn it_stops_whoever_is_connected() {
    let (router, address) = router("");
    let _silent = connect(address);
    let mut peer = router.peer();
    let receiver = peer.attach_receiver("q", 1);
    let mut other = router.peer();
    let sender = other.attach_sender("q");
    other.await_credit(sender, 1);
    other.send_delivery(sender, &message::data(&[1]), true);
    assert_eq!(peer.expect_delivery().link, receiver);
    assert_eq!(get(address, "/readyz").status, 200);
    assert!(router.terminate().success());
}
