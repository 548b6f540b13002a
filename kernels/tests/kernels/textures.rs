//! Texture look-up against a plain implementation in f64.

use crate::support::*;
use tessera_kernels::CheckedScene;
use tessera_kernels::test_hooks::texture;
use tessera_layout::*;

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
                        f64::from(((step * 2 + salt).wrapping_mul(0x85eb_ca6b) >> 20) as f32 / 512.0) - 4.0
                    };
                    compare(&scene, (format, wrap, bilinear), at(0), at(1));
                }
            }
        }
    }
}

fn compare(scene: &CheckedScene, (format, wrap, bilinear): (TexelFormat, Wrap, u32), u: f64, v: f64) {
    let (x, y) = (u * f64::from(WIDTH), v * f64::from(HEIGHT));
    let got = texture(scene, 0, [u as f32, v as f32]);
    for channel in 0..4 {
        let read =
            |x: i64, y: i64| decoded(format, wrapped(x, WIDTH, wrap), wrapped(y, HEIGHT, wrap), channel);
        let want = if bilinear == 0 {
            // Mirroring turns the borders of texels round, where either neighbour is right.
            if (x - x.round()).abs() < 1e-4 || (y - y.round()).abs() < 1e-4 {
                continue;
            }
            read(x.floor() as i64, y.floor() as i64)
        } else {
            let (left, top) = ((x - 0.5).floor(), (y - 0.5).floor());
            let (across, down) = (x - 0.5 - left, y - 0.5 - top);
            let row = |y: i64| read(left as i64, y) * (1.0 - across) + read(left as i64 + 1, y) * across;
            row(top as i64) * (1.0 - down) + row(top as i64 + 1) * down
        };
        let got = f64::from(got[channel as usize]);
        assert!((got - want).abs() < 1e-5, "{format:?} {wrap:?} {bilinear} ({u}, {v}): {got}, not {want}");
    }
}

#[test]
fn wild_coordinates_read_inside_the_texture() {
    for wrap in [Wrap::Repeat, Wrap::ClampToEdge, Wrap::MirroredRepeat] {
        for bilinear in [0, 1] {
            let scene = textured(TexelFormat::Rgba8Linear, wrap, bilinear);
            for wild in
                [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, f32::MIN_POSITIVE, 1.0, -0.0]
            {
                texture(&scene, 0, [wild, wild]);
            }
        }
    }
}
