//! Templates over HTTP: what is laid out for their reader, all jobs or none, the same request
//! twice, and presets. Their real reader is in the program, and tested with it.

use crate::farm::{Answer, Farm};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tessera_http::{
    BatchAsked, Inspector, PlannedJob, Seen, TemplateAsked, TemplateOutline, TemplatePlan,
};
use tessera_protocol::client::Role;
use tessera_protocol::job::{After, AssetFile, JobForm, RenderSpec, Until};
use tessera_protocol::{BlobHash, JobId, RenderSpec as Render};

/// Makes a job of each line of a template: its name, and its size. Each waits for the one before.
pub(crate) struct Lines;

fn id(batch: &BatchAsked, index: usize) -> JobId {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&batch.seed[..16]);
    bytes[0] = index as u8;
    JobId(uuid::Uuid::from_bytes(bytes))
}

impl Inspector for Lines {
    fn inspect(&self, _: &Path, _: &Render) -> Result<Seen, String> {
        Err("no scene is looked at here".to_owned())
    }

    fn outline(&self, asked: &TemplateAsked) -> Result<TemplateOutline, String> {
        if asked.text.contains("broken") {
            return Err("a brace is missing".to_owned());
        }
        Ok(TemplateOutline {
            name: "lines".to_owned(),
            description: asked.set.join(" "),
            parameters: Vec::new(),
            files: vec!["a.gltf".to_owned()],
            problem: None,
        })
    }

    fn plan(
        &self,
        folder: &Path,
        asked: &TemplateAsked,
        batch: &BatchAsked,
    ) -> Result<TemplatePlan, String> {
        let bytes = std::fs::read(folder.join("maps/a.gltf")).map_err(|error| error.to_string())?;
        let hash = BlobHash::of(&bytes);
        let file = AssetFile { path: "a.gltf".into(), hash, length: bytes.len() as u64 };
        let job = |(index, line): (usize, &str)| {
            let (name, edge) = line.split_once(' ').ok_or("a line has no size")?;
            let edge: u32 = edge.parse().unwrap();
            let mut file = file.clone();
            if edge == 7 {
                file.hash = BlobHash::of(b"elsewhere");
            }
            let render =
                RenderSpec { width: edge, height: edge, ..RenderSpec::new("a.gltf", vec![file]) };
            let before = index.checked_sub(1).map(|before| id(batch, before));
            let until = Until::Success;
            let form = JobForm {
                name: name.to_owned(),
                priority: None,
                pool: None,
                max_nodes: None,
                device_bytes: 0,
                after: before.map(|job| After { job, until }).into_iter().collect(),
                not_before: None,
                batch: Some(batch.batch.clone()),
                notify: Vec::new(),
                render: Some(render),
                compute: None,
            };
            let spec = form.spec().map_err(|error| error.to_string())?;
            let (step, values) = (name.to_owned(), vec![("edge".to_owned(), edge.to_string())]);
            Ok(PlannedJob { job: id(batch, index), step, values, spec })
        };
        let jobs = asked.text.lines().enumerate().map(job).collect::<Result<_, String>>()?;
        Ok(TemplatePlan { jobs, notes: vec!["read".to_owned()] })
    }
}

