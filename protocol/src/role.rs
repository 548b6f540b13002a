//! Roles: what an identity is allowed to do, as its certificate says. The coordinator decides which
//! request needs which role.

use crate::ids::IdError;
use serde::{Deserialize, Serialize};

/// What an identity is allowed to do. Nodes do the work. People have ranks, and each rank includes
/// the rights of the ranks below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A machine that renders units.
    Node,
    /// Submits jobs and ends its own jobs. On the command line, `user` is another name for this
    /// role.
    Artist,
    /// Has every right of a person.
    Admin,
    /// Sees everything and changes nothing.
    Viewer,
    /// Ends any job, drains nodes and lets new nodes in.
    Operator,
}

impl Role {
    /// Every role: nodes first, then people by rank.
    pub const ALL: [Self; 5] =
        [Self::Node, Self::Viewer, Self::Artist, Self::Operator, Self::Admin];

    /// Name on the command line and in certificates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Viewer => "viewer",
            Self::Artist => "artist",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Returns whether this role is allowed to do what needs the role `needed`. Nodes and people
    /// never cover each other.
    pub fn covers(self, needed: Self) -> bool {
        match (self.rank(), needed.rank()) {
            (Some(rank), Some(needed)) => rank >= needed,
            (None, None) => true,
            _ => false,
        }
    }

    fn rank(self) -> Option<u8> {
        match self {
            Self::Node => None,
            Self::Viewer => Some(0),
            Self::Artist => Some(1),
            Self::Operator => Some(2),
            Self::Admin => Some(3),
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Role {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|role| role.name() == text);
        known.ok_or_else(|| IdError {
            what: "role (node, viewer, artist, operator or admin)",
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Role;

    #[test]
    fn people_have_ranks_and_nodes_have_none() {
        let people = &Role::ALL[1..];
        for (rank, role) in people.iter().enumerate() {
            for (needed, other) in people.iter().enumerate() {
                assert_eq!(role.covers(*other), rank >= needed, "{role} {other}");
            }
            assert!(!role.covers(Role::Node) && !Role::Node.covers(*role));
        }
        assert!(Role::Node.covers(Role::Node));
    }

    #[test]
    fn names_are_read_back() {
        for role in Role::ALL {
            assert_eq!(role.name().parse::<Role>().unwrap(), role);
        }
        assert!("root".parse::<Role>().is_err());
    }
}
