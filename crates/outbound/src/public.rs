//! Which IP addresses are public, that is, globally reachable on the internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The blocked addresses of the SSRF guard: IPv4 networks that are not public, with the length of their prefix (IANA's special-purpose
/// registry, multicast, reserved, and networks that clouds use internally). Most metadata services are in 169.254.0.0/16; Alibaba's is in
/// 100.64.0.0/10, and that of Oracle's older cloud in 192.0.0.0/24.
const PRIVATE_V4: [([u8; 4], u8); 21] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    // IBM Cloud: services of its private network.
    ([161, 26, 0, 0], 16),
    ([166, 8, 0, 0], 14),
    // Azure: the wire server, with the extensions and certificates of a machine.
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 31, 196, 0], 24),
    ([192, 52, 193, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([192, 175, 48, 0], 24),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// The blocked IPv6 addresses of the SSRF guard: networks inside the global unicast range that are not public. Addresses outside that
/// range are blocked too.
const PRIVATE_V6: [([u16; 8], u8); 5] = [
    // Protocol assignments: Teredo, benchmarking, ORCHID and similar.
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    // 6to4 carries any IPv4 address.
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

const GLOBAL_V6: ([u16; 8], u8) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
const NAT64: ([u16; 8], u8) = ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

/// Whether an address is public. An IPv4-mapped or NAT64 address is if its IPv4 address is. The other forms that embed an IPv4 address are not:
/// tunnels deliver them to any network.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match translated_v4(address) {
            Some(translated) => is_public_v4(translated),
            None => is_public_v6(address) && tunnelled_v4(address).is_none(),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(network, prefix): &([u8; 4], u8)| {
        contains(
            IpAddr::V4(Ipv4Addr::from(*network)),
            *prefix,
            IpAddr::V4(address),
        )
    };
    !PRIVATE_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let within = |(network, prefix): &([u16; 8], u8)| {
        contains(
            IpAddr::V6(Ipv6Addr::from(*network)),
            *prefix,
            IpAddr::V6(address),
        )
    };
    within(&GLOBAL_V6) && !PRIVATE_V6.iter().any(within)
}

/// Returns the IPv4 address that an IPv6 address embeds, whatever the form.
pub(crate) fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    translated_v4(address).or_else(|| tunnelled_v4(address))
}

/// Returns the IPv4 address of a mapped or NAT64 address.
fn translated_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    address.to_ipv4_mapped().or_else(|| {
        let (network, prefix) = NAT64;
        let is_nat64 = contains(
            IpAddr::V6(Ipv6Addr::from(network)),
            prefix,
            IpAddr::V6(address),
        );
        is_nat64.then(|| v4(address, 6))
    })
}

/// Returns the IPv4 address of a 6to4 or ISATAP address.
fn tunnelled_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0x2002, ..] => Some(v4(address, 1)),
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Some(v4(address, 6)),
        _ => None,
    }
}

/// Returns the IPv4 address in two segments.
fn v4(address: Ipv6Addr, segment: usize) -> Ipv4Addr {
    let octets = address.octets();
    let at = |index: usize| octets[2 * segment + index];
    Ipv4Addr::new(at(0), at(1), at(2), at(3))
}

/// Whether a network contains an address; never for another address family.
pub(crate) fn contains(network: IpAddr, prefix: u8, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let difference = u32::from(network) ^ u32::from(address);
            difference.leading_zeros() >= u32::from(prefix)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let difference = u128::from(network) ^ u128::from(address);
            difference.leading_zeros() >= u32::from(prefix)
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &[&str] = &[
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "161.25.255.255",
        "161.27.0.0",
        "166.7.255.255",
        "166.12.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2620:4f:8001::1",
        "2a00:1450:4001::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ];

    const PRIVATE: &[&str] = &[
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "161.26.0.10",
        "166.8.0.1",
        "166.11.255.255",
        "168.63.129.16",
        "169.254.0.23",
        "169.254.42.42",
        "169.254.169.254",
        "169.254.170.2",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "192.31.196.1",
        "192.52.193.1",
        "192.88.99.1",
        "192.168.1.1",
        "192.175.48.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "::ffff:168.63.129.16",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.1.2.3",
        "64:ff9b::168.63.129.16",
        "64:ff9b:1::10.1.2.3",
        "64:ff9b:1::1",
        "100::1",
        "fe80::1",
        "fec0::1",
        "fc00::1",
        "fd00:42::42",
        "fd00:ec2::23",
        "fd00:ec2::254",
        "fd20:ce::254",
        "ff02::1",
        "2001::1",
        "2001:db8::1",
        "2001:10::1",
        "2001:470:1:2:0:5efe:10.0.0.1",
        "2001:470:1:2:200:5efe:8.8.8.8",
        "2002:7f00:1::1",
        "2002:808:808::1",
        "2620:4f:8000::1",
        "3fff::1",
        "5f00::1",
    ];

    #[test]
    fn is_public_accepts_only_public_addresses() {
        for text in PUBLIC {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in PRIVATE {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
