//! Addresses, and the tricks that hide them.

use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

use super::*;

/// The word for an address that is not reached.
fn told(address: &str, reach: Reach, protection: Protection) -> Option<String> {
    let address = address.parse().expect("an address");
    admit(address, reach, protection).err()
}

#[test]
fn public_addresses_are_reached_over_tls_alone() {
    for address in [
        "1.1.1.1",
        "93.184.215.14",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "2a00:1450::1",
    ] {
        for reach in [Reach::Public, Reach::Private] {
            assert_eq!(told(address, reach, Protection::Tls), None, "{address}");
            assert!(told(address, reach, Protection::None).is_some(), "{address}");
        }
    }
}

#[test]
fn private_addresses_are_reached_only_where_the_binding_allows_them() {
    for address in [
        "127.0.0.1",
        "127.255.255.254",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.1.1",
        "100.64.0.1",
        "100.127.255.255",
        "::1",
        "fc00::1",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "::ffff:0:192.168.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
        "2002:c0a8:101::1",
        "2001:0:1:2:3:4:80ff:fffe",
        "2600::5efe:10.0.0.1",
        "2600::200:5efe:10.0.0.1",
    ] {
        assert!(told(address, Reach::Public, Protection::Tls).is_some(), "{address}");
        assert_eq!(told(address, Reach::Private, Protection::Tls), None, "{address}");
        assert_eq!(told(address, Reach::Private, Protection::None), None, "{address}");
    }
}

#[test]
fn a_public_address_inside_another_is_where_a_router_decides() {
    for address in [
        "::ffff:1.1.1.1",
        "::1.1.1.1",
        "64:ff9b::1.1.1.1",
        "2002:101:101::1",
        "2001:0:1:2:3:4:fefe:fefe",
    ] {
        assert!(told(address, Reach::Public, Protection::Tls).is_some(), "{address}");
        assert_eq!(told(address, Reach::Private, Protection::Tls), None, "{address}");
        assert!(told(address, Reach::Private, Protection::None).is_some(), "{address}");
    }
}

#[test]
fn some_addresses_are_never_reached() {
    for address in [
        "0.0.0.0",
        "0.1.2.3",
        "255.255.255.255",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "198.18.0.1",
        "198.19.255.255",
        "192.0.0.170",
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "::",
        "ff02::1",
        "2001:db8::1",
        "3fff::1",
        "2001:2::1",
        "100::1",
        "fd00:ec2::254",
        "4000::1",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "2001:0:1:2:3:4:5601:5601",
        "5f00::1",
    ] {
        for reach in [Reach::Public, Reach::Private] {
            assert!(told(address, reach, Protection::Tls).is_some(), "{address}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_way_of_writing_an_ipv4_address_into_an_ipv6_one_is_reached(bits in any::<u32>(), prefix in any::<u64>()) {
        let inner = Ipv4Addr::from_bits(bits);
        let low = u128::from(bits);
        let forms = [
            low,
            0xffff << 32 | low,
            0xffff << 48 | low,
            0x64_ff9b << 96 | low,
            0x64_ff9b_0001 << 80 | low,
            0x2002 << 112 | low << 80 | u128::from(prefix),
            0x2001 << 112 | u128::from(prefix) << 32 & (u128::from(u64::MAX) << 32) & !(0xffff_ffff << 96) | u128::from(!bits),
            u128::from(prefix) << 64 | 0x5efe << 32 | low,
            u128::from(prefix) << 64 | 0x0200_5efe << 32 | low,
        ];
        for form in forms {
            let outer = Ipv6Addr::from_bits(form);
            prop_assert!(admit(outer.into(), Reach::Public, Protection::Tls).is_err(), "{outer} holds {inner}");
        }
    }

    #[test]
    fn what_the_binding_allows_is_never_less_than_without(bits in any::<u128>()) {
        let address = Ipv6Addr::from_bits(bits).into();
        if admit(address, Reach::Public, Protection::Tls).is_ok() {
            prop_assert!(admit(address, Reach::Private, Protection::Tls).is_ok());
        }
    }
}
