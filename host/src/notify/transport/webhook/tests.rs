//! Real receivers, and those that misbehave.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::StatusCode;
use standardwebhooks::Webhook;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::receivers::{Receiving, Seen};
use super::*;
use crate::model::{Dispatch, Transport};
use crate::notify::transport::bench::{
    AMPLE_MS, RAW_SECRET, SECRET, SHORT_MS, TOKEN, attempted, dispatch, error_of, sent,
};

const BODY: &[u8] = b"{\"event_id\":\"store:r1:2\"}";

/// Settings of a receiver on this machine.
fn local(url: impl Into<String>) -> Transport {
    Transport::Webhook {
        url: Source::Given(url.into()),
        secrets: Vec::new(),
        allow_private: true,
        ca_file: None,
    }
}

/// The same, where only the authorities of a file are trusted.
fn trusting(url: impl Into<String>, ca_file: &str) -> Transport {
    Transport::Webhook {
        url: Source::Given(url.into()),
        secrets: Vec::new(),
        allow_private: true,
        ca_file: Some(ca_file.to_owned()),
    }
}

/// A file of authorities.
fn written(home: &tempfile::TempDir, certificate: &str) -> String {
    let path = home.path().join("ca.pem");
    fs::write(&path, certificate).unwrap();
    path.display().to_string()
}

fn to(transport: Transport, timeout_ms: i64) -> Dispatch {
    dispatch(transport, BODY, timeout_ms)
}

fn plain_url(receiver: &Receiving) -> String {
    format!("http://{}/hook", receiver.address)
}

fn answer(status: u16) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(status).unwrap();
    Response::builder().status(status).body(Full::default()).unwrap()
}

fn accepted(_: &Seen) -> Response<Full<Bytes>> {
    answer(204)
}

/// What a receiver of raw bytes comes to.
async fn raw<F: Future<Output = ()> + Send + 'static>(serve: fn(TcpStream) -> F, timeout_ms: i64) -> Sent {
    let receiver = Receiving::raw(serve).await;
    sent(&to(local(plain_url(&receiver)), timeout_ms)).await
}

/// Reads a request and answers with these bytes; the connection stays.
async fn say(mut stream: TcpStream, text: &str) -> TcpStream {
    let mut request = vec![0; 4096];
    let _ = stream.read(&mut request).await;
    let _ = stream.write_all(text.as_bytes()).await;
    stream
}

/// For ever.
async fn hang<T>(kept: T) {
    std::future::pending::<()>().await;
    drop(kept);
}

#[tokio::test]
async fn a_notice_arrives_over_tls_and_an_independent_library_verifies_it() {
    let (receiver, certificate) = Receiving::secure("localhost", accepted).await;
    let home = tempfile::tempdir().unwrap();
    let ca_file = written(&home, &certificate);
    let secret_file = home.path().join("secret");
    fs::write(&secret_file, format!("{RAW_SECRET}\n")).unwrap();
    let transport = Transport::Webhook {
        url: Source::Given(format!("https://localhost:{}/hook?a=b", receiver.address.port())),
        secrets: vec![
            SecretReference::Env("OPS_SECRET".to_owned()),
            SecretReference::File(secret_file.display().to_string()),
        ],
        allow_private: true,
        ca_file: Some(ca_file),
    };
    let notice = to(transport, AMPLE_MS);
    for _ in 0..2 {
        assert_eq!(sent(&notice).await, Sent::Delivered("HTTP 204".to_owned()));
    }
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!((request.path.as_str(), request.body.as_slice()), ("/hook?a=b", BODY));
        let header = |name: &str| request.headers.get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(header("webhook-id"), "d7kq2m3vxhc");
        assert_eq!(header("runwarden-attempt"), "3");
        assert_eq!(header("runwarden-acknowledgement"), TOKEN);
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(header("host"), format!("localhost:{}", receiver.address.port()));
        assert!(header("user-agent").starts_with("runwarden/"));
        // Whoever knows either secret verifies it.
        Webhook::new(SECRET).unwrap().verify(BODY, &request.headers).unwrap();
        let raw = Webhook::from_bytes(RAW_SECRET.into()).unwrap();
        raw.verify(BODY, &request.headers).unwrap();
        raw.verify(b"{}", &request.headers).unwrap_err();
    }
}

