//! An HTTPS POST, signed as Standard Webhooks says.
//!
//! ```text
//! settings read ─▶ URL judged ─▶ name resolved once ─▶ every address judged ─▶ connected to one of them
//!     ─▶ TLS for the URL's name ─▶ request ─▶ head of the answer ─▶ outcome
//! ```
//!
//! Every step ends with the attempt's time. No redirect is followed, no proxy is used, no connection is kept.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::pin::pin;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::model::{SecretReference, Sent, Source};

use super::address::{Protection, Reach, admit};
use super::answer::Answer;
use super::aside::{Wanted, aside};
use super::secret::{self, Secret};
use super::signature::signatures;
use super::target::Target;
use super::tell::{Hidden, chain, with_end};
use super::{Attempt, Deadline, Outcome, failed, tls};

/// The most bytes of an answer's head, and of what is read of its body.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The most headers of an answer.
const ANSWER_HEADERS_MAX: usize = 128;
/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 16;
/// Who asks.
pub(super) const AGENT: &str = concat!("runwarden/", env!("CARGO_PKG_VERSION"));

/// A receiver as the settings have it.
pub(super) struct Receiver<'a> {
    pub(super) url: &'a Source,
    pub(super) secrets: &'a [SecretReference],
    pub(super) reach: Reach,
    pub(super) ca_file: Option<&'a str>,
}

/// What a name resolves to; may block.
pub(super) type Resolver = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// The system's resolver.
pub(super) fn system_resolver(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// Posts the body.
pub(super) async fn send(attempt: &Attempt<'_>, receiver: &Receiver<'_>, resolver: Resolver) -> Outcome {
    let deadline = Deadline::of(attempt);
    let prepared = prepare(attempt, receiver, deadline).await?;
    let addresses = resolve(&prepared.target, resolver, deadline).await?;
    let protection = prepared.target.protection;
    for address in &addresses {
        admit(address.ip(), receiver.reach, protection).map_err(Sent::Refused)?;
    }
    let request = request(attempt, &prepared)?;
    let hidden = hidden(attempt, &prepared);
    let stream = connect(&addresses, deadline).await?;
    let exchange = Exchange {
        deadline,
        hidden: &hidden,
        now: attempt.surroundings.now,
    };
    let Some(config) = prepared.tls else {
        return exchange.run(stream, request).await;
    };
    let name = ServerName::try_from(prepared.target.host.clone());
    let name = name.map_err(|_| Sent::Refused("the URL's host is no name that a certificate can be for".to_owned()))?;
    let secured = TlsConnector::from(config).connect(name, stream);
    let secured = deadline.bound("the TLS handshake", secured).await?;
    let stream = secured.map_err(|error| failed(with_end(&format!("no TLS: {}", chain(&error)), &[], &hidden)))?;
    exchange.run(stream, request).await
}

/// What the settings lead to.
struct Prepared {
    target: Target,
    secrets: Vec<Secret>,
    tls: Option<Arc<ClientConfig>>,
}

/// Reads what the settings name.
async fn prepare(attempt: &Attempt<'_>, receiver: &Receiver<'_>, deadline: Deadline) -> Result<Prepared, Sent> {
    let url = receiver.url.clone();
    let secrets = receiver.secrets.to_vec();
    let authorities = receiver.ca_file.map(str::to_owned);
    let variable: fn(&str) -> Option<OsString> = attempt.surroundings.variable;
    let read = move |_: &Wanted<'_>| {
        let url = secret::value(&url, variable).map_err(Sent::Unreadable)?;
        let target = Target::parse(&url).map_err(|why| Sent::Refused(format!("the URL {why}")))?;
        let secrets: Result<_, _> = secrets
            .iter()
            .map(|reference| secret::secret(reference, variable))
            .collect();
        let secrets = secrets.map_err(Sent::Unreadable)?;
        let tls = match target.protection {
            Protection::None => None,
            Protection::Tls => Some(trust(authorities.as_deref()).map_err(Sent::Unreadable)?),
        };
        Ok(Prepared { target, secrets, tls })
    };
    aside(deadline, "reading the secrets", read).await?
}

fn trust(authorities: Option<&str>) -> Result<Arc<ClientConfig>, String> {
    let Some(path) = authorities else {
        return tls::config(None);
    };
    let text = secret::of_file(path)?;
    tls::config(Some(&text)).map_err(|why| format!("{path}: {why}"))
}

