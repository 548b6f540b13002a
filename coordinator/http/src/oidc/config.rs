//! Settings of the provider, and which of them are safe. Reads no file.

use axum::http::Uri;
use std::collections::BTreeMap;
use std::net::IpAddr;
use tessera_protocol::client::Role;

/// Longest issuer and client id, in bytes.
const TEXT_MAX: usize = 255;

/// An OpenID Connect provider, and what its groups may do.
#[derive(Clone, PartialEq, Eq)]
pub struct OidcConfig {
    /// Address of the provider, letter by letter as its tokens have it.
    pub issuer: String,
    /// Name under which the provider knows this farm.
    pub client_id: String,
    /// Secret that goes with it; None for a public client.
    pub secret: Option<String>,
    /// Claim with the groups of a person.
    pub groups: String,
    /// Role of each group. Of several, the highest counts.
    pub roles: BTreeMap<String, Role>,
}

impl std::fmt::Debug for OidcConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { issuer, client_id, groups, roles, .. } = self;
        write!(f, "OidcConfig({issuer} as {client_id}, {groups}: {roles:?}, secret hidden)")
    }
}

/// Why a provider is not used.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// Tokens would cross a network in the clear.
    #[error(
        "--oidc {0:?} is not https:// and a name; plain http:// is for this machine's own \
            addresses alone"
    )]
    Issuer(String),
    /// The client id cannot be one.
    #[error("--oidc-client-id is not 1 to {TEXT_MAX} bytes")]
    Client,
    /// The secret is empty or has several lines.
    #[error("--oidc-secret-file has no secret: it has one line with it")]
    Secret,
    /// The claim has no name.
    #[error("--oidc-groups is empty: it names a claim")]
    Groups,
    /// Nobody could sign in.
    #[error("--oidc needs a group that has a role: --oidc-role GROUP=ROLE")]
    Roles,
    /// People cannot have this role.
    #[error("--oidc-role {0}=node: people are viewer, artist, operator or admin")]
    Node(String),
    /// No certificate could be checked.
    #[error(
        "this machine has no certificates of authorities, by which {0} could be known; install \
            ca-certificates, or name a PEM file in SSL_CERT_FILE"
    )]
    Roots(String),
    /// The system has no random numbers.
    #[error("no random numbers for sign-ins")]
    Random(#[source] std::io::Error),
}

impl OidcConfig {
    /// Checks that the settings are safe and let somebody in.
    pub fn check(&self) -> Result<(), OidcError> {
        if !self.is_safe() || self.issuer.len() > TEXT_MAX {
            return Err(OidcError::Issuer(self.issuer.clone()));
        }
        if !(1..=TEXT_MAX).contains(&self.client_id.len()) {
            return Err(OidcError::Client);
        }
        let is_secret = |text: &String| !text.is_empty() && !text.contains(char::is_control);
        if !self.secret.as_ref().is_none_or(is_secret) {
            return Err(OidcError::Secret);
        }
        if self.groups.is_empty() {
            return Err(OidcError::Groups);
        }
        if let Some((group, _)) = self.roles.iter().find(|(_, role)| **role == Role::Node) {
            return Err(OidcError::Node(group.clone()));
        }
        match self.roles.is_empty() {
            true => Err(OidcError::Roles),
            false => Ok(()),
        }
    }

    /// The host of the provider, with a port if it is not the usual one.
    pub(crate) fn host(&self) -> &str {
        let rest = self.issuer.split_once("://").map_or(self.issuer.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest)
    }

    /// Whether the provider is on this machine and without TLS.
    pub(crate) fn is_local(&self) -> bool {
        self.issuer.starts_with("http://")
    }

    fn is_safe(&self) -> bool {
        let Ok(uri) = self.issuer.parse::<Uri>() else { return false };
        let is_plain = uri.query().is_none()
            && !self.issuer.contains('#')
            && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        is_plain && is_allowed(&uri, true)
    }
}

/// Whether an address may be asked: over TLS, or on this machine where that is allowed.
pub(crate) fn is_allowed(uri: &Uri, local: bool) -> bool {
    let Some(host) = uri.host() else { return false };
    match uri.scheme_str() {
        Some("https") => true,
        Some("http") => local && is_loopback(host),
        _ => false,
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
pub(crate) fn example() -> OidcConfig {
    let roles =
        [("artists", Role::Artist), ("td", Role::Operator), ("/render/admins", Role::Admin)];
    OidcConfig {
        issuer: "https://id.example/realms/studio".into(),
        client_id: "tessera".into(),
        secret: Some("hidden".into()),
        groups: "groups".into(),
        roles: roles.map(|(group, role)| (group.to_owned(), role)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued(issuer: &str) -> Result<(), OidcError> {
        OidcConfig { issuer: issuer.into(), ..example() }.check()
    }

    #[test]
    fn an_issuer_has_tls_or_is_on_this_machine() {
        for right in ["https://id.example", "https://id.example:8443/realms/a/", "http://[::1]:9"] {
            assert!(issued(right).is_ok(), "{right}");
        }
        for wrong in [
            "http://id.example",
            "id.example",
            "https://",
            "ftp://id.example",
            "https://user@id.example",
            "https://id.example?a=b",
            "https://id.example#a",
            "http://127.0.0.1.example",
            "http://10.0.0.1",
            "",
        ] {
            assert!(matches!(issued(wrong), Err(OidcError::Issuer(_))), "{wrong}");
        }
    }

    #[test]
    fn settings_that_let_nobody_in_are_refused() {
        assert!(example().check().is_ok());
        assert!(OidcConfig { secret: None, ..example() }.check().is_ok());
        let wrong = |change: &dyn Fn(&mut OidcConfig)| {
            let mut config = example();
            change(&mut config);
            config.check().unwrap_err()
        };
        assert!(matches!(wrong(&|config| config.roles.clear()), OidcError::Roles));
        assert!(matches!(wrong(&|config| config.groups.clear()), OidcError::Groups));
        assert!(matches!(wrong(&|config| config.client_id.clear()), OidcError::Client));
        for secret in ["", "a\nb"] {
            let error = wrong(&|config| config.secret = Some(secret.into()));
            assert!(matches!(error, OidcError::Secret), "{secret:?} {error}");
        }
        let node = |config: &mut OidcConfig| config.roles.extend([("x".to_owned(), Role::Node)]);
        assert!(matches!(wrong(&node), OidcError::Node(_)));
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert!(
            !format!("{:?}", example()).contains("=hidden") && example().host() == "id.example"
        );
        let text = format!("{:?}", OidcConfig { secret: Some("s3cr3t".into()), ..example() });
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}
