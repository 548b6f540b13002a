//! The examples against plain arithmetic on the host: bit for bit where a kernel uses only what
//! IEEE 754 defines, else within its error.

use crate::compute::arrays::{file, values};
use crate::compute::fixture::{Farm, example};

/// Runs an example; its options are words.
fn run(farm: &Farm, kernel: &str, options: &str) -> String {
    let kernel = example(kernel);
    let words = ["compute", kernel.as_str()].into_iter().chain(options.split_whitespace());
    farm.text(&words.collect::<Vec<_>>())
}

fn write(farm: &Farm, name: &str, bytes: Vec<u8>) {
    std::fs::write(farm.path(name), bytes).unwrap();
}

/// Numbers between 0 and 1 without a pattern that a kernel could meet by chance.
fn spread(index: usize) -> f64 {
    (index as f64 * 0.618_033_988_749_894_9).fract()
}

fn check_mandelbrot(farm: &Farm) {
    run(farm, "mandelbrot.ptx", "--domain 40x30 --arg steps=60 --chunk 500 --out m.npy");
    let counts = (0..30).flat_map(|row| (0..40).map(move |column| (column, row)));
    let expected: Vec<u32> = counts
        .map(|(column, row)| {
            let pixel = 3.0 / 40.0;
            let cx = -0.75 + (f64::from(column) + 0.5 - 0.5 * 40.0) * pixel;
            let cy = 0.0 + (f64::from(row) + 0.5 - 0.5 * 30.0) * pixel;
            let (mut x, mut y, mut step) = (0.0f64, 0.0f64, 0);
            while step < 60 && x * x + y * y <= 4.0 {
                (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
                step += 1;
            }
            step
        })
        .collect();
    assert_eq!(values::<u32>(&farm.read("m.npy"), &[30, 40]), expected);
}

/// A plate after so many steps of `heat.cu`.
pub(crate) fn heat(width: usize, mut plate: Vec<f64>, steps: usize) -> Vec<f64> {
    let height = plate.len() / width;
    for _ in 0..steps {
        let before = plate.clone();
        for (at, value) in plate.iter_mut().enumerate() {
            let (x, y) = (at % width, at / width);
            if x > 0 && y > 0 && x + 1 < width && y + 1 < height {
                let sides = before[at - 1] + before[at + 1];
                let ends = before[at - width] + before[at + width];
                *value += 0.2 * (sides + ends - 4.0 * before[at]);
            }
        }
    }
    plate
}

fn check_heat(farm: &Farm) {
    let plate: Vec<f64> = (0..24 * 20).map(|at| 100.0 * spread(at)).collect();
    write(farm, "plate.npy", file(&[20, 24], &plate));
    let options = "--domain 24x20 --steps 11 --frames 1-2 --feed plate --input plate=plate.npy \
        --out heat.##.npy";
    run(farm, "heat.ptx", options);
    let expected = heat(24, plate, 22);
    assert_eq!(values::<f64>(&farm.read("heat.02.npy"), &[20, 24]), expected);
}

fn check_product(farm: &Farm) {
    let (rows, inner, columns) = (20usize, 33usize, 37usize);
    let a: Vec<f32> = (0..rows * inner).map(|at| spread(at) as f32 - 0.5).collect();
    let b: Vec<f32> = (0..inner * columns).map(|at| spread(at + 7) as f32 - 0.5).collect();
    write(farm, "a.npy", file(&[rows as u64, inner as u64], &a));
    write(farm, "b.npy", file(&[inner as u64, columns as u64], &b));
    // Chunks of one row of tiles.
    let options = "--domain 37x20 --block 16x16 --chunk 592 --input a=a.npy --input b=b.npy \
        --out product.npy";
    run(farm, "matmul.ptx", options);
    let product = |row: usize, column: usize| {
        (0..inner).fold(0.0f32, |sum, k| sum + a[row * inner + k] * b[k * columns + column])
    };
    let expected: Vec<f32> =
        (0..rows * columns).map(|at| product(at / columns, at % columns)).collect();
    assert_eq!(values::<f32>(&farm.read("product.npy"), &[20, 37]), expected);
}

fn check_convolution(farm: &Farm) {
    let (width, height) = (13i64, 9i64);
    let image: Vec<f32> = (0..(width * height * 3) as usize).map(|at| spread(at) as f32).collect();
    let weights: Vec<f32> = (0..25).map(|tap| (spread(tap + 3) - 0.4) as f32).collect();
    write(farm, "picture.npy", file(&[9, 13, 3], &image));
    let listed: Vec<String> = weights.iter().map(f32::to_string).collect();
    let options = format!(
        "--domain 13x9 --channels 3 --chunk 50 --input image=picture.npy --out convolved.npy \
            --arg weights=f32:{}",
        listed.join(",")
    );
    run(farm, "convolve.ptx", &options);
    let value = |x: i64, y: i64, channel: i64| {
        (0..25).fold(0.0f32, |sum, tap| {
            let y = (y + tap / 5 - 2).clamp(0, height - 1);
            let x = (x + tap % 5 - 2).clamp(0, width - 1);
            sum + weights[tap as usize] * image[((y * width + x) * 3 + channel) as usize]
        })
    };
    let places = (0..width * height * 3).map(|at| (at / 3 % width, at / 3 / width, at % 3));
    let expected: Vec<f32> = places.map(|(x, y, channel)| value(x, y, channel)).collect();
    assert_eq!(values::<f32>(&farm.read("convolved.npy"), &[9, 13, 3]), expected);
}

fn check_option(farm: &Farm) {
    let count = 3000.0;
    let options = "--domain 3000 --channels 2 --reduce sum --seed 5 --chunk 1100 --out sums.npy";
    run(farm, "option.ptx", options);
    let sums: Vec<f64> = values(&farm.read("sums.npy"), &[2]);
    let (price, square) = (sums[0] / count, sums[1] / count);
    let error = ((square - price * price) / count).sqrt();
    // Black and Scholes' formula gives 8.0214 for these numbers.
    assert!(error > 0.02 && error < 0.2, "{error}");
    assert!((price - 8.0214).abs() < 4.0 * error, "{price} with an error of {error}");
}

const WAYS: [(i64, i64); 9] =
    [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)];

