//! Checks what a coordinator's store promises: whether commits survive a power cut, who has copies
//! and where these are, and whether another coordinator can go on.

use super::Finding;
use crate::args::blobs::BlobArgs;
use crate::args::store::PasswordArgs;
use crate::error::CliError;
use crate::{blob_place, store_place};
use std::time::Duration;
use tessera_blobs_s3::{BucketSetup, S3Place};
use tessera_store_postgres::{Copies, Follower, Lead, PostgresPlace, Setup};
use tessera_transport::error::chain;

/// Round trip to the database above which commits are slow.
const DATABASE_WANTED: Duration = Duration::from_millis(5);
/// Round trip to the files above which finished frames come late.
const FILES_WANTED: Duration = Duration::from_millis(250);

/// Where a coordinator keeps what it has.
pub(crate) struct Places {
    /// None for sled.
    state: Option<PostgresPlace>,
    /// None for the coordinator's disk.
    files: Option<S3Place>,
}

impl Places {
    /// Reads addresses.
    pub(crate) fn of(
        store: &str,
        password: &PasswordArgs,
        blobs: &BlobArgs,
    ) -> Result<Self, CliError> {
        let state = match store {
            "sled" => None,
            address => Some(store_place::postgres(address, password, false)?),
        };
        let files = match blobs.blobs.as_str() {
            "disk" => None,
            address => Some(blob_place::s3(address, &blobs.credentials)?),
        };
        Ok(Self { state, files })
    }

    /// Looks at all of it. Waits for the services.
    pub(crate) fn look(&self) -> Vec<Finding> {
        let mut findings = match &self.state {
            None => vec![Finding::warn(
                "state",
                "it is in the coordinator's folder, and has no other copy",
                "back it up (`tessera backup`), or keep it on PostgreSQL with a standby",
            )],
            Some(place) => match place.setup() {
                Ok(setup) => of_database(&setup),
                Err(error) => {
                    let hint = error.hint().unwrap_or("`psql` with the same address tries it");
                    vec![Finding::fail("database", chain(&error), hint)]
                }
            },
        };
        findings.push(match &self.files {
            None if self.state.is_some() => Finding::warn(
                "files",
                "scene files, results and frames are on the leader's own disk",
                "a coordinator on another machine goes on without them; --blobs s3://BUCKET keeps \
                 them in a bucket",
            ),
            None => Finding::warn(
                "files",
                "scene files, results and frames are in the coordinator's folder",
                "its loss loses the frames that have not been fetched; nodes render the rest again",
            ),
            Some(place) => match place.setup() {
                Ok(setup) => of_bucket(&setup),
                Err(error) => {
                    let hint = error.hint().unwrap_or("see that the address is right");
                    Finding::fail("files", chain(&error), hint)
                }
            },
        });
        findings
    }
}

fn of_database(setup: &Setup) -> Vec<Finding> {
    let mut findings = vec![database(setup), durability(setup)];
    findings.push(standbys(&setup.copies));
    findings.extend(zones(&setup.copies));
    findings.extend(setup.farm.iter().flat_map(|farm| [coordinators(farm), authority(farm)]));
    findings
}

fn database(setup: &Setup) -> Finding {
    let millis = setup.round_trip.as_secs_f64() * 1e3;
    let text = format!("PostgreSQL {} answers after {millis:.1} ms", setup.version);
    let text = match &setup.farm {
        Some(_) => text,
        None => format!("{text}; no farm is in it yet"),
    };
    match setup.round_trip > DATABASE_WANTED {
        true => Finding::warn(
            "database",
            text,
            "each commit takes a round trip, and the database's own writes; run coordinators near",
        ),
        false => Finding::ok("database", text),
    }
}

fn durability(setup: &Setup) -> Finding {
    match setup.off.as_slice() {
        [] => Finding::ok("durability", "an answer means that a commit survives a power cut"),
        off => Finding::fail(
            "durability",
            format!("off: {}; a power cut loses what was acknowledged", off.join(", ")),
            "switch them on in postgresql.conf; the coordinator does not start without",
        ),
    }
}

fn standbys(copies: &Copies) -> Finding {
    let (all, synchronous) = (copies.standbys.len(), copies.synchronous().count());
    let hidden = copies.standbys.iter().any(|standby| standby.is_synchronous.is_none());
    let wanted = copies.waits_for;
    match (all, wanted) {
        (0, 0) => Finding::warn(
            "standbys",
            "no standby follows: the loss of the database's machine loses the farm's newest state",
            "set up a synchronous one; a managed database that copies its disk shows none here",
        ),
        (_, 0) => Finding::warn(
            "standbys",
            format!("{all} follow, and commits wait for none: one that takes over may lack some"),
            "set `synchronous_standby_names`; until then only a leader that lives sends them again",
        ),
        _ if hidden => Finding::warn(
            "standbys",
            format!("commits wait for {wanted} of {all} that follow; this user may not see which"),
            "`GRANT pg_monitor TO USER` lets it see how they stand",
        ),
        _ if synchronous < wanted => Finding::fail(
            "standbys",
            format!("commits wait for {wanted} standbys, and {synchronous} follow: all wait"),
            "start the standby, or take its name out of `synchronous_standby_names`",
        ),
        _ if synchronous == wanted => Finding::ok(
            "standbys",
            format!(
                "commits wait for {wanted} of {synchronous} synchronous ({}); while one is away, \
                 they wait for its return",
                names(copies.synchronous())
            ),
        ),
        _ => Finding::ok(
            "standbys",
            format!(
                "commits wait for {wanted} of {synchronous} synchronous ({})",
                names(copies.synchronous())
            ),
        ),
    }
}

