//! Blocks of up to three axes and 1,024 threads, and dynamic shared memory; what a device does not
//! have is refused before a launch.

use crate::compute::arrays::values;
use crate::compute::fixture::{Farm, kernel};

fn run(farm: &Farm, name: &str, options: &str) {
    let program = kernel(name);
    let words = ["compute", program.as_str()].into_iter().chain(options.split_whitespace());
    farm.text(&words.collect::<Vec<_>>());
}

fn refused(farm: &Farm, name: &str, options: &str) -> (i32, String) {
    let program = kernel(name);
    let options = format!("{options} --out never.npy");
    let words = ["compute", program.as_str()].into_iter().chain(options.split_whitespace());
    farm.failure(&words.collect::<Vec<_>>())
}

#[test]
fn blocks_have_the_threads_of_their_bounds_or_of_the_job() {
    let farm = Farm::start(1);
    let reversed = |file: &str, block: u32| {
        let expected: Vec<u32> =
            (0..2048).map(|at| at / block * block + block - 1 - at % block).collect();
        assert_eq!(values::<u32>(&farm.read(file), &[2048]), expected, "{file}");
    };
    run(&farm, "reverse.ptx", "--domain 2048 --out bounds.npy");
    reversed("bounds.npy", 1024);
    run(
        &farm,
        "reverse.ptx",
        "--domain 2048 --block 512 --chunk 1024 --chunk-align 512 --out block.npy",
    );
    reversed("block.npy", 512);
    // 64 bytes and more than the 48 KiB that a block has without being asked.
    run(&farm, "dynamic.ptx", "--domain 2048 --block 16 --shared 64 --out little.npy");
    reversed("little.npy", 16);
    run(&farm, "dynamic.ptx", "--domain 2048 --shared 60000 --out much.npy");
    reversed("much.npy", 256);

    let (status, error) = refused(&farm, "dynamic.ptx", "--domain 64 --shared 120000");
    let told =
        error.contains("needs 120000 bytes of shared memory") && error.contains("has 101376");
    assert!(status == 3 && told, "{status}: {error}\n{}", farm.logs());
    run(&farm, "dynamic.ptx", "--domain 2048 --block 16 --shared 64 --out after.npy");
    farm.assert_in_service();
}

#[test]
fn impossible_shapes_are_refused_before_they_are_sent() {
    let farm = Farm::start(0);
    for (name, options, expected) in [
        ("reverse.ptx", "--block 64x32", "2048 threads, more than the 1024 that the kernel's"),
        ("places.ptx", "--block 2048", "a block has 1 to 1024"),
        ("places.ptx", "--block 64x32", "64x32 is 2048 threads"),
        ("places.ptx", "--block 1x1x65", "at most 64 along its third axis"),
        ("reverse.ptx", "--shared 300000", "more than the 232448 that any device has"),
        ("dynamic.ptx", "", "give its size with --shared BYTES"),
        ("places.ptx", "--block 4x2 --chunk 6", "give a multiple of 16"),
        ("reverse.ptx", "--chunk 30", "work together (`bar.sync"),
        ("reverse.ptx", "--chunk 30 --block 16", "N is 16 where each block has a range"),
        ("reverse.ptx", "--chunk-align 0", "--chunk-align"),
    ] {
        let (status, error) =
            refused(&farm, name, &format!("--domain 8x9 --element u32 {options}"));
        assert!(status == 2 && error.contains(expected), "{options}: {status}: {error}");
    }
}

/// Coordinates and threads of every index, from `places.cu`.
fn places(farm: &Farm, options: &str, shape: &[u64]) -> Vec<[u32; 6]> {
    run(farm, "places.ptx", &format!("--channels 6 {options} --out places.npy"));
    let values: Vec<u32> = values(&farm.read("places.npy"), shape);
    values.chunks_exact(6).map(|six| six.try_into().unwrap()).collect()
}

#[test]
fn blocks_of_several_axes_lie_as_the_domain_does() {
    let farm = Farm::start(1);
    // Chunks of one row of blocks, the last one shorter; the domain is no multiple of a block.
    let flat = places(&farm, "--domain 10x9 --block 4x4 --chunk 40", &[9, 10, 6]);
    for (at, place) in (0..).zip(flat) {
        let (x, y) = (at % 10, at / 10);
        assert_eq!(place, [x, y, 0, x % 4, y % 4, 0], "{at}");
    }
    // Chunks of two layers.
    let deep = places(&farm, "--domain 10x6x5 --block 4x4x2 --chunk 120", &[5, 6, 10, 6]);
    for (at, place) in (0..).zip(deep) {
        let (x, y, z) = (at % 10, at / 10 % 6, at / 60);
        assert_eq!(place, [x, y, z, x % 4, y % 4, z % 2], "{at}");
    }
    // Blocks of two axes in a domain of three do not run over from one layer into the next.
    let layers = places(&farm, "--domain 5x3x4 --block 4x2", &[4, 3, 5, 6]);
    for (at, place) in (0..).zip(layers) {
        let (x, y, z) = (at % 5, at / 5 % 3, at / 15);
        assert_eq!(place, [x, y, z, x % 4, y % 2, 0], "{at}");
    }
}