async fn upload(farm: &Farm, token: &str, text: &str) -> Value {
    let hash = BlobHash::of(text.as_bytes());
    let path = format!("/api/v1/blobs/{hash}?length={}", text.len());
    let headers = format!("Authorization: Bearer {token}\r\n");
    let body = Some((text.as_bytes().to_vec(), "application/octet-stream"));
    let answer = farm.request(("PUT", &path), &headers, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    json!({ "path": "maps/a.gltf", "hash": hash.to_string(), "length": text.len() })
}

async fn send(farm: &Farm, token: &str, what: (&str, &str), form: &Value) -> Answer {
    let path = format!("/api/v1{}", what.1);
    farm.send(token, (what.0, &path), Some(form)).await
}

/// The states of a batch's jobs by their names.
async fn states(farm: &Farm, token: &str, batch: &str) -> BTreeMap<String, String> {
    let path = format!("/api/v1/jobs?batch={batch}");
    let jobs = farm.send(token, ("GET", &path), None).await.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = jobs["jobs"].as_array().unwrap().iter();
    rows.map(|row| (text(&row["name"]), text(&row["state"]))).collect()
}

// promise: P4, P8
#[tokio::test(flavor = "multi_thread")]
async fn all_jobs_of_a_template_are_submitted_once() {
    let farm = Farm::start_looking(Lines).await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let file = upload(&farm, &token, "{}").await;
    let text = "first 64\nsecond 32\nthird 16";
    let set = json!({ "n": 3, "on": true, "names": ["a", "b"], "x": "y=z" });
    let outline = json!({ "template": text, "set": set });
    let answer = send(&farm, &token, ("POST", "/templates/outline"), &outline).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["description"], "n=3 names=a,b on=true x=y=z");
    let form = json!({ "template": text, "files": [file] });
    let answer = send(&farm, &token, ("POST", "/templates/plan"), &form).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let plan = answer.json();
    assert_eq!(plan["jobs"][1]["after"], json!(["first"]), "{plan}");
    assert_eq!(plan["jobs"][2]["values"], json!({ "edge": "16" }), "{plan}");
    assert_eq!((&plan["files"], &plan["bytes"]), (&json!(1), &json!(2)), "{plan}");
    assert!(states(&farm, &token, "plan").await.is_empty(), "a plan submits nothing");
    let mut first = None;
    for _ in 0..2 {
        let answer = send(&farm, &token, ("PUT", "/batches/lines-1"), &form).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        let accepted = answer.json();
        assert_eq!(accepted["notes"], json!(["read"]));
        assert_eq!(states(&farm, &token, "lines-1").await.len(), 3);
        assert_eq!(first.get_or_insert(accepted.clone()), &accepted, "the same jobs");
    }
    // Another one's batch of the same name has jobs of its own.
    let bob = farm.token(&farm.person(Role::Artist, "bob")).await;
    let file = upload(&farm, &bob, "{}").await;
    let form = json!({ "template": text, "files": [file] });
    let answer = send(&farm, &bob, ("PUT", "/batches/lines-1"), &form).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_ne!(answer.json()["jobs"], first.unwrap()["jobs"]);
}

