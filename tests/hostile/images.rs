//! Images that are none, or far larger than their files: textures (PNG, JPEG, WebP), maps (HDR,
//! EXR), pictures for `diff`.

use crate::hostile::random::{Dice, damaged};
use crate::hostile::scenes::whole;
use crate::hostile::traps::{Expected, Trap};
use exr::prelude::{
    AnyChannel, AnyChannels, Encoding, FlatSamples, Image, Layer, LayerAttributes, SmallVec,
    WritableImage,
};
use serde_json::json;
use std::io::{Cursor, Write};

const JPEG: &[u8] = include_bytes!("../../scenes/tests/images/ramp-422-progressive.jpg");
const WEBP: &[u8] = include_bytes!("../../scenes/tests/images/ramp-alpha.webp");
const LOSSLESS_WEBP: &[u8] = include_bytes!("../../scenes/tests/images/ramp-lossless.webp");
/// Rounds of damage to each kind of image.
const DAMAGED: usize = 25;

/// A scene that wears this image.
fn textured(name: String, image: Vec<u8>) -> Trap {
    let mut scene = whole();
    scene["images"] = json!([{ "uri": "image.png" }]);
    scene["textures"] = json!([{ "source": 0 }]);
    scene["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"] = json!({ "index": 0 });
    scene["materials"][0]["normalTexture"] = json!({ "index": 0 });
    Trap { beside: vec![("image.png", image)], ..Trap::new(name, scene.to_string()) }
}

/// A scene in the light of this map.
fn lit(name: String, map: Vec<u8>) -> Trap {
    Trap {
        beside: vec![("map.hdr", map)],
        env: Some("map.hdr"),
        ..Trap::new(name, whole().to_string())
    }
}

/// A PNG of one colour whose rows are all there: small as a file, large as a picture.
fn flat_png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header().expect("a header");
    let mut stream = writer.stream_writer().expect("a stream");
    let row = vec![0u8; width.div_ceil(8) as usize];
    (0..height).for_each(|_| stream.write_all(&row).expect("a row"));
    stream.finish().expect("the end");
    drop(writer);
    bytes
}

/// A PNG that ends after its header.
fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = flat_png(8, 8);
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let mut crc = u32::MAX;
    for byte in &bytes[12..29] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    bytes[29..33].copy_from_slice(&(!crc).to_be_bytes());
    bytes
}

/// A JPEG whose frame header says another size.
fn jpeg_of(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = JPEG.to_vec();
    let at = bytes.windows(2).position(|pair| pair == [0xff, 0xc2]).expect("a progressive file");
    bytes[at + 5..at + 7].copy_from_slice(&height.to_be_bytes());
    bytes[at + 7..at + 9].copy_from_slice(&width.to_be_bytes());
    bytes
}

/// An extended WebP whose canvas is said to have another size.
fn webp_canvas(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = WEBP.to_vec();
    bytes[24..27].copy_from_slice(&width.wrapping_sub(1).to_le_bytes()[..3]);
    bytes[27..30].copy_from_slice(&height.wrapping_sub(1).to_le_bytes()[..3]);
    bytes
}

/// The same with another size of the picture inside.
fn webp_of(canvas: (u32, u32), (width, height): (u16, u16)) -> Vec<u8> {
    let mut bytes = webp_canvas(canvas.0, canvas.1);
    let at = bytes.windows(3).position(|bytes| bytes == [0x9d, 0x01, 0x2a]).expect("a picture") + 3;
    bytes[at..at + 2].copy_from_slice(&width.to_le_bytes());
    bytes[at + 2..at + 4].copy_from_slice(&height.to_le_bytes());
    bytes
}

/// A lossless WebP whose header says another size.
fn lossless_webp_of(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = LOSSLESS_WEBP.to_vec();
    let bits = (width - 1) | (height - 1) << 14 | 1 << 28;
    bytes[21..25].copy_from_slice(&bits.to_le_bytes());
    bytes
}

