//! Where a farm has its coordinator, as people write it: `HOST:PORT`, `HOST`, `[IPV6]:PORT`, or
//! several of them between commas, of which one leads. Resolves names; opens no socket.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Port of a coordinator if none is given.
pub const DEFAULT_PORT: u16 = 7420;
/// Longest host name in bytes (RFC 1035 allows 253).
const HOST_MAX: usize = 253;
/// Most places that an address names.
const PLACES_MAX: usize = 8;
/// Longest address in bytes: its places, with a port and two brackets each.
pub(crate) const ADDRESS_MAX: usize = PLACES_MAX * (HOST_MAX + 9);

/// The places at which a farm's coordinator may be: one, or several in the order in which they are
/// tried.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// At least one.
    places: Vec<Place>,
}

/// A host, by name or number, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    host: String,
    port: u16,
}

/// Why a text is not an address, or why an address cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text does not have the form.
    #[error(
        "`{text}` is not an address ({problem}); write HOST:PORT, such as farm.example:7420 or \
            [::1]:7420, or several between commas"
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
    /// Returns the places one by one, at least one.
    pub fn each(&self) -> impl ExactSizeIterator<Item = Self> + '_ {
        self.places.iter().map(|place| Self { places: vec![place.clone()] })
    }

    /// Returns the socket addresses of this address, at least one, place by place and in the
    /// resolver's order. Places whose names cannot be resolved are left out if there is another.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, AddressError> {
        let mut found = Vec::new();
        let mut failed = None;
        for place in &self.places {
            match place.resolve().await {
                Ok(addresses) => found.extend(addresses),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }
}

impl Place {
    async fn resolve(&self) -> Result<Vec<SocketAddr>, AddressError> {
        let failed = |source| AddressError::Resolve { host: self.host.clone(), source };
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let addresses: Vec<SocketAddr> = found.map_err(|error| failed(Some(error)))?.collect();
        if addresses.is_empty() { Err(failed(None)) } else { Ok(addresses) }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self { places: vec![Place { host: address.ip().to_string(), port: address.port() }] }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = |problem| AddressError::Form { text: text.to_owned(), problem };
        if text.split(',').count() > PLACES_MAX {
            return Err(wrong("it names more than eight places"));
        }
        let places: Result<Vec<Place>, _> =
            text.split(',').map(|part| place(part.trim())).collect();
        let places = places.map_err(wrong)?;
        match (1..places.len()).any(|index| places[..index].contains(&places[index])) {
            true => Err(wrong("it names a place twice")),
            false => Ok(Self { places }),
        }
    }
}

fn place(text: &str) -> Result<Place, &'static str> {
    let (host, port) = split(text)?;
    let port = match port {
        None => DEFAULT_PORT,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map_err(|_| "the port is above 65535")?
        }
        Some(_) => return Err("the port is not a number"),
    };
    if port == 0 {
        return Err("port 0 cannot be dialled");
    }
    if host.is_empty() || host.len() > HOST_MAX {
        return Err("the host is missing or too long");
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    if host.parse::<IpAddr>().is_err() && !host.chars().all(plain) {
        return Err("the host holds a character that no host name has");
    }
    Ok(Place { host: host.to_owned(), port })
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
        for (index, Place { host, port }) in self.places.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match host.contains(':') {
                true => write!(f, "{comma}[{host}]:{port}")?,
                false => write!(f, "{comma}{host}:{port}")?,
            }
        }
        Ok(())
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
            ("a,b:1, [::1]:2", "a:7420,b:1,[::1]:2"),
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
            ("a,", "missing"),
            ("a,b,a:7420", "twice"),
            ("a,b,c,d,e,f,g,h,i", "more than eight"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[tokio::test]
    async fn a_name_that_is_not_found_does_not_hide_the_others() {
        let nobody = "nobody.invalid";
        let both: Address = format!("{nobody},127.0.0.1:5").parse().unwrap();
        assert_eq!(both.resolve().await.unwrap(), ["127.0.0.1:5".parse().unwrap()]);
        let error = nobody.parse::<Address>().unwrap().resolve().await.unwrap_err();
        assert!(matches!(error, AddressError::Resolve { host, .. } if host == nobody));
    }
}
