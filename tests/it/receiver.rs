//! A receiver of webhooks on the loopback interface: plain HTTP, one request a connection.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request as it arrived; the names of its headers in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What is to be answered, as HTTP writes it; none: nothing, as long as the receiver lives.
type Answers = dyn Fn(&Request) -> Option<String> + Send + Sync;

/// What both sides of the thread know.
#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Request>>,
    is_over: AtomicBool,
}

/// A receiver; when it is dropped every connection is broken off.
pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// A receiver that answers each request as it is told.
    pub(crate) fn new(answers: impl Fn(&Request) -> Option<String> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let known = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(&listener, &known, &answers));
        Self {
            address,
            shared,
            thread: Some(thread),
        }
    }

    /// A receiver that always answers this status, with these headers.
    pub(crate) fn answering(status: &str, headers: &str) -> Self {
        let answer = answer(status, headers);
        Self::new(move |_| Some(answer.clone()))
    }

    /// Its URL, with this path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What arrived so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.shared.seen.lock().expect("no thread panicked").clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Whoever waits for a connection gets one.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An answer without a body.
pub(crate) fn answer(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n{headers}\r\n")
}

fn serve(listener: &TcpListener, shared: &Shared, answers: &Answers) {
    let mut unanswered = Vec::new();
    while let Ok((mut stream, _)) = listener.accept() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Some(request) = read(&stream) else { continue };
        let answer = answers(&request);
        shared.seen.lock().expect("no thread panicked").push(request);
        match answer {
            Some(answer) => drop(stream.write_all(answer.as_bytes())),
            None => unanswered.push(stream),
        }
    }
}

/// Reads one request; none when its sender went away.
fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let path = line()?.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    Some(Request { path, headers, body })
}
