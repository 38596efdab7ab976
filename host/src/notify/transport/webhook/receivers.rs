//! Receivers on the loopback interface.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A request as it arrived.
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

type Answers = fn(&Seen) -> Response<Full<Bytes>>;

/// A receiver; gone when it is dropped.
pub(super) struct Receiving {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    accepted: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiving {
    /// Hands every connection to `serve`.
    async fn new<S, F>(serve: S) -> Self
    where
        S: Fn(TcpStream, Arc<Mutex<Vec<Seen>>>) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (seen, accepted) = (Arc::default(), Arc::<Mutex<usize>>::default());
        let (noted, count) = (Arc::clone(&seen), Arc::clone(&accepted));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *count.lock().expect("no panic") += 1;
                tokio::spawn(serve(stream, Arc::clone(&noted)));
            }
        });
        Self {
            address,
            seen,
            accepted,
            task,
        }
    }

    /// A receiver that does with its connections what it is told.
    pub(super) async fn raw<F: Future<Output = ()> + Send + 'static>(serve: fn(TcpStream) -> F) -> Self {
        Self::new(move |stream, _| serve(stream)).await
    }

    /// A receiver of plain HTTP.
    pub(super) async fn plain(answers: Answers) -> Self {
        Self::new(move |stream, seen| http(stream, seen, answers)).await
    }

    /// A receiver of HTTPS; with the PEM text of the certificate to trust.
    pub(super) async fn secure(name: &str, answers: Answers) -> (Self, String) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let acceptor = acceptor(&cert, &signing_key);
        let serve = move |stream, seen| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    http(stream, seen, answers).await;
                }
            }
        };
        (Self::new(serve).await, cert.pem())
    }

    /// How many connections it had.
    pub(super) fn connections(&self) -> usize {
        *self.accepted.lock().expect("no panic")
    }

    /// The requests it had.
    pub(super) fn requests(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().expect("no panic"))
    }
}

fn acceptor(certificate: &rcgen::Certificate, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate and its key");
    TlsAcceptor::from(Arc::new(config))
}

async fn http<S>(stream: S, seen: Arc<Mutex<Vec<Seen>>>, answers: Answers)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let seen = Arc::clone(&seen);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes().to_vec());
            let request = Seen {
                path: head.uri.to_string(),
                headers: head.headers,
                body: body.unwrap_or_default(),
            };
            let answer = answers(&request);
            seen.lock().expect("no panic").push(request);
            Ok::<_, Infallible>(answer)
        }
    });
    // A client that leaves is no fault of the test.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
