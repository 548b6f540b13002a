//! Browsers: signing in by a link, and what their cookies may do.

use crate::farm::{Answer, Farm};
use serde_json::json;
use tessera_http::{HttpConfig, HttpError, HttpServer, TlsChoice};
use tessera_protocol::client::{Request, Response, Role};

async fn sign_in(farm: &Farm, code: &str) -> Answer {
    let origin = format!("Origin: {}\r\n", farm.base());
    let body = json!({ "code": code }).to_string().into_bytes();
    farm.request(("POST", "/api/v1/sign-in"), &origin, Some((body, "application/json"))).await
}

/// The cookie of an answer, as a browser sends it back.
fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie").expect("a cookie");
    format!("Cookie: {}\r\n", set.split(';').next().unwrap())
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once_and_signing_out_ends_it() {
    let farm = Farm::start().await;
    let ada = farm.person(Role::Artist, "ada");
    let code = farm.code(&ada).await;
    let answer = sign_in(&farm, &code).await;
    assert_eq!(answer.status, 204, "{}", answer.text());
    let set = answer.header("set-cookie").unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && !set.contains("Secure"));
    let cookie = cookie(&answer);
    let me = farm.request(("GET", "/api/v1/me"), &cookie, None).await;
    assert_eq!((me.status, me.json()["name"].as_str()), (200, Some("ada")));
    let replayed = sign_in(&farm, &code).await;
    assert_eq!(replayed.status, 403, "{}", replayed.text());
    assert!(replayed.text().contains("tessera web"), "{}", replayed.text());
    let origin = format!("{cookie}Origin: {}\r\n", farm.base());
    let out = farm.request(("POST", "/api/v1/sign-out"), &origin, None).await;
    assert_eq!(out.status, 204, "{}", out.text());
    assert_eq!(farm.request(("GET", "/api/v1/me"), &cookie, None).await.status, 401);
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn another_page_changes_nothing_with_a_browsers_cookie() {
    let farm = Farm::start().await;
    let cookie = cookie(&sign_in(&farm, &farm.code(&farm.person(Role::Admin, "root")).await).await);
    let body = || Some((br#"{"change":"cancel","all":true}"#.to_vec(), "application/json"));
    let form = || Some((b"change=cancel&job=x".to_vec(), "application/x-www-form-urlencoded"));
    let port = farm.address().port();
    for origin in [
        String::new(),
        "Origin: null\r\n".to_owned(),
        "Origin: http://evil.example\r\n".to_owned(),
        format!("Origin: http://127.0.0.1.evil.example:{port}\r\n"),
        format!("Origin: https://127.0.0.1:{port}\r\n"),
        format!("Origin: http://127.0.0.1:{}\r\n", port.wrapping_add(1)),
    ] {
        let headers = format!("{cookie}{origin}");
        for (path, body) in [("/api/v1/jobs/change", body()), ("/jobs/change", form())] {
            let answer = farm.request(("POST", path), &headers, body).await;
            assert_eq!(answer.status, 403, "{origin:?} {path}: {}", answer.text());
        }
    }
    let headers = format!("{cookie}Origin: {}\r\n", farm.base());
    let answer = farm.request(("POST", "/api/v1/jobs/change"), &headers, body()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_sessions_are_not_taken_for_each_other() {
    let farm = Farm::start().await;
    let ada = farm.person(Role::Artist, "ada");
    let session = cookie(&sign_in(&farm, &farm.code(&ada).await).await);
    let value = session.trim().split_once('=').unwrap().1.to_owned();
    let bearer = format!("Authorization: Bearer {value}\r\n");
    assert_eq!(farm.request(("GET", "/api/v1/me"), &bearer, None).await.status, 401);
    let token = farm.token(&ada).await;
    let name = session.split_once('=').unwrap().0;
    let forged = format!("{name}={token}\r\n");
    assert_eq!(farm.request(("GET", "/api/v1/me"), &forged, None).await.status, 401);
    let admin = farm.person(Role::Admin, "root");
    let join = farm.ask(&admin, Request::CreateToken(join())).await;
    let Response::Token(join) = join else { panic!("{join:?}") };
    assert_eq!(farm.send(&join, ("GET", "/api/v1/me"), None).await.status, 401);
}

fn join() -> tessera_protocol::access::TokenScope {
    tessera_protocol::access::TokenScope {
        role: Role::Node,
        pool: None,
        name: None,
        ttl_secs: 60,
        uses: 1,
        replace: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_identity_loses_its_session_at_once() {
    let farm = Farm::start().await;
    let (ada, root) = (farm.person(Role::Artist, "ada"), farm.person(Role::Admin, "root"));
    let session = cookie(&sign_in(&farm, &farm.code(&ada).await).await);
    assert_eq!(farm.request(("GET", "/api/v1/me"), &session, None).await.status, 200);
    let deny = Request::Deny { identity: "user:ada".into(), reason: "gone".into() };
    farm.ask(&root, deny).await;
    let answer = farm.request(("GET", "/api/v1/me"), &session, None).await;
    assert_eq!(answer.status, 401, "{}", answer.text());
    assert!(answer.text().contains("denied by"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_are_not_safe_are_not_served() {
    let farm = Farm::start().await;
    let start = |listen: &str, base: Option<&str>| {
        let listen = listen.parse().unwrap();
        let base = base.map(str::to_owned);
        let config = HttpConfig { listen, tls: None, base, advertise: None, oidc: None };
        HttpServer::start(&config, farm.coordinator.api(), None)
    };
    for (listen, base) in [("0.0.0.0:0", None), ("0.0.0.0:0", Some("http://farm.example"))] {
        assert!(matches!(start(listen, base), Err(HttpError::Address(_))), "{listen}");
    }
    let taken = start(&farm.address().to_string(), None);
    assert!(matches!(taken, Err(HttpError::Bind { .. })), "{taken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_of_the_farms_own_authority_makes_cookies_secure() {
    let farm = Farm::start_with(|config| {
        config.tls = Some(TlsChoice::Farm);
        config.base = Some("https://farm.example".to_owned());
    })
    .await;
    assert_eq!(farm.base(), "https://farm.example");
    // Plain HTTP is no TLS: nothing comes back.
    assert!(farm.raw(b"GET / HTTP/1.1\r\nHost: farm.example\r\n\r\n".to_vec()).await.is_none());
}
