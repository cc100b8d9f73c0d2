//! AMQP over WebSocket (the sub-protocols `amqp` and `binary`): what is in a client's binary messages goes to a
//! shard over a pair of sockets, and back. The shard serves its end like any connection.
//!
//! Where messages begin and end means nothing: AMQP's frames are found by their own sizes.

use super::answer::{Body, Site, text};
use crate::base::limits::WEBSOCKET_MESSAGE_BYTES_MAX;
use crate::io::uring::UringSocket;
use crate::log;
use crate::log::{Level, Module};
use crate::shard::mailbox::Message as ShardMessage;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream as StdUnixStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// The sub-protocols that mean AMQP; the first is what the draft binding of AMQP calls it.
const SUB_PROTOCOLS: [&str; 2] = ["amqp", "binary"];

/// The most that one message to a client holds.
const SENT_MESSAGE_BYTES: usize = 32 * 1024;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Whether a request asks for a WebSocket.
pub(super) fn is_asked_for(request: &Request<Incoming>) -> bool {
    let upgrade = request.headers().get(UPGRADE).and_then(|upgrade| upgrade.to_str().ok());
    upgrade.is_some_and(|upgrade| upgrade.eq_ignore_ascii_case("websocket"))
}

/// The sub-protocol that both know: the first of the client's.
fn sub_protocol(request: &Request<Incoming>) -> Option<&'static str> {
    let offered = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered =
        offered.filter_map(|offered| offered.to_str().ok()).flat_map(|offered| offered.split(','));
    offered.find_map(|offered| SUB_PROTOCOLS.into_iter().find(|known| *known == offered.trim()))
}

/// Answers a request for a WebSocket, and serves it.
pub(super) fn accept(site: &Site, peer: SocketAddr, mut request: Request<Incoming>) -> Response<Body> {
    let Some(sub_protocol) = sub_protocol(&request) else {
        return text(
            StatusCode::BAD_REQUEST,
            "the WebSocket sub-protocol must be 'amqp' or 'binary' (Sec-WebSocket-Protocol)\n",
        );
    };
    let Ok(permit) = site.shared.websockets.clone().try_acquire_owned() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "there are too many WebSockets\n");
    };
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.version_mut() = request.version();
    head.headers_mut().clone_from(request.headers());
    let mut answer = match create_response(&head) {
        Ok(answer) => answer.map(|()| Body::default()),
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    answer.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(sub_protocol));
    let upgrading = hyper::upgrade::on(&mut request);
    let (shards, listener) = (site.shared.shards.clone(), site.listener);
    tokio::spawn(async move {
        let _permit = permit;
        let upgraded = match upgrading.await {
            Ok(upgraded) => upgraded,
            Err(error) => {
                log!(Module::Http, Level::Debug, "WebSocket from {peer} didn't come about: {error}");
                return;
            }
        };
        let config = WebSocketConfig::default()
            .max_message_size(Some(WEBSOCKET_MESSAGE_BYTES_MAX))
            .max_frame_size(Some(WEBSOCKET_MESSAGE_BYTES_MAX));
        let socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        let (ours, shard) = match pair() {
            Ok(pair) => pair,
            Err(error) => {
                log!(Module::Http, Level::Error, "WebSocket from {peer} can't be served: {error}");
                return;
            }
        };
        let message = || ShardMessage::Adopt { listener, socket: shard, peer, half_open: None };
        if shards.hand_over(message).await.is_none() {
            log!(Module::Http, Level::Error, "WebSocket from {peer} can't be served: no shard could take it");
            return;
        }
        log!(Module::Http, Level::Debug, "WebSocket from {peer}: sub-protocol {sub_protocol}");
        bridge(socket, ours, peer).await;
    });
    answer
}

/// Two connected sockets: ours, and the shard's.
fn pair() -> io::Result<(UnixStream, UringSocket)> {
    let (ours, shard) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, UringSocket::try_from(shard)?))
}

/// Carries bytes both ways until both have ended, or one failed.
async fn bridge(socket: Socket, ours: UnixStream, peer: SocketAddr) {
    let (to_client, from_client) = socket.split();
    let (from_shard, to_shard) = ours.into_split();
    let upward = from_client_to_shard(from_client, to_shard);
    let downward = from_shard_to_client(from_shard, to_client);
    let (mut upward, mut downward) = (std::pin::pin!(upward), std::pin::pin!(downward));
    let mut is_upward_over = false;
    // When the shard has ended, nobody wants to know what the client says still. When the client has, the shard's
    // last words still go out, if it can take them.
    let ended = loop {
        tokio::select! {
            ended = &mut upward, if !is_upward_over => match ended {
                Ok(()) => is_upward_over = true,
                Err(error) => break Err(error),
            },
            ended = &mut downward => break ended,
        }
    };
    match ended {
        Ok(()) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => {}
        Err(error) => log!(Module::Http, Level::Info, "WebSocket from {peer} ended: {error}"),
    }
}

/// A client's messages; pings are answered on the way. Ends when the client does.
async fn from_client_to_shard(
    mut client: SplitStream<Socket>,
    mut shard: OwnedWriteHalf,
) -> Result<(), Error> {
    while let Some(message) = client.next().await {
        match message? {
            Message::Binary(bytes) => shard.write_all(&bytes).await?,
            Message::Text(_) => {
                return Err(Error::Io(io::Error::other("a text message: AMQP is in binary ones")));
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            Message::Close(_) => break,
        }
    }
    // The shard sees an end, and says so by its own.
    shard.shutdown().await?;
    Ok(())
}

/// What the shard says. Ends when it does, with a close in order.
async fn from_shard_to_client(
    mut shard: OwnedReadHalf,
    mut client: SplitSink<Socket, Message>,
) -> Result<(), Error> {
    let mut room = vec![0; SENT_MESSAGE_BYTES];
    loop {
        let length = shard.read(&mut room).await?;
        if length == 0 {
            break;
        }
        client.send(Message::Binary(Bytes::copy_from_slice(&room[..length]))).await?;
    }
    let close = CloseFrame { code: CloseCode::Normal, reason: "the connection is over".into() };
    client.send(Message::Close(Some(close))).await?;
    client.close().await
}
