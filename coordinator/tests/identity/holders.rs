//! A name belongs to one holder: enrolments under a held name, stolen identities, and renewals
//! through kills of the coordinator.

use crate::farm::{Farm, PATIENCE, closed, lives, secs, start};
use crate::roles::{ask, join, replacing, scope};
use std::time::Instant;
use tessera_protocol::NodeId;
use tessera_protocol::access::{Keep, MemberSummary};
use tessera_protocol::client::{Request, Response, Role};
use tessera_transport::renew::{self, RenewError, Renewal, renew_kept};
use tessera_transport::validity::now_secs;
use tessera_transport::{
    Authority, CloseCode, EnrolError, Identity, JoinToken, Lifetimes, Link, PeerIdentity, Timing,
};

fn node() -> Option<NodeId> {
    Some(NodeId(uuid::Uuid::now_v7()))
}

async fn token(farm: &Farm, role: Role, uses: u32) -> JoinToken {
    farm.coordinator.create_token(scope(role, None, uses)).await.unwrap()
}

async fn members(farm: &Farm, admin: &Identity) -> Vec<MemberSummary> {
    match ask(farm, admin, Request::Members { from: 0 }).await.unwrap() {
        Response::Members(members) => members,
        other => panic!("{other:?}"),
    }
}

async fn audit_has(farm: &Farm, admin: &Identity, what: &str) -> bool {
    match ask(farm, admin, Request::Log { last: 1000 }).await.unwrap() {
        Response::Log(log) => log.newest.iter().any(|entry| entry.what.contains(what)),
        other => panic!("{other:?}"),
    }
}

fn refused(result: Result<Identity, EnrolError>, words: &str) {
    let error = result.unwrap_err();
    assert!(matches!(&error, EnrolError::Refused(text) if text.contains(words)), "{error:?}");
}

/// Renews over a new connection, as a command does.
async fn renewed(farm: &Farm, identity: &Identity) -> Result<Identity, String> {
    let link = farm.dial(identity).await.map_err(|error| error.to_string())?;
    renewed_on(&link, identity).await
}

async fn renewed_on(link: &Link, identity: &Identity) -> Result<Identity, String> {
    match renew::ask(&link.connection, identity, Timing::default()).await {
        Ok(Renewal::Renewed(renewed)) => Ok(renewed),
        Ok(Renewal::NotYet(wait)) => panic!("{wait:?}"),
        Err(RenewError::Refused(text)) => Err(text),
        Err(_) => Err(closed(link).await.1),
    }
}

