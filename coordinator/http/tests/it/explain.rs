//! Explanations over HTTP: as JSON and on the pages, with the same words.

use crate::farm::Farm;
use crate::pages::session;
use serde_json::Value;
use tessera_protocol::client::{Request, Response, Role};
use tessera_protocol::explain::Subject;

/// The text of a page without its marks, so that it can be compared with a sentence.
fn plain(page: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for letter in page.chars() {
        match letter {
            '<' => inside = true,
            '>' => inside = false,
            letter if !inside => text.push(letter),
            _ => {}
        }
    }
    text
}

/// Every reason of an explanation stands on the page, with its help.
fn stands_on(explanation: &Value, page: &str) {
    let page = plain(page);
    let reasons = explanation["reasons"].as_array().expect("reasons");
    assert!(!reasons.is_empty(), "{explanation}");
    for reason in reasons {
        for part in ["why", "help"] {
            let said = reason[part].as_str().expect("a text");
            let said = if part == "help" { said.replace('`', "") } else { said.to_owned() };
            assert!(page.contains(&said), "{said:?} is not on the page {page}");
        }
    }
}

// promise: P4
#[tokio::test(flavor = "multi_thread")]
async fn pages_and_api_explain_with_the_same_words() {
    let farm = Farm::start().await;
    let cookie = session(&farm, Role::Artist, "ada").await;
    let ada = farm.person(Role::Artist, "ada");
    let token = farm.token(&ada).await;
    let job = crate::roles::job(&farm, &token, "shot").await;
    for place in [format!("/jobs/{job}"), format!("/jobs/{job}/frames/0")] {
        let address = format!("/api/v1{place}/explain");
        let explained = farm.send(&token, ("GET", &address), None).await;
        assert_eq!(explained.status, 200, "{}", explained.text());
        let explained = explained.json();
        let words: Vec<&str> = explained["reasons"]
            .as_array()
            .expect("reasons")
            .iter()
            .filter_map(|reason| reason["word"].as_str())
            .collect();
        assert!(words.contains(&"nodes"), "{explained}");
        stands_on(&explained, &farm.request(("GET", &place), &cookie, None).await.text());
    }
    // What QUIC answers is the same, field by field.
    let answer = farm.ask(&ada, Request::Explain(Subject::Job(job))).await;
    let Response::Explained(asked) = answer else { panic!("{answer:?}") };
    let path = format!("/api/v1/jobs/{job}/explain");
    let told = farm.send(&token, ("GET", &path), None).await.json();
    assert_eq!(told, serde_json::to_value(&asked).expect("JSON"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_explained() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Viewer, "eva")).await;
    let none = tessera_protocol::JobId::new();
    let paths =
        [format!("jobs/{none}"), format!("jobs/{none}/frames/x"), "nodes/nobody".to_owned()];
    for path in paths {
        let address = format!("/api/v1/{path}/explain");
        let answer = farm.send(&token, ("GET", &address), None).await;
        assert_eq!(answer.status, 404, "{address}: {}", answer.text());
    }
}