#[tokio::test]
async fn a_certificate_of_nobody_trusted_or_of_another_name_is_no_receiver() {
    let (receiver, certificate) = Receiving::secure("elsewhere.example", accepted).await;
    let (_, other) = Receiving::secure("localhost", accepted).await;
    let home = tempfile::tempdir().unwrap();
    let url = format!("https://localhost:{}/", receiver.address.port());
    for certificate in [certificate, other] {
        let told = sent(&to(trusting(&url, &written(&home, &certificate)), AMPLE_MS)).await;
        assert!(error_of(&told).starts_with("no TLS: "), "{told:?}");
    }
    // The machine's authorities did not sign it, where it has any.
    let told = sent(&to(local(&url), AMPLE_MS)).await;
    let words = match &told {
        Sent::Failed { error, .. } => error,
        Sent::Unreadable(why) => why,
        other => panic!("{other:?}"),
    };
    assert!(
        words.starts_with("no TLS: ") || words.starts_with("no certificate authority"),
        "{told:?}"
    );
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn authorities_that_cannot_be_read_are_told_by_their_file() {
    let home = tempfile::tempdir().unwrap();
    for path in ["/nonexistent/ca.pem", &written(&home, "no certificate")] {
        let told = sent(&to(trusting("https://localhost/", path), AMPLE_MS)).await;
        assert!(matches!(&told, Sent::Unreadable(why) if why.contains(path)), "{told:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    static SECOND: Mutex<String> = Mutex::new(String::new());
    let second = Receiving::plain(accepted).await;
    *SECOND.lock().unwrap() = plain_url(&second);
    let first = Receiving::plain(|_| {
        let mut answer = answer(307);
        let location = SECOND.lock().unwrap().parse().unwrap();
        answer.headers_mut().insert("location", location);
        answer
    });
    let first = first.await;
    let told = sent(&to(local(plain_url(&first)), AMPLE_MS)).await;
    assert!(
        error_of(&told).starts_with("HTTP 307: redirects are not followed"),
        "{told:?}"
    );
    assert_eq!((first.connections(), second.connections()), (1, 0));
}

#[tokio::test]
async fn a_receiver_that_is_busy_or_gone_is_heard() {
    let busy = Receiving::plain(|_| {
        let mut answer = answer(429);
        answer.headers_mut().insert("retry-after", "120".parse().unwrap());
        answer
    });
    let busy = busy.await;
    let told = sent(&to(local(plain_url(&busy)), AMPLE_MS)).await;
    let expected = Sent::Failed {
        error: "HTTP 429".to_owned(),
        retry_after: Some(crate::model::DurationMs::from_ms(120_000)),
    };
    assert_eq!(told, expected);
    let gone = Receiving::plain(|_| answer(410)).await;
    let told = sent(&to(local(plain_url(&gone)), AMPLE_MS)).await;
    assert_eq!(told, Sent::Refused("HTTP 410, gone for good".to_owned()));
}

#[tokio::test]
async fn a_receiver_that_hangs_costs_its_time_limit_at_every_stage() {
    let half_a_head = |stream| async { hang(say(stream, "HTTP/1.1 200 OK\r\nx: ").await).await };
    let informed = |stream| async { hang(say(stream, "HTTP/1.1 100 Continue\r\n\r\n").await).await };
    // The status is heard, and why as far as it comes.
    let explaining =
        |stream| async { hang(say(stream, "HTTP/1.1 500 No\r\ncontent-length: 99\r\n\r\nbroken").await).await };
    let taken = |stream| async { hang(say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n").await).await };
    let without_tls = async {
        let receiver = Receiving::raw(hang).await;
        let (_, certificate) = Receiving::secure("localhost", accepted).await;
        let home = tempfile::tempdir().unwrap();
        let url = format!("https://{}/", receiver.address);
        sent(&to(trusting(url, &written(&home, &certificate)), SHORT_MS)).await
    };
    let (silent, half_a_head, informed, explaining, taken, without_tls) = tokio::join!(
        raw(hang, SHORT_MS),
        raw(half_a_head, SHORT_MS),
        raw(informed, SHORT_MS),
        raw(explaining, SHORT_MS),
        raw(taken, AMPLE_MS),
        without_tls,
    );
    for told in [silent, half_a_head, informed] {
        assert_eq!(error_of(&told), "the answer took longer than 1.0s");
    }
    assert_eq!(error_of(&explaining), "HTTP 500: broken");
    assert_eq!(taken, Sent::Delivered("HTTP 200".to_owned()));
    assert_eq!(error_of(&without_tls), "the TLS handshake took longer than 1.0s");
}

#[tokio::test]
async fn a_receiver_that_floods_costs_no_more_than_is_read() {
    let headers = |stream| async {
        let mut stream = say(stream, "HTTP/1.1 200 OK\r\n").await;
        while stream
            .write_all(b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")
            .await
            .is_ok()
        {}
    };
    error_of(&raw(headers, AMPLE_MS).await);
    let line = |stream| async {
        let mut stream = say(stream, "HTTP/1.1 200 OK\r\nx: ").await;
        while stream.write_all(&[b'y'; 4096]).await.is_ok() {}
    };
    error_of(&raw(line, AMPLE_MS).await);
    let body = |stream| async {
        let mut stream = say(stream, "HTTP/1.1 500 No\r\n\r\n").await;
        while stream.write_all(&[b'y'; 4096]).await.is_ok() {}
    };
    let told = raw(body, AMPLE_MS).await;
    let characters = error_of(&told).chars().count();
    assert!(characters <= 2_000, "{characters} characters");
    assert!(error_of(&told).starts_with("HTTP 500: yyyy"), "{told:?}");
}

#[tokio::test]
async fn a_receiver_that_breaks_off_or_talks_nonsense_is_tried_again() {
    let reset = |stream: TcpStream| async move {
        // Data that is not read when the socket is closed makes it a reset.
        let _ = stream.readable().await;
    };
    let cut = |stream| async { drop(say(stream, "HTTP/1.1 200").await) };
    let nonsense = |stream| async { drop(say(stream, "220 mail.example.org ESMTP\r\n").await) };
    let closed = |stream| async { drop(stream) };
    for told in [
        raw(reset, AMPLE_MS).await,
        raw(cut, AMPLE_MS).await,
        raw(nonsense, AMPLE_MS).await,
        raw(closed, AMPLE_MS).await,
    ] {
        assert!(!error_of(&told).is_empty());
    }
    let receiver = Receiving::plain(accepted).await;
    let url = plain_url(&receiver);
    drop(receiver);
    tokio::task::yield_now().await;
    let told = sent(&to(local(url), AMPLE_MS)).await;
    assert!(error_of(&told).starts_with("cannot connect to 127.0.0.1:"), "{told:?}");
}

/// Sends to a name that the resolver makes up; no private address is allowed.
async fn guarded(url: &str, resolver: Resolver) -> Sent {
    let url = Source::Given(url.to_owned());
    let receiver = Receiver {
        url: &url,
        secrets: &[],
        reach: Reach::Public,
        ca_file: None,
    };
    let notice = to(local(""), AMPLE_MS);
    attempted(&notice, async |attempt| send(attempt, &receiver, resolver).await).await
}

#[tokio::test]
async fn one_address_that_is_not_public_among_many_refuses_all_of_them() {
    fn mixed(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let addresses = ["1.1.1.1", "2606:4700::1111", "169.254.169.254"];
        Ok(addresses
            .iter()
            .map(|text| SocketAddr::new(text.parse().unwrap(), port))
            .collect())
    }
    let told = guarded("https://hooks.example.org/", mixed).await;
    assert_eq!(
        told,
        Sent::Refused("169.254.169.254 is not reached: it is a metadata service".to_owned())
    );
}

#[tokio::test]
async fn numbers_and_names_of_this_machine_are_refused_after_they_are_resolved() {
    let receiver = Receiving::plain(accepted).await;
    let port = receiver.address.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ] {
        for scheme in ["http", "https"] {
            let told = guarded(&format!("{scheme}://{host}:{port}/"), system_resolver).await;
            assert!(
                matches!(&told, Sent::Refused(why) if why.contains("loopback")),
                "{host}: {told:?}"
            );
        }
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_name_is_resolved_once_and_what_it_means_later_does_not_matter() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    fn rebinding(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let address = match ASKED.fetch_add(1, Ordering::SeqCst) {
            0 => "127.0.0.1",
            _ => "169.254.169.254",
        };
        Ok(vec![SocketAddr::new(address.parse().unwrap(), port)])
    }
    let receiving = Receiving::plain(accepted).await;
    let url = Source::Given(format!("http://rebinding.example:{}/", receiving.address.port()));
    let receiver = Receiver {
        url: &url,
        secrets: &[],
        reach: Reach::Private,
        ca_file: None,
    };
    let notice = to(local(""), AMPLE_MS);
    let told = attempted(&notice, async |attempt| send(attempt, &receiver, rebinding).await).await;
    assert_eq!(told, Sent::Delivered("HTTP 204".to_owned()));
    assert_eq!(ASKED.load(Ordering::SeqCst), 1);
    let host = receiving.requests()[0].headers["host"].to_str().unwrap().to_owned();
    assert!(host.starts_with("rebinding.example:"), "{host}");
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_tried_again() {
    fn unknown(_: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Err(io::Error::other("no such name"))
    }
    fn nothing(_: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(Vec::new())
    }
    let told = guarded("https://hooks.example.org/", unknown).await;
    assert_eq!(error_of(&told), "hooks.example.org cannot be resolved: no such name");
    let told = guarded("https://hooks.example.org/", nothing).await;
    assert_eq!(error_of(&told), "hooks.example.org has no address");
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "the lock is what hangs")]
async fn a_resolver_that_hangs_costs_the_time_limit() {
    static HELD: Mutex<()> = Mutex::new(());
    fn hanging(_: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        drop(HELD.lock());
        Ok(Vec::new())
    }
    let url = Source::Given("https://hooks.example.org/".to_owned());
    let receiver = Receiver {
        url: &url,
        secrets: &[],
        reach: Reach::Public,
        ca_file: None,
    };
    let notice = to(local(""), SHORT_MS);
    let held = HELD.lock().unwrap();
    let attempt = attempted(&notice, async |attempt| send(attempt, &receiver, hanging).await);
    let told = attempt.await;
    drop(held);
    assert_eq!(error_of(&told), "resolving the name took longer than 1.0s");
}

#[tokio::test]
async fn what_the_settings_name_and_cannot_be_read_is_told_by_its_name() {
    let receiver = Receiving::plain(accepted).await;
    let with = |url: Source, secrets: Vec<SecretReference>| Transport::Webhook {
        url,
        secrets,
        allow_private: true,
        ca_file: None,
    };
    let given = || Source::Given(plain_url(&receiver));
    let secret = |name: &str| {
        vec![
            SecretReference::Env("OPS_SECRET".to_owned()),
            SecretReference::Env(name.to_owned()),
        ]
    };
    let files = |path: &str| vec![SecretReference::File(path.to_owned())];
    for (transport, named) in [
        (with(given(), secret("OPS_MISSING")), "OPS_MISSING is not set"),
        (with(given(), secret("OPS_EMPTY")), "OPS_EMPTY is empty"),
        (
            with(given(), secret("OPS_BROKEN_SECRET")),
            "OPS_BROKEN_SECRET holds no base64 after `whsec_`",
        ),
        (
            with(given(), files("/nonexistent/secret")),
            "/nonexistent/secret cannot be read",
        ),
        (
            with(given(), files("/dev/zero")),
            "/dev/zero cannot be read: not a regular file",
        ),
        (
            with(Source::Env("OPS_URL".to_owned()), Vec::new()),
            "OPS_URL is not set",
        ),
        (
            with(Source::File("/nonexistent/url".to_owned()), Vec::new()),
            "/nonexistent/url cannot be read",
        ),
    ] {
        let told = sent(&to(transport, AMPLE_MS)).await;
        let Sent::Unreadable(why) = &told else {
            panic!("{named}: {told:?}");
        };
        assert!(why.contains(named) && !why.contains("not-base64"), "{why}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_url_is_malformed_for_good_and_told_without_itself() {
    for url in [
        "nowhere",
        "https://user:hunter2@example.org/",
        "gopher://example.org/hunter2",
    ] {
        let told = sent(&to(local(url), AMPLE_MS)).await;
        assert!(
            matches!(&told, Sent::Refused(why) if !why.contains("hunter2")),
            "{url}: {told:?}"
        );
    }
}

#[tokio::test]
async fn what_a_receiver_says_back_of_secret_things_is_not_told() {
    let receiver = Receiving::plain(|seen| {
        let token = seen.headers["runwarden-acknowledgement"].to_str().unwrap();
        let said = format!("bad token {token} or secret {SECRET} at {}", seen.path);
        Response::builder().status(403).body(Full::from(said)).unwrap()
    });
    let receiver = receiver.await;
    let transport = Transport::Webhook {
        url: Source::Given(format!("http://{}/services/T00/B00/hunter2", receiver.address)),
        secrets: vec![SecretReference::Env("OPS_SECRET".to_owned())],
        allow_private: true,
        ca_file: None,
    };
    let told = sent(&to(transport, AMPLE_MS)).await;
    assert_eq!(
        error_of(&told),
        "HTTP 403: bad token [hidden] or secret [hidden] at [hidden]"
    );
}

#[tokio::test]
async fn plain_http_is_for_private_addresses_alone() {
    fn public(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::new("1.1.1.1".parse().unwrap(), port)])
    }
    let told = guarded("http://hooks.example.org/", public).await;
    assert!(
        matches!(&told, Sent::Refused(why) if why.contains("plain HTTP")),
        "{told:?}"
    );
}

#[tokio::test]
async fn the_headers_are_those_that_are_told_beforehand() {
    let receiver = Receiving::plain(|_| answer(204)).await;
    let secrets = vec![SecretReference::Env("OPS_SECRET".to_owned())];
    let dispatch = to(
        Transport::Webhook {
            url: Source::Given(plain_url(&receiver)),
            secrets,
            allow_private: true,
            ca_file: None,
        },
        AMPLE_MS,
    );
    assert!(matches!(sent(&dispatch).await, Sent::Delivered(_)));
    let seen = receiver.requests();
    let mut names: Vec<&str> = seen[0].headers.keys().map(hyper::header::HeaderName::as_str).collect();
    // What HTTP itself asks for.
    names.retain(|name| !["host", "content-length"].contains(name));
    names.sort_unstable();
    let told = crate::notify::outline(&dispatch.target, true).headers;
    assert_eq!(names, told.into_keys().collect::<Vec<_>>());
}
