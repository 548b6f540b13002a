//! Coordinators that stand by, as real processes on a real PostgreSQL and a real S3 server: they
//! show the farm, pass changes on, write nothing, and go on at the same address when they lead.

use super::standby_client::{Answer, Events, ask};
use super::takeover::{Elsewhere, said_in};
use serde_json::json;
use std::net::TcpListener;
use tessera_protocol::BlobHash;
use tessera_support::farm::{Farm, Process, library};

/// A job of a second or two on one thread, in 48 units.
const OPTIONS: [&str; 8] = ["--size", "256x192", "--spp", "48", "--tile", "32", "--format", "exr"];

/// A leader and one that stands by, with pages, a node, and a token of the administrator.
struct Pair {
    farm: Farm,
    elsewhere: Elsewhere,
    /// Where each serves HTTP.
    pages: [String; 2],
    token: String,
    standby: Process,
}

impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("--- second\n{}", said_in(&self.farm, "second"));
        }
    }
}

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").to_string()
}

impl Pair {
    fn start(what: &str, term: u32) -> Option<Self> {
        let mut farm = Farm::prepare();
        let mut elsewhere = Elsewhere::start(what, &farm)?;
        elsewhere.term = term;
        let pages = [free_port(), free_port()];
        let mut command = elsewhere.coordinator(&farm, (&farm.data(), 0));
        command.args(["--http", &pages[0]]);
        farm.run_coordinator(command);
        let places = vec![
            ("TESSERA_DEVICE".into(), "cpu".into()),
            ("TESSERA_COORDINATOR".into(), elsewhere.both().into()),
        ];
        farm.add_node_with("node-0", &["--threads", "1"], places);
        let token = farm.text(&["token", "create", "--api"]);
        let second = farm.folder().join("second");
        let mut command = elsewhere.coordinator(&farm, (&second, 1));
        command.args(["--http", &pages[1]]);
        let standby = farm.spawn(command, "second");
        let pair = Self { farm, elsewhere, pages, token, standby };
        pair.wait("the standby's pages", |pair| {
            said_in(&pair.farm, "second").contains("pages and")
        });
        pair.wait("the leader to be known", |pair| pair.standby("/api/v1/nodes").status == 200);
        Some(pair)
    }