fn names<'a>(standbys: impl Iterator<Item = &'a Follower>) -> String {
    let name = |standby: &Follower| match standby.name.as_str() {
        "" => "no name".to_owned(),
        name => name.to_owned(),
    };
    standbys.map(name).collect::<Vec<_>>().join(", ")
}

/// Where the copies are. None if there are none, or this user may not see it.
fn zones(copies: &Copies) -> Option<Finding> {
    let kept: Vec<&Follower> = match copies.waits_for {
        0 => copies.standbys.iter().collect(),
        _ => copies.synchronous().collect(),
    };
    if kept.is_empty() || copies.standbys.iter().any(|standby| standby.is_synchronous.is_none()) {
        return None;
    }
    let elsewhere = "place one in another zone or room";
    Some(if kept.iter().all(|standby| copies.is_here(standby)) {
        let text = "every copy is on the database's own machine, and is lost with it";
        Finding::warn("zones", text, elsewhere)
    } else if kept.iter().all(|standby| copies.is_near(standby)) {
        let text = "every copy is in the database's own network: most likely one zone or room, \
                    and lost with it";
        Finding::warn("zones", text, elsewhere)
    } else {
        Finding::ok("zones", "a copy is in another network than the database")
    })
}

fn coordinators(farm: &Lead) -> Finding {
    let leader = farm.leader.as_deref();
    let leads = leader.map_or("no coordinator leads".into(), |who| format!("{who} leads"));
    match farm.machines {
        0 | 1 => Finding::warn(
            "coordinators",
            format!("{leads}; all that are connected are on one machine or behind one pooler"),
            "start another one elsewhere with --stand-by, so that it takes over",
        ),
        machines => Finding::ok(
            "coordinators",
            format!("{leads}; coordinators are connected from {machines} machines"),
        ),
    }
}

fn authority(farm: &Lead) -> Finding {
    match farm.has_authority {
        true => Finding::ok("authority", "the farm's authority is in the store, sealed"),
        false => Finding::warn(
            "authority",
            "the farm's authority is in one data folder: without it nothing goes on",
            "start that folder's coordinator once with --farm-key FILE",
        ),
    }
}

fn of_bucket(setup: &BucketSetup) -> Finding {
    let millis = setup.round_trip.as_secs_f64() * 1e3;
    let whose = if setup.has_farm { "with files of a farm" } else { "not in use yet" };
    let text = format!("the bucket answers after {millis:.1} ms, {whose}");
    if setup.is_of_one_zone {
        let text = format!("{text}; it is of one zone, and lost with it");
        return Finding::warn("files", text, "use a bucket that is kept in several zones");
    }
    match setup.round_trip > FILES_WANTED {
        true => Finding::warn("files", text, "run coordinators nearer to it"),
        false => Finding::ok("files", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn follower(address: Option<&str>, is_synchronous: Option<bool>) -> Follower {
        let address = address.map(|text| text.parse().unwrap());
        Follower { name: "walreceiver".into(), address, is_synchronous }
    }

    fn copies(waits_for: usize, standbys: Vec<Follower>) -> Copies {
        Copies { server: Some("10.0.1.7".parse().unwrap()), waits_for, standbys }
    }

    #[test]
    fn standbys_are_judged_by_what_commits_wait_for() {
        let far = |is_synchronous| follower(Some("10.0.2.8"), is_synchronous);
        for (copies, verdict, part) in [
            (copies(0, vec![]), Verdict::Warn, "no standby follows"),
            (copies(0, vec![far(Some(false))]), Verdict::Warn, "commits wait for none"),
            (copies(1, vec![]), Verdict::Fail, "all wait"),
            (copies(1, vec![far(Some(false))]), Verdict::Fail, "all wait"),
            (copies(1, vec![far(None)]), Verdict::Warn, "may not see"),
            (copies(1, vec![far(Some(true))]), Verdict::Ok, "while one is away"),
            (copies(1, vec![far(Some(true)), far(Some(true))]), Verdict::Ok, "1 of 2"),
        ] {
            let found = standbys(&copies);
            assert_eq!(found.verdict, verdict, "{found:?}");
            assert!(found.text.contains(part), "{found:?}");
        }
    }

    #[test]
    fn zones_are_judged_by_the_copies_that_count() {
        let near = || follower(Some("10.0.1.9"), Some(true));
        let far = |is_synchronous| follower(Some("10.0.2.8"), Some(is_synchronous));
        for (copies, verdict) in [
            (copies(1, vec![]), None),
            (copies(1, vec![follower(None, None)]), None),
            (copies(1, vec![follower(None, Some(true))]), Some(Verdict::Warn)),
            (copies(1, vec![near()]), Some(Verdict::Warn)),
            (copies(1, vec![near(), far(true)]), Some(Verdict::Ok)),
            // One far away that no commit waits for may lack the newest.
            (copies(1, vec![near(), far(false)]), Some(Verdict::Warn)),
            (copies(0, vec![far(false)]), Some(Verdict::Ok)),
        ] {
            assert_eq!(zones(&copies).map(|found| found.verdict), verdict, "{copies:?}");
        }
    }

    #[test]
    fn a_bucket_of_one_zone_is_said() {
        let round_trip = Duration::from_millis(3);
        let mut setup = BucketSetup { round_trip, has_farm: true, is_of_one_zone: false };
        assert_eq!(of_bucket(&setup).verdict, Verdict::Ok);
        setup.is_of_one_zone = true;
        let found = of_bucket(&setup);
        assert_eq!(found.verdict, Verdict::Warn);
        assert!(found.text.contains("one zone"), "{found:?}");
    }
}
