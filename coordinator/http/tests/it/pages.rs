//! Pages as they come from the server, without a browser.

use crate::farm::Farm;
use serde_json::json;
use tessera_protocol::client::{Request, Role};
use tessera_protocol::job::{AssetFile, JobKind};
use tessera_protocol::{BlobHash, JobId, JobSpec, RenderSpec};

pub(crate) async fn session(farm: &Farm, role: Role, name: &str) -> String {
    let code = farm.code(&farm.person(role, name)).await;
    let origin = format!("Origin: {}\r\n", farm.base());
    let body = json!({ "code": code }).to_string().into_bytes();
    let answer =
        farm.request(("POST", "/api/v1/sign-in"), &origin, Some((body, "application/json"))).await;
    let set = answer.header("set-cookie").expect("a cookie");
    format!("Cookie: {}\r\n{origin}", set.split(';').next().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_led_to_the_sign_in() {
    let farm = Farm::start().await;
    for path in ["/jobs", "/nodes", "/costs", "/access", "/jobs/x", "/jobs/x/frames/1"] {
        let answer = farm.request(("GET", path), "", None).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/sign-in")), "{path}");
    }
    let answer = farm.request(("GET", "/sign-in"), "", None).await;
    assert!(answer.text().contains("tessera web"), "{}", answer.text());
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(!answer.text().contains("<style") && !answer.text().contains("onclick"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_name_is_text_and_nothing_else() {
    let farm = Farm::start().await;
    let cookie = session(&farm, Role::Artist, "ada").await;
    let name = "<script>alert(1)</script>";
    let path = format!("/jobs?name={name}&owner=%22%3E");
    let answer = farm.request(("GET", &path), &cookie, None).await;
    assert!(!answer.text().contains("<script>alert"), "{}", answer.text());
    let answer = farm.request(("GET", "/%3Cscript%3E"), &cookie, None).await;
    assert!(!answer.text().contains("<script>"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_listed_shown_and_changed_by_forms() {
    let farm = Farm::start().await;
    let cookie = session(&farm, Role::Artist, "ada").await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let job = crate::roles::job(&farm, &token, "shot & take").await;
    let list = farm.request(("GET", "/jobs?order=priority"), &cookie, None).await.text();
    assert!(list.contains("shot &amp; take") && list.contains(&job.to_string()), "{list}");
    let page = farm.request(("GET", &format!("/jobs/{job}")), &cookie, None).await.text();
    assert!(page.contains("Pause") && page.contains("Frames"), "{page}");
    let form = |text: String| Some((text.into_bytes(), "application/x-www-form-urlencoded"));
    let change = form(format!("change=pause&job={job}&back=%2Fjobs%2F{job}"));
    let answer = farm.request(("POST", "/jobs/change"), &cookie, change).await;
    let to = format!("/jobs/{job}");
    assert_eq!((answer.status, answer.header("location")), (303, Some(to.as_str())));
    let page = farm.request(("GET", &to), &cookie, None).await.text();
    assert!(page.contains("Resume") && page.contains("paused"), "{page}");
    let away = form(format!("change=resume&job={job}&back=%2F%2Fevil.example"));
    let answer = farm.request(("POST", "/jobs/change"), &cookie, away).await;
    assert_eq!(answer.header("location"), Some("/jobs"), "no other server is led to");
    let set = form("priority=30&pool=gpu&max_nodes=&not_before=2999-12-01T20%3A00".to_owned());
    let answer = farm.request(("POST", &format!("{to}/set")), &cookie, set).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let detail = farm.send(&token, ("GET", &format!("/api/v1{to}")), None).await.json();
    assert_eq!(
        (&detail["summary"]["priority"], &detail["spec"]["pool"]),
        (&json!(30), &json!("gpu"))
    );
    assert_eq!(detail["spec"]["not_before"], 32_501_073_600u64);
    let page = farm.request(("GET", &to), &cookie, None).await.text();
    let begins = "2999-12-01 20:00:00Z";
    assert!(page.contains(begins) && page.contains("2999-12-01T20:00:00\""), "{page}");
    let soon = form("priority=30&pool=gpu&max_nodes=&not_before=soon".to_owned());
    let refused = farm.request(("POST", &format!("{to}/set")), &cookie, soon).await;
    assert!(refused.status == 400 && refused.text().contains("not_before"), "{}", refused.text());
    let bob = session(&farm, Role::Artist, "bob").await;
    let theirs = farm.request(("GET", &to), &bob, None).await.text();
    assert!(!theirs.contains("Cancel"), "only owners have the buttons");
    let change = form(format!("change=cancel&job={job}"));
    let refused = farm.request(("POST", "/jobs/change"), &bob, change).await;
    assert_eq!(refused.status, 409, "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_thousands_come_in_pages() {
    let farm = Farm::start().await;
    let ada = farm.person(Role::Artist, "ada");
    let token = farm.token(&ada).await;
    crate::roles::job(&farm, &token, "first").await;
    for number in 0..250u32 {
        let file = AssetFile { path: "scene.gltf".into(), hash: BlobHash::of(b"{}"), length: 2 };
        let mut render = RenderSpec::new("scene.gltf", vec![file]);
        (render.width, render.height, render.spp) = (8, 8, 1);
        let mut spec = JobSpec::new(format!("shot_{number:03}"), JobKind::Render(render));
        spec.priority = (number % 50) as u8;
        let request = Request::Submit { job: JobId::new(), spec: Box::new(spec.into()) };
        farm.ask(&ada, request).await;
    }
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/v1/jobs?rows=100&order=priority&name=shot_*&cursor={cursor}");
        let page = farm.send(&token, ("GET", &path), None).await.json();
        let jobs = page["jobs"].as_array().unwrap();
        seen.extend(jobs.iter().map(|job| job["priority"].as_u64().unwrap()));
        match page["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
        assert_eq!(jobs.len(), 100);
    }
    assert_eq!(seen.len(), 250);
    assert!(seen.is_sorted_by(|a, b| a >= b), "highest priority first");
    let wrong = farm.send(&token, ("GET", "/api/v1/jobs?order=sideways"), None).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("newest, name, owner"), "{}", wrong.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_made_and_revoked_on_the_page() {
    let farm = Farm::start().await;
    let cookie = session(&farm, Role::Viewer, "vera").await;
    let form = |text: &str| Some((text.as_bytes().to_vec(), "application/x-www-form-urlencoded"));
    let made = form("kind=api&role=viewer&ttl_secs=3600");
    let page = farm.request(("POST", "/access/tokens"), &cookie, made).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let text = page.text();
    let token = text.split("tsb1_").nth(1).expect("a token").split('<').next().unwrap();
    let token = format!("tsb1_{token}");
    let listed = farm.send(&token, ("GET", "/api/v1/tokens"), None).await.json();
    let api = listed.as_array().unwrap().iter().find(|token| token["kind"] == "api").unwrap();
    let revoke = format!("change=revoke&id={}", api["id"].as_str().unwrap());
    let answer = farm.request(("POST", "/access/revoke"), &cookie, form(&revoke)).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(farm.send(&token, ("GET", "/api/v1/me"), None).await.status, 401);
    let join = form("kind=join&role=admin&ttl_secs=60&uses=1&name=&pool=");
    let refused = farm.request(("POST", "/access/tokens"), &cookie, join).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_come_a_few_at_a_time_or_one() {
    let farm = Farm::start().await;
    let cookie = session(&farm, Role::Artist, "ada").await;
    let ada = farm.person(Role::Artist, "ada");
    let token = farm.token(&ada).await;
    crate::roles::job(&farm, &token, "first").await;
    let file = AssetFile { path: "scene.gltf".into(), hash: BlobHash::of(b"{}"), length: 2 };
    let mut render = RenderSpec::new("scene.gltf", vec![file]);
    (render.width, render.height, render.spp) = (8, 8, 1);
    render.frames = "1-999x2".parse().unwrap();
    let spec = Box::new(JobSpec::new("film", JobKind::Render(render)).into());
    let job = JobId::new();
    farm.ask(&ada, Request::Submit { job, spec }).await;
    let path = format!("/api/v1/jobs/{job}/frames?from=3&most=2");
    let some = farm.send(&token, ("GET", &path), None).await.json();
    assert_eq!(some.as_array().unwrap().len(), 2);
    assert_eq!(some[0]["frame"], 7);
    let page = farm.request(("GET", &format!("/jobs/{job}?from=240")), &cookie, None).await.text();
    assert!(page.contains("241 to 480 of 500"), "{page}");
    let frame = |number: u32| format!("/jobs/{job}/frames/{number}");
    let page = farm.request(("GET", &frame(7)), &cookie, None).await.text();
    assert!(page.contains(&frame(5)) && page.contains(&frame(9)), "{page}");
    assert_eq!(farm.request(("GET", &frame(8)), &cookie, None).await.status, 404);
    let file = format!("/api/v1{}/files/exr", frame(7));
    let answer = farm.send(&token, ("GET", &file), None).await;
    assert_eq!(answer.status, 404, "{}", answer.text());
    assert!(answer.text().contains("not finished"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_open_frame_follows_its_tiles() {
    let farm = Farm::start().await;
    let cookie = session(&farm, Role::Viewer, "vera").await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let job = crate::roles::job(&farm, &token, "hers").await;
    let page = farm.request(("GET", &format!("/jobs/{job}/frames/0")), &cookie, None).await.text();
    assert!(page.contains(&format!("data-live=\"/api/v1/jobs/{job}/frames/0/live\"")), "{page}");
    assert!(page.contains("data-tiles=\"1\"") && !page.contains("data-source"), "{page}");
    let cancel = json!({ "change": "cancel", "jobs": [job.to_string()] });
    let answer = farm.send(&token, ("POST", "/api/v1/jobs/change"), Some(&cancel)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let live = format!("/api/v1/jobs/{job}/frames/0/live");
    let over = farm.send(&token, ("GET", &live), None).await;
    let end = [4u32, 3].map(u32::to_le_bytes).concat();
    assert!(over.body.ends_with(&end), "a job that has ended: {:?}", over.body);
}
