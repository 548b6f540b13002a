//! Texture look-up against a plain implementation in f64.

use tessera_kernels::CheckedScene;
use tessera_kernels::test_hooks::texture;
use tessera_layout::*;
use tessera_support::builder::*;

const WIDTH: u32 = 5;
const HEIGHT: u32 = 3;

fn byte(index: u32) -> u8 {
    (index.wrapping_mul(0x9e37_79b9) >> 13) as u8
}

fn textured(format: TexelFormat, wrap: Wrap, bilinear: u32) -> CheckedScene {
    let texels = (0..WIDTH * HEIGHT * 8 + 16).map(byte).collect();
    let mut builder = Builder { texels, ..Builder::default() };
    builder.textures.push(Texture {
        offset: 16,
        width: WIDTH,
        height: HEIGHT,
        format: format as u32,
        wrap_u: wrap as u32,
        wrap_v: wrap as u32,
        bilinear,
        level_count: 1,
        reserved: [0; 3],
    });
    builder.finish()
}

fn decoded(format: TexelFormat, x: i64, y: i64, channel: u32) -> f64 {
    let texel = (y * i64::from(WIDTH) + x) as u32 * 4 + channel;
    let code = f64::from(byte(16 + texel)) / 255.0;
    match format {
        TexelFormat::Rgba8Srgb if channel < 3 && code <= 0.04045 => code / 12.92,
        TexelFormat::Rgba8Srgb if channel < 3 => ((code + 0.055) / 1.055).powf(2.4),
        TexelFormat::Rgba16Linear => {
            let (low, high) = (byte(16 + texel * 2), byte(17 + texel * 2));
            f64::from(u16::from_le_bytes([low, high])) / 65535.0
        }
        _ => code,
    }
}

/// Texel index along one axis, any integer brought into range.
fn wrapped(index: i64, size: u32, wrap: Wrap) -> i64 {
    let size = i64::from(size);
    match wrap {
        Wrap::Repeat => index.rem_euclid(size),
        Wrap::ClampToEdge => index.clamp(0, size - 1),
        Wrap::MirroredRepeat => {
            let folded = index.rem_euclid(2 * size);
            if folded < size { folded } else { 2 * size - 1 - folded }
        }
    }
}

#[test]
fn every_format_wrap_and_filter_is_right() {
    for format in [TexelFormat::Rgba8Srgb, TexelFormat::Rgba8Linear, TexelFormat::Rgba16Linear] {
        for wrap in [Wrap::Repeat, Wrap::ClampToEdge, Wrap::MirroredRepeat] {
            for bilinear in [0, 1] {
                let scene = textured(format, wrap, bilinear);
                for step in 0..4000u32 {
                    let at = |salt: u32| {
                        f64::from(
                            ((step * 2 + salt).wrapping_mul(0x85eb_ca6b) >> 20) as f32 / 512.0,
                        ) - 4.0
                    };
                    compare(&scene, (format, wrap, bilinear), at(0), at(1));
                }
            }
        }
    }
}

fn compare(
    scene: &CheckedScene,
    (format, wrap, bilinear): (TexelFormat, Wrap, u32),
    u: f64,
    v: f64,
) {
    let (x, y) = (u * f64::from(WIDTH), v * f64::from(HEIGHT));
    let got = texture(scene, 0, [u as f32, v as f32, 0.0]);
    for channel in 0..4 {
        let read = |x: i64, y: i64| {
            decoded(format, wrapped(x, WIDTH, wrap), wrapped(y, HEIGHT, wrap), channel)
        };
        let want = if bilinear == 0 {
            // Mirroring turns the borders of texels round, where either neighbour is right.
            if (x - x.round()).abs() < 1e-4 || (y - y.round()).abs() < 1e-4 {
                continue;
            }
            read(x.floor() as i64, y.floor() as i64)
        } else {
            let (left, top) = ((x - 0.5).floor(), (y - 0.5).floor());
            let (across, down) = (x - 0.5 - left, y - 0.5 - top);
            let row =
                |y: i64| read(left as i64, y) * (1.0 - across) + read(left as i64 + 1, y) * across;
            row(top as i64) * (1.0 - down) + row(top as i64 + 1) * down
        };
        let got = f64::from(got[channel as usize]);
        assert!(
            (got - want).abs() < 1e-5,
            "{format:?} {wrap:?} {bilinear} ({u}, {v}): {got}, not {want}"
        );
    }
}