// promise: P4, P8
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_submitted_whole_or_not_at_all() {
    let farm = Farm::start_looking(Lines).await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let file = upload(&farm, &token, "{}").await;
    // The file of an edge of 7 was never uploaded.
    let form = json!({ "template": "first 64\nsecond 7", "files": [file] });
    let answer = send(&farm, &token, ("PUT", "/batches/half"), &form).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    let said = answer.text();
    assert!(said.contains("has not been uploaded") && said.contains("cancelled"), "{said}");
    assert_eq!(states(&farm, &token, "half").await["first"], "cancelled");
    // What was submitted before stays, where a later request of its name is refused.
    let whole = json!({ "template": "first 64", "files": [file] });
    assert_eq!(send(&farm, &token, ("PUT", "/batches/kept"), &whole).await.status, 201);
    let answer = send(&farm, &token, ("PUT", "/batches/kept"), &form).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert_eq!(states(&farm, &token, "kept").await["first"], "queued");
    for (form, told) in [
        (json!({ "template": "a 0", "files": [file] }), "0x0 has an edge"),
        (json!({ "template": "a 64" }), "No such file"),
        (json!({ "files": [file] }), "either `template` or `preset`"),
        (json!({ "template": "a 64", "set": { "x": { "y": 1 } } }), "set: x"),
        (json!({ "template": "a 64", "set": { "x=y": 1 } }), "no name of a parameter"),
        (
            json!({ "template": "a 64", "files": [{ "path": "../a", "hash": "ab", "length": 2 }] }),
            "hash",
        ),
    ] {
        let answer = send(&farm, &token, ("PUT", "/batches/wrong"), &form).await;
        assert_eq!(answer.status, 422, "{form}: {}", answer.text());
        assert!(answer.text().contains(told), "{form}: {}", answer.text());
    }
    let hash = file["hash"].clone();
    for path in ["../a.gltf", "/etc/a.gltf", "x/../../a", ""] {
        let files = json!([{ "path": path, "hash": hash, "length": 2 }]);
        let form = json!({ "template": "a 64", "files": files });
        let answer = send(&farm, &token, ("PUT", "/batches/wrong"), &form).await;
        assert_eq!(answer.status, 422, "{path}: {}", answer.text());
    }
    let twice = json!({ "template": "a 64", "files": [file, file] });
    let answer = send(&farm, &token, ("PUT", "/batches/wrong"), &twice).await;
    assert!(answer.status == 422 && answer.text().contains("twice"), "{}", answer.text());
    let answer = send(&farm, &token, ("PUT", "/batches/a%2Fb"), &whole).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    let viewer = farm.token(&farm.person(Role::Viewer, "vera")).await;
    for path in ["/templates/outline", "/templates/plan"] {
        assert_eq!(send(&farm, &viewer, ("POST", path), &whole).await.status, 403, "{path}");
    }
    assert_eq!(send(&farm, &viewer, ("PUT", "/batches/theirs"), &whole).await.status, 403);
    let without = Farm::start().await;
    let token = without.token(&without.person(Role::Artist, "ada")).await;
    let answer =
        send(&without, &token, ("POST", "/templates/plan"), &json!({ "template": "" })).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn presets_are_published_by_admins_and_used_by_all() {
    let farm = Farm::start_looking(Lines).await;
    let admin = farm.token(&farm.person(Role::Admin, "root")).await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let text = json!({ "template": "first 64" });
    assert_eq!(send(&farm, &token, ("PUT", "/presets/final"), &text).await.status, 403);
    let answer = send(&farm, &admin, ("PUT", "/presets/final"), &text).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        (&answer.json()["template"], &answer.json()["by"]),
        (&json!("first 64"), &json!("root"))
    );
    let broken = json!({ "template": "broken" });
    let answer = send(&farm, &admin, ("PUT", "/presets/final"), &broken).await;
    assert!(answer.status == 422 && answer.text().contains("brace"), "{}", answer.text());
    assert_eq!(send(&farm, &admin, ("PUT", "/presets/a%20b"), &text).await.status, 422);
    let long = json!({ "template": "x".repeat(40_000) });
    assert_eq!(send(&farm, &admin, ("PUT", "/presets/long"), &long).await.status, 422);
    let listed = farm.send(&token, ("GET", "/api/v1/presets"), None).await.json();
    assert_eq!((&listed[0]["name"], &listed[0]["bytes"]), (&json!("final"), &json!(8)), "{listed}");
    let file = upload(&farm, &token, "{}").await;
    let form = json!({ "preset": "final", "files": [file] });
    assert_eq!(send(&farm, &token, ("PUT", "/batches/final-1"), &form).await.status, 201);
    let both = json!({ "preset": "final", "template": "a 64" });
    assert_eq!(send(&farm, &token, ("POST", "/templates/plan"), &both).await.status, 422);
    let remove = ("DELETE", "/api/v1/presets/final");
    assert_eq!(farm.send(&token, remove, None).await.status, 403);
    assert_eq!(farm.send(&admin, remove, None).await.json(), json!([]));
    assert_eq!(farm.send(&admin, remove, None).await.status, 404);
    assert_eq!(send(&farm, &token, ("PUT", "/batches/final-2"), &form).await.status, 404);
    assert_eq!(states(&farm, &token, "final-1").await.len(), 1, "its jobs stay");
}
