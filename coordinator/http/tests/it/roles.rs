//! Every route, with every role and for what is another's.

use crate::farm::Farm;
use crate::templates::Lines;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tessera_protocol::client::{Request, Role};
use tessera_protocol::{BlobHash, JobId};

const PEOPLE: [Role; 4] = [Role::Viewer, Role::Artist, Role::Operator, Role::Admin];

/// Method, path as it is described, path, body, and the least role.
type Row = (&'static str, &'static str, String, Option<Value>, Role);

/// One request of each route.
fn table(job: JobId) -> Vec<Row> {
    [work(job), templates(), access()].concat()
}

/// Routes about jobs, files and nodes.
fn work(job: JobId) -> Vec<Row> {
    let hash = "ab".repeat(32);
    let one = |path: &str| path.to_owned();
    let render = json!({ "name": "none", "render": { "scene": "none.gltf" } });
    vec![
        ("GET", "/me", one("/me"), None, Role::Viewer),
        ("GET", "/jobs", one("/jobs"), None, Role::Viewer),
        (
            "POST",
            "/jobs/change",
            one("/jobs/change"),
            Some(json!({ "change": "pause", "name": "no*" })),
            Role::Artist,
        ),
        ("GET", "/jobs/{job}", format!("/jobs/{job}"), None, Role::Viewer),
        ("PATCH", "/jobs/{job}", format!("/jobs/{job}"), Some(json!({})), Role::Artist),
        ("PUT", "/jobs/{job}", format!("/jobs/{job}"), Some(render.clone()), Role::Artist),
        ("POST", "/inspect", one("/inspect"), Some(render.clone()), Role::Artist),
        ("GET", "/jobs/{job}/frames", format!("/jobs/{job}/frames"), None, Role::Viewer),
        ("GET", "/jobs/{job}/explain", format!("/jobs/{job}/explain"), None, Role::Viewer),
        (
            "GET",
            "/jobs/{job}/frames/{frame}/explain",
            format!("/jobs/{job}/frames/0/explain"),
            None,
            Role::Viewer,
        ),
        ("GET", "/nodes/{node}/explain", one("/nodes/none/explain"), None, Role::Viewer),
        ("GET", "/jobs/{job}/kernel-text", format!("/jobs/{job}/kernel-text"), None, Role::Viewer),
        (
            "GET",
            "/jobs/{job}/frames/{frame}/files/{format}",
            format!("/jobs/{job}/frames/0/files/exr"),
            None,
            Role::Viewer,
        ),
        (
            "GET",
            "/jobs/{job}/frames/{frame}/live",
            format!("/jobs/{job}/frames/0/live"),
            None,
            Role::Viewer,
        ),
        ("GET", "/jobs/{job}/logs", format!("/jobs/{job}/logs"), None, Role::Viewer),
        ("GET", "/jobs/{job}/logs/follow", format!("/jobs/{job}/logs/follow"), None, Role::Viewer),
        ("GET", "/nodes/{node}/logs", one("/nodes/none/logs"), None, Role::Operator),
        ("GET", "/nodes/{node}/logs/follow", one("/nodes/none/logs/follow"), None, Role::Operator),
        ("POST", "/blobs/missing", one("/blobs/missing"), Some(json!([hash])), Role::Artist),
        ("GET", "/blobs/{hash}", format!("/blobs/{hash}"), None, Role::Operator),
        ("PUT", "/blobs/{hash}", format!("/blobs/{hash}?length=9"), None, Role::Artist),
        ("GET", "/blobs/{hash}/held", format!("/blobs/{hash}/held?length=9"), None, Role::Artist),
        ("GET", "/nodes", one("/nodes"), None, Role::Viewer),
        ("GET", "/nodes/{node}", one("/nodes/none"), None, Role::Viewer),
        ("DELETE", "/nodes/{node}", one("/nodes/none"), None, Role::Operator),
        ("POST", "/nodes/{node}/drain", one("/nodes/none/drain"), Some(json!({})), Role::Operator),
        ("POST", "/nodes/{node}/undrain", one("/nodes/none/undrain"), None, Role::Operator),
    ]
}

/// Routes about templates and presets.
fn templates() -> Vec<Row> {
    let one = |path: &str| path.to_owned();
    let template = json!({ "template": "none" });
    vec![
        (
            "POST",
            "/templates/outline",
            one("/templates/outline"),
            Some(template.clone()),
            Role::Artist,
        ),
        ("POST", "/templates/plan", one("/templates/plan"), Some(template.clone()), Role::Artist),
        ("PUT", "/batches/{batch}", one("/batches/none"), Some(template.clone()), Role::Artist),
        ("GET", "/presets", one("/presets"), None, Role::Viewer),
        ("GET", "/presets/{preset}", one("/presets/none"), None, Role::Viewer),
        ("PUT", "/presets/{preset}", one("/presets/none"), Some(template), Role::Admin),
        ("DELETE", "/presets/{preset}", one("/presets/none"), None, Role::Admin),
    ]
}

