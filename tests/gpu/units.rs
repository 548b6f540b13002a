//! Every function of the kernels on the device: word for word what the host gives, over the inputs
//! of `tests/ptx/functions.rs`. Only where `TESSERA_GPU_UNITS` says over how many.

use std::io::Write;
use tessera_kernels::cuda::{DeviceScene, Queue, SceneImage, upload};
use tessera_kernels::unit_tests::{self, UnitFunction, unit_functions};
use tessera_support::gpu::Gpu;
use tessera_support::scenes::{self, Case};

/// Scenes whose textures, lights, cameras and hierarchies the functions look at.
const SCENES: [&str; 7] =
    ["thicket", "veils", "stage", "foundry", "steep textures", "vitrine", "wardrobe"];
/// Inputs of one launch.
const BATCH: usize = 20_000;
/// Threads of a block, as the kernels allow.
const BLOCK: u32 = 64;

/// Straight to standard error: `run.sh` reads it.
fn say(text: &str) {
    // Where standard error is closed, nobody listens.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What the device computes.
fn on_device(
    gpu: &mut Gpu,
    function: &UnitFunction,
    view: &DeviceScene,
    inputs: &[u32],
) -> Vec<u32> {
    let count = inputs.len() / function.inputs.len();
    let bytes: &[u8] = bytemuck::must_cast_slice(inputs);
    let mut outputs = vec![0u32; count * function.outputs];
    let from = gpu.allocate(bytes.len() as u64).expect("room for the inputs");
    let to = gpu.allocate(size_of_val(&outputs[..]) as u64).expect("room for the outputs");
    gpu.upload(from, bytes).expect("an upload");
    let params = function.params(view, from, to, count as u32);
    let blocks = (count as u32).div_ceil(BLOCK);
    gpu.start(&function.kernel(), blocks, BLOCK, &params).expect("a launch");
    gpu.download(to, bytemuck::must_cast_slice_mut(&mut outputs))
        .unwrap_or_else(|error| panic!("{}: {error}", function.name));
    gpu.release(from);
    gpu.release(to);
    outputs
}

/// Output words of a function that are other than the host's, over its inputs for one scene; says
/// where the first one is.
fn different(
    gpu: &mut Gpu,
    function: &UnitFunction,
    (position, case): (usize, &Case),
    inputs: usize,
) -> usize {
    let (scene, view) = upload(gpu, &SceneImage::of(&case.scene)).expect("room for the scene");
    let batches = inputs.div_ceil(BATCH);
    let mut wrong = 0;
    for batch in 0..batches {
        let count = BATCH.min(inputs - batch * BATCH);
        let words = function.make_inputs(count, (position * batches + batch + 1) as u32);
        let want = function.run_on_host(&case.scene, &words);
        let got = on_device(gpu, function, &view, &words);
        let places: Vec<usize> =
            (0..want.len()).filter(|at| got.get(*at) != Some(&want[*at])).collect();
        if let (0, Some(at)) = (wrong, places.first()) {
            let call = at / function.outputs * function.inputs.len();
            let given = &words[call..call + function.inputs.len()];
            let (name, word) = (function.name, at % function.outputs);
            let (got, want) = (got.get(*at), want[*at]);
            say(&format!(
                "DIFFERENT: {name} on {}: word {word} is {got:x?}, on the host {want:x}, for \
                    {given:x?}",
                case.name
            ));
        }
        wrong += places.len();
    }
    gpu.release(scene);
    wrong
}

#[test]
fn every_function_gives_the_bits_of_the_host() {
    let Some(inputs) =
        std::env::var("TESSERA_GPU_UNITS").ok().and_then(|count| count.parse::<usize>().ok())
    else {
        return say(
            "NOT RUN: functions of the kernels on a GPU (TESSERA_GPU_UNITS says over how many \
                inputs)",
        );
    };
    let device = std::env::var("TESSERA_GPU_DEVICE").unwrap_or_default();
    let ordinal =
        device.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()).unwrap_or(0);
    let mut gpu = Gpu::open(ordinal, unit_tests::ptx()).expect("a device that takes the kernels");
    let cases: Vec<Case> =
        scenes::all().into_iter().filter(|case| SCENES.contains(&case.name)).collect();
    assert_eq!(cases.len(), SCENES.len());
    let (functions, each) = (unit_functions(), inputs.div_ceil(SCENES.len()));
    let mut wrong = 0;
    for function in &functions {
        for case in cases.iter().enumerate() {
            wrong += different(&mut gpu, function, case, each);
        }
    }
    say(&format!(
        "units: {} functions, {} inputs each, {wrong} words differ",
        functions.len(),
        each * SCENES.len()
    ));
    assert_eq!(wrong, 0, "the device computes other bits than the host");
}
