//! Options of `coordinator` about HTTP.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use tessera_http::TlsChoice;

/// Where the API and the pages are.
#[derive(Clone, Debug, Args)]
pub struct HttpArgs {
    /// TCP address of the API and the pages, or off; other addresses than this machine's own need
    /// --http-tls, or --http-base behind a proxy [default: 127.0.0.1:7421]
    #[arg(
        long,
        value_name = "ADDR:PORT",
        env = "TESSERA_HTTP",
        value_parser = address,
        help_heading = "HTTP",
    )]
    pub http: Option<HttpAddress>,
    /// Certificate for TLS: two PEM files, read again when they change, or farm, which is signed
    /// by the farm's own authority
    #[arg(
        long,
        value_name = "CERT,KEY",
        env = "TESSERA_HTTP_TLS",
        value_parser = tls,
        help_heading = "HTTP",
    )]
    pub http_tls: Option<TlsChoice>,
    /// Address that people type: https:// and a name, with a port or without [default: --http]
    #[arg(long, value_name = "URL", env = "TESSERA_HTTP_BASE", help_heading = "HTTP")]
    pub http_base: Option<String>,
    /// Own address of this coordinator, where others that stand by pass requests on while it leads;
    /// for several behind one address that people type [default: --http-base]
    #[arg(long, value_name = "URL", env = "TESSERA_ADVERTISE_HTTP", help_heading = "HTTP")]
    pub advertise_http: Option<String>,
}

/// Value of `--http`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpAddress {
    /// Neither API nor pages.
    Off,
    /// An address to listen on.
    At(SocketAddr),
}

fn address(text: &str) -> Result<HttpAddress, String> {
    if text == "off" {
        return Ok(HttpAddress::Off);
    }
    text.parse().map(HttpAddress::At).map_err(|_| {
        format!("`{text}` is neither an address and a port, such as 127.0.0.1:7421, nor off")
    })
}

fn tls(text: &str) -> Result<TlsChoice, String> {
    if text == "farm" {
        return Ok(TlsChoice::Farm);
    }
    match text.split_once(',') {
        Some((certificate, key)) if !certificate.is_empty() && !key.is_empty() => {
            Ok(TlsChoice::Files {
                certificate: PathBuf::from(certificate),
                key: PathBuf::from(key),
            })
        }
        _ => Err(format!("`{text}` is neither two PEM files, CERT,KEY, nor farm")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_answered_with_right_ones() {
        assert_eq!(address("off"), Ok(HttpAddress::Off));
        assert!(matches!(address("[::1]:7421"), Ok(HttpAddress::At(_))));
        assert!(address("7421").unwrap_err().contains("127.0.0.1:7421"));
        assert_eq!(tls("farm"), Ok(TlsChoice::Farm));
        assert!(matches!(tls("a.pem,b.pem"), Ok(TlsChoice::Files { .. })));
        for wrong in ["a.pem", "a.pem,", ",b.pem", ""] {
            assert!(tls(wrong).unwrap_err().contains("CERT,KEY"), "{wrong}");
        }
    }
}
