//! What the doctor says of a coordinator's store: a real PostgreSQL with and without standbys, and
//! a real S3 server.

use super::takeover::Elsewhere;
use serde_json::Value;
use tessera_support::farm::Farm;
use tessera_support::postgres::Postgres;
use tessera_support::seaweed::{KEY, SECRET};

/// What the doctor says, by check: verdict and text.
struct Said(Value);

impl Said {
    fn of(farm: &Farm, store: &str, more: &[&str]) -> (bool, Self) {
        let line = [&["doctor", "--json", "--store", store], more].concat();
        let mut command = farm.command(&line);
        command.env_remove("TESSERA_COORDINATOR");
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = serde_json::from_slice(&output.stdout);
        (output.status.success(), Self(report.unwrap_or_else(|error| panic!("{error}: {said}"))))
    }

    fn check(&self, check: &str, verdict: &str, part: &str) {
        let findings = self.0["findings"].as_array().expect("findings");
        let found = findings.iter().find(|finding| finding["check"] == check);
        let found = found.unwrap_or_else(|| panic!("no {check}: {}", self.0));
        assert_eq!(found["verdict"], verdict, "{found}");
        assert!(found["text"].as_str().is_some_and(|text| text.contains(part)), "{found}");
        let has_hint = found["hint"].as_str().is_some_and(|hint| !hint.is_empty());
        assert_eq!(has_hint, verdict != "ok", "{found}");
    }

    fn lacks(&self, check: &str) {
        let findings = self.0["findings"].as_array().expect("findings");
        assert!(!findings.iter().any(|finding| finding["check"] == check), "{}", self.0);
    }
}

#[test]
fn the_doctor_says_what_a_database_cannot_promise() {
    let what = "the_doctor_says_what_a_database_cannot_promise";
    let Some(database) = Postgres::start(what) else { return };
    let farm = Farm::prepare();
    let look = || Said::of(&farm, &database.address(), &[]);
    let (well, said) = look();
    assert!(well, "{}", said.0);
    said.check("database", "ok", "no farm is in it yet");
    said.check("durability", "ok", "survives a power cut");
    said.check("standbys", "warn", "no standby follows");
    said.check("files", "warn", "on the leader's own disk");
    for check in ["zones", "coordinators", "authority", "device", "data"] {
        said.lacks(check);
    }
    let mut standby = database.standby(database.port());
    farm.wait_for("the standby", |_| {
        database.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == "1"
    });
    let (well, said) = look();
    assert!(well, "{}", said.0);
    said.check("standbys", "warn", "commits wait for none");
    said.check("zones", "warn", "own machine");
    database.wait_for_standbys();
    let (_, said) = look();
    said.check("standbys", "ok", "commits wait for 1 of 1");
    said.check("zones", "warn", "own machine");
    // A user who may not see the standbys is told so.
    database.sql("CREATE ROLE guest LOGIN");
    let guest = database.address().replace("tessera@", "guest@");
    Said::of(&farm, &guest, &[]).1.check("standbys", "warn", "may not see");
    // Nobody is there that commits could wait for.
    standby.kill();
    farm.wait_for("the standby's end", |_| {
        database.sql("SELECT count(*) FROM pg_stat_replication") == "0"
    });
    let (well, said) = look();
    assert!(!well, "{}", said.0);
    said.check("standbys", "fail", "all wait");
    database.sql("ALTER SYSTEM SET fsync = off");
    database.sql("SELECT pg_reload_conf()");
    farm.wait_for("the setting", |_| database.sql("SHOW fsync") == "off");
    look().1.check("durability", "fail", "fsync");
    // It has looked, and nothing more.
    assert_eq!(database.sql("SELECT to_regclass('tessera.version') IS NULL"), "t");
}

#[test]
fn the_doctor_says_who_can_take_over() {
    let mut farm = Farm::prepare();
    let what = "the_doctor_says_who_can_take_over";
    let Some(elsewhere) = Elsewhere::start(what, &farm) else { return };
    let bucket = elsewhere.bucket.address("farm");
    let (well, said) = Said::of(&farm, &elsewhere.store(), &["--blobs", &bucket]);
    assert!(well, "{}", said.0);
    said.check("files", "ok", "not in use yet");
    let command = elsewhere.coordinator(&farm, (&farm.data(), 0));
    farm.run_coordinator(command);
    let (well, said) = Said::of(&farm, &elsewhere.store(), &["--blobs", &bucket]);
    assert!(well, "{}", said.0);
    said.check("files", "ok", "with files of a farm");
    said.check("coordinators", "warn", "leads");
    said.check("authority", "ok", "sealed");
    let absent = bucket.replace("films", "no-such-bucket");
    let (well, said) = Said::of(&farm, &elsewhere.store(), &["--blobs", &absent]);
    assert!(!well, "{}", said.0);
    said.check("files", "fail", "");
    let (well, said) = Said::of(&farm, "postgres://tessera@127.0.0.1:1/postgres", &[]);
    assert!(!well, "{}", said.0);
    said.check("database", "fail", "");
    let alone = Said::of(&farm, "sled", &[]).1;
    alone.check("state", "warn", "no other copy");
    alone.check("files", "warn", "coordinator's folder");
}
