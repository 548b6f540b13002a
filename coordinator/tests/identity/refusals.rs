//! What a farm does not let happen: entries for everybody who was refused, and no start without the
//! authority that members were made by, or with keys that everybody can read.

use crate::farm::{Farm, PATIENCE, closed, hello, lives, start};
use crate::roles::change;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tessera_coordinator::{Config, Coordinator, CoordinatorError};
use tessera_protocol::access::{LogReport, TokenScope};
use tessera_protocol::client::{Request, Response, Role};
use tessera_protocol::selection::{JobChange, JobsChanged};
use tessera_protocol::{BlobHash, Fingerprint, JobId};
use tessera_transport::enrol::{Applicant, enrol};
use tessera_transport::{FarmClient, Identity, JoinToken, Timing, generation};

async fn client(farm: &Farm, identity: &Identity) -> FarmClient {
    FarmClient::new(farm.dial(identity).await.unwrap())
}

async fn log(farm: &Farm) -> LogReport {
    let client = client(farm, &farm.person(Role::Admin, "root")).await;
    match client.request(&Request::Log { last: 1000 }).await.unwrap() {
        Response::Log(report) => report,
        other => panic!("{other:?}"),
    }
}

/// Waits for an entry of this action and person, because a refusal is entered after its answer.
async fn entry(farm: &Farm, what: &str, who: &str) -> String {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let report = log(farm).await;
        let found = report.newest.iter().find(|entry| entry.what == what && entry.who == who);
        if let Some(entry) = found {
            return entry.about.clone();
        }
        assert!(tokio::time::Instant::now() < until, "{what} of {who} in {report:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn refusals_enrolments_and_denied_dials_are_audited() {
    let farm = Farm::start(lives(60, 60)).await;
    let (viewer, eve) = (farm.person(Role::Viewer, "vic"), farm.person(Role::Artist, "eve"));
    let job = JobId(uuid::Uuid::now_v7());
    let pause = change(JobChange::Pause, job);
    client(&farm, &viewer).await.request(&pause).await.unwrap_err();
    let about = entry(&farm, "refused", &viewer.peer.to_string()).await;
    assert!(about.contains(&format!("jobs paused, job {job}")), "{about}");
    assert!(about.contains("needs the role artist"), "{about}");

    // A stream that the role does not have.
    let other = farm.person(Role::Viewer, "val");
    let file = farm.folder.path().join("file");
    std::fs::write(&file, b"123456789").unwrap();
    let blob = (BlobHash::of(b"123456789"), 9);
    client(&farm, &other).await.put_blob(blob, &file, &mut |_, _| ()).await.unwrap_err();
    let about = entry(&farm, "refused", &other.peer.to_string()).await;
    assert!(about.contains("BlobPut") && about.contains("artist"), "{about}");

    // A token that is not known.
    let scope = TokenScope {
        role: Role::Artist,
        pool: None,
        name: None,
        ttl_secs: 60,
        uses: 1,
        replace: false,
    };
    let token = farm.coordinator.create_token(scope).await.unwrap();
    let forged = JoinToken::generate(token.authority).unwrap();
    let applicant = Applicant { token: &forged, name: "mallory", node: None };
    let address = farm.coordinator.local_address().into();
    enrol(&address, applicant, &hello(), Timing::default()).await.unwrap_err();
    let about = entry(&farm, "enrolment refused", "127.0.0.1").await;
    assert!(about.contains("mallory"), "{about}");

    let root = farm.person(Role::Admin, "root");
    let admin = client(&farm, &root).await;
    let deny = Request::Deny { identity: "user:eve".into(), reason: "left".into() };
    admin.request(&deny).await.unwrap();
    let link = farm.dial(&eve).await;
    if let Ok(link) = link {
        closed(&link).await;
    }
    let about = entry(&farm, "turned away", &eve.peer.to_string()).await;
    assert!(about.contains(&format!("denied by {} (left)", root.peer)), "{about}");
    assert_eq!(log(&farm).await.problems, [""; 0]);
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_cannot_push_the_history_out() {
    let farm = Farm::start(lives(60, 60)).await;
    let artist = farm.person(Role::Artist, "eve");
    let eve = client(&farm, &artist).await;
    let before = log(&farm).await.entries;
    let job = JobId(uuid::Uuid::now_v7());
    for _ in 0..400 {
        let answer = eve.request(&change(JobChange::Pause, job)).await.unwrap();
        let Response::Changed(JobsChanged { refused: 1, .. }) = answer else {
            panic!("{answer:?}")
        };
    }
    let entries = log(&farm).await.entries - before;
    assert!((40..=45).contains(&entries), "{entries} entries of 400 requests");
    // What was only counted is entered at the end, with the number.
    let (folder, coordinator) = (farm.folder, farm.coordinator);
    coordinator.shutdown().await.unwrap();
    let again = Farm { coordinator: start(folder.path(), lives(60, 60)).await, folder };
    let about = entry(&again, "not entered one by one", &artist.peer.to_string()).await;
    assert!(about.starts_with("380 more within"), "{about}");
}

async fn restart(data: &Path, change: impl FnOnce(&mut Config)) -> Result<u64, CoordinatorError> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut config = Config::new(data.join("data"), listen, Fingerprint([5; 32]));
    config.disk_reserve_bytes = 0;
    change(&mut config);
    let coordinator = Coordinator::start(config).await?;
    let identity = coordinator.issue(Role::Viewer, "vic", None).unwrap();
    let address = coordinator.local_address().into();
    let link =
        tessera_transport::connect(&address, &identity, &hello(), Timing::default()).await.unwrap();
    let found = generation::of(&link.connection).unwrap();
    coordinator.shutdown().await.unwrap();
    Ok(found)
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_authority_with_members_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    restart(folder.path(), |_| ()).await.unwrap();
    let (authority, kept) =
        (folder.path().join("data/authority"), folder.path().join("authority-of-before"));
    std::fs::rename(&authority, &kept).unwrap();
    let error = restart(folder.path(), |_| ()).await.unwrap_err().to_string();
    assert!(error.contains("authority is missing") && error.contains("--new-authority"), "{error}");
    assert!(error.contains("data/admin"), "{error}");
    assert!(!authority.exists(), "none was made");
    std::fs::rename(&kept, &authority).unwrap();
    restart(folder.path(), |_| ()).await.unwrap();
    std::fs::remove_dir_all(&authority).unwrap();
    restart(folder.path(), |config| config.new_authority = true).await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_everybody_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    restart(folder.path(), |_| ()).await.unwrap();
    let key = folder.path().join("data/authority/authority.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = restart(folder.path(), |_| ()).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.to_string().contains("authority.key"), "{error}");
    assert!(cause.contains("mode 0644") && cause.contains("chmod 600"), "{cause}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_start_raises_the_generation_that_peers_see() {
    let folder = tempfile::tempdir().unwrap();
    for start in 1..=3 {
        assert_eq!(restart(folder.path(), |_| ()).await.unwrap(), start);
    }
    let taken = restart(folder.path(), |config| config.take_over = true).await.unwrap();
    assert!(taken > 1_700_000_000);
    assert_eq!(restart(folder.path(), |_| ()).await.unwrap(), taken + 1);
}
