//! Extensions along whole paths: light through surfaces, absorption, colours that part.

use tessera_layout::*;
use tessera_support::builder::*;

/// The middle of a unit sphere seen from (0, 0, 4) in a white world: mean of each channel.
fn middle_of_sphere(material: Material, inside: Medium, depth: u32, samples: u32) -> [f64; 3] {
    let mut builder = Builder::default();
    let glass = builder.add_closed(material, CLEAR, inside);
    builder.sphere(64, glass);
    builder.constant([1.0; 3]);
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Orthographic, 0.02);
    let scene = builder.finish();
    let unit = whole(4, 4, samples, depth);
    let means = means(&scene, &unit);
    [0, 1, 2].map(|channel| channel_mean(&means, &unit, channel))
}

pub(crate) const CLEAR: Layers = Layers { transmission: 1.0, ..Layers::NONE };

#[test]
fn a_volume_absorbs_by_the_length_of_the_way_through_it() {
    let absorption = [0.0, 0.5, 2.0];
    let air = Material { ior: 1.0, ..material([1.0; 3], 0.0, 0.0) };
    let seen = middle_of_sphere(air, Medium { absorption, ..Medium::GLASS }, 4, 64);
    for (channel, seen) in seen.into_iter().enumerate() {
        let want = (-2.0 * f64::from(absorption[channel])).exp();
        assert!((seen - want).abs() < 0.005, "channel {channel}: {seen}, not {want}");
    }
}

#[test]
fn clear_glass_disappears_in_a_white_room() {
    for (roughness, least) in [(0.0, 0.99), (0.2, 0.98), (0.5, 0.98), (1.0, 0.98)] {
        for dispersion in [0.0, 2.0] {
            let glass = material([1.0; 3], 0.0, roughness);
            let inside =
                Medium { half_spread: Medium::half_spread_of(1.5, dispersion), ..Medium::GLASS };
            let seen = middle_of_sphere(glass, inside, 24, 2048);
            let noise = if dispersion > 0.0 { 0.05 } else { 0.005 };
            for share in seen {
                assert!(
                    (least - noise..1.0 + noise).contains(&share),
                    "roughness {roughness}: {seen:?}"
                );
            }
        }
    }
}

#[test]
fn light_from_behind_shines_through_a_leaf() {
    let layers = Layers {
        specular: 0.0,
        diffuse_transmission: 0.75,
        diffuse_transmission_color: [0.2, 0.8, 0.4],
        ..Layers::NONE
    };
    let mut builder = Builder::default();
    let leaf = builder.add_layered(material([1.0; 3], 0.0, 1.0), layers);
    builder.quad([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]], leaf);
    let mut point = light(LightKind::Point, [8.0; 3]);
    point.position = [0.0, 0.0, -2.0];
    builder.lights.push((point, 1.0));
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Orthographic, 0.01);
    let unit = whole(2, 2, 16, 2);
    let seen = means(&builder.finish(), &unit);
    for (channel, color) in [0.2, 0.8, 0.4].into_iter().enumerate() {
        // Irradiance 8 / 2^2, over pi.
        let want = 0.75 * color * 2.0 / std::f64::consts::PI;
        let seen = channel_mean(&seen, &unit, channel);
        assert!((seen / want - 1.0).abs() < 0.01, "channel {channel}: {seen}, not {want}");
    }
}

#[test]
fn what_stands_in_a_medium_is_seen_through_it() {
    let mut builder = Builder::default();
    let absorption = [1.0, 0.25, 0.0];
    let air = Material { ior: 1.0, ..material([1.0; 3], 0.0, 0.0) };
    let volume = builder.add_closed(air, CLEAR, Medium { absorption, ..Medium::GLASS });
    builder.sphere(64, volume);
    let lamp = Material { emission: [1.0; 3], ..material([0.0; 3], 0.0, 1.0) };
    let lamp = builder.add_material(lamp);
    builder.quad([[-0.2, -0.2, 0.0], [0.2, -0.2, 0.0], [0.2, 0.2, 0.0], [-0.2, 0.2, 0.0]], lamp);
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Orthographic, 0.02);
    let unit = whole(4, 4, 64, 3);
    let seen = means(&builder.finish(), &unit);
    for (channel, share) in absorption.into_iter().enumerate() {
        let (seen, want) = (channel_mean(&seen, &unit, channel), (-f64::from(share)).exp());
        assert!((seen - want).abs() < 0.005, "channel {channel}: {seen}, not {want}");
    }
}

#[test]
fn layers_with_dangling_indices_are_refused() {
    let broken = |change: fn(&mut FlatScene)| {
        let mut builder = Builder::default();
        builder.add_closed(material([1.0; 3], 0.0, 0.5), CLEAR, Medium::GLASS);
        let mut flat = builder.flat();
        change(&mut flat);
        tessera_kernels::CheckedScene::new(std::sync::Arc::new(flat)).is_err()
    };
    assert!(!broken(|_| ()));
    assert!(broken(|scene| scene.materials.make_mut()[0].layers = 2));
    assert!(broken(|scene| scene.layers = Default::default()));
    assert!(broken(|scene| scene.layers.make_mut()[1].textures[3].texture = 0));
    assert!(broken(|scene| scene.layers = vec![Layers::NONE; LAYERS_MAX + 1].into()));
    assert!(broken(|scene| scene.layers.make_mut()[1].medium = 2));
    assert!(broken(|scene| scene.media = Default::default()));
    assert!(broken(|scene| scene.media = vec![Medium::GLASS; 2].into()));
    assert!(broken(|scene| scene.media = vec![Medium::AIR; MEDIA_MAX + 1].into()));
}
