//! Metrics of a farm whose disk is full, and of what a former process left.

use super::node::{Node, submit};
use super::page::Page;
use crate::farm::Farm;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
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

/// Size and available bytes of a folder's disk, as the system says.
fn disk_of(folder: &Path) -> (f64, f64) {
    let mut command = Command::new("df");
    let said = command.args(["-B1", "--output=size,avail"]).arg(folder).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let mut numbers = said.lines().last().unwrap().split_whitespace().map(|n| n.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_is_as_large_and_free_as_the_system_says() {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let token = farm.scraper().await;
    let (size, before) = disk_of(folder.path());
    let page = farm.scrape(&token).await;
    let (_, after) = disk_of(folder.path());
    assert_eq!(page.of("tessera_disk_size_bytes"), size);
    // Others write to the same disk.
    let free = page.of("tessera_disk_free_bytes");
    let (least, most) = (before.min(after) - 1e9, before.max(after) + 1e9);
    assert!((least..=most).contains(&free), "{free} is not {before} to {after}");
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_and_another_build_show() {
    let folder = tempfile::tempdir().unwrap();
    let info = |page: &Page| {
        let rows: Vec<&String> =
            page.values.keys().filter(|row| row.starts_with("tessera_build_info{")).collect();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(page.of(rows[0]), 1.0);
        rows[0].clone()
    };
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let token = farm.scraper().await;
    let first = farm.scrape(&token).await;
    farm.coordinator.shutdown().await.unwrap();

    tokio::time::sleep(Duration::from_millis(1100)).await;
    let other = tessera_protocol::Fingerprint([8; 32]);
    let farm = Farm::start_in(folder.path(), |config| config.fingerprint = other).await;
    let second = farm.scrape(&token).await;
    let started = |page: &Page| page.of("tessera_start_time_seconds");
    let passed = started(&second) - started(&first);
    assert!((1.0..600.0).contains(&passed), "{passed}");
    assert!(info(&first).contains(&crate::farm::FINGERPRINT.to_string()), "{}", info(&first));
    assert!(info(&second).contains(&other.to_string()), "{}", info(&second));
    farm.coordinator.shutdown().await.unwrap();
}
