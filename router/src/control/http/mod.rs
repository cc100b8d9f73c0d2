//! HTTP on listeners with `http: yes`: metrics, health, files, and AMQP over WebSocket.
//!
//! ```text
//! client --HTTP--> http thread --survey--> shard            (metrics, health)
//! client --WebSocket--> http thread --pair of sockets--> shard    (AMQP)
//! ```
//!
//! The thread is started with the first such listener, and is an ordinary one with an ordinary runtime: a
//! large answer or a slow client holds up neither the control thread nor a shard.
//!
//! | module | what |
//! |---|---|
//! | `answer` | requests and their answers |
//! | `websocket` | AMQP over WebSocket |
//! | `health` | whether every thread turns |
//! | `metrics`, `families`, `exposition` | what is measured, its names, and how it is written down |
//! | `probe`, `facts`, `process` | where that comes from: the shards, the control thread, the system |

mod answer;
mod exposition;
mod facts;
mod families;
mod health;
mod metrics;
mod probe;
mod process;
mod websocket;

use super::config::HttpConfig;
use super::endpoints::Endpoints;
use super::handle::ShardsHandle;
use crate::base::id::ListenerId;
use crate::base::limits::{HANDSHAKE_TIMEOUT_DEFAULT, HTTP_CONNECTIONS_MAX, WEBSOCKETS_MAX};
use crate::log;
use crate::log::{Level, Module};
use crate::shard::tls::TlsSettings;
use answer::{Shared, Site};
use facts::ControlFacts;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long accepting rests after it failed, since it would fail at once again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long the end of the router waits for what shards have told WebSocket clients last.
const FAREWELL: Duration = Duration::from_millis(500);

/// Questions of the HTTP thread that wait for the control thread.
const QUESTIONS_MAX: usize = 4;

/// The HTTP thread, as the control thread knows it. Clones are the same one.
#[derive(Clone)]
pub(super) struct Http(Rc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    commands: RefCell<Option<UnboundedSender<Command>>>,
}

/// What the control thread tells the HTTP thread.
enum Command {
    /// Serve clients that come through these sockets.
    Serve {
        listener: ListenerId,
        config: HttpConfig,
        tls: Option<Arc<TlsSettings>>,
        sockets: Vec<TcpListener>,
    },
    /// Accept nobody on this listener any more.
    Stop(ListenerId),
    /// Accept nobody, wait until what was said last to WebSocket clients has gone, and end.
    Finish(oneshot::Sender<()>),
}

impl Http {
    /// A thread that isn't started yet. Returns with it where its questions come.
    pub(super) fn new(shards: ShardsHandle, router_id: &str) -> (Self, Questions) {
        let (control, questions) = channel(QUESTIONS_MAX);
        let shared = Arc::new(Shared::new(shards, control, router_id));
        (Self(Rc::new(Inner { shared, commands: RefCell::default() })), Questions(questions))
    }

    /// Serves clients on a listener's sockets.
    ///
    /// # Errors
    /// The thread can't be started: a sentence for the user.
    pub(super) fn serve(
        &self,
        listener: ListenerId,
        config: &HttpConfig,
        tls: Option<Arc<TlsSettings>>,
        sockets: Vec<TcpListener>,
    ) -> Result<(), String> {
        let fault = |error: std::io::Error| format!("can't serve HTTP: {error}");
        let commands = self.commands().map_err(fault)?;
        for socket in &sockets {
            socket.set_nonblocking(true).map_err(fault)?;
        }
        let command = Command::Serve { listener, config: config.clone(), tls, sockets };
        commands.send(command).map_err(|_| "the HTTP thread has ended".to_owned())
    }

    /// Accepts nobody on a listener any more. Its connections stay.
    pub(super) fn stop_listening(&self, listener: ListenerId) {
        if let Some(commands) = &*self.0.commands.borrow() {
            // A thread that has ended listens to nobody.
            let _ended = commands.send(Command::Stop(listener));
        }
    }

    /// Whether clients are to come, as `/readyz` tells.
    pub(super) fn set_ready(&self, is_ready: bool) {
        self.0.shared.is_ready.store(is_ready, Ordering::Relaxed);
    }

