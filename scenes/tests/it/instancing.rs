//! Meshes that are held once: which are, what they show, and what is copied all the same.

use crate::support::{add_floats, at, load_in, loaded_from, triangle};
use serde_json::{Value, json};
use tessera_layout::{FlatScene, ShadingVertex, Triangle, triangle_flags};
use tessera_scenes::LoadOptions;

/// A triangle with normals and tangents far from its file's origin, in four places: turned and
/// stretched, as it is, mirrored, and flat.
fn placed_four_times() -> Value {
    let mut file = triangle();
    let far = [1000.0, 2.0, -500.0, 1001.0, 2.0, -500.0, 1000.0, 3.0, -500.5];
    let positions = add_floats(&mut file, "VEC3", 3, &far);
    let normals = add_floats(&mut file, "VEC3", 3, &[0.0, 0.6, 0.8, 0.0, 0.6, 0.8, 0.6, 0.0, 0.8]);
    let tangents = add_floats(
        &mut file,
        "VEC4",
        4,
        &[1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
    );
    file["meshes"][0]["primitives"][0]["attributes"] =
        json!({ "POSITION": positions, "NORMAL": normals, "TANGENT": tangents });
    file["nodes"] = json!([
        { "mesh": 0, "rotation": [0.0, 0.6, 0.0, 0.8], "scale": [2.0, 0.5, 1.5],
            "translation": [-900.0, 1.0, 2.0] },
        { "mesh": 0 },
        { "mesh": 0, "scale": [-1.0, 1.0, 1.0] },
        { "mesh": 0, "scale": [1.0, 0.0, 1.0] },
    ]);
    file["scenes"][0]["nodes"] = json!([0, 1, 2, 3]);
    file
}

/// What each triangle of the scene is in the world, whichever way the scene holds it.
fn shown(flat: &FlatScene) -> Vec<(Triangle, [ShadingVertex; 3])> {
    let own = flat.triangles.iter().zip(flat.triangle_vertices.iter());
    let own = own.map(|(triangle, corners)| {
        (*triangle, corners.map(|corner| flat.vertices[corner as usize]))
    });
    let instanced = flat.instances.iter().flat_map(|instance| {
        (0..instance.triangle_count).map(move |local| {
            let stored = (instance.first_triangle + local) as usize;
            let corners = flat.meshes.triangle_vertices[stored];
            let vertices =
                corners.map(|corner| instance.place_vertex(&flat.meshes.vertices[corner as usize]));
            (instance.place_triangle(&flat.meshes.triangles[stored]), vertices)
        })
    });
    own.chain(instanced).collect()
}

fn near(a: [f32; 3], b: [f32; 3], distance: f32) -> bool {
    (0..3).all(|axis| (a[axis] - b[axis]).abs() <= distance)
}

/// The angle between two directions is small, whatever their lengths.
fn points_alike(a: [f32; 3], b: [f32; 3]) -> bool {
    let dot = |a: [f32; 3], b: [f32; 3]| {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(b)).sum::<f64>()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt() > 0.999_999
}

#[test]
fn an_instanced_mesh_renders_like_its_copies() {
    let file = placed_four_times();
    let copied = at(&loaded_from(&file, u64::MAX), 0.0);
    let scene = loaded_from(&file, 1);
    let flat = at(&scene, 0.0);
    assert_eq!(
        (copied.instances.len(), copied.triangles.len(), copied.meshes.triangles.len()),
        (0, 4, 0)
    );
    // A mirrored place and a flat one are no instances.
    assert_eq!(
        (flat.instances.len(), flat.triangles.len(), flat.meshes.triangles.len()),
        (2, 2, 1)
    );
    assert_eq!((scene.report().instances, scene.report().triangles), (2, 4));
    assert_eq!(flat.triangles[0].flags, triangle_flags::MIRRORED);
    // Copies first, in the order of nodes, and then instances.
    let (wanted, found) = (shown(&copied), shown(&flat));
    for (index, of_copies) in [(0, 2), (1, 3), (2, 0), (3, 1)] {
        let ((a, a_vertices), (b, b_vertices)) = (&found[index], &wanted[of_copies]);
        let corners = [(a.v0, b.v0), (a.v1, b.v1), (a.v2, b.v2)];
        assert!(corners.iter().all(|(a, b)| near(*a, *b, 2e-4)), "{index}: {a:?} {b:?}");
        assert_eq!((a.material, a.flags), (b.material, b.flags));
        // A flat place has no normals to compare.
        for (a, b) in a_vertices.iter().zip(b_vertices).filter(|_| of_copies != 3) {
            assert!(points_alike(a.normal, b.normal), "{index}: {a:?} {b:?}");
            let length = a.normal.iter().map(|c| c * c).sum::<f32>().sqrt();
            assert!((0.3..3.0).contains(&length), "{index}: a normal of length {length}");
        }
    }
    // Boxes of turned meshes are larger than what is in them.
    let (tight, loose) = (loaded_from(&file, u64::MAX).report().clone(), scene.report());
    for axis in 0..3 {
        let (below, above) = (
            tight.bounds_lower[axis] - loose.bounds_lower[axis],
            loose.bounds_upper[axis] - tight.bounds_upper[axis],
        );
        assert!(
            (-1e-3..1.0).contains(&below) && (-1e-3..1.0).contains(&above),
            "{axis}: {below} {above}"
        );
    }
}

#[test]
fn distant_geometry_keeps_its_precision() {
    let mut file = placed_four_times();
    // Brought back to the world's origin: a float at a thousand metres is good for 0.06 mm, a mesh
    // about its own centre for far less.
    file["nodes"] = json!([{ "mesh": 0, "translation": [-1000.0, -2.0, 500.0] }, { "mesh": 0 }]);
    file["scenes"][0]["nodes"] = json!([0, 1]);
    let (copied, flat) = (at(&loaded_from(&file, u64::MAX), 0.0), at(&loaded_from(&file, 1), 0.0));
    let (wanted, found) = (shown(&copied), shown(&flat));
    assert!(near(found[0].0.v0, wanted[0].0.v0, 1e-6) && near(found[0].0.v2, wanted[0].0.v2, 1e-6));
}

#[test]
fn deforming_emissive_and_single_meshes_are_copied() {
    let instances = |change: fn(&mut Value)| {
        let mut file = placed_four_times();
        change(&mut file);
        at(&loaded_from(&file, 1), 0.0).instances.len()
    };
    assert_eq!(instances(|_| ()), 2);
    assert_eq!(instances(|file| file["scenes"][0]["nodes"] = json!([1])), 0);
    assert_eq!(
        instances(|file| {
            file["materials"] = json!([{ "emissiveFactor": [1.0, 0.5, 0.25] }]);
            file["meshes"][0]["primitives"][0]["material"] = json!(0);
        }),
        0
    );
    assert_eq!(
        instances(|file| {
            let moved = add_floats(file, "VEC3", 3, &[0.0; 9]);
            file["meshes"][0]["primitives"][0]["targets"] = json!([{ "POSITION": moved }]);
        }),
        0
    );
    let file = placed_four_times();
    assert_eq!(at(&loaded_from(&file, 3), 0.0).instances.len(), 2, "three copies of one triangle");
    assert_eq!(at(&loaded_from(&file, 4), 0.0).instances.len(), 0);
}

#[test]
fn moving_instances_keep_their_meshes() {
    let mut file = placed_four_times();
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
    let values = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 0.0, 0.0, 8.0, 0.0]);
    file["animations"] = json!([{ "samplers": [{ "input": times, "output": values }],
        "channels": [{ "sampler": 0, "target": { "node": 1, "path": "translation" } }] }]);
    let scene = loaded_from(&file, 1);
    let (first, last) = (at(&scene, 0.0), at(&scene, 1.0));
    assert!(std::sync::Arc::ptr_eq(&first.meshes, &last.meshes));
    let (first, last) = (shown(&first), shown(&last));
    assert_eq!(first[2], last[2]);
    // Kernels see so wide a scene reduced: by how much tells an edge of a metre.
    let metre = first[3].0.v1[0] - first[3].0.v0[0];
    assert!((last[3].0.v0[1] - first[3].0.v0[1] - 8.0 * metre).abs() < 1e-4 && metre > 0.1);
}

