//! The address of a store of blobs: `s3://BUCKET[/PREFIX][?OPTIONS]`. It has no secret in it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long requests are tried again while the service is away or busy, by default.
const PATIENCE: Duration = Duration::from_secs(45);
/// Shortest and longest such time in seconds.
const PATIENCE_SECS: std::ops::RangeInclusive<u64> = 1..=600;
/// Longest name of a bucket.
const BUCKET_MAX: usize = 255;
/// Longest prefix. A key of S3 has at most 1,024 bytes.
const PREFIX_MAX: usize = 512;

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is not an address of S3.
    #[error("a place of files is `disk`, or `s3://BUCKET[/PREFIX][?OPTIONS]`")]
    Form,
    /// It has a user or a key in it.
    #[error(
        "the address of the files has a user or a key in it: give credentials by \
         --blobs-credentials or by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )]
    Secret,
    /// A name cannot be one.
    #[error("{0} of the files' address has other characters than letters, digits and `.-_`")]
    Name(&'static str),
    /// An option is not known.
    #[error(
        "the files' address has no option `{0}`; it has endpoint, region, root, \
         style, direct and patience"
    )]
    Unknown(String),
    /// An option has a value that is refused.
    #[error("option `{name}` of the files' address is {wanted}")]
    Option {
        /// Name of the option.
        name: &'static str,
        /// What it can be.
        wanted: &'static str,
    },
}

/// Who may read blobs from the service itself, with an address that is signed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direct {
    /// Everybody who may read the blob.
    On,
    /// Who is on this machine: nobody else reaches the service.
    Here,
    /// Nobody: all bytes go through the coordinator.
    Off,
}

/// Where blobs are, and how the service there is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobAddress {
    pub(crate) bucket: String,
    /// What the names of all objects begin with; empty, or without `/` at both ends.
    pub(crate) prefix: String,
    /// URL of the service; None: that of AWS.
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    /// File with the authorities that the service's certificate may be of; None: the system's.
    pub(crate) root: Option<PathBuf>,
    /// Whether the bucket's name is a part of the host's, not of the path.
    pub(crate) is_virtual: bool,
    /// How long requests are tried again while the service is away or busy.
    pub(crate) patience: Duration,
    pub(crate) direct: Direct,
}

impl BlobAddress {
    /// Returns whether a text is meant to be an address of S3.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("s3://")
    }

    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let rest = text.strip_prefix("s3://").ok_or(AddressError::Form)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        if place.contains('@') {
            return Err(AddressError::Secret);
        }
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_end_matches('/');
        if bucket.is_empty() || bucket.len() > BUCKET_MAX || !is_plain(bucket) {
            return Err(if bucket.is_empty() { AddressError::Form } else { NAME_OF_BUCKET });
        }
        let parts_are_plain = prefix.split('/').all(|part| is_plain(part) && is_name(part));
        if prefix.len() > PREFIX_MAX || !(prefix.is_empty() || parts_are_plain) {
            return Err(AddressError::Name("the prefix"));
        }
        let mut address = Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            endpoint: None,
            region: None,
            root: None,
            is_virtual: false,
            patience: PATIENCE,
            direct: Direct::On,
        };
        let (mut style, mut direct) = (None, true);
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "endpoint" => address.endpoint = Some(endpoint(value)?),
                "region" if is_plain(value) && !value.is_empty() => {
                    address.region = Some(value.to_owned());
                }
                "region" => return Err(AddressError::Name("the region")),
                "root" if !value.is_empty() => address.root = Some(PathBuf::from(value)),
                "root" => return Err(AddressError::Option { name: "root", wanted: "a file" }),
                "style" if value == "path" || value == "host" => style = Some(value == "host"),
                "style" => {
                    return Err(AddressError::Option { name: "style", wanted: "path or host" });
                }
                "direct" if value == "on" || value == "off" => direct = value == "on",
                "direct" => {
                    return Err(AddressError::Option { name: "direct", wanted: "on or off" });
                }
                "patience" => address.patience = patience(value)?,
                _ => return Err(AddressError::Unknown(name.chars().take(40).collect())),
            }
        }
        // A bucket with a dot has no certificate of AWS as a part of the host's name.
        let usual = address.endpoint.is_none() && !address.bucket.contains('.');
        address.is_virtual = style.unwrap_or(usual);
        let is_plain = address.endpoint.as_ref().is_some_and(|url| url.starts_with("http://"));
        address.direct = match (direct, is_plain) {
            (false, _) => Direct::Off,
            (true, true) => Direct::Here,
            (true, false) => Direct::On,
        };
        Ok(address)
    }
}

