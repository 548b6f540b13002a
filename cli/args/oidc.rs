//! Options of `coordinator` about signing in by an OpenID Connect provider.

use clap::Args;
use std::path::PathBuf;
use tessera_protocol::client::Role;

/// By which provider people sign in to the pages, and what its groups may do.
#[derive(Clone, Debug, Args)]
pub struct OidcArgs {
    /// OpenID Connect provider by which people sign in to the pages: its issuer, https:// and a
    /// name; the provider must know the address of the pages, with /oidc/return
    #[arg(long, value_name = "ISSUER", env = "TESSERA_OIDC", help_heading = "HTTP")]
    pub oidc: Option<String>,
    /// Name under which the provider knows this farm
    #[arg(long, value_name = "ID", env = "TESSERA_OIDC_CLIENT_ID", help_heading = "HTTP")]
    pub oidc_client_id: Option<String>,
    /// File with the secret that goes with it, one line that others cannot read [default: a public
    /// client]
    #[arg(long, value_name = "FILE", env = "TESSERA_OIDC_SECRET_FILE", help_heading = "HTTP")]
    pub oidc_secret_file: Option<PathBuf>,
    /// Claim that has a person's groups
    #[arg(
        long,
        value_name = "CLAIM",
        env = "TESSERA_OIDC_GROUPS",
        default_value = "groups",
        help_heading = "HTTP"
    )]
    pub oidc_groups: String,
    /// Role of a group: viewer, artist, operator or admin; may be given more than once, the highest
    /// role of a person counts, and people without one are refused
    #[arg(
        long = "oidc-role",
        value_name = "GROUP=ROLE",
        env = "TESSERA_OIDC_ROLE",
        value_delimiter = ';',
        value_parser = role,
        help_heading = "HTTP",
    )]
    pub oidc_roles: Vec<(String, Role)>,
}

/// A group and its role. Names of groups may have `=` themselves.
fn role(text: &str) -> Result<(String, Role), String> {
    let wrong =
        || format!("`{text}` is not GROUP=ROLE, with the role viewer, artist, operator or admin");
    let (group, role) = text.rsplit_once('=').ok_or_else(wrong)?;
    let role: Role = role.parse().map_err(|_| wrong())?;
    match group.is_empty() || role == Role::Node {
        true => Err(wrong()),
        false => Ok((group.to_owned(), role)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_a_role_of_people() {
        assert_eq!(role("td=operator"), Ok(("td".to_owned(), Role::Operator)));
        let path = "cn=artists,ou=groups";
        assert_eq!(role(&format!("{path}=artist")), Ok((path.to_owned(), Role::Artist)));
        for wrong in ["td", "td=", "=admin", "td=boss", "td=node", "td=Admin", ""] {
            assert!(role(wrong).unwrap_err().contains("GROUP=ROLE"), "{wrong}");
        }
    }
}
