//! The address to listen on: of this machine alone.

use std::net::{IpAddr, SocketAddr};

/// A loopback address and a port.
pub(super) fn loopback(word: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = match word.strip_prefix("localhost:") {
        Some(port) => port
            .parse()
            .map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port)))
            .ok(),
        None => word.parse().ok(),
    }
    .ok_or("it is no address and port, such as 127.0.0.1:7117 or [::1]:0")?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(
        "it is not of this machine alone: nobody is asked who he is, so only 127.0.0.1, [::1] or localhost will do"
            .to_owned(),
    )
}

/// Whether a `host` header names this machine as somebody who sits at it does. A page of a stranger whose name resolves to
/// this machine is told nothing.
pub(super) fn is_own_host(header: &str) -> bool {
    let name = match header.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => header,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_loopback = |word: &str| word.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    match bare {
        Some(address) => is_loopback(address),
        None => name.eq_ignore_ascii_case("localhost") || (!name.contains(':') && is_loopback(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_alone_are_listened_on() {
        for (word, address) in [
            ("127.0.0.1:7117", "127.0.0.1:7117"),
            ("127.8.9.1:0", "127.8.9.1:0"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:65535", "127.0.0.1:65535"),
        ] {
            assert_eq!(loopback(word).map(|found| found.to_string()), Ok(address.to_owned()));
        }
        let refused = [
            "0.0.0.0:1",
            "[::]:1",
            "10.0.0.1:1",
            "[::ffff:127.0.0.1]:1",
            "192.168.0.1:7117",
        ];
        for word in refused {
            assert!(
                loopback(word).is_err_and(|words| words.contains("this machine alone")),
                "{word}"
            );
        }
        for word in [
            "",
            "7117",
            "127.0.0.1",
            "127.0.0.1:65536",
            "localhost:-1",
            "example.org:80",
            "::1:80:x",
        ] {
            assert!(
                loopback(word).is_err_and(|words| words.contains("no address")),
                "{word}"
            );
        }
    }

    #[test]
    fn a_name_of_a_stranger_is_not_this_machine() {
        for header in [
            "localhost",
            "LocalHost:7117",
            "127.0.0.1:7117",
            "127.0.0.1",
            "[::1]:7117",
            "[::1]",
        ] {
            assert!(is_own_host(header), "{header}");
        }
        for header in [
            "",
            "evil.example:7117",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1:7117",
            "::1",
            "[::1",
            "localhost:80:80",
            "localhost:x",
        ] {
            assert!(!is_own_host(header), "{header}");
        }
    }
}