/// Scenes with images.
pub(crate) fn all() -> Vec<Trap> {
    let mut traps = vec![
        textured("PNG: whole".into(), flat_png(16, 16)).good(),
        textured("JPEG: whole".into(), JPEG.to_vec()).good(),
        textured("WebP: whole".into(), WEBP.to_vec()).good(),
        textured("WebP: lossless".into(), LOSSLESS_WEBP.to_vec()).good(),
        textured(
            "WebP: a canvas that its picture does not fill".into(),
            webp_canvas(16_384, 16_384),
        )
        .refused("another size"),
        textured(
            "WebP: a picture larger than its canvas".into(),
            webp_of((35, 29), (16_383, 16_383)),
        )
        .refused("another size"),
        textured("PNG: 16,000 by 16,000 of one colour".into(), flat_png(16_000, 16_000))
            .refused("image"),
        textured("an empty image".into(), Vec::new()).refused("image"),
        textured("a GIF".into(), b"GIF89a\x01\x00\x01\x00".to_vec())
            .refused("PNG, JPEG, WebP or KTX2"),
        textured("an SVG".into(), b"<svg><image href=\"file:///etc/passwd\"/></svg>".to_vec())
            .refused("image"),
        textured("the scene itself".into(), whole().to_string().into_bytes()).refused("image"),
    ];
    for (width, height) in [
        (0, 0),
        (0, 8),
        (1, 0),
        (16_385, 1),
        (16_384, 16_384),
        (u32::MAX, u32::MAX),
        (1 << 31, 1),
        (65_536, 65_536),
        (16_384, 1),
    ] {
        traps.push(textured(
            format!("PNG: a header of {width}x{height}"),
            png_header(width, height),
        ));
    }
    for (width, height) in
        [(0, 0), (0, 8), (65_535, 65_535), (16_384, 16_384), (1, 65_535), (16_384, 1)]
    {
        traps.push(textured(format!("JPEG: a header of {width}x{height}"), jpeg_of(width, height)));
    }
    for (width, height) in [(0, 0), (0, 29), (16_383, 16_383), (16_383, 1), (65_535, 65_535)] {
        let canvas = (u32::from(width & 0x3fff), u32::from(height & 0x3fff));
        traps.push(textured(
            format!("WebP: headers of {width}x{height}"),
            webp_of(canvas, (width, height)),
        ));
    }
    for (width, height) in [(16_384, 16_384), (16_383, 16_383), (16_384, 1), (1, 16_383)] {
        traps.push(textured(
            format!("WebP: a lossless header of {width}x{height}"),
            lossless_webp_of(width, height),
        ));
    }
    traps.extend(damaged_images());
    traps.push(a_thousand_images());
    traps
}

/// Images with random bytes changed.
fn damaged_images() -> Vec<Trap> {
    let mut traps = Vec::new();
    let mut dice = Dice(0x1a6e);
    let png = flat_png(64, 64);
    for round in 0..DAMAGED {
        traps.push(textured(format!("PNG: damage {round}"), damaged(&png, &mut dice)));
        traps.push(textured(format!("JPEG: damage {round}"), damaged(JPEG, &mut dice)));
        traps.push(textured(format!("WebP: damage {round}"), damaged(WEBP, &mut dice)));
        traps.push(textured(
            format!("WebP: lossless damage {round}"),
            damaged(LOSSLESS_WEBP, &mut dice),
        ));
    }
    traps
}

/// A scene that decodes one image a thousand times.
fn a_thousand_images() -> Trap {
    let mut thousand = whole();
    thousand["images"] = json!(vec![json!({ "uri": "image.png" }); 1000]);
    thousand["textures"] = (0..1000).map(|source| json!({ "source": source })).collect();
    let material =
        |index: u64| json!({ "pbrMetallicRoughness": { "baseColorTexture": { "index": index } } });
    thousand["materials"] = (0..1000).map(material).collect();
    let trap = Trap::new("a thousand images of 2,048 by 2,048", thousand.to_string());
    Trap { beside: vec![("image.png", flat_png(2048, 2048))], ..trap }.refused("image")
}

fn hdr(size: &str, bytes: &[u8]) -> Vec<u8> {
    [format!("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n{size}\n").as_bytes(), bytes].concat()
}

/// An EXR of these channels.
fn exr_of(names: &[String], size: (usize, usize)) -> Vec<u8> {
    let samples = || FlatSamples::F32(vec![0.5; size.0 * size.1]);
    let list: SmallVec<_> =
        names.iter().map(|name| AnyChannel::new(name.as_str(), samples())).collect();
    let layer = Layer::new(
        size,
        LayerAttributes { layer_name: None, ..LayerAttributes::default() },
        Encoding::SMALL_LOSSLESS,
        AnyChannels::sort(list),
    );
    let mut bytes = Cursor::new(Vec::new());
    Image::from_layer(layer).write().to_buffered(&mut bytes).expect("an EXR");
    bytes.into_inner()
}