#[test]
fn an_instanced_mesh_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), placed_four_times().to_string()).unwrap();
    // The mesh, and the copies for its mirrored place and its flat one.
    let load = |instanced_from: u64, triangles: u64| {
        let mut options = LoadOptions { instanced_from, ..LoadOptions::default() };
        options.limits.triangles = triangles;
        load_in(folder.path(), &options).map(|scene| scene.report().triangles)
    };
    assert_eq!(load(1, 3).unwrap(), 4);
    for (instanced_from, triangles) in [(1, 2), (u64::MAX, 3)] {
        let error = load(instanced_from, triangles).unwrap_err().to_string();
        let wanted = format!(
            "the scene has {} triangles, more than the limit of {triangles}",
            triangles + 1
        );
        assert!(error.contains(&wanted), "{error}");
    }
}

#[test]
fn instances_may_show_more_triangles_than_the_limit() {
    let (triangles, places) = (4096, 20_000);
    let mut file = triangle();
    let corner = |index: usize, k: usize| ((index * 37 + k * 11) % 101) as f32 * 0.01 + k as f32;
    let corners: Vec<f32> =
        (0..3 * triangles).flat_map(|index| [0, 1, 2].map(|k| corner(index, k))).collect();
    let positions = add_floats(&mut file, "VEC3", 3, &corners);
    file["meshes"][0]["primitives"][0] = json!({ "attributes": { "POSITION": positions } });
    let offsets: Vec<f32> = (0..places).flat_map(|place| [4.0 * place as f32, 0.0, 0.0]).collect();
    let offsets = add_floats(&mut file, "VEC3", 3, &offsets);
    file["extensionsUsed"] = json!(["EXT_mesh_gpu_instancing"]);
    file["nodes"][0]["extensions"] =
        json!({ "EXT_mesh_gpu_instancing": { "attributes": { "TRANSLATION": offsets } } });
    let scene = loaded_from(&file, LoadOptions::default().instanced_from);
    let flat = at(&scene, 0.0);
    let limit = LoadOptions::default().limits.triangles;
    assert!(
        flat.shown_triangles() == (triangles * places) as u64 && flat.shown_triangles() > limit
    );
    assert_eq!((flat.triangles.len(), flat.meshes.triangles.len()), (0, triangles));
    // As much as a mesh and places, and nothing for each triangle that is shown.
    let (bytes, report) = (flat.bytes(), scene.report());
    assert!(
        report.arrays_bytes.abs_diff(bytes) < bytes / 4,
        "{} said, {bytes} held",
        report.arrays_bytes
    );
    // It is flat, and its vertices have nothing but places: one shades a triangle.
    assert_eq!((report.vertices, report.triangles), (triangles as u64, flat.shown_triangles()));
    let last = flat.instances.last().unwrap();
    assert_eq!(last.first_id as usize, triangles * (places - 1));
}
