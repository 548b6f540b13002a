//! Tests of passes as compute jobs: their values are what tiles make of the frame.

use super::*;
use tessera_kernels::compute::{HostArray, run};
use tessera_kernels::denoise::{CHANNELS, Scratch, TILE_HEIGHT, TILE_WIDTH, best_isa, tile};

const WIDTH: usize = 83;
const HEIGHT: usize = 140;

fn value(channel: usize, at: usize) -> f32 {
    let bits = (at * CHANNELS + channel).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let random = bits as f32 / (1u32 << 24) as f32;
    match channel {
        0..3 => 0.3 + 0.4 * random,
        3..6 => 0.15 + 0.2 * random,
        6..12 => 0.1 * (channel + at % WIDTH / 20) as f32,
        _ => 1.0 + (at / WIDTH) as f32,
    }
}

fn frame() -> Vec<Vec<f32>> {
    let plane = |channel| (0..WIDTH * HEIGHT).map(|at| value(channel, at)).collect();
    (0..CHANNELS).map(plane).collect()
}

fn rows(frame: &[Vec<f32>], there: Range<usize>, pass: Pass, fitted: Fitted) -> Rows<'_> {
    let part = |channel: usize| &frame[channel][there.start * WIDTH..there.end * WIDTH];
    Rows {
        pass,
        fitted,
        width: WIDTH,
        height: HEIGHT,
        first_row: there.start,
        samples: 2,
        channels: std::array::from_fn(part),
    }
}

/// Returns what the kernel for hosts makes of a pass.
fn on_host(pass: &PreparedPass) -> Vec<Vec<f32>> {
    let job = &pass.job;
    let Source::Builtin(kernel) = &job.source else { unreachable!("it is built in") };
    let numbers = crate::compute::numbers(kernel, &job.spec).expect("the job fits its kernel");
    let arrays = job.arrays.iter().map(|array| (array.floats().unwrap(), &array.shape));
    let arrays = arrays.map(|(values, shape)| HostArray { values, shape }).collect::<Vec<_>>();
    let values = pass.chunks.iter().map(|(first, count)| {
        let mut values = vec![0.0; *count as usize * COLOR];
        let chunk = job.chunk(*first, *count);
        run(best_isa(), kernel, &chunk, &arrays, &numbers, &mut values).expect("it runs");
        job.result((*first, *count), values.into_iter().flat_map(f32::to_le_bytes).collect())
    });
    planes_of(&values.collect::<Vec<_>>())
}

#[test]
fn a_pass_has_the_values_of_tiles() {
    let frame = frame();
    let cases = [
        (Pass::First, Fitted::WithHalf, 0..HEIGHT, 0..HEIGHT),
        (Pass::First, Fitted::WithHalf, 25..110, 48..87),
        (Pass::Second, Fitted::Picture, 40..HEIGHT, 70..HEIGHT),
    ];
    for (pass, fitted, there, wanted) in cases {
        let rows = rows(&frame, there, pass, fitted);
        let prepared = PreparedPass::new(&rows, &wanted).expect("it is a job");
        let found = on_host(&prepared);
        assert_eq!(found.len(), if fitted == Fitted::WithHalf { 6 } else { 3 });
        let mut scratch = Scratch::default();
        for y in wanted.clone().step_by(TILE_HEIGHT) {
            for x in (0..WIDTH).step_by(TILE_WIDTH) {
                // The last tile may need rows that are not wanted.
                let Ok(made) = tile(best_isa(), &rows, (x, y), &mut scratch) else { continue };
                let width = TILE_WIDTH.min(WIDTH - x);
                for (found, made) in found.iter().zip(made) {
                    let lines = (y - wanted.start..wanted.len()).zip(made.chunks_exact(width));
                    for (line, made) in lines {
                        assert_eq!(&found[line * WIDTH + x..][..width], made, "{pass:?} {x} {y}");
                    }
                }
            }
        }
    }
}

#[test]
fn values_that_the_kernel_would_change_are_left_to_the_host() {
    for wrong in [f32::NAN, f32::INFINITY, -2.0 * FILM_VALUE_MAX] {
        for channel in [0, 5, 8, 12] {
            let mut frame = frame();
            frame[channel][777] = wrong;
            let rows = rows(&frame, 0..HEIGHT, Pass::First, Fitted::WithHalf);
            assert!(PreparedPass::new(&rows, &(0..HEIGHT)).is_none(), "{wrong} in {channel}");
        }
    }
}
