//! The committed description of the API.

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