/// Dials, and returns why the connection was closed at once; None if a request is answered.
async fn out(farm: &Farm, identity: &Identity) -> Option<String> {
    let link = match farm.dial(identity).await {
        Ok(link) => link,
        Err(error) => return Some(format!("{error:?}")),
    };
    let client = tessera_transport::FarmClient::new(link);
    match client.request(&Request::Jobs(Default::default())).await {
        Ok(_) => None,
        Err(_) => Some(closed(client.link()).await.1),
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_held_name_or_node_id_is_not_enrolled_again() {
    let farm = Farm::start(lives(60, 60)).await;
    let artists = token(&farm, Role::Artist, 9).await;
    let ada = join(&farm, &artists, "ada", None).await.unwrap();
    for name in ["ada", "ADA"] {
        refused(join(&farm, &artists, name, None).await, "belongs to ada #2");
    }
    for name in ["admin", "Admin", "everyone"] {
        refused(join(&farm, &artists, name, None).await, "is reserved");
    }
    let nodes = token(&farm, Role::Node, 9).await;
    let (rig, other) = (node(), node());
    let first = join(&farm, &nodes, "rig-1", rig).await.unwrap();
    refused(join(&farm, &nodes, "rig-1", other).await, "belongs to rig-1 #3");
    refused(join(&farm, &nodes, "rig-2", rig).await, "id belongs to `rig-1 #3`");
    refused(join(&farm, &nodes, "ada", other).await, "belongs to a person");
    assert_eq!((ada.peer.number, first.peer.number), (2, 3));
    // Nobody was disturbed.
    assert_eq!(out(&farm, &ada).await, None);
    farm.dial(&first).await.unwrap();
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_holder_is_out_at_once_and_told() {
    let farm = Farm::start(lives(60, 60)).await;
    let admin = farm.person(Role::Admin, "root");
    let first = join(&farm, &token(&farm, Role::Artist, 1).await, "ada", None).await.unwrap();
    let live = farm.dial(&first).await.unwrap();
    let replace = farm.coordinator.create_token(replacing(Role::Artist, "ada")).await.unwrap();
    let second = join(&farm, &replace, "ada", None).await.unwrap();
    assert_eq!(second.peer.number, first.peer.number, "jobs and denials stay with the holder");
    let (code, reason) = closed(&live).await;
    assert!(code == Some(CloseCode::Denied) && reason.contains("no longer counts"), "{reason}");
    assert!(out(&farm, &first).await.is_some());
    assert_eq!(out(&farm, &second).await, None);
    assert!(audit_has(&farm, &admin, "enrolled again: earlier certificates replaced").await);
    // The name is taken away: nobody holds it, and the next holder has another number.
    ask(&farm, &admin, Request::RemoveMember { member: "ada".into() }).await.unwrap();
    assert!(out(&farm, &second).await.is_some());
    let third = join(&farm, &token(&farm, Role::Artist, 1).await, "ada", None).await.unwrap();
    assert_ne!(third.peer.number, first.peer.number);
    assert_eq!(out(&farm, &third).await, None);
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_thief_who_renews_is_told_and_out_after_a_decision() {
    let mut farm = Farm::start(LONG_GRACE).await;
    let admin = join(&farm, &token(&farm, Role::Admin, 1).await, "root", None).await.unwrap();
    let ada = join(&farm, &token(&farm, Role::Artist, 1).await, "ada", None).await.unwrap();
    until_due(&ada).await;
    // Both have the same certificate, and both renew it: the thief first, then the honest one.
    let stolen = renewed(&farm, &ada).await.unwrap();
    let honest = renewed(&farm, &ada).await.unwrap();
    assert_eq!(out(&farm, &honest).await, None);
    // Over a kill of the coordinator.
    farm = killed(farm).await;
    assert_eq!(out(&farm, &honest).await, None);
    let text = out(&farm, &stolen).await.expect("an older certificate");
    assert!(text.contains("two copies"), "{text}");
    assert!(out(&farm, &honest).await.unwrap().contains("two copies"), "both wait");
    let admin = fresh(&farm, admin).await;
    assert!(audit_has(&farm, &admin, "two copies of an identity").await);
    assert!(audit_has(&farm, &admin, "certificate renewed").await);
    let told = members(&farm, &admin).await;
    let told = told.iter().find(|member| member.name == "ada").unwrap();
    assert!(told.note.contains("members keep ada"), "{}", told.note);

    let keep = Request::KeepMember { member: "ada".into(), keep: Keep::Newer };
    ask(&farm, &admin, keep.clone()).await.unwrap();
    assert_eq!(out(&farm, &honest).await, None);
    assert!(out(&farm, &stolen).await.unwrap().contains("no longer counts"));
    assert_eq!(out(&farm, &honest).await, None, "a known thief is no new alarm");
    assert!(ask(&farm, &admin, keep).await.is_err(), "there is nothing to decide");
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_was_away_renews_within_the_grace() {
    let farm = Farm::start(Lifetimes { user: secs(6), ..LONG_GRACE }).await;
    let ada = join(&farm, &token(&farm, Role::Artist, 1).await, "ada", None).await.unwrap();
    while now_secs() < ada.validity().unwrap().expires_at {
        tokio::time::sleep(secs(1)).await;
    }
    assert!(out(&farm, &ada).await.unwrap().contains("has expired"), "it can do nothing else");
    // Connections are looked at in the meantime.
    let link = farm.dial(&ada).await.unwrap();
    tokio::time::sleep(secs(3)).await;
    let back = renewed_on(&link, &ada).await.unwrap();
    assert_eq!(out(&farm, &back).await, None);
    assert_eq!(Lifetimes::default().user_grace, secs(14 * 86_400));
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_side_by_side_renew_once_and_are_no_thieves() {
    let farm = Farm::start(LONG_GRACE).await;
    let place = farm.folder.path().join("ada");
    let ada = join(&farm, &token(&farm, Role::Artist, 1).await, "ada", None).await.unwrap();
    ada.save(&place).unwrap();
    until_due(&ada).await;
    let links: Vec<Link> = {
        let mut links = Vec::new();
        for _ in 0..4 {
            links.push(farm.dial(&ada).await.unwrap());
        }
        links
    };
    for link in &links {
        // Whoever comes later takes what the first has left in the folder.
        let kept = renew_kept(&link.connection, &ada, &place, Timing::default()).await.unwrap();
        assert!(matches!(kept, Renewal::Renewed(renewed) if renewed.serial() == 2));
    }
    let kept = Identity::load(&place).unwrap();
    assert_eq!((kept.serial(), out(&farm, &kept).await), (2, None));
    farm.coordinator.shutdown().await.unwrap();
}

/// Certificates that can be renewed for an hour after their end: nodes' of 6 s, people's of 14 s.
const LONG_GRACE: Lifetimes =
    Lifetimes { node: secs(6), user: secs(14), node_grace: secs(3600), user_grace: secs(3600) };

async fn until_due(identity: &Identity) {
    let begun = Instant::now();
    while !identity.validity().unwrap().is_due(now_secs()) {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// Renews an identity if it is time, so that it is of use.
async fn fresh(farm: &Farm, identity: Identity) -> Identity {
    match identity.validity().unwrap().is_due(now_secs()) {
        true => renewed(farm, &identity).await.unwrap(),
        false => identity,
    }
}

/// The coordinator is killed, and started again on its folder.
async fn killed(farm: Farm) -> Farm {
    let Farm { folder, coordinator } = farm;
    drop(coordinator);
    let coordinator = start(folder.path(), LONG_GRACE).await;
    Farm { folder, coordinator }
}

/// Rounds of the kill loop: more at night.
fn rounds() -> u32 {
    std::env::var("TESSERA_IDENTITY_KILLS").map_or(4, |text| text.parse().expect("a number"))
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn kills_through_renewals_shut_no_honest_member_out() {
    let mut farm = Farm::start(LONG_GRACE).await;
    let nodes = token(&farm, Role::Node, 9).await;
    let mut honest = Vec::new();
    for name in ["n1", "n2", "n3"] {
        honest.push(join(&farm, &nodes, name, node()).await.unwrap());
    }
    let mut lost = 0;
    for round in 0..rounds() {
        for (position, identity) in honest.iter_mut().enumerate() {
            until_due(identity).await;
            let link = farm.dial(identity).await.unwrap();
            let asked = renew::ask(&link.connection, identity, Timing::default());
            // The answer of one of three is lost: the coordinator is killed before it arrives.
            if position as u32 == round % 3 {
                let waited = std::time::Duration::from_millis(u64::from(round % 7) * 3);
                lost += u32::from(tokio::time::timeout(waited, asked).await.is_err());
                farm = killed(farm).await;
                *identity = renewed(&farm, identity).await.unwrap();
            } else {
                let Renewal::Renewed(next) = asked.await.unwrap() else { panic!("not due") };
                *identity = next;
            }
            let serial = identity.serial();
            farm.dial(identity).await.unwrap_or_else(|error| panic!("{serial}: {error}"));
        }
    }
    println!("{} kills, {lost} answers lost, 0 of 3 members shut out", rounds());
    let admin = farm.person(Role::Admin, "root");
    for member in members(&farm, &admin).await {
        assert_eq!(member.note, "", "{}", member.name);
    }
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_certificates_ended_enrols_again() {
    let ending = Lifetimes { node: secs(2), node_grace: secs(0), ..LONG_GRACE };
    let farm = Farm::start(ending).await;
    let nodes = token(&farm, Role::Node, 9).await;
    let rig = node();
    let first = join(&farm, &nodes, "rig-1", rig).await.unwrap();
    while now_secs() < first.validity().unwrap().expires_at {
        tokio::time::sleep(secs(1)).await;
    }
    refused(join(&farm, &nodes, "rig-1", node()).await, "belongs to rig-1");
    let again = join(&farm, &nodes, "rig-1", rig).await.unwrap();
    assert_eq!((again.peer.number, again.serial()), (first.peer.number, 2));
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn members_from_after_a_backup_are_taken_in_again() {
    let farm = Farm::start(lives(60, 60)).await;
    let authority = Authority::open(&farm.folder.path().join("data/authority")).unwrap();
    let peer = |name, number| PeerIdentity::new(Role::Artist, name, None).unwrap().numbered(number);
    // Enrolled after the backup that this farm was restored from.
    let later = authority.issue_as(&peer("lin", 41), 5).unwrap();
    assert_eq!(out(&farm, &later).await, None);
    let text = out(&farm, &authority.issue_as(&peer("lin", 42), 1).unwrap()).await.unwrap();
    assert!(text.contains("`lin` belongs to lin #41"), "{text}");
    let text = out(&farm, &authority.issue_as(&peer("bob", 41), 6).unwrap()).await.unwrap();
    assert!(text.contains("identity #41 belongs to `lin`"), "{text}");
    let bob = join(&farm, &token(&farm, Role::Artist, 1).await, "bob", None).await.unwrap();
    assert_eq!(bob.peer.number, 42);
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_of_the_data_folder_is_renewed_by_nobody_else() {
    let farm = Farm::start(lives(60, 6)).await;
    let admin = Identity::load(&farm.folder.path().join("data/admin")).unwrap();
    until_due(&admin).await;
    let link = farm.dial(&admin).await.unwrap();
    let asked = renew::ask(&link.connection, &admin, Timing::default()).await.unwrap();
    assert!(matches!(asked, Renewal::NotYet(_)), "a copy could be renewed for ever");
    farm.coordinator.shutdown().await.unwrap();
}