/// Routes about who may do what, and the farm as a whole.
fn access() -> Vec<Row> {
    let one = |path: &str| path.to_owned();
    vec![
        ("GET", "/costs", one("/costs"), None, Role::Viewer),
        ("GET", "/costs/rules", one("/costs/rules"), None, Role::Operator),
        ("PUT", "/costs/rules", one("/costs/rules"), Some(json!({})), Role::Admin),
        ("GET", "/tokens", one("/tokens"), None, Role::Viewer),
        ("POST", "/tokens", one("/tokens"), Some(json!({ "role": "node" })), Role::Operator),
        (
            "POST",
            "/tokens/api",
            one("/tokens/api"),
            Some(json!({ "role": "viewer" })),
            Role::Viewer,
        ),
        ("DELETE", "/tokens/{token}", one("/tokens/none"), None, Role::Viewer),
        ("GET", "/members", one("/members"), None, Role::Operator),
        ("DELETE", "/members/{member}", one("/members/none"), None, Role::Admin),
        (
            "POST",
            "/members/{member}/keep",
            one("/members/none/keep"),
            Some(json!({ "keep": "newer" })),
            Role::Operator,
        ),
        ("GET", "/denied", one("/denied"), None, Role::Admin),
        ("PUT", "/denied/{identity}", one("/denied/node:none"), Some(json!({})), Role::Admin),
        ("DELETE", "/denied/{identity}", one("/denied/node:none"), None, Role::Admin),
        ("GET", "/audit-log", one("/audit-log"), None, Role::Admin),
        ("GET", "/usage", one("/usage"), None, Role::Viewer),
        (
            "POST",
            "/owners/{owner}/sweep",
            one("/owners/none/sweep"),
            Some(json!({ "dry_run": true })),
            Role::Admin,
        ),
        ("GET", "/authority", one("/authority"), None, Role::Admin),
        (
            "POST",
            "/authority/rotate",
            one("/authority/rotate"),
            Some(json!({ "overlap_secs": 1u64 << 40 })),
            Role::Admin,
        ),
        ("POST", "/check-records", one("/check-records"), None, Role::Admin),
        ("POST", "/backup", one("/backup"), None, Role::Admin),
    ]
}

/// Routes that are for nobody or that do not end: other tests have them.
const ELSEWHERE: [(&str, &str); 3] =
    [("POST", "/sign-in"), ("POST", "/sign-out"), ("GET", "/events")];

