//! Uploads that go on where they stopped, and files in ranges.

use crate::farm::{Answer, Farm};
use serde_json::json;
use tessera_protocol::BlobHash;
use tessera_protocol::client::Role;

async fn put(farm: &Farm, token: &str, path: &str, bytes: &[u8]) -> Answer {
    let headers = format!("Authorization: Bearer {token}\r\n");
    let body = Some((bytes.to_vec(), "application/octet-stream"));
    farm.request(("PUT", path), &headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_on_where_it_stopped() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let bytes: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    let hash = BlobHash::of(&bytes).to_string();
    let place = format!("/api/v1/blobs/{hash}");
    let missing = farm.send(&token, ("POST", "/api/v1/blobs/missing"), Some(&json!([hash]))).await;
    assert_eq!(missing.json(), json!([hash]));
    let first = put(&farm, &token, &format!("{place}?length=300000"), &bytes[..100_000]).await;
    assert_eq!(first.json(), json!({ "held": 100_000, "whole": false }));
    let wrong = put(&farm, &token, &format!("{place}?length=300000&offset=5"), &bytes[5..]).await;
    assert_eq!(wrong.status, 409, "{}", wrong.text());
    assert!(wrong.text().contains("offset=100000"), "{}", wrong.text());
    let held = farm.send(&token, ("GET", &format!("{place}/held?length=300000")), None).await;
    assert_eq!(held.json()["held"], 100_000);
    let rest = format!("{place}?length=300000&offset=100000");
    let rest = put(&farm, &token, &rest, &bytes[100_000..]).await;
    assert_eq!(rest.json(), json!({ "held": 300_000, "whole": true }));
    let again = put(&farm, &token, &format!("{place}?length=300000"), &[]).await;
    assert_eq!(again.json()["whole"], true, "it is here already");
    let missing = farm.send(&token, ("POST", "/api/v1/blobs/missing"), Some(&json!([hash]))).await;
    assert_eq!(missing.json(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_another_hash_are_not_kept() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let place = format!("/api/v1/blobs/{}", BlobHash::of(b"promised"));
    let other = put(&farm, &token, &format!("{place}?length=8"), b"othersxx").await;
    assert_eq!(other.status, 422, "{}", other.text());
    let held = farm.send(&token, ("GET", &format!("{place}/held?length=8")), None).await;
    assert_eq!(held.json()["held"], 0);
    let longer = put(&farm, &token, &format!("{place}?length=8"), b"promised and more").await;
    assert_eq!(longer.status, 413, "{}", longer.text());
    let huge = put(&farm, &token, &format!("{place}?length={}", u64::MAX), b"p").await;
    assert_eq!(huge.status, 413, "{}", huge.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_whole_in_ranges_or_not_again() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    // A job names the file, so that its owner may read it.
    crate::roles::job(&farm, &token, "hers").await;
    let hash = BlobHash::of(b"{}").to_string();
    let place = format!("/api/v1/blobs/{hash}");
    let get = async |headers: &str| {
        let headers = format!("Authorization: Bearer {token}\r\n{headers}");
        farm.request(("GET", &place), &headers, None).await
    };
    let whole = get("").await;
    assert_eq!((whole.status, whole.body.as_slice()), (200, b"{}".as_slice()));
    assert_eq!(whole.header("content-length"), Some("2"));
    let tag = whole.header("etag").unwrap().to_owned();
    assert_eq!(tag, format!("\"{hash}\""));
    let part = get("Range: bytes=1-\r\n").await;
    assert_eq!((part.status, part.body.as_slice()), (206, b"}".as_slice()));
    assert_eq!(part.header("content-range"), Some("bytes 1-1/2"));
    let outside = get("Range: bytes=2-\r\n").await;
    assert_eq!((outside.status, outside.header("content-range")), (416, Some("bytes */2")));
    let same = get(&format!("If-None-Match: {tag}\r\n")).await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    let changed = get("Range: bytes=1-\r\nIf-Range: \"other\"\r\n").await;
    assert_eq!((changed.status, changed.body.len()), (200, 2));
    let bob = farm.token(&farm.person(Role::Artist, "bob")).await;
    assert_eq!(farm.send(&bob, ("GET", &place), None).await.status, 403);
}
