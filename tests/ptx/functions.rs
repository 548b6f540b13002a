//! Every function of the kernels by itself: its kernel on the machine gives, word for word, what
//! the host gives, over inputs with every special value. A NaN may leave a function; the functions'
//! doors write every NaN as 0x7fffffff (`tests/functions.h`), so that its payload is not compared
//! and everything else is, bit for bit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ptx::device::Device;
use tessera_kernels::cuda::{SceneImage, upload};
use tessera_kernels::unit_tests::{self, UnitFunction, unit_functions};
use tessera_ptx::{Fault, Limits, Module};
use tessera_support::scenes::{self, Case};

/// Number of inputs of each function, shared among the scenes: `TESSERA_PTX_INPUTS`. The default is
/// what every push can wait for; the nightly run has 400,000.
pub(crate) fn inputs() -> usize {
    let given = std::env::var("TESSERA_PTX_INPUTS").ok();
    given.map_or(40_000, |inputs| inputs.parse().expect("TESSERA_PTX_INPUTS is a number"))
}

/// Scenes whose textures, lights, cameras and hierarchies the functions look at.
const SCENES: [&str; 7] =
    ["thicket", "veils", "stage", "foundry", "steep textures", "vitrine", "wardrobe"];
/// Inputs of one launch.
const BATCH: usize = 20_000;

/// Outputs of the machine for some inputs.
pub(crate) fn on_machine(
    device: &mut Device,
    function: &UnitFunction,
    image: &SceneImage,
    inputs: &[u32],
    limits: &Limits<'_>,
) -> Result<Vec<u32>, Fault> {
    let count = inputs.len() / function.inputs.len();
    let (scene, view) = upload(device, image).expect("the scene fits");
    let machine = &mut device.machine;
    let (in_bytes, out_bytes) = (inputs.len() * 4, count * function.outputs * 4);
    let from = machine.allocate(in_bytes as u64).expect("the inputs fit");
    let to = machine.allocate(out_bytes as u64).expect("the outputs fit");
    machine.write(from, bytemuck::must_cast_slice(inputs)).expect("the memory is there");
    let params = function.params(&view, from, to, count as u32);
    let grid = [(count as u32).div_ceil(64), 1, 1];
    let outcome =
        machine.launch(&device.module, &function.kernel(), grid, [64, 1, 1], 0, &params, limits);
    let mut outputs = vec![0u32; out_bytes / 4];
    machine.read(to, bytemuck::must_cast_slice_mut(&mut outputs)).expect("the memory is there");
    for address in [scene, from, to] {
        machine.free(address).expect("it was allocated");
    }
    device.steps += outcome?.steps;
    Ok(outputs)
}

/// The cases that functions look at.
pub(crate) fn looked_at() -> Vec<Case> {
    scenes::all().into_iter().filter(|case| SCENES.contains(&case.name)).collect()
}

/// Compares one function over `inputs` inputs; the instructions that it took.
fn compare(module: &Arc<Module>, function: &UnitFunction, cases: &[Case], inputs: usize) -> u64 {
    let mut device = Device::new(module);
    let mut seed = 0;
    for case in cases {
        let image = SceneImage::of(&case.scene);
        for first in (0..inputs.div_ceil(cases.len())).step_by(BATCH) {
            seed += 1;
            let count = BATCH.min(inputs.div_ceil(cases.len()) - first);
            let words = function.make_inputs(count, seed);
            let want = function.run_on_host(&case.scene, &words);
            let got = on_machine(&mut device, function, &image, &words, &Limits::default())
                .unwrap_or_else(|fault| panic!("{}: {fault}", function.name));
            if let Some(at) = got.iter().zip(&want).position(|(got, want)| got != want) {
                let call = at / function.outputs;
                panic!(
                    "{} on {}: word {} is {:#010x}, on the host {:#010x}, for {:x?}",
                    function.name,
                    case.name,
                    at % function.outputs,
                    got[at],
                    want[at],
                    &words[call * function.inputs.len()..][..function.inputs.len()]
                );
            }
        }
    }
    device.steps
}

/// Compares all functions on as many threads as there are processors; all instructions together.
pub(crate) fn compare_all(module: &Arc<Module>, inputs: usize) -> u64 {
    let (functions, cases) = (unit_functions(), looked_at());
    assert_eq!(cases.len(), SCENES.len());
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut steps = 0;
        while let Some(function) = functions.get(next.fetch_add(1, Ordering::Relaxed)) {
            steps += compare(module, function, &cases, inputs);
        }
        steps
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|worker| worker.join().expect("a comparison failed")).sum()
    })
}

#[test]
fn functions_match_the_host() {
    let module = Arc::new(Module::parse(unit_tests::ptx()).expect("the image can be read"));
    let start = std::time::Instant::now();
    let inputs = inputs();
    let steps = compare_all(&module, inputs);
    eprintln!(
        "{} functions, {inputs} inputs each: {} M instructions in {:.1} s",
        unit_functions().len(),
        steps / 1_000_000,
        start.elapsed().as_secs_f64()
    );
}