    fn wait(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        self.farm.wait_for(what, |_| holds(self));
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// A request of the program to the leader (0) or the standby (1).
    fn ask(&self, whom: usize, what: (&str, &str), body: &str) -> Answer {
        let lines = [self.bearer(), "Content-Type: application/json".to_owned()];
        ask(&self.pages[whom], what, &lines, body)
    }

    fn standby(&self, path: &str) -> Answer {
        self.ask(1, ("GET", path), "")
    }

    fn submit(&self) -> String {
        self.farm.submit(&library("cornell-box.gltf"), &OPTIONS)
    }

    /// Submits a job that stays as it is.
    fn submit_paused(&self) -> String {
        let job = self.submit();
        self.farm.text(&["pause", &job]);
        self.wait("the paused job", |pair| pair.shown(&job)["summary"]["state"] == "paused");
        job
    }

    /// Waits until a change of a job that has not ended is made, at the standby's address.
    fn wait_for_change(&self, job: &str) {
        let change = ("PATCH", format!("/api/v1/jobs/{job}"));
        self.wait("changes to be taken", |pair| {
            pair.ask(1, (change.0, &change.1), r#"{"priority":9}"#).status == 200
        });
    }

    /// The job as the standby shows it.
    fn shown(&self, job: &str) -> serde_json::Value {
        let answer = self.standby(&format!("/api/v1/jobs/{job}"));
        if answer.status == 200 { answer.json() } else { json!({}) }
    }

    /// What the database has of the farm's state.
    fn state(&self) -> String {
        self.elsewhere.postgres.sql(
            "SELECT epoch, head, commits, (SELECT md5(string_agg(md5(key || bytes), '' ORDER BY \
             key)) FROM tessera.value) FROM tessera.leader",
        )
    }

    fn leads(&self) -> bool {
        said_in(&self.farm, "second").contains("coordinator listens")
    }
}

// promise: P1
#[test]
fn a_standby_shows_the_farm_and_passes_changes_on() {
    let what = "a_standby_shows_the_farm_and_passes_changes_on";
    let Some(pair) = Pair::start(what, 15) else { return };
    // Reads are its own.
    let job = pair.submit();
    pair.farm.text(&["wait", &job]);
    pair.wait("the job's end", |pair| pair.shown(&job)["summary"]["state"] == "done");
    let listed = pair.standby("/api/v1/jobs");
    assert!(listed.header("age").is_some(), "{}", listed.text());
    assert!(pair.ask(0, ("GET", "/api/v1/jobs"), "").header("age").is_none());
    let frames = pair.standby(&format!("/api/v1/jobs/{job}/frames")).json();
    let (number, file) = (&frames[0]["frame"], &frames[0]["state"]["done"][0]);
    let path = format!("/api/v1/jobs/{job}/frames/{number}/files/exr");
    let (own, leads) = (pair.standby(&path), pair.ask(0, ("GET", &path), ""));
    assert!(own.status == 200 && own.header("age").is_some(), "{}", own.head);
    assert!(own.body == leads.body && own.body.len() > 1000);
    assert_eq!(file["hash"], BlobHash::of(&own.body).to_string(), "{frames}");
    let metrics = pair.standby("/metrics").text();
    assert!(metrics.contains("tessera_standing_by 1"), "{metrics}");
    let metrics = pair.ask(0, ("GET", "/metrics"), "").text();
    assert!(metrics.contains("tessera_standing_by 0"), "{metrics}");
    let ready = ask(&pair.pages[1], ("GET", "/ready"), &[], "");
    assert!(ready.status == 200 && ready.text().contains("stands by"), "{}", ready.text());
    // What only the leader knows comes from it.
    let nodes = pair.standby("/api/v1/nodes");
    assert!(nodes.text().contains("node-0") && nodes.header("age").is_none(), "{}", nodes.text());
    let why = pair.standby(&format!("/api/v1/jobs/{job}/explain"));
    assert_eq!(why.status, 200, "{}", why.text());
    // Changes are made by the leader, and seen here.
    let open = pair.submit();
    let path = format!("/api/v1/jobs/{open}");
    let changed = pair.ask(1, ("PATCH", &path), r#"{"priority":77}"#);
    assert_eq!(changed.status, 200, "{}", changed.text());
    pair.wait("the change", |pair| pair.shown(&open)["summary"]["priority"] == 77);
    assert_eq!(pair.ask(0, ("GET", &path), "").json()["summary"]["priority"], 77);
    // Events come as the replica changes.
    let mut events = Events::follow(&pair.pages[1], &[pair.bearer()]);
    assert!(events.until("event: hello"));
    let newest = pair.submit();
    assert!(events.until(&newest));
    // A token that the standby does not know yet, and one that nobody knows.
    let fresh = pair.farm.text(&["token", "create", "--api"]);
    let with = |token: &str| [format!("Authorization: Bearer {token}")];
    assert_eq!(ask(&pair.pages[1], ("GET", "/api/v1/me"), &with(&fresh), "").status, 200);
    let (start, last) = fresh.split_at(fresh.len() - 1);
    let unknown = format!("{start}{}", if last == "x" { "y" } else { "x" });
    assert_eq!(ask(&pair.pages[1], ("GET", "/api/v1/me"), &with(&unknown), "").status, 401);
    assert_eq!(ask(&pair.pages[1], ("GET", "/api/v1/jobs"), &[], "").status, 401);
}

// promise: P8
#[test]
fn a_browser_signs_in_at_a_standby_and_nobody_speaks_for_it() {
    let what = "a_browser_signs_in_at_a_standby_and_nobody_speaks_for_it";
    let Some(pair) = Pair::start(what, 15) else { return };
    let [leads, stands] = &pair.pages;
    let link = pair.farm.text(&["web", "--print"]);
    let code = link.split_once('#').expect("a code").1;
    let origin = |address: &str| format!("Origin: http://{address}");
    let json = "Content-Type: application/json".to_owned();
    let form = format!(r#"{{"code":"{code}"}}"#);
    let sign_in = ("POST", "/api/v1/sign-in");
    let foreign = ask(stands, sign_in, &[json.clone(), origin("evil.example")], &form);
    assert_eq!(foreign.status, 403, "{}", foreign.text());
    let signed = ask(stands, sign_in, &[json.clone(), origin(stands)], &form);
    assert_eq!(signed.status, 204, "{}", signed.text());
    let set = signed.header("set-cookie").expect("a cookie");
    let cookie = format!("Cookie: {}", set.split(';').next().expect("a pair"));
    let port = stands.rsplit(':').next().expect("a port");
    assert!(cookie.contains(&format!("tessera-{port}=")), "{set}");
    // Until the standby knows the session, the leader answers.
    pair.wait("a page of the standby", |_| {
        let page = ask(stands, ("GET", "/jobs"), std::slice::from_ref(&cookie), "");
        assert_eq!(page.status, 200, "{}", page.text());
        page.text().contains("This coordinator stands by; the leader is")
    });
    // A form of its own page is passed on; one of another site is not taken.
    let job = pair.submit();
    let form = format!("priority=66&job={job}");
    let kind = "Content-Type: application/x-www-form-urlencoded".to_owned();
    let change = format!("/jobs/{job}/set");
    for (from, taken) in
        [(origin("evil.example"), false), (origin(leads), false), (origin(stands), true)]
    {
        let lines = [cookie.clone(), kind.clone(), from.clone()];
        let answer = ask(stands, ("POST", &change), &lines, &form);
        assert_eq!(
            answer.status == 303 || answer.status == 302,
            taken,
            "{from}: {}",
            answer.text()
        );
    }
    pair.wait("the change", |pair| pair.shown(&job)["summary"]["priority"] == 66);
    // The audit log has the browser's address and not the standby's.
    let said = pair.farm.text(&["audit", "--json"]);
    assert!(said.contains("a browser from 127.0.0.1"), "{said}");
    // Nobody else speaks as a coordinator, and nothing is passed on twice.
    let forged = [
        pair.bearer(),
        format!("Tessera-Passed: 1 192.0.2.7:9 {}", "0".repeat(64)),
        "Tessera-Same-Origin: 1".to_owned(),
    ];
    let refused = ask(leads, ("GET", "/api/v1/jobs"), &forged, "");
    assert_eq!(refused.status, 403, "{}", refused.text());
    let refused = ask(stands, ("GET", "/api/v1/nodes"), &forged, "");
    assert!(refused.status == 503 && refused.text().contains("once"), "{}", refused.text());
    let session = cookie.split_once('=').expect("a value").1;
    let smuggled = [format!("Tessera-Session: {session}"), kind, origin(leads)];
    assert_eq!(ask(leads, ("POST", &change), &smuggled, &form).status, 303, "to the sign-in");
    assert_ne!(ask(leads, ("GET", "/api/v1/me"), &smuggled[..1], "").status, 200);
}

// promise: P1, P5
#[test]
fn a_standby_writes_nothing_and_goes_on_at_its_address() {
    let what = "a_standby_writes_nothing_and_goes_on_at_its_address";
    let Some(mut pair) = Pair::start(what, 20) else { return };
    let held = pair.submit_paused();
    let job = pair.submit();
    pair.wait("some commits", |pair| {
        pair.shown(&job)["summary"]["units_committed"].as_u64() >= Some(3)
    });
    let mut events = Events::follow(&pair.pages[1], &[pair.bearer()]);
    assert!(events.until("event: hello"));
    pair.farm.kill_coordinator();
    let before = pair.state();
    let writes = [
        ("PATCH", format!("/api/v1/jobs/{held}"), r#"{"priority":9}"#),
        ("POST", "/api/v1/jobs/change".to_owned(), r#"{"change":"cancel"}"#),
        ("POST", "/api/v1/tokens/api".to_owned(), r#"{"ttl_secs":600}"#),
        ("POST", "/api/v1/sign-out".to_owned(), ""),
        ("DELETE", "/api/v1/nodes/node-0".to_owned(), ""),
        ("GET", "/api/v1/nodes".to_owned(), ""),
    ];
    for (method, path, body) in &writes {
        let answer = pair.ask(1, (method, path), body);
        assert_eq!(answer.status, 503, "{method} {path}: {}", answer.text());
        assert!(answer.header("retry-after").is_some(), "{}", answer.head);
        let said = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(said.contains("stands by") && said.contains("nothing was done"), "{said}");
    }
    assert_eq!(pair.shown(&job)["summary"]["state"], "running", "reads go on");
    assert!(!pair.leads(), "the term was too short for this machine");
    assert_eq!(pair.state(), before);
    // The stream ends as the lead is taken, and a browser asks again at the same address.
    pair.wait("it to lead", Pair::leads);
    while events.until("event: ") {}
    pair.wait_for_change(&held);
    let said = said_in(&pair.farm, "second");
    assert!(said.contains("is_warm=true"), "{said}");
    let mut events = Events::follow(&pair.pages[1], &[pair.bearer()]);
    assert!(events.until("event: hello") && events.until(&job));
    pair.wait("the job's end", |pair| pair.shown(&job)["summary"]["state"] == "done");
    assert!(pair.standby("/api/v1/jobs").header("age").is_none());
    assert!(pair.standby.terminate(), "{}", said_in(&pair.farm, "second"));
}

#[test]
fn a_standby_without_its_database_says_how_old_it_is() {
    let what = "a_standby_without_its_database_says_how_old_it_is";
    let Some(mut pair) = Pair::start(what, 3) else { return };
    let job = pair.submit_paused();
    pair.elsewhere.postgres.kill();
    pair.wait("it to be old", |pair| {
        let answer = pair.standby("/api/v1/jobs");
        assert!(answer.status == 200 && answer.text().contains(&job), "{}", answer.text());
        answer.header("age").and_then(|age| age.parse::<u64>().ok()) >= Some(3)
    });
    // The leader has ended with its term by now or soon, and the standby leads once it can.
    pair.elsewhere.postgres.crash_and_restart();
    pair.wait("it to lead", Pair::leads);
    pair.wait_for_change(&job);
    assert!(pair.standby.terminate(), "{}", said_in(&pair.farm, "second"));
}