    /// Ends the thread, when what was said last to WebSocket clients has gone.
    pub(super) async fn finish(&self) {
        let Some(commands) = self.0.commands.borrow_mut().take() else { return };
        let (done, is_done) = oneshot::channel();
        if commands.send(Command::Finish(done)).is_ok() {
            // It has ended either way.
            let _ended = tokio::time::timeout(FAREWELL * 2, is_done).await;
        }
    }

    /// The way to the thread, which is started if it isn't there.
    fn commands(&self) -> std::io::Result<UnboundedSender<Command>> {
        let mut commands = self.0.commands.borrow_mut();
        if let Some(commands) = &*commands {
            return Ok(commands.clone());
        }
        let (sender, receiver) = unbounded_channel();
        let shared = self.0.shared.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // They read files.
            .max_blocking_threads(4)
            .build()?;
        std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            runtime.block_on(run(receiver, shared));
            // Who reads a file now isn't waited for.
            runtime.shutdown_background();
        })?;
        *commands = Some(sender.clone());
        Ok(sender)
    }
}

/// What the HTTP thread asks the control thread.
pub(super) struct Questions(Receiver<oneshot::Sender<ControlFacts>>);

impl Questions {
    /// Answers them, on the control thread, for as long as there may be more.
    pub(super) async fn answer(self, endpoints: Endpoints) {
        facts::answer(endpoints, self.0).await;
    }
}

/// The life of the thread.
async fn run(mut commands: UnboundedReceiver<Command>, shared: Arc<Shared>) {
    let connections = Arc::new(Semaphore::new(HTTP_CONNECTIONS_MAX));
    let mut listeners: HashMap<ListenerId, Vec<JoinHandle<()>>> = HashMap::new();
    while let Some(command) = commands.recv().await {
        match command {
            Command::Serve { listener, config, tls, sockets } => {
                let site = Arc::new(Site::new(listener, config, shared.clone()));
                for socket in sockets {
                    match tokio::net::TcpListener::from_std(socket) {
                        Ok(socket) => {
                            let accepting = accept(socket, site.clone(), tls.clone(), connections.clone());
                            listeners.entry(listener).or_default().push(tokio::spawn(accepting));
                        }
                        Err(error) => log!(Module::Http, Level::Error, "Can't listen: {error}"),
                    }
                }
            }
            Command::Stop(listener) => {
                listeners.remove(&listener).into_iter().flatten().for_each(|task| task.abort());
            }
            Command::Finish(done) => {
                listeners.into_values().flatten().for_each(|task| task.abort());
                // All permits are there again when the last WebSocket has ended.
                let all = u32::try_from(WEBSOCKETS_MAX).unwrap_or(u32::MAX);
                let _permits = tokio::time::timeout(FAREWELL, shared.websockets.acquire_many(all)).await;
                // Whoever waits for it may have stopped waiting.
                let _gone = done.send(());
                return;
            }
        }
    }
}

/// Accepts clients for ever.
async fn accept(
    socket: tokio::net::TcpListener,
    site: Arc<Site>,
    tls: Option<Arc<TlsSettings>>,
    connections: Arc<Semaphore>,
) {
    loop {
        // With too many there, the next ones wait in the kernel.
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, peer)) => {
                // Without it an answer may be late, and nothing worse.
                let _late = stream.set_nodelay(true);
                let (site, tls) = (site.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => answer::serve(stream, peer, site).await,
                        Some(tls) => match encrypted(stream, &tls).await {
                            Ok(stream) => answer::serve(stream, peer, site).await,
                            Err(reason) => {
                                log!(
                                    Module::Http,
                                    Level::Info,
                                    "HTTP connection from {peer} failed: TLS: {reason}"
                                );
                            }
                        },
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                log!(Module::Http, Level::Error, "Can't accept HTTP connections for now: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Shakes hands with a client.
async fn encrypted(stream: TcpStream, tls: &TlsSettings) -> Result<TlsStream<TcpStream>, String> {
    let acceptor = TlsAcceptor::from(tls.server()?);
    match tokio::time::timeout(HANDSHAKE_TIMEOUT_DEFAULT, acceptor.accept(stream)).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("the client took too long over the handshake".to_owned()),
    }
}
