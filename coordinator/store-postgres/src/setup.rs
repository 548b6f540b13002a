//! What a database promises: whether its answers survive a power cut, who has copies of it and
//! where these are, and which coordinators use it. It only looks.

use crate::connection::Link;
use crate::link_error::LinkError;
use crate::schema;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio_postgres::Row;

/// Time for a short question.
const TIME: Duration = Duration::from_secs(10);
/// Settings without which an answer does not mean that a commit survives a power cut.
const MUST_BE_ON: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];
const SETTINGS: &str = "SELECT current_setting('fsync'), current_setting('full_page_writes'), \
    current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), \
    host(inet_server_addr()), current_setting('server_version')";
/// Those who follow the database. Who may not see them has NULL there.
const STANDBYS: &str = "SELECT coalesce(application_name, ''), host(client_addr), sync_state, \
    state, usename IS NULL OR (state IS NULL AND sync_state IS NULL) FROM pg_stat_replication";
/// Machines from which coordinators are connected.
const MACHINES: &str = "SELECT count(DISTINCT coalesce(host(client_addr), 'here')) \
    FROM pg_stat_activity WHERE application_name = 'tessera' AND pid <> pg_backend_pid() \
    AND datname = current_database()";
const LEADER: &str = "SELECT owner FROM tessera.leader WHERE id = 1 AND expires_at > now()";
/// Whether the store has the farm's files.
const FILES: &str = "SELECT EXISTS (SELECT 1 FROM tessera.value \
    WHERE key >= 'f'::bytea AND key < 'g'::bytea)";

/// What can be seen of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Version of PostgreSQL, in its words.
    pub version: String,
    /// Time of a question and its answer.
    pub round_trip: Duration,
    /// Settings that are off, each of which loses commits at a power cut.
    pub off: Vec<&'static str>,
    /// Who follows it.
    pub copies: Copies,
    /// The farm in it; None before its first coordinator.
    pub farm: Option<Lead>,
}

/// Who follows a database, and whether commits wait for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Address of the database's machine, where it is reached by one.
    pub server: Option<IpAddr>,
    /// Number of standbys that a commit waits for; 0 if for none.
    pub waits_for: usize,
    /// Standbys that are connected now.
    pub standbys: Vec<Follower>,
}

/// A database that follows another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follower {
    /// Its name, as in `synchronous_standby_names`.
    pub name: String,
    /// Its machine; None for this database's own.
    pub address: Option<IpAddr>,
    /// Whether commits can wait for it; None if this user may not see it.
    pub is_synchronous: Option<bool>,
}

/// Who uses a farm's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Who leads, in words, while somebody does.
    pub leader: Option<String>,
    /// Machines from which coordinators are connected now.
    pub machines: usize,
    /// Whether the farm's authority is there, sealed, so that other machines can go on.
    pub has_authority: bool,
}

impl Copies {
    /// Standbys that commits can wait for.
    pub fn synchronous(&self) -> impl Iterator<Item = &Follower> {
        self.standbys.iter().filter(|standby| standby.is_synchronous == Some(true))
    }

    /// Whether standbys follow, and commits wait for none of them.
    pub fn are_asynchronous(&self) -> bool {
        !self.standbys.is_empty() && self.waits_for == 0
    }

    /// Whether a standby is on the database's own machine.
    pub fn is_here(&self, standby: &Follower) -> bool {
        standby.address.is_none_or(|address| {
            address.is_loopback() || self.server.is_some_and(|server| server == address)
        })
    }

    /// Whether a standby's address is in the network of the database's: the first 24 bits of IPv4,
    /// 64 of IPv6. Within a cloud such a network is of one zone, as a rule.
    pub fn is_near(&self, standby: &Follower) -> bool {
        let near = |server: IpAddr, other: IpAddr| match (server, other) {
            (IpAddr::V4(one), IpAddr::V4(two)) => one.octets()[..3] == two.octets()[..3],
            (IpAddr::V6(one), IpAddr::V6(two)) => one.octets()[..8] == two.octets()[..8],
            _ => false,
        };
        let both = self.server.zip(standby.address);
        self.is_here(standby) || both.is_some_and(|(server, other)| near(server, other))
    }
}

impl Setup {
    /// Looks at a database, and at the farm in it.
    pub(crate) async fn of(link: &Link) -> Result<Self, LinkError> {
        let mut setup = Self::of_database(link).await?;
        if schema::is_made(link).await? {
            setup.farm = Some(lead(link).await?);
        }
        Ok(setup)
    }