#[test]
fn every_route_is_in_the_table() {
    let described: Value = serde_json::from_str(&tessera_http::openapi()).unwrap();
    let mut routes = BTreeSet::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            routes.insert((method.to_ascii_uppercase(), path.clone()));
        }
    }
    let tried = table(JobId::new()).into_iter().map(|(method, path, ..)| (method, path));
    let known: BTreeSet<(String, String)> =
        tried.chain(ELSEWHERE).map(|(method, path)| (method.to_owned(), path.to_owned())).collect();
    assert_eq!(routes, known);
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn every_role_may_use_the_routes_that_it_should() {
    let farm = Farm::start_looking(Lines).await;
    for role in PEOPLE {
        let token = farm.token(&farm.person(role, &format!("a-{role}"))).await;
        for (method, _, path, body, needed) in table(JobId::new()) {
            let path = format!("/api/v1{path}");
            let answer = farm.send(&token, (method, &path), body.as_ref()).await;
            let refused = answer.status == 403;
            let expected = !role.covers(needed);
            assert_eq!(refused, expected, "{role} {method} {path}: {}", answer.text());
            assert!(answer.status < 500, "{role} {method} {path}: {}", answer.text());
        }
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn no_route_serves_somebody_who_is_not_signed_in() {
    let farm = Farm::start().await;
    let others = ELSEWHERE[1..]
        .iter()
        .map(|(method, path)| (*method, "", (*path).to_owned(), None, Role::Viewer));
    for (method, _, path, body, _) in table(JobId::new()).into_iter().chain(others) {
        let body = body.map(|value| (value.to_string().into_bytes(), "application/json"));
        let answer = farm.request((method, &format!("/api/v1{path}")), "", body).await;
        // Beyond a burst, strangers are told to wait.
        assert!([401, 429].contains(&answer.status), "{method} {path}: {}", answer.text());
    }
}

/// A job of one small picture.
pub(crate) async fn job(farm: &Farm, token: &str, name: &str) -> JobId {
    let scene = b"{}";
    let hash = BlobHash::of(scene);
    let put = format!("/api/v1/blobs/{hash}?length=2");
    let headers = format!("Authorization: Bearer {token}\r\n");
    let body = Some((scene.to_vec(), "application/octet-stream"));
    let answer = farm.request(("PUT", &put), &headers, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let job = JobId::new();
    let file = json!({ "path": "scene.gltf", "hash": hash.to_string(), "length": 2 });
    let form = json!({ "name": name, "render": { "scene": "scene.gltf", "files": [file],
        "width": 64, "height": 64, "spp": 1 } });
    let path = format!("/api/v1/jobs/{job}");
    for _ in 0..2 {
        let answer = farm.send(token, ("PUT", &path), Some(&form)).await;
        assert_eq!(answer.status, 201, "again is harmless: {}", answer.text());
    }
    job
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn only_owners_and_operators_change_a_job() {
    let farm = Farm::start().await;
    let (ada, bob) = (farm.person(Role::Artist, "ada"), farm.person(Role::Artist, "bob"));
    let olga = farm.person(Role::Operator, "olga");
    let (ada, bob) = (farm.token(&ada).await, farm.token(&bob).await);
    let job = job(&farm, &ada, "hers").await;
    let path = format!("/api/v1/jobs/{job}");
    let answer = farm.send(&bob, ("PATCH", &path), Some(&json!({ "priority": 9 }))).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    let pause = json!({ "change": "pause", "jobs": [job.to_string()] });
    let refused = farm.send(&bob, ("POST", "/api/v1/jobs/change"), Some(&pause)).await;
    assert_eq!((refused.status, refused.json()["refused"].as_u64()), (200, Some(1)));
    assert_eq!(farm.send(&bob, ("GET", &path), None).await.json()["summary"]["state"], "queued");
    let edited = farm.send(&ada, ("PATCH", &path), Some(&json!({ "priority": 9 }))).await;
    assert_eq!(edited.json()["summary"]["priority"], 9);
    let olga = farm.token(&olga).await;
    let changed = farm.send(&olga, ("POST", "/api/v1/jobs/change"), Some(&pause)).await;
    assert_eq!(changed.json()["jobs"][0]["state"], "queued", "the state before");
    assert_eq!(farm.send(&bob, ("GET", &path), None).await.json()["summary"]["state"], "paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_no_more_rights_than_its_owner_has_now() {
    let farm = Farm::start().await;
    let (admin, ada) = (farm.person(Role::Admin, "root"), farm.person(Role::Artist, "ada"));
    let token = farm.token(&ada).await;
    let me = farm.send(&token, ("GET", "/api/v1/me"), None).await.json();
    assert_eq!((me["name"].as_str(), me["role"].as_str()), (Some("ada"), Some("artist")));
    let wide = json!({ "role": "operator" });
    let answer = farm.send(&token, ("POST", "/api/v1/tokens/api"), Some(&wide)).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    let others = json!({ "role": "viewer", "owner": "root" });
    let answer = farm.send(&token, ("POST", "/api/v1/tokens/api"), Some(&others)).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    let narrow = json!({ "role": "viewer" });
    let answer = farm.send(&token, ("POST", "/api/v1/tokens/api"), Some(&narrow)).await;
    let viewer = answer.json()["token"].as_str().unwrap().to_owned();
    let change = json!({ "change": "pause", "name": "*" });
    let answer = farm.send(&viewer, ("POST", "/api/v1/jobs/change"), Some(&change)).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    let listed = farm.send(&token, ("GET", "/api/v1/tokens"), None).await.json();
    let ids: Vec<&str> =
        listed.as_array().unwrap().iter().filter_map(|token| token["id"].as_str()).collect();
    assert_eq!(ids.len(), 2, "both, and nobody else's: {listed}");
    for id in ids {
        let path = format!("/api/v1/tokens/{id}");
        let answer = farm.send(&token, ("DELETE", &path), None).await;
        // The one that asks may have gone first.
        assert!([204, 401].contains(&answer.status), "{}", answer.text());
    }
    let again = farm.token(&ada).await;
    let remove = Request::RemoveMember { member: "ada".into() };
    farm.ask(&admin, remove).await;
    assert_eq!(farm.send(&again, ("GET", "/api/v1/me"), None).await.status, 401);
}
