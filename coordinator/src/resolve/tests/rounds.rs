//! Frames that were sampled in rounds: tiles with different numbers of samples, and frames that
//! know their own number of samples.

use super::tests::{Bench, film, read_exr, spec};
use super::*;
use crate::spool::SpoolError;
use tessera_core::{FrameRounds, Split};
use tessera_protocol::UnitIndex;
use tessera_protocol::job::{AovSpec, JobKind, RenderSpec};

/// Two tiles of 32 and 8 pixels in a row, with at most 100 samples in passes of 16, 16, 32 and 36.
/// The second tile ended after the first round, the first tile after the last round.
fn frame(more: RenderSpec) -> (RenderSpec, FrameRounds) {
    let spec = RenderSpec {
        width: 40,
        height: 20,
        tile: 32,
        spp: 100,
        unit_samples: 0,
        noise: Some(0.05),
        ..more
    };
    let mut rounds = FrameRounds::of(&Split::of(&JobKind::Render(spec.clone()))).unwrap();
    rounds.end_round(1, &[0].into_iter().collect()).unwrap();
    rounds.end_round(2, &[0].into_iter().collect()).unwrap();
    (spec, rounds)
}

fn films(spec: &RenderSpec, units: &[u32]) -> Vec<(u32, tessera_protocol::TileSums)> {
    units.iter().map(|unit| (*unit, film(spec, *unit))).collect()
}

#[test]
fn each_tile_is_divided_by_its_own_number_of_samples() {
    let (spec, rounds) = frame(RenderSpec { aovs: vec![AovSpec::Depth], ..spec(1, 1, 8, 1, 0) });
    // Unit 6 was rendered because a node had lied, and was not needed in the end.
    let bench = Bench::of_films(films(&spec, &[0, 1, 2, 3, 4, 5, 6]));
    let files = bench.resolve_in_rounds(&spec, Some(&rounds)).unwrap();
    let (attributes, channels) = read_exr(bench.open(&files[0]));
    for (x, y, tile, passes, samples) in
        [(5, 7, 0, 4, 100.0), (31, 19, 0, 4, 100.0), (33, 0, 1, 2, 32.0)]
    {
        let at = y * 40 + x;
        assert_eq!(channels["samples"][at], samples);
        for (channel, name) in ["R", "G", "B", "depth.Z"].into_iter().enumerate() {
            let rect = rounds.grid().tile_rect(tile).unwrap();
            let place =
                (channel * rect.height as usize + y) * rect.width as usize + x - rect.x as usize;
            let sum: i64 =
                (tile * 4..tile * 4 + passes).map(|unit| film(&spec, unit).values[place]).sum();
            let expected = (sum as f64 / 16_777_216.0 / f64::from(samples)) as f32;
            assert_eq!(channels[name][at].to_bits(), expected.to_bits(), "{name} at {x}, {y}");
        }
    }
    let ours = &attributes.other[&exr::meta::attribute::Text::from("tessera")];
    let exr::meta::attribute::AttributeValue::Text(text) = ours else { panic!("a text") };
    let ours: serde_json::Value = serde_json::from_str(&text.to_string()).unwrap();
    assert_eq!((&ours["noise"], &ours["samples"]), (&0.05.into(), &100.into()));
    assert_eq!(ours["samples_mean"], (32.0 * 100.0 + 8.0 * 32.0) / 40.0);
}

#[test]
fn missing_units_and_units_of_no_tile_are_errors() {
    let (spec, rounds) = frame(spec(1, 1, 8, 1, 0));
    let missing = Bench::of_films(films(&spec, &[0, 1, 2, 4, 5]));
    let error = missing.resolve_in_rounds(&spec, Some(&rounds)).unwrap_err();
    assert!(
        matches!(
            error,
            ResolveError::Spool(SpoolError::Count { unit: UnitIndex(3), count: 0, .. })
        ),
        "{error}"
    );
    let mut all = films(&spec, &[0, 1, 2, 3, 4, 5]);
    all.push((8, film(&spec, 0)));
    let error = Bench::of_films(all).resolve_in_rounds(&spec, Some(&rounds)).unwrap_err();
    assert!(
        matches!(error, ResolveError::Spool(SpoolError::Count { unit: UnitIndex(8), .. })),
        "{error}"
    );
}

#[test]
fn a_denoised_frame_in_rounds_has_the_plane_of_halves() {
    let (spec, rounds) = frame(RenderSpec { denoise: true, ..spec(1, 1, 8, 1, 0) });
    assert_eq!(spec.channels(), 13);
    let bench = Bench::of_films(films(&spec, &[0, 1, 2, 3, 4, 5]));
    let files = bench.resolve_in_rounds(&spec, Some(&rounds)).unwrap();
    let (_, channels) = read_exr(bench.open(&files[0]));
    let names: Vec<&str> = channels.keys().map(String::as_str).collect();
    assert_eq!(names, ["A", "B", "G", "R", "noisy.B", "noisy.G", "noisy.R", "samples"]);
    assert!(channels["R"] != channels["noisy.R"]);
    assert_eq!((channels["samples"][0], channels["samples"][39]), (100.0, 32.0));
}

// promise: P5
#[test]
fn a_frame_sampled_for_a_time_is_the_frame_of_as_many_samples() {
    let plain = RenderSpec { width: 40, height: 20, tile: 32, ..spec(1, 1, 8, 1, 0) };
    for (denoise, aovs) in [(false, vec![]), (true, vec![AovSpec::Depth])] {
        let plain = RenderSpec { denoise, aovs, ..plain.clone() };
        let timed = RenderSpec { spp: 128, time_secs: Some(90), ..plain.clone() };
        // Passes of 16, 16, 32 and 64 samples. There was time for three of them.
        let mut rounds = FrameRounds::of(&Split::of(&JobKind::Render(timed.clone()))).unwrap();
        rounds.end_round(1, &[0, 1].into_iter().collect()).unwrap();
        rounds.end_round(2, &[].into_iter().collect()).unwrap();
        let bench = Bench::of_films(films(&timed, &[0, 1, 2, 4, 5, 6]));
        let found = bench.resolve_in_rounds(&timed, Some(&rounds)).unwrap();

        let even = RenderSpec { spp: 64, unit_samples: 64, ..plain };
        let whole = |unit: u32| {
            let mut whole = film(&timed, 4 * unit);
            (1..3).for_each(|pass| whole.add(&film(&timed, 4 * unit + pass)).unwrap());
            whole
        };
        let of_even = Bench::of_films(vec![(0, whole(0)), (1, whole(1))]);
        let expected = of_even.resolve_in_rounds(&even, None).unwrap();
        assert_eq!(found[0].pixels_sha256, expected[0].pixels_sha256, "denoised: {denoise}");
        assert_eq!(found[1].hash, expected[1].hash, "PNG files say nothing of their making");
        let [(said, found), (_, expected)] = [(&bench, &found), (&of_even, &expected)]
            .map(|(bench, files)| read_exr(bench.open(&files[0])));
        assert_eq!(found, expected, "every channel, and none beside");

        let ours = &said.other[&exr::meta::attribute::Text::from("tessera")];
        let exr::meta::attribute::AttributeValue::Text(text) = ours else { panic!("a text") };
        let ours: serde_json::Value = serde_json::from_str(&text.to_string()).unwrap();
        assert_eq!((&ours["samples"], &ours["time_secs"]), (&64.into(), &90.into()));
        assert!(ours["noise"].is_null() && ours["samples_mean"].is_null());
    }
}
