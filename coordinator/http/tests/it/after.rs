//! Jobs that wait for others, over HTTP: what is submitted, shown, drawn and refused.

use crate::farm::Farm;
use crate::pages::session;
use crate::roles::job;
use serde_json::{Value, json};
use tessera_protocol::client::Role;
use tessera_protocol::{BlobHash, JobId};

/// The form of a small job that waits for others. Its scene has been uploaded before.
fn form(name: &str, after: Value) -> Value {
    let file =
        json!({ "path": "scene.gltf", "hash": BlobHash::of(b"{}").to_string(), "length": 2 });
    json!({ "name": name, "after": after, "render": { "scene": "scene.gltf", "files": [file],
        "width": 64, "height": 64, "spp": 1 } })
}

// promise: P4
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_is_shown_with_the_others() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let first = job(&farm, &token, "simulate & <bake>").await;
    let (second, third) = (JobId::new(), JobId::new());
    let frames = json!([{ "job": first.to_string(), "until": "frames" }]);
    let path = |job: JobId| format!("/api/v1/jobs/{job}");
    let answer = farm.send(&token, ("PUT", &path(second)), Some(&form("film", frames))).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let both = json!([{ "job": first.to_string(), "until": "end" }, { "job": second.to_string() }]);
    let answer = farm.send(&token, ("PUT", &path(third)), Some(&form("cut", both))).await;
    assert_eq!(answer.status, 201, "{}", answer.text());

    let detail = farm.send(&token, ("GET", &path(second)), None).await.json();
    let after = &detail["after"][0];
    assert_eq!(after["job"], json!(first.to_string()));
    assert_eq!((&after["until"], &after["over"]), (&json!("frames"), &json!(false)));
    assert_eq!((&after["frames_done"], &after["frames"]), (&json!(0), &json!(1)));
    assert_eq!(detail["awaited_by"][0]["job"], json!(third.to_string()));
    assert_eq!(detail["awaited_by"][0]["until"], json!("success"));
    assert_eq!(detail["summary"]["waits"], json!("after"));
    assert_eq!(detail["spec"]["after"][0]["until"], json!("frames"));
    let explained = format!("{}/explain", path(second));
    let explained = farm.send(&token, ("GET", &explained), None).await.json();
    assert_eq!(explained["reasons"][0]["word"], json!("after"), "{explained}");

    let cookie = session(&farm, Role::Artist, "ada").await;
    let page = farm.request(("GET", &format!("/jobs/{second}")), &cookie, None).await.text();
    for part in [
        format!("<a href=\"/jobs/{first}\"><bdi>simulate &amp; &lt;bake&gt;</bdi></a>"),
        format!("<a href=\"/jobs/{third}\"><bdi>cut</bdi></a>"),
        "frame by frame: 0 of 1 frames".to_owned(),
        "Waits for".to_owned(),
        "Waited for by".to_owned(),
        "aria-hidden=\"true\"".to_owned(),
    ] {
        assert!(page.contains(&part), "{part} is not in {page}");
    }
    let alone = job(&farm, &token, "alone").await;
    let page = farm.request(("GET", &format!("/jobs/{alone}")), &cookie, None).await.text();
    assert!(!page.contains("Waits for") && !page.contains("class=\"graph\""), "{page}");

    let change = json!({ "change": "cancel", "jobs": [first.to_string()] });
    let answer = farm.send(&token, ("POST", "/api/v1/jobs/change"), Some(&change)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let detail = farm.send(&token, ("GET", &path(second)), None).await.json();
    assert_eq!(detail["summary"]["state"], json!("failed"));
    let note = detail["summary"]["note"].as_str().unwrap_or_default();
    assert!(note.contains(&first.to_string()) && note.contains("was cancelled"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_waited_for_is_refused_over_http() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let first = job(&farm, &token, "first").await.to_string();
    let unknown = JobId::new().to_string();
    for (after, status, said) in [
        (json!([{ "job": unknown }]), 404, unknown.as_str()),
        (json!([{ "job": "first" }]), 422, "is not the id of a job"),
        (json!([{ "job": first, "until": "later" }]), 422, "success, end, frames"),
        (json!([{ "job": first, "when": "end" }]), 400, "when"),
        (json!([{ "job": first }, { "job": first }]), 422, "is named twice"),
    ] {
        let path = format!("/api/v1/jobs/{}", JobId::new());
        let answer = farm.send(&token, ("PUT", &path), Some(&form("film", after))).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.text().contains(said), "{said}: {}", answer.text());
    }
}
