//! Random numbers of kernels: the bits of Philox 4x32-10, and no correlation between neighbouring
//! seeds, frames, indices and counters. The bits of a kernel are compared with those of a twin
//! here, and the statistics are the twin's.

use crate::compute::fixture::{example, kernel};
use crate::compute::local::{compute, values};
use tessera_fake_cuda::{Config, Device, Rack};

/// What a random number depends on.
#[derive(Clone, Copy, Debug)]
struct Key {
    seed: u64,
    frame: u32,
    index: u64,
    counter: u32,
}

/// One block of Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
/// 1, 2, 3", SC 2011).
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [first, second] = [(0xd251_1f53_u64, 0), (0xcd9e_8d57, 2)]
            .map(|(factor, word)| factor * u64::from(counter[word]));
        let upper = |product: u64| (product >> 32) as u32;
        counter = [
            upper(second) ^ counter[1] ^ key[0],
            second as u32,
            upper(first) ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// `tessera_random`
fn random(key: Key) -> u64 {
    let counter = [key.index as u32, (key.index >> 32) as u32, key.frame, key.counter / 2];
    let words = philox(counter, [key.seed as u32, (key.seed >> 32) as u32]);
    let half = 2 * (key.counter % 2) as usize;
    u64::from(words[half]) | u64::from(words[half + 1]) << 32
}

#[test]
fn philox_gives_its_published_known_answers() {
    // kat_vectors of Random123, for philox4x32 10.
    let zeros = philox([0; 4], [0; 2]);
    assert_eq!(zeros, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    let ones = philox([u32::MAX; 4], [u32::MAX; 2]);
    assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    let pi =
        philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]);
    assert_eq!(pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
}

#[test]
fn a_kernels_random_numbers_are_those_of_philox() {
    let folder = tempfile::tempdir().unwrap();
    let rack = Rack::new(&Config::of(1, Device::default())).unwrap();
    let ptx = kernel("random.ptx");
    let cases = [(0, 0, 0), (0, 1, 1), (1, 0, 0), (0x1234_5678_9abc_def0, 7, u32::MAX - 3)];
    for (seed, frame, first) in cases {
        let [seed_text, frames, argument] =
            [format!("{seed}"), format!("{frame}"), format!("first_counter={first}")];
        let job = [
            ptx.as_str(),
            "--domain",
            "9x5",
            "--channels",
            "4",
            "--chunk",
            "7",
            "--seed",
            &seed_text,
            "--frames",
            &frames,
            "--arg",
            &argument,
            "--device",
            "cuda",
            "--out",
            "r.npy",
        ];
        let output = compute(folder.path(), Some(&rack), &job);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Vec<u64> = values(&folder.path().join("r.npy"), u64::from_le_bytes);
        let keys = (0..45).flat_map(|index| (0..4).map(move |channel| (index, channel)));
        let expected = keys.map(|(index, channel)| {
            random(Key { seed, frame, index, counter: first.wrapping_add(channel) })
        });
        assert!(found == expected.collect::<Vec<_>>(), "seed {seed}, frame {frame}");
    }
    let first = random(Key { seed: 0, frame: 0, index: 0, counter: 0 });
    assert_eq!(first, 0xe169_c58d_6627_e8d5);
}

#[test]
fn estimates_of_neighbouring_seeds_are_independent() {
    let folder = tempfile::tempdir().unwrap();
    let rack = Rack::new(&Config::of(1, Device::default())).unwrap();
    let (ptx, paths) = (example("option.ptx"), 4000.0);
    let estimate = |seed: u64| {
        let seed = seed.to_string();
        let job = [ptx.as_str(), "--domain", "4000", "--reduce", "sum", "--seed", &seed];
        // The payoff, and its square.
        let job = [&job[..], &["--channels", "2"]].concat();
        let job = [&job[..], &["--device", "cuda", "--out", "sum.npy"]].concat();
        let output = compute(folder.path(), Some(&rack), &job);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        values(&folder.path().join("sum.npy"), f64::from_le_bytes)[0] / paths
    };
    let estimates: Vec<f64> = (0..4).map(estimate).collect();
    // Black and Scholes: 8.0214. The standard error of 20,000 paths is 0.0525.
    let error = 0.0525 * (20_000.0f64 / paths).sqrt();
    let mean = estimates.iter().sum::<f64>() / 4.0;
    assert!((mean - 8.0214).abs() < 4.0 * error / 2.0, "{estimates:?}");
    let squares = estimates.iter().map(|estimate| (estimate - mean).powi(2)).sum::<f64>();
    let spread = (squares / 3.0).sqrt();
    eprintln!("{estimates:?}: spread {spread:.3}, standard error {error:.3}");
    // Seeds that are shifted indices spread by a hundredth of it.
    assert!((0.25..2.5).contains(&(spread / error)), "{spread} of {error}: {estimates:?}");
}

/// Draws of each test: `TESSERA_RANDOM_DRAWS`, else what a second gives.
fn draws() -> u64 {
    let asked = std::env::var("TESSERA_RANDOM_DRAWS").ok();
    asked.map_or(100_000, |text| text.parse().expect("a number of draws"))
}

/// Uniform in [-1, 1).
fn signed(key: Key) -> f64 {
    (random(key) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Keys that differ in one part at a time, of about `count` indices.
fn keys(count: u64, axis: usize) -> impl Iterator<Item = (Key, Key)> {
    (0..count).map(move |draw| {
        // Each part runs through few values, as it does in jobs.
        let key = Key {
            seed: draw % 8,
            frame: 1 + (draw / 8 % 8) as u32,
            index: draw / 64,
            counter: (draw / 8 % 4) as u32,
        };
        let next = match axis {
            0 => Key { seed: key.seed + 1, ..key },
            1 => Key { frame: key.frame + 1, ..key },
            2 => Key { index: key.index + 1, ..key },
            3 => Key { counter: key.counter + 1, ..key },
            // As the former sum of seed and index mixed them up.
            _ => Key { seed: key.seed + 1, index: key.index.wrapping_sub(1), ..key },
        };
        (key, next)
    })
}

#[test]
fn neighbouring_streams_are_not_correlated() {
    let count = draws();
    for axis in 0..5 {
        let products = keys(count, axis).map(|(key, next)| signed(key) * signed(next));
        // A product of two uniform numbers of variance 1/3 has variance 1/9.
        let correlation = products.sum::<f64>() / count as f64 * 3.0;
        let noise = 1.0 / (count as f64).sqrt();
        eprintln!("axis {axis}: {correlation:.2e}, noise {noise:.2e}, {count} draws");
        assert!(correlation.abs() < 4.5 * noise, "axis {axis}: {correlation:e}");
        // Bits of the two agree as often as not.
        let equal = keys(count, axis).map(|(key, next)| random(key) ^ random(next));
        let ones = equal.map(|bits| u64::from(bits.count_ones())).sum::<u64>();
        let mean = ones as f64 / (64.0 * count as f64) - 0.5;
        assert!(mean.abs() < 4.5 * 0.5 * noise / 8.0, "axis {axis}: bits {mean:e}");
    }
}

/// Deviation of a chi-squared statistic from its mean, in standard deviations.
fn chi_squared(counts: &[u64]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    let expected = total / counts.len() as f64;
    let sum = counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected);
    let freedom = counts.len() as f64 - 1.0;
    (sum.sum::<f64>() - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn values_pairs_and_bits_are_evenly_distributed() {
    let count = draws();
    // Every byte of a number.
    for byte in 0..8 {
        let mut counts = vec![0; 256];
        keys(count, 0).for_each(|(key, _)| counts[(random(key) >> (8 * byte) & 255) as usize] += 1);
        let deviation = chi_squared(&counts);
        assert!(deviation.abs() < 5.0, "byte {byte}: {deviation}");
    }
    // Pairs of neighbours on a grid of 32 x 32 cells.
    for axis in 0..5 {
        let mut counts = vec![0; 1024];
        keys(count, axis).for_each(|(key, next)| {
            counts[(random(key) >> 59 << 5 | random(next) >> 59) as usize] += 1;
        });
        let deviation = chi_squared(&counts);
        eprintln!("axis {axis}: chi-squared {deviation:.2} standard deviations off, {count} draws");
        assert!(deviation.abs() < 5.0, "axis {axis}: {deviation}");
    }
}

#[test]
fn the_estimates_of_seeds_spread_as_independent_ones_do() {
    // Means of 1,000 numbers each, of 32 seeds and of 32 frames.
    let mean = |seed: u64, frame: u32| {
        let numbers = (0..1000).map(|index| signed(Key { seed, frame, index, counter: 0 }));
        numbers.sum::<f64>() / 1000.0
    };
    let spread = |means: Vec<f64>| {
        let center = means.iter().sum::<f64>() / means.len() as f64;
        let squares = means.iter().map(|mean| (mean - center).powi(2)).sum::<f64>();
        (squares / (means.len() - 1) as f64).sqrt()
    };
    let expected = (1.0f64 / 3.0 / 1000.0).sqrt();
    for means in [
        (0..32).map(|seed| mean(seed, 1)).collect::<Vec<_>>(),
        (0..32).map(|frame| mean(0, frame)).collect(),
    ] {
        let ratio = spread(means) / expected;
        assert!((0.6..1.5).contains(&ratio), "{ratio}");
    }
}
