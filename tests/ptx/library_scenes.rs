//! Scenes from files: the library, and, where they are found, some of the shared ones, at tiny
//! sizes.

use crate::ptx::device::{shipped, shipped_for_instances};
use crate::ptx::pictures;
use crate::render::picture::{checked, file, flatten, shared, whole_frame};
use tessera_layout::UnitParams;
use tessera_scenes::FlattenOptions;
use tessera_support::scenes::Case;

/// Of the shared scenes: blended and cut-out surfaces, every sampler, every punctual light.
const SHARED: [&str; 3] =
    ["AlphaBlendModeTest.glb", "TextureSettingsTest.glb", "generated/punctual_lights.glb"];

fn case(name: &'static str, path: &std::path::Path) -> Case {
    let (width, height) = (20, 15);
    let scene = checked(flatten(path, None, &FlattenOptions::still(width, height)));
    Case { name, scene, unit: UnitParams { aovs: 31, ..whole_frame(width, height, 2, 5) } }
}

#[test]
fn library_scenes_match_the_host() {
    let names = [
        "cornell-box.gltf",
        "drink.gltf",
        "many-lights.gltf",
        "material-row.gltf",
        "spinning-cube.gltf",
    ];
    let cases: Vec<Case> = names.map(|name| case(name, &file("scenes/library").join(name))).into();
    pictures::compare(shipped(), &cases);
    let sunflower = case("sunflower.gltf", &file("scenes/library/sunflower.gltf"));
    assert!(!sunflower.scene.instances.is_empty());
    pictures::compare(shipped_for_instances(), &[sunflower]);
}

#[test]
fn shared_scenes_match_the_host() {
    let found = SHARED.into_iter().filter_map(|name| Some(case(name, &shared(name)?)));
    let cases: Vec<Case> = found.collect();
    if !cases.is_empty() {
        pictures::compare(shipped(), &cases);
    }
}
