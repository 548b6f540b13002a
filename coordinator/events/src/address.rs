//! Which hosts and addresses may be sent to. Addresses that reach this machine, its network segment
//! or a cloud's metadata are refused unless the file lists them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Metadata services of clouds outside the link-local networks: AWS and Google by IPv6, Alibaba,
/// and Azure's wire server.
const METADATA: [IpAddr; 4] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

/// A line of `allow`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    what: Listed,
    /// None allows every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Listed {
    /// A name, in small letters.
    Host(String),
    /// The addresses that share so many first bits.
    Net(IpAddr, u8),
}

/// What the file lists in `allow`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allow(Vec<Entry>);

impl Allow {
    /// Reads the lines. The error is the line that is none.
    pub(crate) fn parse(lines: &[String]) -> Result<Self, String> {
        lines.iter().map(|line| entry(line).ok_or(line.clone())).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a host is listed as it is written: a name, or an address.
    pub(crate) fn lists_host(&self, host: &str, port: u16) -> bool {
        let name = host.to_ascii_lowercase();
        match bare(host).parse::<IpAddr>() {
            Ok(address) => self.lists_address(address, port),
            Err(_) => self.0.iter().any(|entry| {
                entry.has_port(port) && matches!(&entry.what, Listed::Host(host) if *host == name)
            }),
        }
    }

    fn lists_address(&self, address: IpAddr, port: u16) -> bool {
        let faces = faces(address);
        self.0.iter().any(|entry| match entry.what {
            Listed::Net(net, bits) => {
                entry.has_port(port) && faces.iter().any(|face| is_in(*face, net, bits))
            }
            Listed::Host(_) => false,
        })
    }

    /// Checks an address that a name stands for. The error says why it is refused. That the name is
    /// listed does not help: whoever answers for the name could make it any address.
    pub(crate) fn check(&self, to: SocketAddr) -> Result<(), String> {
        let found = faces(to.ip()).into_iter().find_map(refusal);
        let Some(why) = found.filter(|_| !self.lists_address(to.ip(), to.port())) else {
            return Ok(());
        };
        Err(format!("{} is {why}; if it is meant, list it in `allow`", to.ip()))
    }
}

impl Entry {
    fn has_port(&self, port: u16) -> bool {
        self.port.is_none_or(|listed| listed == port)
    }
}

/// An address without the brackets of IPv6.
pub(crate) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

fn entry(line: &str) -> Option<Entry> {
    let whole = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    if let Ok(to) = line.parse::<SocketAddr>() {
        let what = Listed::Net(to.ip(), whole(to.ip()));
        return Some(Entry { what, port: Some(to.port()) });
    }
    if let Ok(address) = bare(line).parse::<IpAddr>() {
        return Some(Entry { what: Listed::Net(address, whole(address)), port: None });
    }
    if let Some((address, bits)) = line.split_once('/') {
        let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
        let what = (bits <= whole(address)).then_some(Listed::Net(address, bits))?;
        return Some(Entry { what, port: None });
    }
    let (host, port) = match line.split_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (line, None),
    };
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_name = !host.is_empty() && host.len() <= 253 && host.chars().all(is_of_name);
    is_name.then(|| Entry { what: Listed::Host(host.to_ascii_lowercase()), port })
}

fn is_in(address: IpAddr, net: IpAddr, bits: u8) -> bool {
    let same = |one: u128, other: u128, width: u32| {
        let shift = width - u32::from(bits).min(width);
        one.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
    };
    match (address, net) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            same(one.to_bits().into(), other.to_bits().into(), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => same(one.to_bits(), other.to_bits(), 128),
        _ => false,
    }
}

/// An address, and the IPv4 address that it stands for: mapped, compatible, translated (NAT64) or
/// tunnelled (6to4).
fn faces(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(six) = address else { return vec![address] };
    let [a, b, c, d, e, f, g, h] = six.segments();
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
    };
    let embedded = match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, ..) => four(g, h),
        (0, 0, 0, 0, 0, 0) if g != 0 => four(g, h),
        (0x2002, ..) => four(b, c),
        _ => None,
    };
    std::iter::once(address).chain(embedded).collect()
}

