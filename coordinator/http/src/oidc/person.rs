//! From what a provider says of a person to a name and a role of the farm.

use super::config::OidcConfig;
use super::id_token::Claims;
use super::refusal::quoted;
use serde_json::{Map, Value};
use tessera_coordinator::api::Vouched;
use tessera_protocol::client::Role;
use tessera_protocol::job::is_label;

/// Groups of one person that are looked at.
const GROUPS_MAX: usize = 4096;
/// Groups that a refusal names.
const GROUPS_NAMED_MAX: usize = 20;

/// The person of a checked token.
pub(super) fn vouched(config: &OidcConfig, claims: Claims) -> Vouched {
    let Claims { sub, others, .. } = claims;
    let name = name(&others);
    let role = role(config, others.get(&config.groups));
    Vouched { issuer: config.issuer.clone(), subject: sub, name, role }
}

/// A name for people: what the provider calls the person, or else the address of their mail if the
/// provider has checked it.
fn name(claims: &Map<String, Value>) -> Result<String, String> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let called = text("preferred_username");
    if let Some(called) = called.filter(|called| is_label(called)) {
        return Ok(called.to_owned());
    }
    let checked = claims.get("email_verified").and_then(Value::as_bool) == Some(true);
    match text("email").filter(|mail| checked && is_label(mail)) {
        Some(mail) => Ok(mail.to_owned()),
        None => Err(format!(
            "the provider gives you no name that can be one here: preferred_username is {:?}, and \
             there is no verified email; a name has 1 to 128 letters, digits and `.`, `_`, `-`, \
             `@`",
            quoted(called.unwrap_or_default())
        )),
    }
}

/// The highest role that one of the groups gives.
fn role(config: &OidcConfig, claim: Option<&Value>) -> Result<Role, String> {
    let groups = groups(claim);
    let roles = groups.iter().filter_map(|group| config.roles.get(*group).copied());
    let highest = roles.reduce(|best, role| if role.covers(best) { role } else { best });
    highest.ok_or_else(|| {
        let named: Vec<String> = groups
            .iter()
            .take(GROUPS_NAMED_MAX)
            .map(|group| format!("{:?}", quoted(group)))
            .collect();
        let more = match groups.len().saturating_sub(GROUPS_NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let seen = match (claim, groups.is_empty()) {
            (None, _) => format!("says nothing of your groups (claim {:?})", config.groups),
            (_, true) => "says that you are in no group".to_owned(),
            _ => format!("says that you are in {}{more}", named.join(", ")),
        };
        format!(
            "{} {seen}: that gives no role in this farm; ask an admin of the farm, who can give \
             one to a group: --oidc-role GROUP=ROLE",
            config.host()
        )
    })
}

/// The groups of a claim: a list of texts, or one text.
fn groups(claim: Option<&Value>) -> Vec<&str> {
    match claim {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(many)) => {
            many.iter().take(GROUPS_MAX).filter_map(Value::as_str).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::example;
    use super::*;
    use serde_json::json;

    fn role_of(groups: &Value) -> Result<Role, String> {
        role(&example(), Some(groups))
    }

    #[test]
    fn the_highest_role_of_all_groups_counts() {
        assert_eq!(role_of(&json!(["artists"])), Ok(Role::Artist));
        assert_eq!(role_of(&json!("td")), Ok(Role::Operator));
        let all = json!(["x", "td", "/render/admins", "artists", 7, null]);
        assert_eq!(role_of(&all), Ok(Role::Admin));
    }

    #[test]
    fn nobody_has_a_role_by_the_shape_of_a_claim() {
        for none in [
            json!([]),
            json!(["Artists", "artists ", "artist", "/td", "admins"]),
            json!([["td"]]),
            json!({ "td": true }),
            json!("td artists"),
            json!("td,artists"),
            json!(true),
            json!(null),
        ] {
            let refusal = role_of(&none).unwrap_err();
            assert!(refusal.contains("--oidc-role"), "{none} {refusal}");
        }
        assert!(role(&example(), None).unwrap_err().contains("claim \"groups\""));
        let seen = role_of(&json!(["comp", "<b>roto\n</b>"])).unwrap_err();
        assert!(seen.contains("\"comp\", \"<b>roto</b>\""), "{seen}");
        let many: Vec<String> = (0..5000).map(|at| format!("group-{at}")).collect();
        let seen = role_of(&json!(many)).unwrap_err();
        assert!(seen.contains("and 4076 more") && seen.len() < 1000, "{seen}");
    }

    #[test]
    fn a_name_is_what_the_provider_stands_for() {
        let of = |claims: Value| name(claims.as_object().unwrap());
        assert_eq!(of(json!({ "preferred_username": "ada" })).as_deref(), Ok("ada"));
        let mail = json!({
            "preferred_username": "Ada L.",
            "email": "ada@studio.example",
            "email_verified": true,
        });
        assert_eq!(of(mail).as_deref(), Ok("ada@studio.example"));
        for none in [
            json!({}),
            json!({ "email": "ada@studio.example" }),
            json!({ "email": "ada@studio.example", "email_verified": "true" }),
            json!({ "email": "a b@studio.example", "email_verified": true }),
            json!({ "preferred_username": "a\u{2028}b" }),
            json!({ "preferred_username": "x".repeat(129) }),
        ] {
            assert!(of(none.clone()).unwrap_err().contains("no name"), "{none}");
        }
    }
}
