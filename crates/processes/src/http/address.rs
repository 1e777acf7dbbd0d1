//! Kinds of addresses that are not public.
//!
//! Every address that is not plainly public is refused unless the operator lists it. A list of the public ranges would
//! be shorter, but a refusal could then not name the kind of the address.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The kind of an address that is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// This machine.
    Loopback,
    /// A private network, including shared carrier networks.
    Private,
    /// The local link. Clouds serve the keys of their instances here.
    LinkLocal,
    /// A cloud's service for its own machines, under an address that looks public.
    Metadata,
    /// IPv6 with an IPv4 address inside, which would bypass the rules for IPv4.
    Embedded,
    /// Not the address of one machine: unspecified, multicast, documentation, benchmarks, reserved.
    Special,
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud's metadata address",
            Self::Embedded => "an IPv6 address with an IPv4 address inside",
            Self::Special => "not the address of a public host",
        })
    }
}

impl AddressKind {
    /// The kind of an address; `None` if it is public.
    pub(super) fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// Whether a listed name may resolve to an address of this kind. Addresses of the other kinds have to be listed
    /// themselves: the owner of a name server must not be able to turn a listed name into a cloud's keys.
    pub(super) fn is_a_names_business(self) -> bool {
        match self {
            Self::Loopback | Self::Private => true,
            Self::LinkLocal | Self::Metadata | Self::Embedded | Self::Special => false,
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Option<AddressKind> {
    match address.octets() {
        [127, ..] => Some(AddressKind::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => {
            Some(AddressKind::Private)
        }
        [169, 254, ..] => Some(AddressKind::LinkLocal),
        [168, 63, 129, 16] => Some(AddressKind::Metadata),
        [0, ..] | [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => {
            Some(AddressKind::Special)
        }
        [198, 51, 100, _] | [203, 0, 113, _] | [224..=255, ..] => Some(AddressKind::Special),
        _ => None,
    }
}

fn of_v6(address: Ipv6Addr) -> Option<AddressKind> {
    // `::ffff:a.b.c.d` reaches the IPv4 host itself, so it has the kind of that host.
    if let Some(inside) = address.to_ipv4_mapped() {
        return of_v4(inside);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(AddressKind::Loopback),
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(AddressKind::Special),
        [0, 0, 0, 0, 0, 0, ..] | [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0, ..] => {
            Some(AddressKind::Embedded)
        }
        [0xfc00..=0xfdff, ..] => Some(AddressKind::Private),
        [0xfe80..=0xfebf, ..] => Some(AddressKind::LinkLocal),
        [0x2001, 1..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some(AddressKind::Special),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(AddressKind::Special),
    }
}

#[cfg(test)]
mod tests {
    use super::AddressKind::{self, Embedded, LinkLocal, Loopback, Metadata, Private, Special};

    #[test]
    fn only_public_addresses_have_no_kind() {
        let check = |texts: &[&str], expected: Option<AddressKind>| {
            for text in texts {
                assert_eq!(AddressKind::of(text.parse().unwrap()), expected, "{text}");
            }
        };
        check(
            &["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1"],
            Some(Loopback),
        );
        check(
            &[
                "10.0.0.1",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.1.1",
                "100.64.0.1",
            ],
            Some(Private),
        );
        check(
            &[
                "100.127.255.255",
                "fc00::1",
                "fd00:ec2::254",
                "::ffff:10.1.2.3",
            ],
            Some(Private),
        );
        check(
            &[
                "169.254.169.254",
                "fe80::1",
                "febf::1",
                "::ffff:169.254.169.254",
            ],
            Some(LinkLocal),
        );
        check(&["168.63.129.16", "::ffff:168.63.129.16"], Some(Metadata));
        check(
            &[
                "64:ff9b::7f00:1",
                "64:ff9b:1::1",
                "2002:7f00:1::",
                "2001::1",
                "::127.0.0.1",
            ],
            Some(Embedded),
        );
        check(
            &[
                "0.0.0.0",
                "0.1.2.3",
                "192.0.0.192",
                "192.0.2.1",
                "192.88.99.1",
                "198.18.0.1",
            ],
            Some(Special),
        );
        check(
            &[
                "198.19.255.255",
                "198.51.100.7",
                "203.0.113.9",
                "224.0.0.1",
                "240.0.0.1",
            ],
            Some(Special),
        );
        check(
            &[
                "255.255.255.255",
                "::",
                "ff02::1",
                "2001:db8::1",
                "2001:20::1",
                "3fff::1",
            ],
            Some(Special),
        );
        check(&["100::1", "fec0::1", "4000::1", "5f00::1"], Some(Special));
        check(
            &[
                "1.1.1.1",
                "100.63.255.255",
                "100.128.0.0",
                "172.32.0.1",
                "168.63.129.17",
            ],
            None,
        );
        check(
            &[
                "198.17.0.1",
                "223.255.255.255",
                "2606:4700::1111",
                "2001:4860:4860::8888",
            ],
            None,
        );
        check(&["::ffff:8.8.8.8"], None);
    }
}
