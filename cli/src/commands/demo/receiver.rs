//! A receiver of webhooks on this machine, as long as it is held: it checks each signature, and answers as it is told.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use runwarden_host::notify::is_signed;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The secret that both sides know.
pub(super) const SECRET: &str = "whsec_b25seSBmb3IgdGhlIGRlbW8sIG5vYm9keSBlbHNl";

/// What it was sent.
#[derive(Clone, Debug)]
pub(super) struct Received {
    /// The dispatch's id.
    pub(super) id: String,
    /// Whether the signature is that of the secret over id, time and body.
    pub(super) signed: bool,
    /// The body.
    pub(super) body: Value,
}

struct State {
    answer: StatusCode,
    received: Vec<Received>,
}

/// The receiver.
pub(super) struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Begins to listen, on a port that the system chooses.
    pub(super) fn start() -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State {
            answer: StatusCode::NO_CONTENT,
            received: Vec::new(),
        }));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = listen(listener, shared) => {}
                }
            });
        });
        Ok(Self {
            address,
            state,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub(super) fn url(&self) -> String {
        format!("http://{}/ends", self.address)
    }

    /// From now on it answers so.
    pub(super) fn answers(&self, status: StatusCode) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).answer = status;
    }

    /// What it was sent, in order.
    pub(super) fn received(&self) -> Vec<Received> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .received
            .clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It listens for the stop as long as its thread lives.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn listen(listener: std::net::TcpListener, state: Arc<Mutex<State>>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(request, Arc::clone(&state)));
        // A client that goes away in the middle is its own concern.
        let _ = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }
}

async fn answer(request: Request<Incoming>, state: Arc<Mutex<State>>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let header = |name: &str| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (id, time, signature) = (
        header("webhook-id"),
        header("webhook-timestamp"),
        header("webhook-signature"),
    );
    let body = request
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let signed = is_signed(SECRET, &id, &time, &body, &signature);
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.received.push(Received {
        id,
        signed,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    });
    let mut response = Response::new(Empty::new());
    *response.status_mut() = state.answer;
    Ok(response)
}
