//! What is answered over HTTP: two documents, to whoever sits at this machine.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use runwarden_host::Host;
use runwarden_host::verbs::Service;
use tokio::sync::Semaphore;

use super::address::is_own_host;
use super::health::health;
use super::metrics::{self, metrics};
use crate::output::pretty;

/// Connections at the same time; more wait their turn.
const CONNECTIONS_MAX: usize = 16;

/// How long a connection may take, idle or not.
const CONNECTION_MAX: Duration = Duration::from_secs(20);

/// After a connection could not be taken on: no descriptor is free, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const TEXT: &str = "text/plain; charset=utf-8";

/// Answers as long as it is waited for.
pub(super) async fn answer(listener: TcpListener, host: Arc<Host>, service: Arc<Service>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "nothing is answered over HTTP"),
    };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken on");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (host, service) = (Arc::clone(&host), Arc::clone(&service));
        tokio::spawn(async move {
            let respond = service_fn(|request| respond(request, Arc::clone(&host), Arc::clone(&service)));
            let connection = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), respond);
            // A client that goes away or says nothing is its own concern.
            let _ = tokio::time::timeout(CONNECTION_MAX, connection).await;
            drop(place);
        });
    }
}

async fn respond(
    request: Request<Incoming>,
    host: Arc<Host>,
    service: Arc<Service>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    if !named.is_some_and(is_own_host) {
        return Ok(plain(StatusCode::FORBIDDEN, "this is answered to localhost alone\n"));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "there is nothing here but to read\n");
        let allowed = hyper::header::HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(ALLOW, allowed);
        return Ok(refused);
    }
    // The store is read on a thread that may wait for it.
    let answered = match request.uri().path() {
        "/healthz" => tokio::task::spawn_blocking(move || well(&host, &service)).await,
        "/metrics" => tokio::task::spawn_blocking(move || counted(&host, &service)).await,
        _ => return Ok(plain(StatusCode::NOT_FOUND, "/healthz and /metrics are here\n")),
    };
    // A panic was told; whoever asked learns that there is no answer.
    Ok(answered.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "it has a fault\n")))
}

fn well(host: &Host, service: &Service) -> Response<Full<Bytes>> {
    let health = health(host, service);
    let status = if health.is_well {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    response(status, "application/json", format!("{}\n", pretty(&health.document)))
}

fn counted(host: &Host, service: &Service) -> Response<Full<Bytes>> {
    match metrics(host, service) {
        Ok(text) => response(StatusCode::OK, metrics::CONTENT_TYPE, text),
        Err(error) => plain(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n")),
    }
}

fn plain(status: StatusCode, words: &str) -> Response<Full<Bytes>> {
    response(status, TEXT, words.to_owned())
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let value = hyper::header::HeaderValue::from_static;
    response.headers_mut().insert(CONTENT_TYPE, value(content_type));
    response.headers_mut().insert(CACHE_CONTROL, value("no-store"));
    response
}
