//! How full a device's launches are: the paths alive at each against those that keep the device
//! busy. A small device, and a film whose frames are as much smaller than 1920 × 1080 as it is
//! smaller than one of 132 multiprocessors.

use crate::device::bench::{Bench, Pending, another_frame, expected_of, submit};
use std::collections::VecDeque;
use tessera_fake_cuda::{Device, Watch, Watched};
use tessera_kernels::cuda::DeviceShape;
use tessera_kernels::stages::ALIVE;
use tessera_layout::UnitParams;

/// The device: 4 × 1,536 threads, 44 times fewer than 132 × 2,048.
const SHAPE: DeviceShape = DeviceShape { multiprocessors: 4, threads_per_multiprocessor: 1536 };
/// The frame's edges in pixels: 43 times fewer than 1920 × 1080 has.
const EDGES: [u32; 2] = [252, 192];
/// Edges of a tile. A unit is 6,144 paths, an eighth of what keeps the device busy, as 64 × 64
/// pixels with 64 samples are an eighth for the large one.
const TILE: [u32; 2] = [12, 16];
const UNIT_SAMPLES: u32 = 32;
const SAMPLES: u32 = 64;
const DEPTH: u32 = 8;
/// Units that a node holds for a fast device: `DEPTH_MAX` of its agent.
const HELD: usize = 256;

/// All units of a frame, in the order of a coordinator: range after range of each tile.
fn units(samples: u32) -> impl Iterator<Item = UnitParams> {
    let [across, down] = [0, 1].map(|axis| EDGES[axis] / TILE[axis]);
    let places = (0..down).flat_map(move |row| (0..across).map(move |column| (column, row)));
    places.flat_map(move |(column, row)| {
        (0..samples / UNIT_SAMPLES).map(move |range| UnitParams {
            frame_width: EDGES[0],
            frame_height: EDGES[1],
            x: (column * TILE[0]).cast_signed(),
            y: (row * TILE[1]).cast_signed(),
            width: TILE[0],
            height: TILE[1],
            first_sample: range * UNIT_SAMPLES,
            sample_count: UNIT_SAMPLES,
            seed: 5,
            depth: DEPTH,
            filter: 1,
            frame: 1,
            ..UnitParams::default()
        })
    })
}

/// Renders the film, and gives what was watched at each launch of the walk, and the number of those
/// of known answers.
fn film(frames: u64, samples: u32) -> (Vec<Watched>, usize) {
    let watch = Watch {
        kernel: "extend".to_owned(),
        address: ALIVE.stages,
        index: ALIVE.depth,
        stride: ALIVE.stride,
        mark: ALIVE.frame_width,
    };
    let bench = Bench::with(|device: &mut Device| {
        // As much for each thread as a large one has: enough for whole batches.
        device.memory = 2 << 30;
        device.multiprocessors = SHAPE.multiprocessors.cast_signed();
        device.threads_per_multiprocessor = SHAPE.threads_per_multiprocessor.cast_signed();
        device.watches = vec![watch];
    });
    let opened = bench.open();
    let device = &*opened.devices[0];
    let mut pending: VecDeque<(u64, UnitParams, Pending)> = VecDeque::new();
    let scenes: Vec<_> = (1..=frames).map(another_frame).collect();
    let check = |(frame, params, pending): (u64, UnitParams, Pending)| {
        let output = pending.end().expect("a unit");
        assert_eq!(output.sums.values, expected_of(&scenes[frame as usize], &params), "{params:?}");
    };
    for frame in 0..frames {
        for params in units(samples) {
            if pending.len() == HELD {
                pending.pop_front().map(check);
            }
            pending.push_back((frame, params, submit(device, &scenes[frame as usize], params)));
        }
    }
    pending.into_iter().for_each(check);
    let (film, tests): (Vec<_>, Vec<_>) =
        bench.rack.watched(0).into_iter().partition(|of| of.mark == EDGES[0]);
    (film, tests.len())
}

/// Share of launches at which at least `least` of the wanted paths are alive.
fn share(launches: &[Watched], least: f64) -> f64 {
    let wanted = f64::from(SHAPE.paths_in_flight());
    let full = launches.iter().filter(|of| f64::from(of.word) >= least * wanted);
    full.count() as f64 / launches.len() as f64
}

#[test]
fn launches_of_a_film_are_full() {
    let Ok(frames) = std::env::var("TESSERA_FILLED") else {
        println!(
            "SKIPPED: paths alive in a film: it takes minutes; set TESSERA_FILLED=4, its frames"
        );
        return;
    };
    let (launches, tests) =
        film(frames.parse().expect("TESSERA_FILLED is a number of frames"), SAMPLES);
    let mut full_at = Vec::new();
    for depth in 0..=DEPTH {
        let of: Vec<_> = launches.iter().filter(|of| of.index == depth).copied().collect();
        let alive: u64 = of.iter().map(|of| u64::from(of.word)).sum();
        let mean = alive as f64 / of.len().max(1) as f64 / f64::from(SHAPE.paths_in_flight());
        let full = share(&of, 0.9);
        println!(
            "depth {depth}: {} launches, {mean:.2} of the wanted paths, full {full:.3}",
            of.len()
        );
        full_at.push(full);
    }
    let full = share(&launches, 0.9);
    println!("{} launches, {full:.3} of them with 0.9 of the wanted paths", launches.len());
    println!("{tests} launches of known answers beside them");
    // Some plans have fewer units than others, by when these come.
    assert!(full_at[..3] == [1.0; 3] && full_at[3] > 0.8, "{full_at:?}");
    assert!(full > 0.5, "{full:.3}");
}
