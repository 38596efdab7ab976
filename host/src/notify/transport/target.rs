//! The URL of a webhook, taken apart. It may be a secret as a whole: what is wrong with it is told without it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::Uri;

use super::address::Protection;

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
/// The most characters of a host's name.
const HOST_CHARS_MAX: usize = 253;

/// Where a webhook goes.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) protection: Protection,
    /// A name, or an address without brackets.
    pub(super) host: String,
    /// The address that the host is, if it is one and no name.
    pub(super) literal: Option<IpAddr>,
    pub(super) port: u16,
    /// The value of the header `host`.
    pub(super) authority: String,
    /// What is asked of the receiver.
    pub(super) path: String,
}

impl Target {
    /// Reads a URL; what is wrong with it otherwise.
    pub(super) fn parse(url: &str) -> Result<Self, &'static str> {
        let uri: Uri = url.parse().map_err(|_| "cannot be read as one")?;
        let protection = match uri.scheme_str() {
            Some("https") => Protection::Tls,
            Some("http") => Protection::None,
            Some(_) => return Err("is neither https nor http"),
            None => return Err("has no scheme"),
        };
        let authority = uri.authority().ok_or("has no host")?.as_str();
        if authority.contains('@') {
            return Err("holds a user or a password");
        }
        let (host, literal) = host(uri.host().unwrap_or_default())?;
        let port = port(authority, protection)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Ok(Self {
            protection,
            host: host.to_owned(),
            literal,
            port,
            authority: authority.to_owned(),
            path,
        })
    }
}

/// A name of ASCII letters, digits, `-`, `_` and dots, or an address.
fn host(written: &str) -> Result<(&str, Option<IpAddr>), &'static str> {
    if let Some(inner) = written.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or("has a broken address")?;
        let address: Ipv6Addr = inner.parse().map_err(|_| "has a broken address")?;
        return Ok((inner, Some(address.into())));
    }
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if written.is_empty() || written.len() > HOST_CHARS_MAX || !written.chars().all(is_plain) {
        return Err("has no host that is a plain ASCII name");
    }
    // 127.1, 2130706433 and the like are names here: what they resolve to is judged.
    let literal = written.parse::<Ipv4Addr>().ok().map(IpAddr::from);
    // The dot that ends a full name is not part of the name that a certificate is for.
    Ok((written.strip_suffix('.').unwrap_or(written), literal))
}

fn port(authority: &str, protection: Protection) -> Result<u16, &'static str> {
    let behind_host = authority.rsplit(']').next().unwrap_or_default();
    match behind_host.split_once(':') {
        None => Ok(match protection {
            Protection::Tls => HTTPS_PORT,
            Protection::None => HTTP_PORT,
        }),
        Some((_, digits)) => match digits.parse() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err("has a broken port"),
        },
    }
}

#[cfg(test)]
mod tests;