/// All addresses of the receiver, in the resolver's order.
async fn resolve(target: &Target, resolver: Resolver, deadline: Deadline) -> Result<Vec<SocketAddr>, Sent> {
    if let Some(address) = target.literal {
        return Ok(vec![SocketAddr::new(address, target.port)]);
    }
    let (host, port) = (target.host.clone(), target.port);
    let found = aside(deadline, "resolving the name", move |_: &Wanted<'_>| {
        resolver(&host, port)
    })
    .await?;
    let found = found.map_err(|error| failed(format!("{} cannot be resolved: {error}", target.host)))?;
    match found.is_empty() {
        true => Err(failed(format!("{} has no address", target.host))),
        false => Ok(found),
    }
}

/// Connects to the first address that answers; each has its share of the time that is left.
async fn connect(addresses: &[SocketAddr], deadline: Deadline) -> Result<TcpStream, Sent> {
    let mut error = deadline.over("connecting");
    let tried = &addresses[..addresses.len().min(ADDRESSES_MAX)];
    for (index, address) in tried.iter().enumerate() {
        let share = (deadline.at - Instant::now()) / u32::try_from(tried.len() - index).unwrap_or(1);
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(refused)) => error = failed(format!("cannot connect to {address}: {refused}")),
            Err(_) => error = failed(format!("{address} did not answer in time")),
        }
    }
    Err(error)
}

fn request(attempt: &Attempt<'_>, prepared: &Prepared) -> Result<Request<Full<Bytes>>, Sent> {
    let (id, body) = (attempt.id, &attempt.dispatch.body);
    let seconds = attempt.surroundings.now.as_ms().div_euclid(1_000);
    let mut request = Request::post(&prepared.target.path)
        .header(HOST, &prepared.target.authority)
        .header(USER_AGENT, AGENT)
        .header(CONTENT_TYPE, "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds)
        .header("runwarden-attempt", attempt.number);
    if !prepared.secrets.is_empty() {
        request = request.header("webhook-signature", signatures(&prepared.secrets, id, seconds, body));
    }
    if let Some(token) = attempt.token {
        request = request.header("runwarden-acknowledgement", token);
    }
    let whole = request.body(Full::new(Bytes::from(body.clone())));
    whole.map_err(|_| Sent::Refused("the URL's path or the id is nothing that HTTP can carry".to_owned()))
}

/// What a receiver may say back and nobody is to read.
fn hidden(attempt: &Attempt<'_>, prepared: &Prepared) -> Hidden {
    let mut hidden = Hidden::default();
    if let Some(token) = attempt.token {
        hidden.add(token);
    }
    for secret in &prepared.secrets {
        hidden.add(secret.text.as_str());
        hidden.add(secret.text.trim_start_matches(secret::PREFIX));
    }
    if prepared.target.path.len() > 1 {
        hidden.add(prepared.target.path.as_str());
    }
    hidden
}

/// One request and its answer.
struct Exchange<'a> {
    deadline: Deadline,
    hidden: &'a Hidden,
    now: crate::model::Timestamp,
}

impl Exchange<'_> {
    async fn run<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Outcome
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let broken = |error: hyper::Error| failed(with_end(&chain(&error), &[], self.hidden));
        let mut builder = http1::Builder::new();
        builder.max_buf_size(ANSWER_BYTES_MAX).max_headers(ANSWER_HEADERS_MAX);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let asked = async {
            let answered = self.deadline.bound("the answer", sender.send_request(request)).await?;
            Ok(self.judge(answered.map_err(broken)?).await)
        };
        let (mut asked, connection) = (pin!(asked), pin!(connection));
        tokio::select! {
            biased;
            outcome = &mut asked => outcome,
            // The connection has ended; what came before is still to be read.
            _ = connection => asked.await,
        }
    }

    async fn judge(&self, response: Response<Incoming>) -> Sent {
        let (head, body) = response.into_parts();
        let answer = Answer {
            status: head.status,
            headers: head.headers,
        };
        // A receiver that has taken the notice has nothing more to say.
        let said = if answer.status.is_success() {
            Vec::new()
        } else {
            self.said(body).await
        };
        answer.outcome(&said, self.hidden, self.now)
    }

    /// The start of a body, as far as it comes in time.
    async fn said(&self, mut body: Incoming) -> Vec<u8> {
        let mut said = Vec::new();
        while said.len() < ANSWER_BYTES_MAX {
            match self.deadline.bound("the answer", body.frame()).await {
                Ok(Some(Ok(frame))) => said.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Ok(Some(Err(_)) | None) | Err(_) => break,
            }
        }
        said.truncate(ANSWER_BYTES_MAX);
        said
    }
}

#[cfg(test)]
mod receivers;
#[cfg(test)]
mod tests;
