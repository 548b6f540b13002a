//! What moves each metric: a farm from its start over a job, failures and checks to a suspicion.

use super::node::{Node, submit};
use super::page::Page;
use crate::farm::Farm;
use std::collections::BTreeSet;
use std::io::Read;
use tessera_protocol::Lease;
use tessera_protocol::client::{Request, Role};
use tessera_protocol::logs::{LogAbout, LogLines, Severity};
use tessera_transport::FarmClient;

/// Families that other tests move: they say the same as long as a coordinator runs, or the disk of
/// the machine moves them (`store.rs`), or somebody who watches does (`live.rs`).
const ELSEWHERE: [&str; 18] = [
    "tessera_build_info",
    "tessera_start_time_seconds",
    "tessera_disk_free_bytes",
    "tessera_disk_size_bytes",
    // Of a coordinator that another one leads: `tests/farm/standby.rs`.
    "tessera_standing_by",
    "tessera_standing_by_age_seconds",
    "tessera_store_full",
    "tessera_store_steps_waiting",
    "tessera_blob_bytes",
    "tessera_blobs",
    "tessera_live_tiles_total",
    "tessera_live_watched",
    "tessera_live_bytes",
    // Of targets of events: `tests/farm/events.rs`, `coordinator/events/src/target.rs`.
    "tessera_events_delivered_total",
    "tessera_events_dropped_total",
    "tessera_events_waiting",
    "tessera_event_attempts_failed_total",
    "tessera_event_target_failing",
];

/// The farm that is watched, and what moved so far.
struct Watched {
    farm: Farm,
    token: String,
    last: Page,
    moved: BTreeSet<String>,
}

impl Watched {
    /// Scrapes until rows have these values.
    async fn until(&mut self, rows: &[(&str, f64)]) {
        let holds = |page: &Page| rows.iter().all(|(row, value)| page.of(row) == *value);
        let page = self.farm.until(&self.token, &format!("{rows:?}"), holds).await;
        self.note(page);
    }

    /// Scrapes until a row is above 0.
    async fn until_some(&mut self, row: &str) {
        let page = self.farm.until(&self.token, row, |page| page.of(row) > 0.0).await;
        self.note(page);
    }

