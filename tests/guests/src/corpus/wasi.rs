//! Components that want what a policy never gets: every interface of WASI.

use super::{Case, install};

/// Every interface of WASI 0.2.
pub const WASI_INTERFACES: [&str; 32] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/run",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:clocks/timezone",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/incoming-handler",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

pub(super) fn cases() -> Vec<Case> {
    let all: String = WASI_INTERFACES
        .iter()
        .map(|name| format!(r#"(import "{name}@0.2.6" (instance))"#))
        .collect();
    let p1 = r#"(module (import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32))))"#;
    let p3 = r#"(component (import "wasi:clocks/system-clock@0.3.0" (instance)))"#;
    let text = |text: &str| wat::parse_str(text).expect("text of ours");
    vec![
        install(
            "every interface of WASI 0.2 wanted",
            text(&format!("(component {all})")),
        ),
        install("an interface of WASI 0.3 wanted", text(p3)),
        install("a core module for WASI preview 1", text(p1)),
    ]
}
