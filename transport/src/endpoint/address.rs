//! Addresses of a coordinator as people write them: `HOST:PORT`, `HOST`, `[IPV6]:PORT`. Resolves
//! names; opens no socket.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Port of a coordinator if none is given.
pub const DEFAULT_PORT: u16 = 7420;
/// Longest host name in bytes (RFC 1035 allows 253).
const HOST_MAX: usize = 253;

/// A host, by name or number, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    host: String,
    port: u16,
}

/// Why a text is not an address, or why an address cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text does not have the form.
    #[error(
        "`{text}` is not an address ({problem}); write HOST:PORT, such as farm.example:7420 or \
            [::1]:7420"
    )]
    Form {
        /// Text that was given.
        text: String,
        /// Description of the fault.
        problem: &'static str,
    },
    /// The name has no address.
    #[error("cannot find the host `{host}`")]
    Resolve {
        /// Name of the host.
        host: String,
        /// Error of the resolver; None if it knows the name but has no address for it.
        #[source]
        source: Option<std::io::Error>,
    },
}

impl Address {
    /// Returns the host without its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the socket addresses of this address, at least one, in the resolver's order.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, AddressError> {
        let failed = |source| AddressError::Resolve { host: self.host.clone(), source };
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let addresses: Vec<SocketAddr> = found.map_err(|error| failed(Some(error)))?.collect();
        if addresses.is_empty() { Err(failed(None)) } else { Ok(addresses) }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: address.port() }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = |problem| AddressError::Form { text: text.to_owned(), problem };
        let (host, port) = split(text).map_err(wrong)?;
        let port = match port {
            None => DEFAULT_PORT,
            Some(digits)
                if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                digits.parse().map_err(|_| wrong("the port is above 65535"))?
            }
            Some(_) => return Err(wrong("the port is not a number")),
        };
        if port == 0 {
            return Err(wrong("port 0 cannot be dialled"));
        }
        if host.is_empty() || host.len() > HOST_MAX {
            return Err(wrong("the host is missing or too long"));
        }
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
        if host.parse::<IpAddr>().is_err() && !host.chars().all(plain) {
            return Err(wrong("the host holds a character that no host name has"));
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

fn split(text: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("a bracket is not closed")?;
        if host.parse::<Ipv6Addr>().is_err() {
            return Err("no IPv6 address stands between the brackets");
        }
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("something other than a port follows the bracket"),
        };
    }
    match text.split_once(':') {
        None => Ok((text, None)),
        Some((_, rest)) if rest.contains(':') => match text.parse::<Ipv6Addr>() {
            Ok(_) => Ok((text, None)),
            Err(_) => Err("it has more than one colon; an IPv6 address stands in brackets"),
        },
        Some((host, port)) => Ok((host, Some(port))),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_forms_are_read() {
        for (text, shown) in [
            ("farm:7000", "farm:7000"),
            ("farm", "farm:7420"),
            ("10.0.0.7:1", "10.0.0.7:1"),
            ("[::1]:7420", "[::1]:7420"),
            ("::1", "[::1]:7420"),
            ("[fe80::2]", "[fe80::2]:7420"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn other_forms_are_named_in_the_error() {
        for (text, part) in [
            ("", "missing"),
            (":7420", "missing"),
            ("farm:", "not a number"),
            ("farm:http", "not a number"),
            ("farm:70000", "above 65535"),
            ("farm:0", "port 0"),
            ("a:b:c", "more than one colon"),
            ("[::1", "not closed"),
            ("[farm]:1", "no IPv6"),
            ("[::1]7", "follows the bracket"),
            ("http//farm:1", "no host name has"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
