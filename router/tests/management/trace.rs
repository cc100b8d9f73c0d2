//! UPDATE of a connection with enableProtocolTrace: its frames are logged, and those of others aren't.

use ringmain_codec::Value;

use crate::datum::{Datum, map, text};
use crate::manager::{Manager, any_message};
use crate::support::Router;

const TYPE: &str = "org.apache.qpid.dispatch.connection";

/// The identity of the connection that isn't the manager's, and whether it is traced.
fn other(manager: &mut Manager, known: &[String]) -> (String, Datum) {
    let rows = manager.query(TYPE, &["identity", "enableProtocolTrace"]);
    let row = rows.iter().find(|row| !known.iter().any(|known| known == row[0].str())).expect("another");
    (row[0].str().to_owned(), row[1].clone())
}

fn set(manager: &mut Manager, identity: &str, value: Datum) -> i32 {
    let properties = [("operation", text("UPDATE")), ("type", text(TYPE)), ("identity", text(identity))];
    manager.ask(properties, map([("enableProtocolTrace", value)])).status
}

#[test]
fn one_connection_is_traced_and_then_no_more() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let mine: Vec<String> =
        manager.query(TYPE, &["identity"]).iter().map(|row| row[0].str().to_owned()).collect();
    let mut peer = router.peer();
    peer.attach_receiver("q", 100);
    let (identity, is_traced) = other(&mut manager, &mine);
    assert_eq!(is_traced, Datum::of(Value::from_encoded(&[0x42]).expect("false")));
    let sender = peer.attach_sender("q");
    peer.await_credit(sender, 3);
    let mut exchange = || {
        peer.send_delivery(sender, &any_message(), true);
        peer.expect_delivery();
    };
    exchange();
    assert!(!router.log().iter().any(|line| line.contains("PROTOCOL")));

    let yes = Datum::of(Value::from_encoded(&[0x41]).expect("true"));
    assert_eq!(set(&mut manager, &identity, yes.clone()), 200);
    assert_eq!(other(&mut manager, &mine).1, yes);
    exchange();
    router.await_log(&format!("PROTOCOL (trace) [C{identity}]:0 <- @transfer(20) ["));
    router.await_log(&format!("PROTOCOL (trace) [C{identity}]:0 -> @transfer(20) ["));

    // The tools send texts.
    assert_eq!(set(&mut manager, &identity, text("no")), 200);
    let traced = |router: &Router| router.log().iter().filter(|line| line.contains("PROTOCOL")).count();
    let before = traced(&router);
    exchange();
    assert_eq!(traced(&router), before);
    let lines = router.log();
    let others = format!("[C{}]", mine[0]);
    assert!(!lines.iter().any(|line| line.contains("PROTOCOL") && line.contains(&others)));

    assert_eq!(set(&mut manager, &identity, text("perhaps")), 400);
    assert_eq!(set(&mut manager, "999999", yes), 400);
}
