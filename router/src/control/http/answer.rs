//! Requests and their answers.

use super::exposition::{self, Exposition};
use super::facts::ControlFacts;
use super::health::Health;
use super::metrics::Metrics;
use super::websocket;
use crate::base::id::ListenerId;
use crate::base::limits::WEBSOCKETS_MAX;
use crate::control::config::HttpConfig;
use crate::control::handle::ShardsHandle;
use crate::log;
use crate::log::{Level, Module};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::Sender;
use tokio::sync::{Mutex, Semaphore, oneshot};
use tower_http::services::ServeDir;

/// How long a client may take over the head of a request, the pause before it included.
const HEAD_PATIENCE: Duration = Duration::from_secs(60);

/// How long a connection is kept; then it ends with the next answer.
const CONNECTION_LIFE: Duration = Duration::from_secs(3600);

/// How long that answer may take.
const LAST_ANSWER: Duration = Duration::from_secs(60);

/// The body of an answer.
pub(super) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// What all listeners have in common.
pub(super) struct Shared {
    pub(super) shards: ShardsHandle,
    pub(super) is_ready: AtomicBool,
    /// One permit for each WebSocket that there may be.
    pub(super) websockets: Arc<Semaphore>,
    health: Mutex<Health>,
    metrics: Mutex<Metrics>,
}

impl Shared {
    pub(super) fn new(
        shards: ShardsHandle,
        control: Sender<oneshot::Sender<ControlFacts>>,
        router_id: &str,
    ) -> Self {
        let websockets = Arc::new(Semaphore::new(WEBSOCKETS_MAX));
        Self {
            is_ready: AtomicBool::new(false),
            health: Mutex::new(Health::new(shards.clone(), control.clone())),
            metrics: Mutex::new(Metrics::new(shards.clone(), control, websockets.clone(), router_id)),
            websockets,
            shards,
        }
    }
}

/// What one listener serves.
pub(super) struct Site {
    pub(super) listener: ListenerId,
    config: HttpConfig,
    pub(super) shared: Arc<Shared>,
    files: Option<ServeDir>,
}

impl Site {
    pub(super) fn new(listener: ListenerId, config: HttpConfig, shared: Arc<Shared>) -> Self {
        let files = config.root_dir.as_ref().map(ServeDir::new);
        Self { listener, config, shared, files }
    }

    /// What a client can ask for here.
    fn offers(&self) -> String {
        let offers = [
            (self.config.has_metrics, "/metrics"),
            (self.config.has_healthz, "/healthz"),
            (self.config.has_healthz, "/readyz"),
            (self.config.has_websockets, "AMQP over WebSocket on any path"),
            (self.files.is_some(), "files"),
        ];
        let offered: Vec<_> =
            offers.iter().filter(|(is_there, _)| *is_there).map(|(_, what)| *what).collect();
        if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") }
    }
}

/// Answers the requests of one client.
pub(super) async fn serve<S>(stream: S, peer: SocketAddr, site: Arc<Site>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let site = site.clone();
        async move { Ok::<_, Infallible>(answer(site, peer, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = match tokio::time::timeout(CONNECTION_LIFE, connection.as_mut()).await {
        Ok(ended) => ended,
        Err(_) => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(LAST_ANSWER, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        log!(Module::Http, Level::Debug, "HTTP connection from {peer} ended: {error}");
    }
}

async fn answer(site: Arc<Site>, peer: SocketAddr, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if websocket::is_asked_for(&request) {
        if !site.config.has_websockets {
            return text(StatusCode::NOT_FOUND, "AMQP over WebSocket isn't served here (websockets: no)\n");
        }
        return websocket::accept(&site, peer, request);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match path.as_str() {
        "/metrics" if site.config.has_metrics => metrics(&site, &request).await,
        "/healthz" if site.config.has_healthz => {
            let faults = site.shared.health.lock().await.faults().await;
            well_or_not(&faults)
        }
        "/readyz" if site.config.has_healthz => {
            let is_ready = site.shared.is_ready.load(std::sync::atomic::Ordering::Relaxed);
            let faults = if is_ready { Vec::new() } else { vec!["the router starts or stops".to_owned()] };
            well_or_not(&faults)
        }
        _ => files(&site, &path, request).await,
    }
}

async fn metrics(site: &Site, request: &Request<Incoming>) -> Response<Body> {
    let accepted = request.headers().get(ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let exposition = Exposition::accepted(accepted.unwrap_or_default());
    let families = site.shared.metrics.lock().await.families().await;
    match exposition::write(&families, exposition) {
        Ok(written) => {
            let mut answer = text(StatusCode::OK, written);
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(exposition.content_type()));
            answer
        }
        Err(error) => {
            log!(Module::Http, Level::Error, "The metrics can't be written down: {error}");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics can't be written down\n")
        }
    }
}

/// 200 and `OK`, as that of `qdrouterd`, or 503 and what is wrong.
fn well_or_not(faults: &[String]) -> Response<Body> {
    if faults.is_empty() {
        return text(StatusCode::OK, "OK\n");
    }
    text(StatusCode::SERVICE_UNAVAILABLE, faults.iter().map(|fault| format!("{fault}\n")).collect::<String>())
}

async fn files(site: &Site, path: &str, request: Request<Incoming>) -> Response<Body> {
    let Some(files) = &site.files else {
        let offers = site.offers();
        return text(StatusCode::NOT_FOUND, format!("there is no {path} here; there is: {offers}\n"));
    };
    match files.clone().try_call(request).await {
        Ok(answer) => answer.map(UnsyncBoxBody::new),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            text(StatusCode::NOT_FOUND, format!("there is no {path} here\n"))
        }
        Err(error) => {
            log!(Module::Http, Level::Warning, "Can't read the file for {path}: {error}");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the file can't be read\n")
        }
    }
}

/// An answer of plain text.
pub(super) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(text.into()).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
