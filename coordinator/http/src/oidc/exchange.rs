//! The conversation with the provider: where browsers are sent, and what is asked for a code.

use super::config::OidcConfig;
use super::fetch::Asked;
use super::id_token::{Claims, TokenError, Wanted, check};
use super::provider::{Known, Provider};
use super::refusal::{Refusal, quoted};
use super::ticket::Ticket;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Longest code of a provider, in bytes.
const CODE_BYTES_MAX: usize = 4096;

/// What the provider gives for a code.
#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

/// Why it gives nothing (RFC 6749, section 5.2).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Denial {
    error: String,
    error_description: String,
}

/// Returns the provider's address for a browser that begins to sign in.
pub(super) fn address(
    known: &Known,
    (config, redirect): (&OidcConfig, &str),
    ticket: &Ticket,
) -> String {
    let endpoint = &known.parts.authorization_endpoint;
    let scope = scope(config, &known.parts.scopes_supported);
    let query = form(&[
        ("response_type", "code"),
        ("client_id", &config.client_id),
        ("redirect_uri", redirect),
        ("scope", &scope),
        ("state", &ticket.state),
        ("nonce", &ticket.nonce),
        ("code_challenge", &ticket.challenge()),
        ("code_challenge_method", "S256"),
    ]);
    let joint = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{joint}{query}")
}

/// What is asked for: groups have a scope of their own with some providers, and others refuse one
/// that they do not know.
fn scope(config: &OidcConfig, supported: &[String]) -> String {
    let mut scopes = vec!["openid", "profile", "email"];
    if supported.contains(&config.groups) {
        scopes.push(&config.groups);
    }
    scopes.join(" ")
}

/// Returns what the provider says of the person whose browser has brought this code.
pub(super) async fn claims(
    provider: &Provider,
    (config, redirect): (&OidcConfig, &str),
    (code, ticket): (&str, &Ticket),
) -> Result<Claims, Refusal> {
    let known = provider.known().await.map_err(Refusal::Unavailable)?;
    if code.len() > CODE_BYTES_MAX {
        return Err(Refusal::Refused("the provider's code is too long".to_owned()));
    }
    let mut fields = vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect),
        ("code_verifier", ticket.verifier.as_str()),
    ];
    let methods = &known.parts.token_endpoint_auth_methods_supported;
    let authorization = identified(config, methods, &mut fields);
    let asked = Asked { authorization, form: Some(form(&fields)) };
    let endpoint = &known.parts.token_endpoint;
    let answer = provider.fetcher().ask(endpoint, asked).await;
    let (status, body) = answer.map_err(Refusal::Unavailable)?;
    if status != StatusCode::OK {
        let denial: Denial = serde_json::from_slice(&body).unwrap_or_default();
        let why = quoted(format!("{} {}", denial.error, denial.error_description).trim());
        let text = format!("{} does not take the code ({status}): {why}", config.host());
        return Err(Refusal::Refused(text));
    }
    let tokens: Tokens = serde_json::from_slice(&body)
        .map_err(|error| Refusal::Refused(format!("{endpoint} gives no token: {error}")))?;
    let (issuer, client_id) = (config.issuer.as_str(), config.client_id.as_str());
    let wanted = Wanted { issuer, client_id, nonce: &ticket.nonce };
    let checked = match check(&tokens.id_token, &known.keys, wanted) {
        Err(TokenError::Key) => {
            let newer = provider.newer().await.map_err(Refusal::Unavailable)?;
            check(&tokens.id_token, &newer.keys, wanted)
        }
        checked => checked,
    };
    let mut claims = checked.map_err(|error| Refusal::Refused(error.to_string()))?;
    let is_short = [config.groups.as_str(), "preferred_username"]
        .iter()
        .any(|claim| !claims.others.contains_key(*claim));
    if is_short
        && let (Some(endpoint), Some(token)) =
            (&known.parts.userinfo_endpoint, &tokens.access_token)
    {
        let more = user_info(provider, endpoint, (token, &claims.sub)).await?;
        more.into_iter().for_each(|(name, value)| {
            // What was signed counts more.
            claims.others.entry(name).or_insert(value);
        });
    }
    Ok(claims)
}

/// Says which client asks. Returns the Authorization header, or adds to the form.
fn identified<'a>(
    config: &'a OidcConfig,
    methods: &[String],
    fields: &mut Vec<(&'a str, &'a str)>,
) -> Option<String> {
    let has = |method: &str| methods.iter().any(|own| own == method);
    match &config.secret {
        // RFC 6749, section 2.3.1: both are encoded as in a form first.
        Some(secret) if !has("client_secret_post") || has("client_secret_basic") => {
            let [id, secret] = [&config.client_id, secret].map(|text| encoded(text));
            Some(format!("Basic {}", STANDARD.encode(format!("{id}:{secret}"))))
        }
        secret => {
            fields.push(("client_id", &config.client_id));
            fields.extend(secret.iter().map(|secret| ("client_secret", secret.as_str())));
            None
        }
    }
}

/// Asks for what the token does not have (OpenID Connect Core 1.0, section 5.3).
async fn user_info(
    provider: &Provider,
    endpoint: &str,
    (token, subject): (&str, &str),
) -> Result<Map<String, Value>, Refusal> {
    let asked = Asked { authorization: Some(format!("Bearer {token}")), form: None };
    let answer = provider.fetcher().ask(endpoint, asked).await;
    let (status, body) = answer.map_err(Refusal::Unavailable)?;
    if status != StatusCode::OK {
        return Err(Refusal::Unavailable(format!("{endpoint} answers {status}")));
    }
    let found: Map<String, Value> = serde_json::from_slice(&body)
        .map_err(|error| Refusal::Refused(format!("{endpoint}: {error}")))?;
    match found.get("sub").and_then(Value::as_str) == Some(subject) {
        true => Ok(found),
        false => Err(Refusal::Refused(format!("{endpoint} speaks of somebody else"))),
    }
}

fn form(fields: &[(&str, &str)]) -> String {
    // Texts can always be written as a form.
    serde_urlencoded::to_string(fields).unwrap_or_default()
}

fn encoded(text: &str) -> String {
    form(&[("", text)]).trim_start_matches('=').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::config::example;
    use super::*;

    #[test]
    fn a_client_says_who_it_is_as_the_provider_wants() {
        let config = OidcConfig { secret: Some("a b&=:".into()), ..example() };
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for methods in [texts(&[]), texts(&["client_secret_basic", "client_secret_post"])] {
            let mut fields = Vec::new();
            let header = identified(&config, &methods, &mut fields).unwrap();
            let basic = STANDARD.decode(header.strip_prefix("Basic ").unwrap()).unwrap();
            assert_eq!(basic, b"tessera:a+b%26%3D%3A");
            assert!(fields.is_empty());
        }
        let mut fields = Vec::new();
        assert_eq!(identified(&config, &texts(&["client_secret_post"]), &mut fields), None);
        assert_eq!(fields, [("client_id", "tessera"), ("client_secret", "a b&=:")]);
        let public = OidcConfig { secret: None, ..example() };
        let mut fields = Vec::new();
        assert_eq!(identified(&public, &[], &mut fields), None);
        assert_eq!(fields, [("client_id", "tessera")]);
    }

    #[test]
    fn groups_are_asked_for_where_they_have_a_scope() {
        let config = example();
        assert_eq!(scope(&config, &[]), "openid profile email");
        let supported = ["openid".to_owned(), "groups".to_owned()];
        assert_eq!(scope(&config, &supported), "openid profile email groups");
    }
}
