//! How full a device's launches are: the paths alive at each against those that keep the device
//! busy. A small device, and a film whose frames are as much smaller than 1920 × 1080 as it is
//! smaller than one of 132 multiprocessors.
#![expect(clippy::print_stdout, reason = "the figures are what it is run for")]

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

/// Units of so many samples of some tiles, from the sample `first` on, in the order of a
/// coordinator: range after range of each tile.
fn units(tiles: impl Iterator<Item = u32>, first: u32, samples: u32) -> Round {
    let across = EDGES[0] / TILE[0];
    tiles
        .flat_map(|tile| (0..samples / UNIT_SAMPLES).map(move |range| (tile, range)))
        .map(|(tile, range)| UnitParams {
            frame_width: EDGES[0],
            frame_height: EDGES[1],
            x: (tile % across * TILE[0]).cast_signed(),
            y: (tile / across * TILE[1]).cast_signed(),
            width: TILE[0],
            height: TILE[1],
            first_sample: first + range * UNIT_SAMPLES,
            sample_count: UNIT_SAMPLES,
            seed: 5,
            depth: DEPTH,
            filter: 1,
            frame: 1,
            ..UnitParams::default()
        })
        .collect()
}

/// Units of a frame that can be handed out at once.
type Round = VecDeque<UnitParams>;

const fn tiles() -> u32 {
    (EDGES[0] / TILE[0]) * (EDGES[1] / TILE[1])
}

/// A frame on its way: the rounds that have not begun, the rest of the one that has, and how many
/// units of it have not ended.
struct Frame {
    rounds: VecDeque<Round>,
    open: Round,
    left: usize,
}

impl Frame {
    fn of(rounds: impl IntoIterator<Item = Round>) -> Self {
        let mut frame = Self { rounds: rounds.into_iter().collect(), open: Round::new(), left: 0 };
        frame.begin_round();
        frame
    }

    fn begin_round(&mut self) {
        self.open = self.rounds.pop_front().unwrap_or_default();
        self.left = self.open.len();
    }

    /// Counts the end of a unit. A round begins when the last one is complete.
    fn ended(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.begin_round();
        }
    }
}

/// Renders frames, the units of earlier ones first, and gives what was watched at each launch of
/// the walk, and the number of those of known answers.
fn render(mut frames: Vec<Frame>) -> (Vec<Watched>, usize) {
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
    let mut pending: VecDeque<(usize, UnitParams, Pending)> = VecDeque::new();
    let scenes: Vec<_> = (1..=frames.len() as u64).map(another_frame).collect();
    loop {
        let next = |frames: &mut [Frame]| {
            let mut open = frames.iter_mut().enumerate();
            open.find_map(|(index, frame)| Some((index, frame.open.pop_front()?)))
        };
        while pending.len() < HELD
            && let Some((frame, params)) = next(&mut frames)
        {
            pending.push_back((frame, params, submit(device, &scenes[frame], params)));
        }
        let Some((frame, params, unit)) = pending.pop_front() else { break };
        let output = unit.end().expect("a unit");
        assert_eq!(output.sums.values, expected_of(&scenes[frame], &params), "{params:?}");
        frames[frame].ended();
    }
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

/// The share that these launches have of the paths of all.
fn share_of_paths(launches: &[Watched], least: f64) -> f64 {
    let wanted = f64::from(SHAPE.paths_in_flight());
    let (mut full, mut all) = (0.0, 0.0);
    for alive in launches.iter().map(|of| f64::from(of.word)) {
        all += alive;
        full += if alive >= least * wanted { alive } else { 0.0 };
    }
    full / all
}

/// The number of frames that was asked for, if any was.
fn asked() -> Option<usize> {
    let frames = std::env::var("TESSERA_FILLED").ok();
    if frames.is_none() {
        println!(
            "SKIPPED: paths alive in a film: it takes minutes; set TESSERA_FILLED=2, its frames"
        );
    }
    frames.map(|frames| frames.parse().expect("TESSERA_FILLED is a number of frames"))
}

/// Prints how full launches are, and returns the share of full ones at each depth.
fn report((launches, tests): &(Vec<Watched>, usize)) -> Vec<f64> {
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
    for least in [0.9, 0.8] {
        println!(
            "{} launches: {:.3} of them have {least} of the wanted paths, {:.3} of all paths are \
             in these",
            launches.len(),
            share(launches, least),
            share_of_paths(launches, least)
        );
    }
    println!("{tests} launches of known answers beside them");
    full_at
}

#[test]
fn launches_of_a_film_are_full() {
    let Some(frames) = asked() else { return };
    let frame = || Frame::of([units(0..tiles(), 0, SAMPLES)]);
    let film = render((0..frames).map(|_| frame()).collect());
    let full_at = report(&film);
    // Some plans have fewer units than others, by when these come.
    assert!(full_at[..3] == [1.0; 3] && full_at[3] > 0.8, "{full_at:?}");
    assert!(share(&film.0, 0.9) > 0.5 && share_of_paths(&film.0, 0.9) > 0.9);
}

/// Frames in rounds, as `--noise` has them: all tiles first, then half of them, then an eighth. A
/// round waits for the last one's noise, and other frames are rendered meanwhile.
#[test]
fn launches_of_rounds_that_overlap_are_full() {
    let Some(frames) = asked() else { return };
    let every = |step: usize| (0..tiles()).step_by(step);
    let frame = || {
        Frame::of([
            units(every(1), 0, SAMPLES),
            units(every(2), SAMPLES, SAMPLES),
            units(every(8), 2 * SAMPLES, 2 * SAMPLES),
        ])
    };
    let rounds = render((0..frames).map(|_| frame()).collect());
    report(&rounds);
    assert!(share(&rounds.0, 0.8) > 0.5 && share_of_paths(&rounds.0, 0.8) > 0.9);
}
