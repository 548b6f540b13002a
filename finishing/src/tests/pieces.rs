//! Files that are put together from pieces are those that one process makes.

use crate::made::{
    Kept, Made, films_of, finish_of, frame, inputs_of, joined, made, piece_of_frame, pieces_of,
    spec, whole,
};
use crate::*;
use std::sync::atomic::AtomicBool;
use tessera_protocol::job::*;
use tessera_protocol::node::{Finish, Piece};

/// Checks that the pieces of a frame give the files that one process makes, in bands of 32 rows,
/// of 96 rows, and as a whole.
fn assert_same(spec: &RenderSpec) {
    let expected = whole(spec);
    for (rows, split) in [(32, 1), (96, 3)] {
        let pieces = pieces_of(spec, rows, split);
        assert!(pieces.len() > 2 || spec.data_window().height() <= rows);
        assert_eq!(joined(spec, &pieces).unwrap(), expected, "{rows} rows of {spec:?}");
    }
    assert_eq!(joined(spec, &[piece_of_frame(spec)]).unwrap(), expected, "{spec:?}");
}

// promise: P5
#[test]
fn bands_of_a_plain_frame_are_the_frame() {
    for tile in [16, 32, 50] {
        assert_same(&spec(96, 150, tile));
    }
    // One column, and a last band of one row.
    assert_same(&spec(1, 129, 32));
}

#[test]
fn bands_have_all_layers_and_formats() {
    use FormatSpec::{Exr, Jpeg, Png, Png16};
    let aovs = vec![AovSpec::Albedo, AovSpec::Normal, AovSpec::Depth, AovSpec::Position];
    for formats in
        [vec![Exr], vec![Png], vec![Jpeg, Exr], vec![Png16, Jpeg], vec![Png16, Exr, Jpeg, Png]]
    {
        assert_same(&RenderSpec { aovs: aovs.clone(), formats, ..spec(77, 100, 32) });
    }
}

#[test]
fn bands_of_every_exr_are_the_frame() {
    use ExrCompressionSpec::*;
    for compression in [None, Rle, Zips, Zip, Piz, Pxr24, B44, B44a] {
        for depth in [ExrDepthSpec::Float, ExrDepthSpec::Half] {
            let layers = vec![ExrLayerDepth { layer: ExrLayerSpec::Depth, depth }];
            assert_same(&RenderSpec {
                aovs: vec![AovSpec::Depth],
                exr_compression: compression,
                exr_depth: depth,
                exr_layers: layers,
                formats: vec![FormatSpec::Exr],
                ..spec(70, 107, 32)
            });
        }
    }
}

#[test]
fn denoised_bands_are_the_frame() {
    for tile in [16, 32, 64] {
        assert_same(&RenderSpec { denoise: true, ..spec(96, 150, tile) });
    }
    let aovs = vec![AovSpec::Position];
    let transparent = RenderSpec { denoise: true, transparent: true, aovs, ..spec(96, 150, 32) };
    assert_same(&transparent);
}

#[test]
fn bands_of_a_part_of_a_frame_are_the_part() {
    let crop = |crop: Option<[u32; 4]>, overscan: u32, denoise: bool| {
        let crop = crop.map(|[x, y, width, height]| CropSpec { x, y, width, height });
        RenderSpec { crop, overscan, denoise, ..spec(110, 140, 32) }
    };
    for denoise in [false, true] {
        assert_same(&crop(Some([20, 31, 61, 99]), 0, denoise));
        assert_same(&crop(Some([20, 31, 61, 79]), 9, denoise));
        // Beyond the frame on all sides; on three; and below.
        assert_same(&crop(None, 33, denoise));
        assert_same(&crop(Some([0, 0, 70, 80]), 40, denoise));
        assert_same(&crop(Some([30, 100, 40, 40]), 70, denoise));
    }
}

#[test]
fn bands_with_alpha_are_the_frame() {
    let spec = RenderSpec { transparent: true, ..spec(96, 150, 32) };
    assert_same(&spec);
    // No file shows the alpha that bands would hand on.
    assert_same(&RenderSpec { formats: vec![FormatSpec::Jpeg, FormatSpec::Exr], ..spec.clone() });
    let space = Some(Box::new(SpaceSpec { origin: [1e6, 0.0, -1e5], exponent: 2 }));
    let aovs = vec![AovSpec::Depth, AovSpec::Position];
    assert_same(&RenderSpec { space, aovs, ..spec });
}

#[test]
fn bands_of_frames_in_rounds_are_the_frame() {
    for denoise in [false, true] {
        let noise = RenderSpec { noise: Some(0.1), denoise, ..spec(96, 150, 32) };
        assert_same(&noise);
        assert_same(&RenderSpec { noise: None, time_secs: Some(9), ..noise });
    }
}

#[test]
fn the_exposure_is_that_of_the_unit() {
    let described = RenderSpec {
        exposure: 3.0,
        auto_exposure: true,
        formats: vec![FormatSpec::Png, FormatSpec::Jpeg],
        ..spec(96, 70, 32)
    };
    let metered = RenderSpec { exposure: -1.25, ..described.clone() };
    let piece = Piece::Frame { rows: 70 };
    let finish = finish_of(&metered, piece);
    let bytes = made(&described, &finish, &inputs_of(&films_of(&described, &finish, 1)));
    assert_eq!(joined(&metered, &[bytes]).unwrap(), whole(&metered));
    assert_ne!(whole(&described)[0].hash, whole(&metered)[0].hash);
}

