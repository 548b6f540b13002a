//! Where pages are served: the address to listen on, TLS, and the address that people type. Decides
//! which combinations are safe.

use crate::oidc::OidcConfig;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where HTTP is served, and how.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// TCP address to listen on. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where the certificate for TLS comes from; None serves without TLS.
    pub tls: Option<TlsChoice>,
    /// Address that people use, such as `https://farm.example`; None: the listening one.
    pub base: Option<String>,
    /// Address of this coordinator alone, for others of the farm that stand by; None: the base.
    pub advertise: Option<String>,
    /// Provider by which people sign in, beside the links of `tessera web`.
    pub oidc: Option<OidcConfig>,
}

impl HttpConfig {
    /// Checks that the address is safe and can be typed, before anything listens.
    pub fn check(&self) -> Result<(), AddressError> {
        Place::of(self, self.listen).map(drop)
    }
}

/// Where the certificate for TLS comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsChoice {
    /// PEM files, which are read again when they change.
    Files {
        /// Certificates, the server's first.
        certificate: PathBuf,
        /// Private key.
        key: PathBuf,
    },
    /// The farm's own authority signs one. Browsers must be told to trust the authority.
    Farm,
}

/// Why an address is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Passwords of the farm would cross a network in the clear.
    #[error(
        "--http {0} can be reached from other machines, and would be without TLS: give --http-tls \
            CERT.pem,KEY.pem (or `farm`), or --http-base https://NAME if a proxy before it has TLS"
    )]
    Clear(SocketAddr),
    /// Nobody can type the address.
    #[error("--http {0} is no address that people can type: give --http-base https://NAME:PORT")]
    Unnamed(SocketAddr),
    /// The base is not an address.
    #[error("--http-base {0:?} is not http:// or https:// and a name, with a port or without")]
    Base(String),
    /// Other coordinators would send what they pass on over plain HTTP, or nowhere.
    #[error(
        "--advertise-http {0:?} is not https:// and a name, with a port or without (http:// is for \
            this machine alone)"
    )]
    Advertised(String),
    /// Cookies and links would go over plain HTTP.
    #[error("--http-base {0:?} is plain HTTP, which is for this machine alone: give https://")]
    PlainBase(String),
}

/// The address at which people reach the pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Such as `https://farm.example:7421`, without a slash at its end.
    pub(crate) base: String,
    /// Whether browsers come over TLS, so that cookies are for TLS only.
    pub(crate) is_secure: bool,
    /// What the Host header may say.
    pub(crate) hosts: Vec<String>,
    /// Where other coordinators of the farm reach this one.
    pub(crate) advertised: String,
}

impl Place {
    /// Finds out where the pages are, once the listening address is known.
    pub(crate) fn of(config: &HttpConfig, listening: SocketAddr) -> Result<Self, AddressError> {
        let local = listening.ip().is_loopback();
        let base = match &config.base {
            Some(base) => Base::parse(base)?,
            None if listening.ip().is_unspecified() && config.tls.is_some() => {
                return Err(AddressError::Unnamed(listening));
            }
            None => Base { secure: config.tls.is_some(), authority: listening.to_string() },
        };
        if !local && config.tls.is_none() && !(config.base.is_some() && base.secure) {
            return Err(AddressError::Clear(listening));
        }
        if !base.secure && !base.is_local() {
            return Err(AddressError::PlainBase(base.text()));
        }
        let mut hosts = base.hosts();
        if local {
            let port = listening.port();
            hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}")));
            hosts.push(listening.to_string());
        }
        let advertised = match &config.advertise {
            Some(url) => Base::parse(url).map_err(|_| AddressError::Advertised(url.clone()))?,
            None => Base::parse(&base.text())?,
        };
        if !advertised.secure && !advertised.is_local() {
            return Err(AddressError::Advertised(advertised.text()));
        }
        let advertised = advertised.text();
        Ok(Self { base: base.text(), is_secure: base.secure, hosts, advertised })
    }

    /// Whether a Host header is that of the address that people use.
    pub(crate) fn is_base(&self, host: &str) -> bool {
        let is = |base: &Base| base.hosts().iter().any(|own| own.eq_ignore_ascii_case(host));
        Base::parse(&self.base).is_ok_and(|base| is(&base))
    }

    /// Returns the names of the pages' machine, for a certificate.
    pub(crate) fn names(&self) -> Vec<String> {
        let advertised = self.advertised.split_once("://").map(|(_, host)| host.to_owned());
        let hosts = self.hosts.iter().chain(&advertised);
        let mut names: Vec<String> = hosts.map(|host| without_port(host)).collect();
        names.sort();
        names.dedup();
        names
    }
}

