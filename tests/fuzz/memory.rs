//! What finishing says that it needs of memory, against what it takes.

use crate::{finishing, heap};
use std::io::Write;
use tessera_finishing::{Inputs, Running, make_piece, memory_of, rows_read};
use tessera_protocol::TileSums;
use tessera_protocol::job::{AovSpec, CropSpec, ExrCompressionSpec, FormatSpec, RenderSpec};
use tessera_protocol::node::{Finish, Piece};

/// Returns the films that a piece reads, which do not compress.
fn films(spec: &RenderSpec, finish: &Finish) -> Vec<(u32, Vec<u8>)> {
    let (grid, rows) = (spec.tiles(), rows_read(spec, finish));
    let mut parts = Vec::new();
    for tile in 0..grid.count() {
        let Some(window) = grid.window(tile) else { continue };
        let place = window.from(&spec.rendered_window());
        if place.bottom <= rows.start as i32 || place.top >= rows.end as i32 {
            continue;
        }
        let (width, height) = (window.width() as u16, window.height() as u16);
        let mut film = TileSums::empty(width, height, spec.channels());
        film.samples = spec.spp;
        let mut bits = u64::from(tile) + 1;
        for value in &mut film.values {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            *value = (bits >> 38) as i64;
        }
        parts.push((tile, film.to_bytes()));
    }
    parts
}

/// Bytes of the heap that one thread takes for a piece, and those that are said.
fn taken(spec: &RenderSpec, piece: Piece) -> (u64, u64) {
    let finish = Finish { piece, exposure_bits: 0 };
    let window = spec.data_window();
    let parts = match piece {
        Piece::Assembly => {
            let noise = (0..12 * window.pixels()).map(|byte| (byte * byte % 251) as u8);
            vec![(0, noise.collect())]
        }
        _ => films(spec, &finish),
    };
    let bytes = finishing::parts(&parts);
    let mut file = tempfile::tempfile().expect("a file can be made");
    file.write_all(&bytes[4..]).expect("a file can be written");
    let length = bytes.len() as u64 - 4;
    let inputs = Inputs::open(file, parts.len() as u32, length).expect("the inputs are right");
    drop((bytes, parts));
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    pool.install(|| {
        heap::begin();
        let made = make_piece(spec, &finish, &inputs, &Running::default());
        let peak = heap::peak() as u64;
        assert!(made.is_ok(), "{made:?}");
        (peak, memory_of(spec, &finish))
    })
}

#[test]
fn a_piece_takes_no_more_memory_than_is_said() {
    let aovs = vec![AovSpec::Albedo, AovSpec::Normal, AovSpec::Depth, AovSpec::Position];
    let base = RenderSpec {
        width: 480,
        height: 512,
        tile: 64,
        spp: 2,
        formats: vec![FormatSpec::Exr],
        ..RenderSpec::default()
    };
    let shown = vec![FormatSpec::Exr, FormatSpec::Png, FormatSpec::Png16, FormatSpec::Jpeg];
    let layered = RenderSpec { aovs: aovs.clone(), formats: shown.clone(), ..base.clone() };
    let coarse = RenderSpec { tile: 512, transparent: true, ..layered.clone() };
    let piz = RenderSpec { exr_compression: ExrCompressionSpec::Piz, ..layered.clone() };
    let denoised = RenderSpec { denoise: true, ..base.clone() };
    let crop = Some(CropSpec { x: 0, y: 0, width: 300, height: 200 });
    let beyond = RenderSpec { denoise: true, crop, overscan: 50, ..layered.clone() };
    let (band, frame) = (Piece::Band { first: 128, rows: 128 }, |rows| Piece::Frame { rows });
    for (name, spec, piece) in [
        ("plain", &base, frame(512)),
        ("plain band", &base, band),
        ("layers", &layered, frame(512)),
        ("layers in large tiles", &coarse, frame(512)),
        ("layers in large tiles, band", &coarse, band),
        ("piz", &piz, frame(512)),
        ("denoised band", &denoised, band),
        ("denoised band in large tiles", &RenderSpec { tile: 512, ..denoised.clone() }, band),
        ("denoised beyond the frame", &beyond, frame(300)),
        ("assembly", &RenderSpec { formats: shown, ..base.clone() }, Piece::Assembly),
    ] {
        let (peak, said) = taken(spec, piece);
        let megabytes = [peak, said].map(|bytes| bytes >> 20);
        println!("{name}: {megabytes:?}");
        assert!(peak <= said, "{name} takes {peak} bytes, and {said} are said");
        assert!(said <= 4 * peak + (48 << 20), "{name} takes {peak} bytes, and {said} are said");
    }
}