/// An EXR picture that is in order.
pub(crate) fn good_exr() -> Vec<u8> {
    exr_of(&["R", "G", "B"].map(str::to_owned), (32, 16))
}

/// The same with another window in its header.
fn exr_window(right: i32, bottom: i32) -> Vec<u8> {
    let mut bytes = good_exr();
    for name in [&b"dataWindow\0box2i\0"[..], b"displayWindow\0box2i\0"] {
        let found = bytes.windows(name.len()).position(|window| window == name).expect("a window");
        let at = found + name.len() + 4 + 8;
        bytes[at..at + 4].copy_from_slice(&right.to_le_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&bottom.to_le_bytes());
    }
    bytes
}

/// Scenes with maps.
pub(crate) fn maps() -> Vec<Trap> {
    let flat: Vec<u8> = [128, 128, 128, 128].repeat(16 * 8);
    let mut traps = vec![
        lit("HDR: whole".into(), hdr("-Y 8 +X 16", &flat)).good(),
        lit("EXR: whole".into(), good_exr()).good(),
        lit("a map of nothing".into(), Vec::new()).refused("neither"),
        lit(
            "EXR: 200 channels".into(),
            exr_of(&(0..200).map(|n| format!("c{n:03}")).collect::<Vec<_>>(), (8, 8)),
        )
        .refused("channels"),
    ];
    for size in [
        "-Y 0 +X 0",
        "-Y 1 +X 0",
        "-Y 65536 +X 65536",
        "-Y 99999999999 +X 1",
        "-Y -1 +X 5",
        "+X 5",
        "",
        "-Y 32768 +X 4096",
        "-Y 4096 +X 8192",
        "+Y 8 -X 16",
        "-Y 8 +X 16 junk",
        "\u{0}",
    ] {
        traps.push(lit(format!("HDR: size {size:?}"), hdr(size, &flat)));
        traps.push(lit(format!("HDR: size {size:?} and no texel"), hdr(size, &[])));
    }
    // A row of 16 texels that says 15.
    let row = [&[2, 2, 0, 15][..], &[144, 128].repeat(4)].concat();
    traps.push(lit("HDR: a row of another width".into(), hdr("-Y 1 +X 16", &row)).refused("row 0"));
    // A run of 255 << 24 equal texels, as the old encoding has them.
    traps.push(lit("HDR: an old run".into(), hdr("-Y 64 +X 64", &[1, 1, 1, 255].repeat(9))));
    for (right, bottom) in
        [(-1, -1), (i32::MAX, i32::MAX), (i32::MIN, 0), (65_535, 2_047), (0, 0), (1 << 20, 1 << 20)]
    {
        traps.push(lit(format!("EXR: a window to {right}, {bottom}"), exr_window(right, bottom)));
    }
    let mut dice = Dice(0x11947);
    let (exr, hdr) = (good_exr(), hdr("-Y 8 +X 16", &flat));
    for round in 0..DAMAGED {
        traps.push(lit(format!("EXR: damage {round}"), damaged(&exr, &mut dice)));
        traps.push(lit(format!("HDR: damage {round}"), damaged(&hdr, &mut dice)));
    }
    assert!(traps.iter().any(|trap| trap.expected == Expected::Scene));
    traps
}

/// Pictures for `diff`.
pub(crate) fn pictures() -> Vec<(String, Vec<u8>)> {
    let mut pictures = vec![
        ("nothing".to_owned(), Vec::new()),
        ("PNG 16,000 by 16,000".into(), png_header(16_000, 16_000)),
    ];
    pictures.extend(
        [(i32::MAX, i32::MAX), (-5, -5), (40_000, 40_000)].map(|(right, bottom)| {
            (format!("EXR to {right}, {bottom}"), exr_window(right, bottom))
        }),
    );
    let mut dice = Dice(0xd1ff);
    let (exr, png) = (good_exr(), flat_png(64, 64));
    for round in 0..20 {
        pictures.push((format!("EXR damage {round}"), damaged(&exr, &mut dice)));
        pictures.push((format!("PNG damage {round}"), damaged(&png, &mut dice)));
    }
    pictures
}