#[test]
fn wild_coordinates_read_inside_the_texture() {
    for wrap in [Wrap::Repeat, Wrap::ClampToEdge, Wrap::MirroredRepeat] {
        for bilinear in [0, 1] {
            let scene = textured(TexelFormat::Rgba8Linear, wrap, bilinear);
            for wild in [
                f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                1e30,
                -1e30,
                f32::MIN_POSITIVE,
                1.0,
                -0.0,
            ] {
                texture(&scene, 0, [wild, wild, wild.abs()]);
            }
        }
    }
}

/// A texture of 8 x 4 whose level `l` is 10 (l + 1) all over.
fn stairs(level_count: u32) -> Texture {
    linear_texture((8, 4), level_count)
}

fn stairs_texels() -> Vec<u8> {
    (0..4u8)
        .flat_map(|level| vec![10 * (level + 1); [32, 8, 2, 1][usize::from(level)] * 4])
        .collect()
}

#[test]
fn the_footprint_chooses_the_level() {
    let value = |level_count: u32, texels: f32| {
        let mut builder = Builder { texels: stairs_texels(), ..Builder::default() };
        builder.textures.push(stairs(level_count));
        (texture(&builder.finish(), 0, [0.3, 0.7, texels / 32.0])[0] * 255.0).round()
    };
    for (texels, want) in
        [(0.0, 10.0), (0.5, 10.0), (1.0, 10.0), (3.99, 10.0), (4.0, 20.0), (15.9, 20.0)]
    {
        assert_eq!(value(4, texels), want, "{texels} texels");
    }
    for (texels, want) in
        [(16.0, 30.0), (63.9, 30.0), (64.0, 40.0), (1e9, 40.0), (f32::INFINITY, 40.0)]
    {
        assert_eq!(value(4, texels), want, "{texels} texels");
    }
    assert_eq!(
        [value(1, 1e9), value(2, 1e9), value(3, 1e9)],
        [10.0, 20.0, 30.0],
        "no level that is not there"
    );
    assert!(value(4, f32::NAN) >= 10.0);
}

#[test]
fn coarse_levels_are_looked_up_like_the_first() {
    for format in [TexelFormat::Rgba8Srgb, TexelFormat::Rgba8Linear, TexelFormat::Rgba16Linear] {
        let texels: Vec<u8> = (0..256).map(byte).collect();
        let mut builder = Builder { texels, ..Builder::default() };
        // Level 1 has 2 x 2 texels, and stands behind the 16 of level 0.
        let first = Texture { width: 4, height: 4, format: format as u32, offset: 16, ..stairs(2) };
        let behind = first.offset + 16 * format.bytes() as u64;
        builder.textures.extend([
            first,
            Texture { width: 2, height: 2, offset: behind, level_count: 1, ..first },
        ]);
        let scene = builder.finish();
        for step in 0..40 {
            let (u, v) = (step as f32 * 0.13 - 2.0, step as f32 * 0.07);
            assert_eq!(
                texture(&scene, 0, [u, v, 0.25]),
                texture(&scene, 1, [u, v, 0.0]),
                "{format:?} ({u}, {v})"
            );
        }
    }
}

#[test]
fn missing_texture_levels_are_refused() {
    use std::sync::Arc;
    let with = |level_count: u32, bytes: usize| {
        let mut texels = stairs_texels();
        texels.truncate(bytes);
        let mut builder = Builder { texels, ..Builder::default() };
        builder.textures.push(stairs(level_count));
        CheckedScene::new(Arc::new(builder.flat()))
    };
    assert!(with(4, 172).is_ok() && with(1, 128).is_ok());
    for (level_count, bytes) in [(0, 172), (5, 172), (4, 171), (2, 159)] {
        assert!(with(level_count, bytes).is_err(), "{level_count} levels in {bytes} bytes");
    }
}
