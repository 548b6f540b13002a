//! Certificates of a few seconds: renewed over the connection, and what becomes of those that are
//! not.

use crate::farm::{Farm, PATIENCE, closed, lives, secs};
use std::sync::Arc;
use std::time::Instant;
use tessera_protocol::client::Role;
use tessera_protocol::stream::StreamKind;
use tessera_transport::frame::open_both;
use tessera_transport::renew::{self, Renewal};
use tessera_transport::validity::now_secs;
use tessera_transport::{CloseCode, ConnectError, Identity, Timing};

fn expiry(identity: &Identity) -> u64 {
    identity.validity().unwrap().expires_at
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stays_connected_outlives_its_certificates() {
    let farm = Farm::start(lives(4, 4)).await;
    let folder = farm.folder.path().join("node");
    let first = farm.node("n1");
    first.save(&folder).unwrap();
    let link = farm.dial(&first).await.unwrap();
    let (connection, kept, first_expiry) =
        (link.connection.clone(), folder.clone(), expiry(&first));
    let renewing = tokio::spawn(async move {
        renew::keep_fresh(connection, Arc::new(first), &kept, Timing::default(), |told| {
            drop(told.unwrap())
        })
        .await;
    });
    let begun = Instant::now();
    while now_secs() <= first_expiry + 2 {
        assert!(begun.elapsed() < PATIENCE);
        assert_eq!(link.connection.close_reason(), None);
        tokio::time::sleep(secs(1)).await;
    }
    renewing.abort();
    let renewed = Identity::load(&folder).unwrap();
    assert!(expiry(&renewed) > first_expiry + 2, "{} {first_expiry}", expiry(&renewed));
    farm.dial(&renewed).await.unwrap();
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_ends_its_connection_with_a_hint() {
    let farm = Farm::start(lives(60, 2)).await;
    let identity = farm.person(Role::Admin, "ada");
    let link = farm.dial(&identity).await.unwrap();
    let (code, reason) = closed(&link).await;
    assert_eq!(code, Some(CloseCode::Expired), "{reason}");
    let error = farm.dial(&identity).await.unwrap_err();
    assert!(matches!(error, ConnectError::Expired { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("token create"), "{error}");
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_node_renews_an_expired_certificate_first_after_a_partition() {
    let farm = Farm::start(lives(2, 60)).await;
    let expired = farm.node("n1");
    while now_secs() < expiry(&expired) {
        tokio::time::sleep(secs(1)).await;
    }
    // Whoever begins with something else is sent away, and told why.
    let link = farm.dial(&expired).await.unwrap();
    // A machine that is busy may open the stream after the connection was closed.
    let _control = open_both(&link.connection, StreamKind::NodeControl).await;
    let (code, reason) = closed(&link).await;
    assert_eq!(code, Some(CloseCode::Expired), "{reason}");

    let link = farm.dial(&expired).await.unwrap();
    assert!(renew::is_due(&link.connection, &expired));
    let renewal = renew::ask(&link.connection, &expired, Timing::default()).await.unwrap();
    let Renewal::Renewed(renewed) = renewal else { panic!("{renewal:?}") };
    assert_eq!(renewed.peer, expired.peer);
    assert!(expiry(&renewed) > now_secs());
    farm.dial(&renewed).await.unwrap();
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn renewing_a_fresh_certificate_is_refused_with_a_wait() {
    let farm = Farm::start(lives(60, 600)).await;
    let identity = farm.person(Role::Admin, "ada");
    let link = farm.dial(&identity).await.unwrap();
    let Renewal::NotYet(wait) =
        renew::ask(&link.connection, &identity, Timing::default()).await.unwrap()
    else {
        panic!("renewed a certificate that was just made")
    };
    assert!((secs(250)..=secs(300)).contains(&wait), "{wait:?}");
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_identity_of_the_data_folder_stays_fresh_by_itself() {
    let farm = Farm::start(lives(60, 4)).await;
    let folder = farm.folder.path().join("data/admin");
    let first = expiry(&Identity::load(&folder).unwrap());
    let begun = Instant::now();
    while now_secs() <= first {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(secs(1)).await;
    }
    let kept = Identity::load(&folder).unwrap();
    assert!(expiry(&kept) > first);
    farm.dial(&kept).await.unwrap();
    farm.coordinator.shutdown().await.unwrap();
}
