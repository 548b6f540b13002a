//! Stored hashes of the library's scenes: a change of one bit anywhere shows. `TESSERA_BLESS=1`
//! writes them anew.

use crate::render::picture::{checked, file, flatten, hash, sums, whole_frame};
use std::collections::BTreeMap;
use tessera_kernels::host;
use tessera_scenes::FlattenOptions;

#[test]
fn library_scenes_have_their_stored_hashes() {
    let table = file("scenes/library/hashes.json");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(file("scenes/library")).expect("the library") {
        let path = entry.expect("a folder entry").path();
        if !path.extension().is_some_and(|extension| extension == "gltf" || extension == "glb") {
            continue;
        }
        let scene = checked(flatten(&path, None, &FlattenOptions::still(64, 48)));
        let frame = whole_frame(64, 48, 8, 8);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.insert(name, hash(&sums(host::best_isa(), &scene, &frame)));
    }
    assert!(found.len() >= 3, "the library has only {} scenes", found.len());
    if std::env::var_os("TESSERA_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&found).expect("a table of strings");
        std::fs::write(&table, text + "\n").expect("the library can be written");
    }
    let text = std::fs::read_to_string(&table).expect("scenes/library/hashes.json");
    let stored: BTreeMap<String, String> = serde_json::from_str(&text).expect("a table of strings");
    assert_eq!(found, stored, "pictures changed; if that was meant, see CONTRIBUTING.md");
}