fn without_port(host: &str) -> String {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default().to_owned(),
        None => host.split(':').next().unwrap_or_default().to_owned(),
    }
}

/// An address that people type: scheme and authority.
struct Base {
    secure: bool,
    authority: String,
}

impl Base {
    fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Base(text.to_owned());
        let uri: axum::http::Uri = text.parse().map_err(|_| wrong())?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?.as_str().to_ascii_lowercase();
        let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        match is_bare && !authority.contains('@') {
            true => Ok(Self { secure, authority }),
            false => Err(wrong()),
        }
    }

    fn text(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    fn is_local(&self) -> bool {
        let name = without_port(&self.authority);
        name == "localhost"
            || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
    }

    /// The authority as browsers write it: without the port that the scheme has anyway.
    fn hosts(&self) -> Vec<String> {
        let default = if self.secure { ":443" } else { ":80" };
        match self.authority.strip_suffix(default) {
            Some(short) => vec![short.to_owned(), self.authority.clone()],
            None => vec![self.authority.clone()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(listen: &str, tls: bool, base: Option<&str>) -> Result<Place, AddressError> {
        let listen = listen.parse().unwrap();
        let tls = tls.then_some(TlsChoice::Farm);
        let base = base.map(str::to_owned);
        Place::of(&HttpConfig { listen, tls, base, advertise: None, oidc: None }, listen)
    }

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        let local = place("127.0.0.1:7421", false, None).unwrap();
        assert_eq!((local.base.as_str(), local.is_secure), ("http://127.0.0.1:7421", false));
        assert!(local.hosts.contains(&"localhost:7421".to_owned()));
        for clear in ["0.0.0.0:7421", "192.0.2.7:7421", "[2001:db8::1]:7421"] {
            let found = place(clear, false, None);
            assert!(matches!(found, Err(AddressError::Clear(_))), "{clear} {found:?}");
            let plain = place(clear, false, Some("http://farm.example"));
            assert!(matches!(plain, Err(AddressError::Clear(_))), "{clear} {plain:?}");
        }
        let plain = place("127.0.0.1:7421", false, Some("http://farm.example"));
        assert!(matches!(plain, Err(AddressError::PlainBase(_))), "{plain:?}");
    }

    #[test]
    fn a_proxy_or_tls_opens_other_addresses() {
        let proxied = place("0.0.0.0:7421", false, Some("https://Farm.example/")).unwrap();
        assert_eq!(proxied.base, "https://farm.example");
        assert!(proxied.is_secure && proxied.hosts == ["farm.example"]);
        let own = place("192.0.2.7:7421", true, None).unwrap();
        assert_eq!((own.base.as_str(), own.is_secure), ("https://192.0.2.7:7421", true));
        assert_eq!(own.names(), ["192.0.2.7"]);
        let unnamed = place("0.0.0.0:7421", true, None);
        assert!(matches!(unnamed, Err(AddressError::Unnamed(_))), "{unnamed:?}");
        let named = place("[::]:7421", true, Some("https://farm.example:443")).unwrap();
        assert_eq!(named.hosts, ["farm.example", "farm.example:443"]);
        let six = place("[2001:db8::1]:7421", true, None).unwrap();
        assert_eq!(six.names(), ["2001:db8::1"]);
    }

    #[test]
    fn a_base_is_an_address_and_nothing_more() {
        for wrong in ["farm.example", "ftp://farm", "https://", "https://a/b", "https://u@a", ""] {
            let found = place("127.0.0.1:7421", false, Some(wrong));
            assert!(matches!(found, Err(AddressError::Base(_))), "{wrong} {found:?}");
        }
    }
}
