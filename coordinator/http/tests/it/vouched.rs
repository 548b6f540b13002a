//! People for whom a provider vouches: whose name and number they get, and what becomes of it.

use crate::farm::Farm;
use tessera_coordinator::api::Vouched;
use tessera_protocol::access::MemberSummary;
use tessera_protocol::client::{Request, RequestError, Response, Role};

fn person(subject: &str, name: &str, role: Role) -> Vouched {
    Vouched {
        issuer: "https://id.example".into(),
        subject: subject.into(),
        name: Ok(name.into()),
        role: Ok(role),
    }
}

/// Signs in; the session's cookie.
async fn enter(farm: &Farm, person: &Vouched) -> Result<String, RequestError> {
    let signed = farm.coordinator.api().sign_in_vouched(person, "192.0.2.1").await?;
    assert_eq!(signed.secs, 7 * 86_400);
    Ok(format!("Cookie: tessera-{}={}\r\n", farm.address().port(), signed.token))
}

async fn refusal(farm: &Farm, person: &Vouched) -> String {
    match enter(farm, person).await {
        Err(RequestError::NotAllowed(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Status, and name, role and number as the API says them.
async fn me(farm: &Farm, cookie: &str) -> (u16, String) {
    let answer = farm.request(("GET", "/api/v1/me"), cookie, None).await;
    let json = answer.json();
    let who = format!("{} {} {}", json["role"], json["name"], json["number"]);
    (answer.status, who.replace('"', ""))
}

async fn members(farm: &Farm) -> Vec<MemberSummary> {
    let root = farm.person(Role::Admin, "root");
    match farm.ask(&root, Request::Members { from: 0 }).await {
        Response::Members(members) => members,
        other => panic!("{other:?}"),
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn issuer_and_subject_are_one_person_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let ada = person("7", "ada", Role::Artist);
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let first = me(&farm, &enter(&farm, &ada).await.unwrap()).await;
    assert!(first.1.starts_with("artist ada "), "{first:?}");
    let elsewhere =
        Vouched { issuer: "https://other.example".into(), ..person("7", "eve", Role::Artist) };
    let other = me(&farm, &enter(&farm, &elsewhere).await.unwrap()).await;
    assert_ne!(first, other);
    farm.coordinator.shutdown().await.unwrap();
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    // The name of the first time stays, whatever the provider says later.
    let renamed = person("7", "root", Role::Artist);
    assert_eq!(me(&farm, &enter(&farm, &renamed).await.unwrap()).await, first);
    let nameless = Vouched { name: Err("no name".into()), ..ada };
    assert_eq!(me(&farm, &enter(&farm, &nameless).await.unwrap()).await, first);
    let held = members(&farm).await;
    let ada = held.iter().find(|member| member.name == "ada").unwrap();
    assert_eq!(ada.provider.as_deref(), Some("https://id.example"));
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_a_name_that_is_held_or_reserved() {
    let farm = Farm::start().await;
    farm.person(Role::Operator, "bob");
    enter(&farm, &person("1", "ada", Role::Artist)).await.unwrap();
    for name in ["bob", "BOB", "Ada", "ada"] {
        let text = refusal(&farm, &person("2", name, Role::Artist)).await;
        assert!(text.contains("belongs to"), "{name} {text}");
    }
    for name in ["admin", "Admin", "all"] {
        let text = refusal(&farm, &person("2", name, Role::Admin)).await;
        assert!(text.contains("reserved"), "{name} {text}");
    }
    for name in ["", "a b", "a/b", "ü", &"x".repeat(129)] {
        let text = refusal(&farm, &person("2", name, Role::Artist)).await;
        assert!(text.contains("letters"), "{name} {text}");
    }
    for subject in [String::new(), "x".repeat(256)] {
        let text = refusal(&farm, &person(&subject, "carol", Role::Artist)).await;
        assert!(text.contains("255 bytes"), "{text}");
    }
    let named: Vec<String> = members(&farm).await.into_iter().map(|member| member.name).collect();
    assert_eq!(named, ["bob", "ada", "root"], "nobody else is a member");
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn sessions_follow_the_role_of_the_newest_sign_in() {
    let farm = Farm::start().await;
    let session = enter(&farm, &person("1", "tess", Role::Operator)).await.unwrap();
    assert!(me(&farm, &session).await.1.starts_with("operator"));
    enter(&farm, &person("1", "tess", Role::Viewer)).await.unwrap();
    assert!(me(&farm, &session).await.1.starts_with("viewer"));
    let second = enter(&farm, &person("1", "tess", Role::Admin)).await.unwrap();
    assert!(me(&farm, &second).await.1.starts_with("admin"));
    assert!(me(&farm, &session).await.1.starts_with("operator"), "never more than it was");
    let out = Vouched { role: Err("no group".into()), ..person("1", "tess", Role::Admin) };
    assert_eq!(refusal(&farm, &out).await, "no group");
    for session in [&session, &second] {
        assert_eq!(me(&farm, session).await.0, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_provider_nobody_is_sent_to_one() {
    let farm = Farm::start().await;
    for path in ["/oidc/begin", "/oidc/return?code=x&state=y"] {
        let answer = farm.request(("GET", path), "", None).await;
        assert_eq!(answer.status, 404, "{}", answer.text());
    }
    let page = farm.request(("GET", "/sign-in"), "", None).await.text();
    assert!(!page.contains("oidc") && page.contains("tessera web"), "{page}");
}