/// The address without options.
impl std::fmt::Display for BlobAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        match &self.endpoint {
            Some(endpoint) => write!(f, " at {endpoint}"),
            None => Ok(()),
        }
    }
}

const NAME_OF_BUCKET: AddressError = AddressError::Name("the bucket");

fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

/// Whether a part of a prefix is a name and not a way.
fn is_name(part: &str) -> bool {
    !matches!(part, "" | "." | "..")
}

fn patience(value: &str) -> Result<Duration, AddressError> {
    let secs = value.parse().ok().filter(|secs| PATIENCE_SECS.contains(secs));
    let wanted = "a number of seconds from 1 to 600";
    secs.map(Duration::from_secs).ok_or(AddressError::Option { name: "patience", wanted })
}

/// Reads the URL of a service: TLS, or without it on this machine.
fn endpoint(value: &str) -> Result<String, AddressError> {
    let wanted = "a URL, as https://HOST[:PORT]; http:// only for this machine";
    let refused = AddressError::Option { name: "endpoint", wanted };
    let value = value.trim_end_matches('/');
    let (plain, host) = match (value.strip_prefix("https://"), value.strip_prefix("http://")) {
        (Some(host), _) => (false, host),
        (None, Some(host)) => (true, host),
        (None, None) => return Err(refused),
    };
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if host.is_empty() || !host.chars().all(is_fine) || plain && !is_here(host) {
        return Err(refused);
    }
    Ok(value.to_owned())
}

/// Whether a host, with or without a port, is this machine.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_bucket_a_prefix_and_options() {
        let plain = BlobAddress::parse("s3://film").unwrap();
        assert_eq!((plain.to_string(), plain.is_virtual), ("s3://film".into(), true));
        let text = "s3://film/farms/one/?endpoint=https://s3.example:9000/&region=eu-1&root=/ca";
        let address = BlobAddress::parse(text).unwrap();
        assert_eq!(address.to_string(), "s3://film/farms/one at https://s3.example:9000");
        assert_eq!((address.region.as_deref(), address.is_virtual), (Some("eu-1"), false));
        assert_eq!(address.root, Some(PathBuf::from("/ca")));
        for here in ["http://127.0.0.1:8333", "http://localhost", "http://[::1]:8333"] {
            let text = format!("s3://film?endpoint={here}&style=host");
            assert!(BlobAddress::parse(&text).unwrap().is_virtual, "{here}");
        }
        assert!(!BlobAddress::parse("s3://a.film").unwrap().is_virtual);
        let direct = |text| BlobAddress::parse(text).unwrap().direct;
        assert_eq!(direct("s3://film"), Direct::On);
        assert_eq!(direct("s3://film?direct=off"), Direct::Off);
        assert_eq!(direct("s3://film?endpoint=http://127.0.0.1:1"), Direct::Here);
    }

    #[test]
    fn malformed_addresses_are_refused() {
        for text in [
            "gs://film",
            "s3://",
            "s3:///x",
            "s3://key:secret@film",
            "s3://fi lm",
            "s3://film/../x",
            "s3://film/a//b",
            "s3://film/a%2fb",
            "s3://film?endpoint=http://192.0.2.1",
            "s3://film?endpoint=https://",
            "s3://film?endpoint=ftp://x",
            "s3://film?endpoint=https://key@host",
            "s3://film?endpoint=https://host/path?x",
            "s3://film?region=",
            "s3://film?region=e u",
            "s3://film?root=",
            "s3://film?style=x",
            "s3://film?patience=0",
            "s3://film?direct=maybe",
            "s3://film?secret=x",
        ] {
            let error = BlobAddress::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret@") && !error.is_empty(), "{text}: {error}");
        }
    }
}