fn weight(way: usize) -> f64 {
    match way {
        0 => 4.0 / 9.0,
        1..=4 => 1.0 / 9.0,
        _ => 1.0 / 36.0,
    }
}

/// Cells after one step of `lattice.cu`, and the density and the speed of each.
fn lattice_told(width: i64, before: &[f64]) -> (Vec<f64>, Vec<[f64; 3]>) {
    let height = before.len() as i64 / 9 / width;
    let (mut after, mut told) = (Vec::with_capacity(before.len()), Vec::new());
    for cell in 0..width * height {
        let mut arrived = [0.0; 9];
        let (mut density, mut flow_x, mut flow_y) = (0.0, 0.0, 0.0);
        for (way, (along_x, along_y)) in WAYS.into_iter().enumerate() {
            let x = (cell % width - along_x).rem_euclid(width);
            let y = (cell / width - along_y).rem_euclid(height);
            arrived[way] = before[(y * width + x) as usize * 9 + way];
            density += arrived[way];
            flow_x += along_x as f64 * arrived[way];
            flow_y += along_y as f64 * arrived[way];
        }
        let (speed_x, speed_y) = (flow_x / density, flow_y / density);
        let squared = speed_x * speed_x + speed_y * speed_y;
        for (way, (along_x, along_y)) in WAYS.into_iter().enumerate() {
            let along = along_x as f64 * speed_x + along_y as f64 * speed_y;
            let rest = 1.0 + 3.0 * along + 4.5 * along * along - 1.5 * squared;
            let balance = weight(way) * density * rest;
            after.push(arrived[way] + 1.2 * (balance - arrived[way]));
        }
        told.push([density, speed_x, speed_y]);
    }
    (after, told)
}

fn lattice(width: i64, before: &[f64]) -> Vec<f64> {
    lattice_told(width, before).0
}

/// The same fluid with four outputs: in steps, one of which feeds the next, and in frames.
fn check_fluid(farm: &Farm) {
    let (width, height) = (10, 8);
    let population = |at: usize| weight(at % 9) * (1.0 + 0.1 * spread(at));
    let start: Vec<f64> = (0..width * height * 9).map(population).collect();
    write(farm, "cells.npy", file(&[height as u64, width as u64, 9], &start));
    let job = "--domain 10x8 --input cells=cells.npy --feed cells=next --output next=f64x9 \
        --output density=f32 --output speed=f32x2 --output mass=f64:sum";
    run(farm, "fluid.ptx", &format!("{job} --steps 3 --frames 1-2 --out fluid.{{output}}.##.npy"));
    run(farm, "fluid.ptx", &format!("{job} --chunk 33 --frames 1-6 --out one.{{output}}.##.npy"));
    let before = (0..5).fold(start, |cells, _| lattice(width as i64, &cells));
    let (cells, told) = lattice_told(width as i64, &before);
    let rows = [height as u64, width as u64];
    for name in ["fluid.{}.02.npy", "one.{}.06.npy"] {
        let read = |output: &str| farm.read(&name.replace("{}", output));
        assert_eq!(values::<f64>(&read("next"), &[rows[0], rows[1], 9]), cells, "{name}");
        let density: Vec<f32> = told.iter().map(|cell| cell[0] as f32).collect();
        assert_eq!(values::<f32>(&read("density"), &rows), density, "{name}");
        let speed: Vec<f32> =
            told.iter().flat_map(|cell| [cell[1] as f32, cell[2] as f32]).collect();
        assert_eq!(values::<f32>(&read("speed"), &[rows[0], rows[1], 2]), speed, "{name}");
        let [mass] = values::<f64>(&read("mass"), &[])[..] else { panic!("{name}") };
        // The kernel's sum is exact, and rounded once.
        let sum = told.iter().map(|cell| cell[0]).sum::<f64>();
        assert!((mass - sum).abs() < 1e-12, "{mass} {sum}");
    }
}

fn check_lattice(farm: &Farm) {
    let (width, height) = (10, 8);
    let population = |at: usize| weight(at % 9) * (1.0 + 0.1 * spread(at));
    let start: Vec<f64> = (0..width * height * 9).map(population).collect();
    write(farm, "cells.npy", file(&[height as u64, width as u64, 9], &start));
    let options = "--domain 10x8 --channels 9 --steps 3 --frames 1-2 --feed cells \
        --input cells=cells.npy --out cells.##.npy";
    run(farm, "lattice.ptx", options);
    let expected = (0..6).fold(start.clone(), |cells, _| lattice(width as i64, &cells));
    let found: Vec<f64> = values(&farm.read("cells.02.npy"), &[height as u64, width as u64, 9]);
    assert_eq!(found, expected);
    let mass = |cells: &[f64]| cells.iter().sum::<f64>();
    assert!((mass(&found) - mass(&start)).abs() < 1e-10);
}

#[test]
fn the_examples_give_what_plain_arithmetic_gives() {
    let farm = Farm::start(1);
    check_mandelbrot(&farm);
    check_heat(&farm);
    check_product(&farm);
    check_convolution(&farm);
    check_option(&farm);
    check_lattice(&farm);
    check_fluid(&farm);
}
