//! A new authority: for a node that stays, for a client that comes after, for tokens of before; and
//! the audit log that tells of it.

use crate::farm::{Farm, PATIENCE, hello, lives, secs};
use crate::roles::scope;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_protocol::NodeId;
use tessera_protocol::access::LogReport;
use tessera_protocol::client::{Request, Response, Role};
use tessera_transport::enrol::{Applicant, enrol};
use tessera_transport::renew::{self, Renewal};
use tessera_transport::validity::now_secs;
use tessera_transport::{EnrolError, FarmClient, Identity, Timing};

async fn ask(farm: &Farm, identity: &Identity, request: Request) -> Response {
    let client = FarmClient::new(farm.dial(identity).await.unwrap());
    tokio::time::timeout(PATIENCE, client.request(&request))
        .await
        .expect("an answer in time")
        .unwrap()
}

async fn log(farm: &Farm) -> LogReport {
    match ask(farm, farm.coordinator.admin(), Request::Log { last: 100 }).await {
        Response::Log(report) => report,
        other => panic!("{other:?}"),
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_ends_and_keeps_every_node() {
    let farm = Farm::start(lives(60, 60)).await;
    let scope = scope(Role::Node, None, 9);
    let token = farm.coordinator.create_token(scope).await.unwrap();
    let folder = farm.folder.path().join("node");
    let (stays, later) = (farm.node("stays"), farm.person(Role::Admin, "later"));
    stays.save(&folder).unwrap();
    let link = farm.dial(&stays).await.unwrap();

    let rotate = Request::RotateAuthority { overlap_secs: Some(12) };
    let Response::Authority(status) = ask(&farm, farm.coordinator.admin(), rotate).await else {
        panic!()
    };
    let until = status.former_until.unwrap();

    // The node that stays hears of it over the connection that stands.
    let told = |told: Result<Arc<Identity>, renew::RenewError>| drop(told.unwrap());
    let fresh = renew::keep_fresh(
        link.connection.clone(),
        Arc::new(stays),
        &folder,
        Timing::default(),
        told,
    );
    let begun = Instant::now();
    tokio::select! {
        () = fresh => panic!("the connection has ended"),
        () = async {
            while Identity::load(&folder).unwrap().authority_pin() == later.authority_pin() {
                assert!(begun.elapsed() < PATIENCE);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        } => {}
    }
    assert_eq!(link.connection.close_reason(), None);

    // A client of before comes after, and renews; a token of before still lets in.
    let came = farm.dial(&later).await.unwrap();
    assert!(renew::is_due(&came.connection, &later));
    let renewal = renew::ask(&came.connection, &later, Timing::default()).await.unwrap();
    let Renewal::Renewed(later_renewed) = renewal else { panic!("{renewal:?}") };
    let join = async |name: &'static str| -> Result<Identity, EnrolError> {
        let (address, ours) = (farm.coordinator.local_address().into(), hello());
        let node = Some(NodeId(uuid::Uuid::now_v7()));
        enrol(&address, Applicant { token: &token, name, node }, &ours, Timing::default()).await
    };
    let joined = join("n2").await.unwrap();
    farm.dial(&joined).await.unwrap();

    // Then the old one ends: who was renewed is in, who was not is out.
    while now_secs() <= until + 3 {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(secs(1)).await;
    }
    farm.dial(&Identity::load(&folder).unwrap()).await.unwrap();
    farm.dial(&later_renewed).await.unwrap();
    farm.dial(&later).await.unwrap_err();
    join("n3").await.unwrap_err();
    let admin = Identity::load(&farm.folder.path().join("data/admin")).unwrap();
    assert_eq!(admin.authority_pin(), later_renewed.authority_pin());
    let Response::Authority(status) = ask(&farm, &admin, Request::Authority).await else {
        panic!()
    };
    assert_eq!(status.former_until, None);
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_tells_who_did_what_before_it_is_done() {
    let farm = Farm::start(lives(60, 60)).await;
    let admin = farm.person(Role::Admin, "ada");
    farm.person(Role::Artist, "eve");
    let deny = Request::Deny { identity: "eve".into(), reason: "left".into() };
    ask(&farm, &admin, deny).await;
    let client = FarmClient::new(farm.dial(&admin).await.unwrap());
    client
        .request(&Request::Deny { identity: "ada".into(), reason: String::new() })
        .await
        .unwrap_err();
    let scope = scope(Role::Artist, None, 1);
    let token = farm.coordinator.create_token(scope).await.unwrap();
    let (address, ours) = (farm.coordinator.local_address().into(), hello());
    enrol(&address, Applicant { token: &token, name: "bob", node: None }, &ours, Timing::default())
        .await
        .unwrap();
    let report = log(&farm).await;
    let told: Vec<(&str, &str)> =
        report.newest.iter().map(|entry| (entry.who.as_str(), entry.what.as_str())).collect();
    let expected = [
        ("admin ada #2", "denied"),
        ("admin ada #2", "denied"),
        ("admin ada #2", "not done"),
        ("artist bob #4", "enrolled by a token"),
    ];
    assert_eq!(told, expected);
    assert_eq!((report.problems.len(), report.entries), (0, 4));
    assert!(report.newest[0].about.contains("eve") && report.newest[0].about.contains("left"));
    let mut before = "0".repeat(64);
    for entry in &report.newest {
        assert_eq!(entry.chained_to(&before), entry.hash);
        before.clone_from(&entry.hash);
    }
    // One word changed on the disk is seen.
    let file = farm.folder.path().join("data/audit/00000001.log");
    let text = std::fs::read_to_string(&file).unwrap().replacen("eve", "eva", 1);
    std::fs::write(&file, text).unwrap();
    let problems = log(&farm).await.problems;
    assert!(problems[0].contains("entry 1 was changed"), "{problems:?}");
    farm.coordinator.shutdown().await.unwrap();
}