/// Says why an address is refused unless it is listed; None for one that is not.
fn refusal(address: IpAddr) -> Option<&'static str> {
    if METADATA.contains(&address) {
        return Some("a cloud's metadata service");
    }
    match address {
        IpAddr::V4(four) if four.octets()[0] == 0 => Some("an unspecified address"),
        IpAddr::V4(four) if four.octets()[0] >= 240 => Some("a reserved or broadcast address"),
        IpAddr::V4(four) if four.is_loopback() => Some("a loopback address"),
        IpAddr::V4(four) if four.is_link_local() => {
            Some("a link-local address, as of a cloud's metadata service")
        }
        IpAddr::V4(four) if four.is_multicast() => Some("a multicast address"),
        IpAddr::V6(six) if six.is_unspecified() => Some("an unspecified address"),
        IpAddr::V6(six) if six.is_loopback() => Some("a loopback address"),
        IpAddr::V6(six) if six.segments()[0] & 0xffc0 == 0xfe80 => Some("a link-local address"),
        IpAddr::V6(six) if six.is_multicast() => Some("a multicast address"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(lines: &[&str]) -> Allow {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        Allow::parse(&lines).unwrap()
    }

    fn may(allow: &Allow, address: &str) -> bool {
        allow.check(SocketAddr::new(address.parse().unwrap(), 80)).is_ok()
    }

    #[test]
    fn addresses_of_this_machine_and_metadata_are_refused() {
        let none = Allow::default();
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.0.1",
            "224.0.0.1",
            "239.1.1.1",
            "255.255.255.255",
            "240.0.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::169.254.169.254",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
        ] {
            assert!(!may(&none, address), "{address}");
        }
        for address in [
            "192.0.2.7",
            "10.0.0.5",
            "172.16.1.1",
            "192.168.1.1",
            "100.64.0.1",
            "fd00::1",
            "2001:db8::1",
            "::ffff:10.0.0.5",
            "64:ff9b::10.0.0.5",
            "fec0::1",
        ] {
            assert!(may(&none, address), "{address}");
        }
    }

    #[test]
    fn what_is_listed_is_allowed_and_nothing_beside_it() {
        let listed = allow(&["127.0.0.1:80", "::1", "169.254.1.0/24", "fe80::/16"]);
        for address in ["127.0.0.1", "::ffff:127.0.0.1", "::1", "169.254.1.9", "fe80::7"] {
            assert!(may(&listed, address), "{address}");
        }
        for address in ["127.0.0.2", "169.254.2.9", "169.254.169.254", "fe81::1"] {
            assert!(!may(&listed, address), "{address}");
        }
        let to = |text: &str| listed.check(text.parse().unwrap());
        assert!(to("127.0.0.1:81").is_err(), "another port");
        assert!(to("[::1]:81").is_ok(), "any port");
    }

    #[test]
    fn a_listed_name_does_not_allow_what_it_may_stand_for() {
        let listed = allow(&["hooks.example.org", "127.0.0.1:9000", "10.0.0.0/8"]);
        assert!(listed.lists_host("Hooks.Example.org", 80));
        assert!(listed.lists_host("127.0.0.1", 9000) && !listed.lists_host("127.0.0.1", 80));
        assert!(listed.lists_host("10.7.7.7", 1) && !listed.lists_host("example.org", 80));
        assert!(!may(&listed, "127.0.0.1"));
    }

    #[test]
    fn lines_that_are_no_hosts_are_refused() {
        for line in ["", "a b", "http://x", "10.0.0.0/33", "::/129", "x:y", "x:99999", "/8", "[x"] {
            assert_eq!(Allow::parse(&[line.to_owned()]), Err(line.to_owned()));
        }
    }
}
