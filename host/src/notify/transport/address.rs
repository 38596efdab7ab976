//! Which addresses a webhook may reach.
//!
//! A receiver's name is resolved once, every address is judged here, and the connection goes to one that was judged: what
//! a name means a moment later does not matter.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// What the binding lets a webhook reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Public addresses.
    Public,
    /// Loopback, private and link-local ones as well, and plain HTTP to them.
    Private,
}

/// How a connection to an address is to be protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    Tls,
    None,
}

/// What kind of address it is; each but the first with the word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Public,
    /// Of this machine or its networks.
    Private(&'static str),
    /// A public IPv4 address in an IPv6 address: where it leads is a router's choice.
    Translated(&'static str),
    /// Nobody receives webhooks there, whatever the binding allows.
    Never(&'static str),
}

/// That an address may be reached; why not otherwise.
pub(super) fn admit(address: IpAddr, reach: Reach, protection: Protection) -> Result<(), String> {
    let (word, may_be_allowed) = match (class(address), reach, protection) {
        (Class::Public, _, Protection::Tls)
        | (Class::Translated(_), Reach::Private, Protection::Tls)
        | (Class::Private(_), Reach::Private, _) => return Ok(()),
        (Class::Public | Class::Translated(_), _, Protection::None) => {
            return Err(format!("plain HTTP is not used to reach {address}: it is not private"));
        }
        (Class::Private(word) | Class::Translated(word), Reach::Public, _) => (word, true),
        (Class::Never(word), ..) => (word, false),
    };
    let hint = if may_be_allowed {
        ", and allow_private is not set"
    } else {
        ""
    };
    Err(format!("{address} is not reached: it is {word}{hint}"))
}

fn class(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> Class {
    if METADATA_V4.contains(&address) {
        return Class::Never("a metadata service");
    }
    let found = RANGES_V4.iter().find(|(range, _)| range.contains(&address));
    found.map_or(Class::Public, |(_, class)| *class)
}

fn class_v6(address: Ipv6Addr) -> Class {
    if METADATA_V6.contains(&address) {
        return Class::Never("a metadata service");
    }
    // Before what embeds others: both would be in the range of IPv4-compatible addresses.
    match address {
        Ipv6Addr::LOCALHOST => return Class::Private("loopback"),
        Ipv6Addr::UNSPECIFIED => return Class::Never("unspecified"),
        _ => {}
    }
    if let Some((inner, word)) = embedded(address) {
        return match class_v4(inner) {
            Class::Public | Class::Translated(_) => Class::Translated(word),
            other => other,
        };
    }
    let found = RANGES_V6.iter().find(|(range, _)| range.contains(&address));
    match found {
        Some((_, class)) => *class,
        None if GLOBAL_V6.contains(&address) => Class::Public,
        None => Class::Never("reserved"),
    }
}

/// The IPv4 address inside, and what such an address is called.
fn embedded(address: Ipv6Addr) -> Option<(Ipv4Addr, &'static str)> {
    let octets = address.octets();
    let at = |index: usize| Ipv4Addr::new(octets[index], octets[index + 1], octets[index + 2], octets[index + 3]);
    let found = EMBEDDING.iter().find(|(range, ..)| range.contains(&address));
    if let Some((_, index, word)) = found {
        return Some((at(*index), word));
    }
    if TEREDO.contains(&address) {
        // The address of the client, every bit of it turned over.
        return Some((Ipv4Addr::from_bits(!at(12).to_bits()), "a Teredo address"));
    }
    // ISATAP: any network, then 5efe with or without the bit that says the address is unique.
    let is_isatap = matches!(octets[8..12], [0 | 2, 0, 0x5e, 0xfe]);
    is_isatap.then(|| (at(12), "an ISATAP address"))
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(segments: [u16; 4], length: u8) -> Ipv6Net {
    let [a, b, c, d] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), length)
}

/// Where machines of a cloud ask for their credentials.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 169, 253),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
];

const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

const RANGES_V4: [(Ipv4Net, Class); 16] = [
    (v4(0, 0, 0, 0, 8), Class::Never("unspecified")),
    (v4(10, 0, 0, 0, 8), Class::Private("private")),
    (v4(100, 64, 0, 0, 10), Class::Private("of a carrier's network")),
    (v4(127, 0, 0, 0, 8), Class::Private("loopback")),
    (v4(169, 254, 0, 0, 16), Class::Private("link-local")),
    (v4(172, 16, 0, 0, 12), Class::Private("private")),
    (v4(192, 0, 0, 0, 24), Class::Never("reserved")),
    (v4(192, 0, 2, 0, 24), Class::Never("for documentation")),
    (v4(192, 88, 99, 0, 24), Class::Never("reserved")),
    (v4(192, 168, 0, 0, 16), Class::Private("private")),
    (v4(198, 18, 0, 0, 15), Class::Never("for benchmarks")),
    (v4(198, 51, 100, 0, 24), Class::Never("for documentation")),
    (v4(203, 0, 113, 0, 24), Class::Never("for documentation")),
    (v4(224, 0, 0, 0, 4), Class::Never("multicast")),
    (v4(255, 255, 255, 255, 32), Class::Never("broadcast")),
    (v4(240, 0, 0, 0, 4), Class::Never("reserved")),
];

/// What is given to anybody.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0], 3);

const TEREDO: Ipv6Net = v6([0x2001, 0, 0, 0], 32);

/// Ranges whose addresses hold an IPv4 address, and from which octet on.
const EMBEDDING: [(Ipv6Net, usize, &str); 6] = [
    (
        Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
        12,
        "an IPv4-mapped address",
    ),
    (
        Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96),
        12,
        "an IPv4-translated address",
    ),
    (v6([0, 0, 0, 0], 96), 12, "an IPv4-compatible address"),
    (v6([0x64, 0xff9b, 0, 0], 96), 12, "an address translated by NAT64"),
    (v6([0x64, 0xff9b, 1, 0], 48), 12, "an address translated by NAT64"),
    (v6([0x2002, 0, 0, 0], 16), 2, "a 6to4 address"),
];

const RANGES_V6: [(Ipv6Net, Class); 11] = [
    (v6([0x100, 0, 0, 0], 64), Class::Never("discarded")),
    (v6([0x2001, 2, 0, 0], 48), Class::Never("for benchmarks")),
    (v6([0x2001, 0xdb8, 0, 0], 32), Class::Never("for documentation")),
    (v6([0x2001, 0x10, 0, 0], 28), Class::Never("reserved")),
    (v6([0x2001, 0x20, 0, 0], 28), Class::Never("reserved")),
    (v6([0x3fff, 0, 0, 0], 20), Class::Never("for documentation")),
    (v6([0x5f00, 0, 0, 0], 16), Class::Never("reserved")),
    (v6([0xfc00, 0, 0, 0], 7), Class::Private("unique-local")),
    (v6([0xfe80, 0, 0, 0], 10), Class::Private("link-local")),
    (v6([0xfec0, 0, 0, 0], 10), Class::Private("site-local")),
    (v6([0xff00, 0, 0, 0], 8), Class::Never("multicast")),
];

#[cfg(test)]
mod tests;
