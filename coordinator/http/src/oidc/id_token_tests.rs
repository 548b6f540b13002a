//! Tests of tokens: each thing that a token must have, and keys that are not the provider's.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::json;

const WANTED: Wanted<'_> =
    Wanted { issuer: "https://id.example", client_id: "tessera", nonce: "n-1" };

/// A provider with a key of each of two kinds.
struct Signer {
    curve: EcdsaKeyPair,
    edwards: Ed25519KeyPair,
    random: SystemRandom,
}

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let curve = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let edwards = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let curve = curve.unwrap();
        let fixed = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let curve = EcdsaKeyPair::from_pkcs8(fixed, curve.as_ref(), &random).unwrap();
        let edwards = Ed25519KeyPair::from_pkcs8(edwards.as_ref()).unwrap();
        Self { curve, edwards, random }
    }

    fn keys(&self) -> Vec<Jwk> {
        let point = self.curve.public_key().as_ref();
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let keys = [
            json!({ "kty": "EC", "crv": "P-256", "kid": "c", "use": "sig",
                "x": text(&point[1..33]), "y": text(&point[33..]) }),
            json!({ "kty": "OKP", "crv": "Ed25519", "kid": "e",
                "x": text(self.edwards.public_key().as_ref()) }),
        ];
        keys.map(|key| serde_json::from_value(key).unwrap()).into()
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signed = match header["alg"].as_str() {
            Some("ES256") => {
                self.curve.sign(&self.random, message.as_bytes()).unwrap().as_ref().to_vec()
            }
            _ => self.edwards.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signed))
    }
}

fn claims() -> Value {
    let now = jsonwebtoken::get_current_timestamp();
    json!({ "iss": "https://id.example", "aud": "tessera", "sub": "7", "nonce": "n-1",
        "exp": now + 300, "iat": now, "groups": ["artists"] })
}

fn head() -> Value {
    json!({ "alg": "ES256", "kid": "c" })
}

/// The claims with one of them changed; null takes it away.
fn with(name: &str, value: Value) -> Value {
    let mut changed = claims();
    match value.is_null() {
        true => drop(changed.as_object_mut().unwrap().remove(name)),
        false => changed[name] = value,
    }
    changed
}

#[test]
fn a_sound_token_counts_with_each_kind_of_key() {
    let signer = Signer::new();
    for header in [head(), json!({ "alg": "EdDSA", "kid": "e" }), json!({ "alg": "ES256" })] {
        let found = check(&signer.token(&header, &claims()), &signer.keys(), WANTED).unwrap();
        assert_eq!((found.sub.as_str(), &found.others["groups"][0]), ("7", &json!("artists")));
    }
    let ours = with("aud", json!(["tessera"]));
    assert!(check(&signer.token(&head(), &ours), &signer.keys(), WANTED).is_ok());
    let mut several = with("aud", json!(["tessera", "wiki"]));
    several["azp"] = json!("tessera");
    assert!(check(&signer.token(&head(), &several), &signer.keys(), WANTED).is_ok());
}

#[test]
fn a_token_lacks_nothing_and_is_for_this_sign_in() {
    let signer = Signer::new();
    let now = jsonwebtoken::get_current_timestamp();
    for (name, value) in [
        ("iss", json!("https://evil.example")),
        ("iss", json!(["https://id.example", "https://evil.example"])),
        ("iss", json!("https://id.example/")),
        ("aud", json!("wiki")),
        ("aud", json!(["wiki"])),
        ("aud", json!(["tessera", "wiki"])),
        ("azp", json!("wiki")),
        ("exp", json!(now - 120)),
        ("exp", json!("9999999999")),
        ("nbf", json!(now + 600)),
        ("nonce", json!("n-2")),
        ("nonce", json!("")),
        ("sub", json!(7)),
        ("iss", Value::Null),
        ("aud", Value::Null),
        ("exp", Value::Null),
        ("sub", Value::Null),
        ("nonce", Value::Null),
    ] {
        let token = signer.token(&head(), &with(name, value.clone()));
        let found = check(&token, &signer.keys(), WANTED);
        assert!(matches!(found, Err(TokenError::Wrong(_))), "{name} {value}: {found:?}");
    }
}

#[test]
fn a_token_of_another_key_does_not_count() {
    let (signer, other) = (Signer::new(), Signer::new());
    let token = signer.token(&head(), &claims());
    assert_eq!(check(&token, &other.keys(), WANTED), Err(TokenError::Key));
    assert_eq!(check(&token, &[], WANTED), Err(TokenError::Key));
    let unknown = signer.token(&json!({ "alg": "ES256", "kid": "x" }), &claims());
    assert_eq!(check(&unknown, &signer.keys(), WANTED), Err(TokenError::Key));
    // The name of a key of another kind.
    let crossed = signer.token(&json!({ "alg": "ES256", "kid": "e" }), &claims());
    assert_eq!(check(&crossed, &signer.keys(), WANTED), Err(TokenError::Key));
    let (message, _) = token.rsplit_once('.').unwrap();
    let rest = token.split_once('.').unwrap().1;
    let none = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"c"}"#));
    for forged in [format!("{message}."), message.to_owned(), none, String::new(), "..".into()] {
        assert!(check(&forged, &signer.keys(), WANTED).is_err(), "{forged}");
    }
}

#[test]
fn a_public_key_is_no_secret_of_both_sides() {
    let signer = Signer::new();
    for alg in ["HS256", "HS384", "HS512"] {
        let token = signer.token(&json!({ "alg": alg, "kid": "c" }), &claims());
        let found = check(&token, &signer.keys(), WANTED);
        assert!(matches!(found, Err(TokenError::Wrong(_))), "{alg} {found:?}");
    }
    let shared: Jwk =
        serde_json::from_value(json!({ "kty": "oct", "kid": "c", "k": "c2VjcmV0" })).unwrap();
    let token = signer.token(&head(), &claims());
    assert_eq!(check(&token, &[shared], WANTED), Err(TokenError::Key));
}

#[test]
fn a_very_long_token_is_not_read() {
    let signer = Signer::new();
    let long = with("padding", json!("x".repeat(TOKEN_BYTES_MAX)));
    let found = check(&signer.token(&head(), &long), &signer.keys(), WANTED);
    assert_eq!(found, Err(TokenError::Wrong("it is too long".to_owned())));
}
