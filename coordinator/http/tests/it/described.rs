//! The committed description of the API.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_committed_description_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let described = tessera_http::openapi();
    if std::env::var_os("TESSERA_BLESS").is_some() {
        std::fs::write(&path, &described).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == described,
        "docs/openapi.json is another one; TESSERA_BLESS=1 writes it, and a changed route belongs \
         into the changelog"
    );
}

#[test]
fn every_operation_describes_what_all_can_answer() {
    let described: serde_json::Value = serde_json::from_str(&tessera_http::openapi()).unwrap();
    let paths = described["paths"].as_object().unwrap();
    let mut operations = BTreeSet::new();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(operations.insert(id), "{id} names two operations");
            let takes_json = operation["requestBody"]["content"].get("application/json").is_some();
            let json = ["408", "413", "415"].into_iter().filter(|_| takes_json);
            for status in ["400", "421", "429", "503"].into_iter().chain(json) {
                let problem = &operation["responses"][status]["content"];
                let problem = problem.get("application/problem+json");
                assert!(problem.is_some(), "{method} {path}: {status}");
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert_ne!(response["description"], "", "{method} {path}: {status}");
                assert!(response["description"].is_string(), "{method} {path}: {status}");
                let is_plain = response["content"].get("application/json").is_some();
                assert!(!is_plain || status.starts_with('2'), "{method} {path}: {status}");
            }
        }
    }
    assert!(operations.len() > 30, "{operations:?}");
    let priority = &described["components"]["schemas"]["EditForm"]["properties"]["priority"];
    assert_eq!((&priority["format"], &priority["maximum"]), (&"uint8".into(), &100.into()));
}
