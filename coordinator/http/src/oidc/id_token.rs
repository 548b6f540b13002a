//! The provider's signed statement of who somebody is (OpenID Connect Core 1.0, section 3.1.3.7):
//! read, and checked against keys, issuer, audience, time and nonce.

use super::signature::{ALGORITHMS, use_ring};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

/// How far the clocks of provider and coordinator may differ, in seconds.
const LEEWAY_SECS: u64 = 60;
/// Longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 128 << 10;

/// What the token must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
}

/// What the token says, and what else the provider says of the person.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Claims {
    iss: String,
    pub(super) sub: String,
    aud: Audience,
    azp: Option<String>,
    nonce: Option<String>,
    #[serde(flatten)]
    pub(super) others: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Why a token does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    /// The provider may have new keys.
    #[error("the provider's token is signed with a key that the provider does not have")]
    Key,
    /// The signature, or what stands in it, is wrong.
    #[error("the provider's token does not count: {0}")]
    Wrong(String),
}

/// Checks a token.
pub(super) fn check(token: &str, keys: &[Jwk], wanted: Wanted<'_>) -> Result<Claims, TokenError> {
    use_ring();
    let wrong = |text: &str| TokenError::Wrong(text.to_owned());
    if token.len() > TOKEN_BYTES_MAX {
        return Err(wrong("it is too long"));
    }
    let header = decode_header(token).map_err(|error| TokenError::Wrong(error.to_string()))?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(wrong(&format!("it is signed by {:?}", header.alg)));
    }
    let mut validation = Validation::new(header.alg);
    validation.leeway = LEEWAY_SECS;
    validation.validate_nbf = true;
    validation.set_issuer(&[wanted.issuer]);
    validation.set_audience(&[wanted.client_id]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let mut found = Err(TokenError::Key);
    for key in keys.iter().filter(|key| may_be(key, &header)) {
        let Ok(key) = DecodingKey::from_jwk(key) else { continue };
        found = match decode::<Claims>(token, &key, &validation) {
            Ok(token) => return says(token.claims, wanted),
            Err(error) => match error.kind() {
                // Without a name of the key, another one may be it.
                ErrorKind::InvalidSignature => Err(TokenError::Key),
                _ => return Err(TokenError::Wrong(error.to_string())),
            },
        };
    }
    found
}

/// Whether a token with this head may be signed with this key.
fn may_be(key: &Jwk, header: &Header) -> bool {
    let common = &key.common;
    let named = header.kid.is_none() || common.key_id == header.kid;
    let signs = common.public_key_use != Some(PublicKeyUse::Encryption);
    let of_kind = common.key_algorithm.is_none_or(|algorithm| algorithm == header.alg.into());
    let is_public = !matches!(key.algorithm, AlgorithmParameters::OctetKey(_));
    let family = DecodingKey::from_jwk(key).map(|key| key.family());
    named && signs && of_kind && is_public && family.is_ok_and(|own| own == header.alg.family())
}

/// Checks what only OpenID Connect has.
fn says(claims: Claims, wanted: Wanted<'_>) -> Result<Claims, TokenError> {
    let wrong = |text: &str| Err(TokenError::Wrong(text.to_owned()));
    // The library also takes lists of issuers.
    if claims.iss != wanted.issuer {
        return wrong("it is from another issuer");
    }
    let only_us = match &claims.aud {
        Audience::One(one) => one == wanted.client_id,
        Audience::Many(many) => many.len() == 1,
    };
    match &claims.azp {
        Some(party) if party != wanted.client_id => return wrong("it is for another client"),
        None if !only_us => return wrong("it is for several clients"),
        _ => {}
    }
    match claims.nonce.as_deref() == Some(wanted.nonce) {
        true => Ok(claims),
        false => wrong("it belongs to another sign-in (nonce)"),
    }
}

#[cfg(test)]
#[path = "id_token_tests.rs"]
mod tests;
