//! Every file of the shared fixtures loads. Skipped by name without them.

use std::io::Write;
use std::path::{Path, PathBuf};
use tessera_scenes::{FlattenOptions, LoadOptions, load};

/// The folder of fixtures, where this checkout has one beside it.
pub(crate) fn shared() -> Option<PathBuf> {
    let mut folder = Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf();
    while folder.pop() {
        let shared = folder.join("shared/scenes");
        if shared.join("manifest.json").is_file() {
            return Some(shared);
        }
    }
    None
}

/// Says what is left out, and why: straight to standard error, since a passing test's own output is
/// not shown.
pub(crate) fn skipped(what: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

#[test]
fn every_shared_scene_loads() {
    let Some(shared) = shared() else {
        skipped("every_shared_scene_loads (no shared/scenes beside the checkout)");
        return;
    };
    let manifest = std::fs::read(shared.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let mut seen = 0;
    for row in manifest.as_array().unwrap() {
        let file = row["file"].as_str().unwrap();
        if !(file.ends_with(".glb") || file.ends_with(".gltf")) {
            continue;
        }
        seen += 1;
        let loaded = load(&shared, file, &LoadOptions::default());
        let scene = loaded.unwrap_or_else(|error| panic!("{file}: {error}"));
        let report = scene.report();
        for (what, have) in [
            ("triangles", report.triangles_stored),
            ("triangles_instanced", report.triangles),
            ("materials", report.materials),
            ("skins", report.skins),
        ] {
            assert_eq!(Some(have), row[what].as_u64(), "{file}: {what}");
        }
        if report.triangles > 1_000_000 {
            continue;
        }
        let flat =
            scene.flatten(&FlattenOptions::still(64, 64)).unwrap_or_else(|e| panic!("{file}: {e}"));
        check(file, &flat);
    }
    assert_eq!(seen, 41, "the manifest lists other scenes than this test knows");
}

/// What every flat scene must hold.
fn check(file: &str, flat: &tessera_layout::FlatScene) {
    let unit = |v: [f32; 3]| (v.iter().map(|c| c * c).sum::<f32>() - 1.0).abs() < 1e-4;
    assert!(flat.vertices.iter().all(|v| unit(v.normal)), "{file}: a normal is not a unit vector");
    assert!(
        flat.vertices.iter().all(|v| v.tangent == [0.0; 3] || unit(v.tangent)),
        "{file}: a tangent is neither a unit vector nor zero"
    );
    for (id, triangle) in flat.triangles.iter().enumerate() {
        assert!((triangle.material as usize) < flat.materials.len(), "{file}: triangle {id}");
        assert!(flat.triangle_vertices[id].iter().all(|v| (*v as usize) < flat.vertices.len()));
        if triangle.light != tessera_layout::NONE {
            assert_eq!(flat.lights[triangle.light as usize].triangle as usize, id, "{file}");
        }
    }
    assert!(!flat.lights.is_empty(), "{file}: nothing gives light");
    let sum = |shares: &mut dyn Iterator<Item = f32>| shares.map(f64::from).sum::<f64>();
    let groups = sum(&mut flat.light_alias.iter().map(|entry| entry.probability));
    assert!((groups - 1.0).abs() < 1e-4, "{file}: pick probabilities sum to {groups}");
    if let Some(root) = flat.light_nodes.first() {
        let placed = sum(&mut root.power.into_iter());
        assert!((placed - 1.0).abs() < 1e-4, "{file}: shares of placed lights sum to {placed}");
    }
    assert!(flat.bvh.nodes.is_empty() == flat.triangles.is_empty(), "{file}");
}

/// A .glb with its JSON changed.
fn changed(glb: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let length = u32::from_le_bytes(glb[12..16].try_into().unwrap()) as usize;
    let (json, rest) = (&glb[20..20 + length], &glb[20 + length..]);
    let mut value = serde_json::from_slice(json).unwrap();
    change(&mut value);
    let mut json = value.to_string().into_bytes();
    json.resize(json.len().next_multiple_of(4), b' ');
    let (whole, length) = ((20 + json.len() + rest.len()) as u32, json.len() as u32);
    [&glb[..8], &whole.to_le_bytes(), &length.to_le_bytes(), &glb[16..20], &json, rest].concat()
}

#[test]
fn generated_tangents_match_an_exporters() {
    let Some(shared) = shared() else {
        skipped("generated_tangents_match_an_exporters (no shared/scenes beside the checkout)");
        return;
    };
    let glb = std::fs::read(shared.join("NormalTangentMirrorTest.glb")).unwrap();
    let without = changed(&glb, |json| {
        let attributes = &mut json["meshes"][0]["primitives"][0]["attributes"];
        assert!(attributes.as_object_mut().unwrap().remove("TANGENT").is_some());
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.glb"), without).unwrap();
    let flat = |folder: &Path, name: &str| {
        let scene = load(folder, name, &LoadOptions::default()).unwrap();
        scene.flatten(&FlattenOptions::still(64, 64)).unwrap()
    };
    let (theirs, ours) =
        (flat(&shared, "NormalTangentMirrorTest.glb"), flat(folder.path(), "scene.glb"));
    assert_eq!(theirs.triangles.len(), ours.triangles.len());
    let corners = |flat: &tessera_layout::FlatScene| -> Vec<([f32; 3], f32)> {
        let vertices =
            flat.triangle_vertices.iter().flatten().map(|vertex| flat.vertices[*vertex as usize]);
        vertices.map(|vertex| (vertex.tangent, vertex.tangent_sign)).collect()
    };
    let pairs = corners(&theirs).into_iter().zip(corners(&ours));
    let far = pairs.filter(|((a, sign), (b, other))| {
        let cosine: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        sign != other || cosine < 0.9999
    });
    let (far, all) = (far.count(), 3 * ours.triangles.len());
    assert_eq!(far, 0, "of {all}");
}

#[test]
fn a_quantized_scene_matches_its_plain_version() {
    let Some(shared) = shared() else {
        skipped(
            "a_quantized_scene_matches_its_plain_version (no shared/scenes beside \
                the checkout)",
        );
        return;
    };
    let scene = |name: &str| load(&shared, name, &LoadOptions::default()).unwrap();
    let plain = scene("AnimatedMorphCube.glb");
    let quantized = scene("compressed/AnimatedMorphCube-Quantized/AnimatedMorphCube.gltf");
    for time_secs in [0.0, 0.7, 1.9] {
        let at = |scene: &tessera_scenes::LoadedScene| {
            scene.flatten(&FlattenOptions { time_secs, ..FlattenOptions::still(64, 64) }).unwrap()
        };
        let (want, got) = (at(&plain), at(&quantized));
        let corners = |flat: &tessera_layout::FlatScene| -> Vec<f32> {
            flat.triangles.iter().flat_map(|t| [t.v0, t.v1, t.v2].concat()).collect()
        };
        let (want, got) = (corners(&want), corners(&got));
        assert_eq!(want.len(), got.len());
        let far = want.iter().zip(&got).map(|(a, b)| (a - b).abs()).fold(0.0f32, f32::max);
        // Half a step of the weights, 1/255 of two metres, and of the positions, 0.4 mm.
        assert!(far < 4.5e-3, "{far} at {time_secs} s");
    }
}
