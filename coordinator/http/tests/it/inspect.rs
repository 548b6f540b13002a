//! Jobs that are looked at before they are submitted.

use crate::farm::{Answer, Farm};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tessera_http::{BatchAsked, Inspector, Seen, TemplateAsked, TemplateOutline, TemplatePlan};
use tessera_protocol::client::Role;
use tessera_protocol::{BlobHash, RenderSpec};

/// Tells the files that are laid out, and where.
#[derive(Default)]
struct Lister(Mutex<Option<PathBuf>>);

impl Inspector for &'static Lister {
    fn inspect(&self, folder: &Path, spec: &RenderSpec) -> Result<Seen, String> {
        *self.0.lock().unwrap() = Some(folder.to_owned());
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
        if read(&spec.scene).contains("broken") {
            return Err("`a.gltf`: a brace is missing".to_owned());
        }
        let lines = spec.files.iter().map(|file| (file.path.clone(), read(&file.path))).collect();
        Ok(Seen { report: json!({ "triangles": 3 }), lines, device_bytes: 7 })
    }

    fn outline(&self, _: &TemplateAsked) -> Result<TemplateOutline, String> {
        Err("no template is read here".to_owned())
    }

    fn plan(&self, _: &Path, _: &TemplateAsked, _: &BatchAsked) -> Result<TemplatePlan, String> {
        Err("no template is read here".to_owned())
    }
}

async fn put(farm: &Farm, token: &str, text: &str) -> Value {
    let hash = BlobHash::of(text.as_bytes());
    let path = format!("/api/v1/blobs/{hash}?length={}", text.len());
    let headers = format!("Authorization: Bearer {token}\r\n");
    let body = Some((text.as_bytes().to_vec(), "application/octet-stream"));
    let answer = farm.request(("PUT", &path), &headers, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    json!({ "hash": hash.to_string(), "length": text.len() })
}

/// Looks at a scene of these files, each with its path.
async fn look(farm: &Farm, token: &str, files: &[(&str, &Value)]) -> Answer {
    let named = files.iter().map(
        |(path, file)| json!({ "path": path, "hash": file["hash"], "length": file["length"] }),
    );
    let files: Vec<Value> = named.collect();
    let render = json!({ "scene": files[0]["path"], "files": files, "width": 64, "height": 64 });
    let form = json!({ "name": "look", "render": render });
    farm.send(token, ("POST", "/api/v1/inspect"), Some(&form)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scene_is_looked_at_before_it_is_submitted() {
    let lister: &'static Lister = Box::leak(Box::default());
    let farm = Farm::start_looking(lister).await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let scene = put(&farm, &token, "a scene").await;
    let texture = put(&farm, &token, "a texture").await;
    let broken = put(&farm, &token, "broken").await;
    let answer = look(&farm, &token, &[("a.gltf", &scene), ("maps/b.png", &texture)]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let lines = [("a.gltf", "a scene"), ("maps/b.png", "a texture")];
    let lines = lines.map(|(name, value)| json!({ "name": name, "value": value }));
    let said = json!({ "report": { "triangles": 3 }, "lines": lines, "device_bytes": 7 });
    assert_eq!(answer.json(), said);
    let answer = look(&farm, &token, &[("a.gltf", &broken)]).await;
    assert_eq!(answer.status, 422);
    assert_eq!(answer.json()["detail"], "`a.gltf`: a brace is missing");
    let folder = lister.0.lock().unwrap().take().unwrap();
    assert!(!folder.exists(), "nothing stays of the files that were laid out");
    assert_eq!(farm.send(&token, ("GET", "/api/v1/jobs"), None).await.json()["jobs"], json!([]));
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_submitted_is_not_laid_out() {
    let lister: &'static Lister = Box::leak(Box::default());
    let farm = Farm::start_looking(lister).await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let scene = put(&farm, &token, "a scene").await;
    for path in ["../a.gltf", "/etc/a.gltf", "x/../../a.gltf", ""] {
        let answer = look(&farm, &token, &[(path, &scene)]).await;
        assert_eq!(answer.status, 422, "{path}: {}", answer.text());
    }
    let absent = json!({ "hash": "ab".repeat(32), "length": 4 });
    let answer = look(&farm, &token, &[("a.gltf", &scene), ("b.png", &absent)]).await;
    assert_eq!(answer.status, 422);
    assert!(answer.text().contains("has not been uploaded"), "{}", answer.text());
    let longer = json!({ "hash": scene["hash"], "length": 8 });
    assert_eq!(look(&farm, &token, &[("a.gltf", &longer)]).await.status, 422);
    let viewer = farm.token(&farm.person(Role::Viewer, "vera")).await;
    assert_eq!(look(&farm, &viewer, &[("a.gltf", &scene)]).await.status, 403);
    assert!(lister.0.lock().unwrap().is_none(), "no scene was read");
    let without = Farm::start().await;
    let token = without.token(&without.person(Role::Artist, "ada")).await;
    let scene = put(&without, &token, "a scene").await;
    let answer = look(&without, &token, &[("a.gltf", &scene)]).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("tessera inspect"), "{}", answer.text());
}