    fn note(&mut self, page: Page) {
        self.moved.extend(page.moved_since(&self.last));
        self.last = page;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_follows_what_happens_to_the_farm() {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let token = farm.scraper().await;
    let last = farm.scrape(&token).await;
    assert_eq!(last.of("tessera_queue_device_seconds"), 0.0);
    assert!(last.of("tessera_disk_free_bytes") <= last.of("tessera_disk_size_bytes"));
    assert!(last.of("tessera_disk_free_bytes") > 0.0);
    assert!(last.of("tessera_start_time_seconds") > 1.7e9);
    let mut watched = Watched { farm, token, last, moved: BTreeSet::new() };
    let ada = watched.farm.person(Role::Artist, "ada");
    let client = FarmClient::new(watched.farm.dial(&ada).await.unwrap());
    waits(&mut watched, &client, folder.path()).await;
    let node = works(&mut watched).await;
    is_checked(&mut watched, &client, (folder.path(), node)).await;
    doors(&mut watched).await;
    let still: Vec<&String> = watched
        .last
        .kinds
        .keys()
        .filter(|name| !watched.moved.contains(*name) && !ELSEWHERE.contains(&name.as_str()))
        .collect();
    assert!(still.is_empty(), "nothing moved {still:?}");
    watched.farm.coordinator.shutdown().await.unwrap();
}

/// A job of three units that nobody is there for.
async fn waits(watched: &mut Watched, client: &FarmClient, folder: &std::path::Path) {
    submit(client, folder, 3).await;
    let rows = [
        ("tessera_connections{role=\"artist\"}", 1.0),
        ("tessera_jobs{state=\"queued\"}", 1.0),
        ("tessera_jobs_waiting{reason=\"nodes\"}", 1.0),
        ("tessera_jobs_accepted_total", 1.0),
        ("tessera_units{state=\"queued\"}", 3.0),
        ("tessera_queue_device_seconds", 3.0),
    ];
    watched.until(&rows).await;
}

async fn says_a_line_of_its_log(watched: &mut Watched, node: &Node) {
    let mut log = crate::logs::log_of(node).await;
    let line = crate::logs::line(LogAbout::Node, Severity::Info, "here");
    log.send(&LogLines(vec![line])).await.unwrap();
    watched.until(&[("tessera_log_lines_total{outcome=\"kept\"}", 1.0)]).await;
    watched.until_some("tessera_log_bytes").await;
}

/// A node that fails a unit, says how it is, and makes the units.
async fn works(watched: &mut Watched) -> Node {
    let mut node = Node::join(&watched.farm, "rig-1").await;
    let unit = node.work().await;
    let rows = [
        ("tessera_nodes{state=\"ready\"}", 1.0),
        ("tessera_devices{kind=\"cuda\",state=\"ready\"}", 1.0),
        ("tessera_connections{role=\"node\"}", 1.0),
        ("tessera_jobs{state=\"running\"}", 1.0),
        ("tessera_units{state=\"queued\"}", 2.0),
        ("tessera_units{state=\"leased\"}", 1.0),
        ("tessera_node_units_leased{node=\"rig-1\"}", 1.0),
    ];
    watched.until(&rows).await;
    says_how_it_is(watched, &mut node, unit.lease()).await;
    says_a_line_of_its_log(watched, &node).await;
    node.fail(unit.lease()).await;
    let rows = [
        ("tessera_failures_reported_total{kind=\"device\"}", 1.0),
        ("tessera_attempts_ended_total{class=\"failed\"}", 1.0),
    ];
    watched.until(&rows).await;
    let next = node.work().await;
    node.deliver(next.lease(), 0).await;
    let rows = [
        ("tessera_units_committed_total", 1.0),
        ("tessera_units{state=\"committed\"}", 1.0),
        ("tessera_samples_committed_total", 256.0),
        ("tessera_result_device_seconds_total", 2.0),
        // Two units are left, and the first one took two seconds.
        ("tessera_queue_device_seconds", 4.0),
    ];
    watched.until(&rows).await;
    watched.until_some("tessera_spool_bytes").await;
    for _ in 0..2 {
        let next = node.work().await;
        node.deliver(next.lease(), 0).await;
    }
    let rows = [
        ("tessera_frames_ended_total{state=\"done\"}", 1.0),
        ("tessera_jobs_ended_total{state=\"done\"}", 1.0),
        ("tessera_jobs{state=\"done\"}", 1.0),
        ("tessera_units{state=\"committed\"}", 0.0),
        ("tessera_queue_device_seconds", 0.0),
        ("tessera_spool_bytes", 0.0),
    ];
    watched.until(&rows).await;
    let (commits, groups) = ("tessera_store_commit_seconds", "tessera_store_group_commits");
    let page = &watched.last;
    let count = page.of("tessera_store_commits_total");
    assert!(count > 0.0 && page.of("tessera_journal_records_total") > 0.0);
    assert_eq!(page.of(&format!("{commits}_count")), count);
    assert_eq!(page.of(&format!("{commits}_bucket{{le=\"+Inf\"}}")), count);
    let of_groups = |part: &str| page.of(&format!("{groups}_{part}"));
    // They may grow between the look at one and at the other.
    assert!(of_groups("sum") >= count, "a commit is in no group");
    assert!(of_groups("count") > 0.0 && of_groups("count") <= of_groups("sum"));
    node
}

/// A node that says how it and its device are.
async fn says_how_it_is(watched: &mut Watched, node: &mut Node, lease: Lease) {
    node.beat(vec![lease]).await;
    let of = |name: &str| {
        format!("tessera_device_{name}{{node=\"rig-1\",device=\"cuda:0\",kind=\"cuda\"}}")
    };
    let rows = [
        (of("busy_ratio"), 0.75),
        (of("samples_per_second"), 1e6),
        (of("memory_bytes"), f64::from(1 << 30) * 8.0),
        (of("memory_free_bytes"), f64::from(1 << 30) * 3.0),
        (of("memory_held_bytes"), f64::from(1 << 30)),
        (of("temperature_celsius"), 61.0),
        (of("power_watts"), 250.5),
        (of("last_xid"), 79.0),
        (of("last_xid_age_seconds"), 12.0),
        (of("ecc_errors_total").replace('}', ",corrected=\"no\"}"), 1.0),
        (of("ecc_errors_total").replace('}', ",corrected=\"yes\"}"), 2.0),
        ("tessera_node_busy_ratio{node=\"rig-1\"}".to_owned(), 0.5),
    ];
    let rows: Vec<(&str, f64)> = rows.iter().map(|(row, value)| (row.as_str(), *value)).collect();
    watched.until(&rows).await;
}

/// Two nodes whose results of one unit differ.
async fn is_checked(
    watched: &mut Watched,
    client: &FarmClient,
    (folder, mut node): (&std::path::Path, Node),
) {
    let mut other = Node::join(&watched.farm, "rig-2").await;
    watched.until(&[("tessera_nodes{state=\"ready\"}", 2.0)]).await;
    submit(client, folder, 1).await;
    let (first, second) = tokio::select! {
        unit = node.work() => ((unit, &node), &mut other),
        unit = other.work() => ((unit, &other), &mut node),
    };
    first.1.deliver(first.0.lease(), 0).await;
    let again = second.work().await;
    assert_eq!(again.lease().unit, first.0.lease().unit);
    // Nothing is known of the node, so that another one renders its result again.
    watched.until(&[("tessera_checks_pending", 1.0), ("tessera_queue_device_seconds", 2.0)]).await;
    second.deliver(again.lease(), 1).await;
    watched.until(&[("tessera_checks_total{outcome=\"made\"}", 1.0)]).await;
    // Of two nodes nobody can say which is wrong: each is asked once more, and agrees with itself.
    let suspected = |page: &Page| page.of("tessera_node_suspicions_total") > 0.0;
    let work = async {
        loop {
            tokio::select! {
                unit = node.work() => node.deliver(unit.lease(), 0).await,
                unit = other.work() => other.deliver(unit.lease(), 1).await,
            }
        }
    };
    let page = tokio::select! {
        page = watched.farm.until(&watched.token, "a suspicion", suspected) => page,
        () = work => unreachable!("it works on"),
    };
    let of =
        |standing: &str| page.of(&format!("tessera_nodes_suspected{{standing=\"{standing}\"}}"));
    assert!(of("in_doubt") + of("quarantined") > 0.0);
    watched.note(page);
}

/// Who knocks, over QUIC and HTTP, and what is said of certificates.
async fn doors(watched: &mut Watched) {
    let (root, eve) =
        (watched.farm.person(Role::Admin, "root"), watched.farm.person(Role::Viewer, "eve"));
    let deny = Request::Deny { identity: "eve".into(), reason: "left".into() };
    watched.farm.ask(&root, deny).await;
    // The connection is made before it is closed.
    drop(watched.farm.dial(&eve).await);
    watched.until(&[("tessera_connections_refused_total{reason=\"identity\"}", 1.0)]).await;

    assert_eq!(watched.farm.request(("GET", "/metrics"), "", None).await.status, 401);
    let authorized = format!("Authorization: Bearer {}\r\n", watched.token);
    let mut events = watched.farm.open("/api/v1/events", &authorized);
    events.read_exact(&mut [0; 12]).unwrap();
    let refused = ("tessera_http_requests_total{status=\"4xx\"}", 1.0);
    watched.until(&[refused, ("tessera_http_event_streams", 1.0)]).await;
    drop(events);
    watched.until(&[("tessera_http_event_streams", 0.0)]).await;

    let ends = |name: &str| {
        format!("tessera_certificate_expiry_timestamp_seconds{{certificate=\"{name}\"}}")
    };
    assert!(watched.last.of(&ends("authority")) > watched.last.of("tessera_start_time_seconds"));
    assert_eq!(watched.last.of(&ends("pages")), 0.0, "they have none");
    let api = watched.farm.coordinator.api();
    let (chain, _) = api.web_certificate(&["localhost".to_owned()]).unwrap();
    api.serves_certificate(&chain[0]);
    let page = watched.farm.scrape(&watched.token).await;
    let days = (page.of(&ends("pages")) - page.of("tessera_start_time_seconds")) / 86_400.0;
    assert!((89.0..=91.0).contains(&days), "{days}");
    watched.note(page);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_for_those_who_may_see_the_farm() {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let token = farm.scraper().await;
    let authorized = format!("Authorization: Bearer {token}\r\n");
    for (headers, status) in [
        ("", 401),
        ("Authorization: Bearer tessera-api-nobody\r\n", 401),
        ("Authorization: Basic YTpi\r\n", 401),
        (authorized.as_str(), 200),
    ] {
        let answer = farm.request(("GET", "/metrics"), headers, None).await;
        assert_eq!(answer.status, status, "{headers}");
    }
    // What Prometheus says by default.
    let asks = "Accept: application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5\r\n";
    for accept in ["", asks, "Accept: */*\r\n"] {
        let headers = format!("{authorized}{accept}");
        let answer = farm.request(("GET", "/metrics"), &headers, None).await;
        let (head, body) = (answer.head.to_lowercase(), answer.text());
        let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
        assert!(format!("{head}\r\n").contains(kind), "{head}");
        assert!(body.ends_with("# EOF\n"));
        let info = format!("fingerprint=\"{}\"}} 1", crate::farm::FINGERPRINT);
        assert!(body.contains(&info), "{body}");
    }
    farm.coordinator.shutdown().await.unwrap();
}