#[test]
fn a_piece_reads_the_rows_that_count() {
    let band = |spec: &RenderSpec, first, rows| {
        rows_read(spec, &finish_of(spec, Piece::Band { first, rows }))
    };
    let plain = spec(96, 300, 16);
    assert_eq!([band(&plain, 0, 64), band(&plain, 64, 64)], [0..64, 64..128]);
    let denoised = RenderSpec { denoise: true, ..plain };
    assert_eq!(band(&denoised, 64, 64), 18..174);
    assert_eq!([band(&denoised, 0, 32), band(&denoised, 256, 44)], [0..78, 210..300]);
    let crop = CropSpec { x: 0, y: 100, width: 96, height: 100 };
    let denoised = RenderSpec { crop: Some(crop), ..denoised };
    // The rendered window begins 46 rows above the crop.
    assert_eq!([band(&denoised, 0, 32), band(&denoised, 64, 36)], [0..124, 64..192]);
    assert_eq!(rows_read(&denoised, &finish_of(&denoised, Piece::Assembly)), 0..0);
    let whole = Piece::Frame { rows: 100 };
    assert_eq!(rows_read(&denoised, &finish_of(&denoised, whole)), 0..192);
}

#[test]
fn pieces_that_are_no_band_are_not_made() {
    let spec = spec(96, 100, 32);
    let inputs = inputs_of(&films_of(&spec, &finish_of(&spec, Piece::Frame { rows: 100 }), 1));
    let fails = |piece: Piece| {
        let finish = finish_of(&spec, piece);
        let error = make_piece(&spec, &finish, &inputs, &Running::default()).unwrap_err();
        assert!(matches!(error, FinishError::Piece(_)), "{error:?} for {piece:?}");
    };
    for (first, rows) in [(0, 0), (0, 31), (1, 32), (96, 5), (128, 32), (64, u32::MAX), (16, 84)] {
        fails(Piece::Band { first, rows });
    }
    [0, 99, 101, u32::MAX].into_iter().for_each(|rows| fails(Piece::Frame { rows }));
}

#[test]
fn a_stopped_piece_ends_early() {
    let spec = spec(96, 100, 32);
    let stopped = |piece: Piece, inputs: &Inputs| {
        let finish = finish_of(&spec, piece);
        let stop = AtomicBool::new(true);
        let running = Running { stop: Some(&stop), ..Running::default() };
        make_piece(&spec, &finish, inputs, &running).unwrap_err()
    };
    // There is no film at all: nothing is read.
    for piece in [Piece::Band { first: 0, rows: 32 }, Piece::Frame { rows: 100 }] {
        assert!(matches!(stopped(piece, &inputs_of(&[])), FinishError::Stopped));
    }
    let pixels = inputs_of(&[(0, vec![0; 100 * 96 * 12])]);
    assert!(matches!(stopped(Piece::Assembly, &pixels), FinishError::Stopped));
}

#[test]
fn memory_grows_with_what_is_made() {
    let of = |spec: &RenderSpec, piece: Piece| memory_of(spec, &finish_of(spec, piece));
    let hd = RenderSpec { denoise: true, ..spec(1920, 1080, 64) };
    let band = |spec: &RenderSpec, rows| of(spec, Piece::Band { first: 0, rows });
    assert!(band(&hd, 256) > band(&hd, 32));
    assert!(band(&hd, 256) > band(&RenderSpec { denoise: false, ..hd.clone() }, 256));
    let megabytes = [band(&hd, 256), of(&hd, Piece::Assembly)].map(|bytes| bytes >> 20);
    assert!(megabytes.iter().all(|size| (20..1000).contains(size)), "{megabytes:?}");
}

#[test]
fn shown_files_say_nothing_of_pieces() {
    // What files say of their making is that of the frame, not of the unit.
    let spec = RenderSpec { clamp: Some(4.0), ..spec(96, 100, 32) };
    let kept = Kept::default();
    let pieces = pieces_of(&spec, 32, 1);
    let files = join(&frame(&spec), &mut pieces.into_iter().map(Ok), &kept).unwrap();
    assert_eq!(files, finish(&frame(&spec), &Made(&spec), &Kept::default()).unwrap());
    let exr = kept.0.lock().unwrap()[0].clone().into_bytes();
    let said = |text: &str| exr.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(said(&frame(&spec).job.to_string()) && said("\"clamp\":4.0"));
    let finish = Finish { piece: Piece::Assembly, exposure_bits: 0 };
    assert_eq!(rows_read(&spec, &finish), 0..0);
}

// promise: P5
#[test]
fn pieces_do_not_depend_on_threads_tiles_or_parts() {
    let denoised = RenderSpec { denoise: true, ..spec(96, 150, 32) };
    let expected = pieces_of(&denoised, 64, 1);
    for (threads, tile, split) in [(1, 32, 1), (3, 16, 2), (2, 100, 3)] {
        let spec = RenderSpec { tile, ..denoised.clone() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found = pool.install(|| pieces_of(&spec, 64, split));
        assert!(found == expected, "{threads} threads, tiles of {tile}, {split} parts");
    }
}
