//! Metrics of a farm whose disk is full, and of what a former process left.

use super::node::{Node, submit};
use super::page::Page;
use crate::farm::Farm;
use tessera_protocol::client::Role;
use tessera_transport::FarmClient;

#[tokio::test(flavor = "multi_thread")]
async fn a_farm_with_a_full_disk_is_still_watched() {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let token = farm.scraper().await;
    let page = farm.scrape(&token).await;
    assert_eq!((page.of("tessera_store_full"), page.of("tessera_store_steps_waiting")), (0.0, 0.0));
    let ada = farm.person(Role::Artist, "ada");
    submit(&FarmClient::new(farm.dial(&ada).await.unwrap()), folder.path(), 1).await;
    farm.coordinator.shutdown().await.unwrap();

    let farm = Farm::start_in(folder.path(), |config| config.disk_reserve_bytes = 1 << 60).await;
    let page = farm.until(&token, "a count of blobs", |page| page.of("tessera_blobs") == 1.0).await;
    assert!(page.of("tessera_blob_bytes") > 9.0);
    assert_eq!(page.of("tessera_jobs{state=\"queued\"}"), 1.0);
    // That a node has joined is a record.
    let _node = Node::join(&farm, "rig").await;
    let full = |page: &Page| {
        page.of("tessera_store_full") == 1.0 && page.of("tessera_store_steps_waiting") >= 1.0
    };
    farm.until(&token, "a step that waits for the full disk", full).await;
    farm.coordinator.shutdown().await.unwrap();
}