    /// Looks at a database only.
    pub(crate) async fn of_database(link: &Link) -> Result<Self, LinkError> {
        let asked = Instant::now();
        let rows = link.rows(SETTINGS, &[], TIME).await?;
        let round_trip = asked.elapsed();
        let row = rows.first().ok_or_else(|| LinkError::Setup("no settings".into()))?;
        let off = |(index, name)| (row.get::<_, &str>(index) == "off").then_some(name);
        let standbys = link.rows(STANDBYS, &[], TIME).await?;
        let waits_for = match row.get(2) {
            "off" | "local" => 0,
            _ => waited_for(row.get(3)),
        };
        Ok(Self {
            version: row.get(5),
            round_trip,
            off: MUST_BE_ON.into_iter().enumerate().filter_map(off).collect(),
            copies: Copies {
                server: address(row, 4),
                waits_for,
                standbys: standbys.iter().map(follower).collect(),
            },
            farm: None,
        })
    }
}

fn address(row: &Row, column: usize) -> Option<IpAddr> {
    row.get::<_, Option<&str>>(column).and_then(|text| text.parse().ok())
}

fn follower(row: &Row) -> Follower {
    let state: Option<&str> = row.get(2);
    let streams = row.get::<_, Option<&str>>(3) == Some("streaming");
    let is_hidden: bool = row.get(4);
    let is_synchronous = streams && matches!(state, Some("sync" | "quorum"));
    Follower {
        name: row.get(0),
        address: address(row, 1),
        is_synchronous: (!is_hidden).then_some(is_synchronous),
    }
}

async fn lead(link: &Link) -> Result<Lead, LinkError> {
    let leaders = link.rows(LEADER, &[], TIME).await?;
    let machines = link.rows(MACHINES, &[], TIME).await?;
    let machines: i64 = machines.first().map_or(0, |row| row.get(0));
    Ok(Lead {
        leader: leaders.first().map(|row| row.get(0)),
        machines: usize::try_from(machines).unwrap_or(0),
        has_authority: has_files(link).await?,
    })
}

/// Whether the store has the farm's files.
pub(crate) async fn has_files(link: &Link) -> Result<bool, LinkError> {
    let rows = link.rows(FILES, &[], TIME).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// Number of standbys that a commit waits for, of the setting `synchronous_standby_names`:
/// `[FIRST] n (...)`, `ANY n (...)`, or names, of which one is waited for.
fn waited_for(names: &str) -> usize {
    let names = names.trim();
    let Some((before, _)) = names.split_once('(') else { return usize::from(!names.is_empty()) };
    before.split_whitespace().last().and_then(|count| count.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_waits_for_as_many_as_the_setting_says() {
        for (names, count) in [
            ("", 0),
            ("  ", 0),
            ("one", 1),
            ("*", 1),
            ("one, two", 1),
            ("2 (one, two, three)", 2),
            ("FIRST 3 (a, b, c)", 3),
            ("ANY 2(a,b,c)", 2),
            ("any 1 (*)", 1),
        ] {
            assert_eq!(waited_for(names), count, "{names}");
        }
    }

    #[test]
    fn a_standby_is_here_near_or_elsewhere() {
        let at = |address: Option<&str>| Follower {
            name: "one".into(),
            address: address.map(|text| text.parse().unwrap()),
            is_synchronous: Some(true),
        };
        let server = Some("10.0.1.7".parse().unwrap());
        let copies = Copies { server, waits_for: 1, standbys: vec![] };
        for (address, here, near) in [
            (None, true, true),
            (Some("127.0.0.1"), true, true),
            (Some("10.0.1.7"), true, true),
            (Some("10.0.1.8"), false, true),
            (Some("10.0.2.8"), false, false),
            (Some("fd00::8"), false, false),
        ] {
            let standby = at(address);
            let found = (copies.is_here(&standby), copies.is_near(&standby));
            assert_eq!(found, (here, near), "{address:?}");
        }
        let copies = Copies { server: Some("2001:db8:0:1::1".parse().unwrap()), ..copies };
        assert!(copies.is_near(&at(Some("2001:db8:0:1::2"))));
        assert!(!copies.is_near(&at(Some("2001:db8:0:2::2"))));
    }
}
