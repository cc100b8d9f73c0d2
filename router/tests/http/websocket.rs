//! AMQP over WebSocket, octet by octet. (The tests with real clients let rhea do it.)

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::client::{Scrape, connect, request, router};

/// RFC 6455 §1.3 has this key and the answer to it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const AMQP: &[u8] = b"AMQP\x00\x01\x00\x00";

fn upgrade(protocols: &str) -> String {
    let mut headers =
        format!("Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n");
    if !protocols.is_empty() {
        headers.push_str(&format!("Sec-WebSocket-Protocol: {protocols}\r\n"));
    }
    headers
}

/// Opens a WebSocket. Returns the head of the answer with it.
fn open(address: SocketAddr, path: &str, protocols: &str) -> (TcpStream, String) {
    let mut stream = connect(address);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: router\r\nConnection: keep-alive, Upgrade\r\n{}\r\n",
        upgrade(protocols)
    );
    stream.write_all(request.as_bytes()).expect("the router reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("the router answers");
        head.extend(byte);
    }
    (stream, String::from_utf8(head).expect("text").to_lowercase())
}

/// A message of a client (RFC 6455 §5.2): masked, here with zeros.
fn send(stream: &mut TcpStream, opcode: u8, payload: &[u8]) {
    let length = u8::try_from(payload.len()).expect("a short message") | 0x80;
    let frame = [&[0x80 | opcode, length, 0, 0, 0, 0], payload].concat();
    stream.write_all(&frame).expect("the router reads");
}

/// A short message of the router: opcode and payload.
fn receive(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("a message");
    assert_eq!(head[0] & 0xf0, 0x80, "a whole message");
    assert!(head[1] < 126, "a short one, not masked");
    let mut payload = vec![0; head[1].into()];
    stream.read_exact(&mut payload).expect("all of the message");
    (head[0] & 0x0f, payload)
}

#[test]
fn both_sub_protocols_lead_to_amqp() {
    let (router, address) = router("");
    for (offered, chosen) in [("amqp", "amqp"), ("binary", "binary"), ("mqtt, binary, amqp", "binary")] {
        let (mut stream, head) = open(address, "/any/path", offered);
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert!(head.contains(&format!("sec-websocket-protocol: {chosen}\r\n")), "{head}");
        assert!(head.contains(&format!("sec-websocket-accept: {}\r\n", ACCEPT.to_lowercase())), "{head}");
        // A header in two messages is a header all the same.
        send(&mut stream, 2, &AMQP[..3]);
        send(&mut stream, 2, &AMQP[3..]);
        let (opcode, payload) = receive(&mut stream);
        assert_eq!((opcode, payload.get(..8)), (2, Some(AMQP)));
        // A ping between is answered with what it holds.
        send(&mut stream, 9, b"hello");
        assert_eq!(receive(&mut stream), (10, b"hello".to_vec()));
        router.await_state("it is counted", |_| Scrape::of(address).value("ringmain_websockets") == 1.0);
        drop(stream);
        router.await_state("it has gone", |_| Scrape::of(address).value("ringmain_websockets") == 0.0);
    }
}

#[test]
fn what_is_no_amqp_is_refused() {
    let (_router, address) = router("");
    for protocols in ["", "mqtt", "AMQPWSB10"] {
        let answer = request(address, "GET", "/", &upgrade(protocols).replace("Upgrade:", "upgrade:"));
        assert_eq!(answer.status, 400, "{protocols}");
        assert!(answer.body.contains("'amqp' or 'binary'"), "{}", answer.body);
    }
    // Without a key it is no WebSocket.
    let answer = request(address, "GET", "/", "Upgrade: websocket\r\nSec-WebSocket-Protocol: amqp\r\n");
    assert_eq!(answer.status, 400);
}

#[test]
fn a_text_message_ends_the_connection() {
    let (_router, address) = router("");
    let (mut stream, _) = open(address, "/", "amqp");
    send(&mut stream, 1, b"AMQP");
    let mut rest = Vec::new();
    // By an end or a reset.
    let _reset = stream.read_to_end(&mut rest);
}

#[test]
fn it_can_be_switched_off() {
    let (_router, address) = router("    websockets: no");
    let answer = request(address, "GET", "/", &upgrade("amqp"));
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("websockets: no"), "{}", answer.body);
}

/// The client sees the router's close, and the end of the WebSocket in order.
#[test]
fn a_router_that_stops_says_so() {
    let (router, address) = router("");
    let (mut stream, _) = open(address, "/", "amqp");
    send(&mut stream, 2, AMQP);
    let (_, mut said) = receive(&mut stream);
    // @open(16) [container-id="c"] on channel 0.
    let open = [0, 0, 0, 17, 2, 0, 0, 0, 0x00, 0x53, 0x10, 0xc0, 4, 1, 0xa1, 1, b'c'];
    send(&mut stream, 2, &open);
    router.await_log("Connection Opened");
    assert!(router.terminate().success());
    let mut codes = Vec::new();
    loop {
        let mut head = [0; 2];
        if stream.read_exact(&mut head).is_err() {
            break;
        }
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                stream.read_exact(&mut length).expect("a length");
                u16::from_be_bytes(length).into()
            }
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).expect("all of the message");
        codes.push(head[0] & 0x0f);
        said.extend(payload);
    }
    // @close(24) with amqp:connection:forced.
    assert!(said.windows(22).any(|bytes| bytes == b"amqp:connection:forced"), "{said:?}");
    assert_eq!(codes.last(), Some(&8), "the last message is a close: {codes:?}");
}
