//! URLs, and the tricks that hide where they lead.

use super::*;

#[test]
fn a_url_is_taken_apart() {
    let target = Target::parse("https://hooks.example.org:8443/a/b?c=d#e").expect("a URL");
    assert_eq!((target.host.as_str(), target.port), ("hooks.example.org", 8443));
    assert_eq!(
        (target.authority.as_str(), target.path.as_str()),
        ("hooks.example.org:8443", "/a/b?c=d")
    );
    assert_eq!(target.protection, Protection::Tls);
    let target = Target::parse("http://[::1]/").expect("a URL");
    assert_eq!(
        (target.host.as_str(), target.port, target.literal),
        ("::1", 80, Some(Ipv6Addr::LOCALHOST.into()))
    );
    let target = Target::parse("https://example.org.?x").expect("a URL");
    assert_eq!(
        (target.host.as_str(), target.port, target.path.as_str()),
        ("example.org", 443, "/?x")
    );
}

#[test]
fn a_url_that_hides_where_it_leads_is_malformed_and_not_told() {
    for url in [
        "",
        "example.org",
        "/path",
        "ftp://example.org/",
        "https:///path",
        "https://user@example.org/",
        "https://user:secret@example.org/",
        "https://example.org@127.0.0.1/",
        "https://exämple.org/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://[v1.x]/",
        "https://example.org:0/",
        "https://example.org:99999/",
        "https://example.org:x/",
        "https://%31%32%37.0.0.1/",
        "https://a b/",
        "https://127.0.0.1\\@example.org/",
        "https://exa\tmple.org/",
        "https://example.org\r\nHost: x/",
    ] {
        let told = Target::parse(url).map(|target| target.host);
        assert!(told.is_err(), "{url:?} led to {told:?}");
        assert!(!told.is_err_and(|told| told.contains("secret")), "{url}");
    }
}

#[test]
fn numbers_that_a_resolver_reads_as_addresses_are_names_here() {
    for url in [
        "https://2130706433/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://0177.0.0.1/",
        "https://localhost./",
    ] {
        assert_eq!(Target::parse(url).expect("a URL").literal, None, "{url}");
    }
}
