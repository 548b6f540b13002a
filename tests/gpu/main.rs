//! The proof with a GPU: every function of the kernels by itself on the device, called by `run.sh`;
//! and `run.sh` as a whole, proven on the fake driver.

#[path = "../ptx/gauze.rs"]
mod gauze;
#[path = "../fake-cuda/tests/program/gpu.rs"]
mod gpu;
#[path = "../ptx/layers.rs"]
mod layers;
#[path = "../ptx/scenes.rs"]
#[expect(dead_code, reason = "shared with the proof in the interpreter, which uses all of it")]
mod scenes;
mod script;
#[path = "../../kernels/tests/kernels/support.rs"]
#[expect(dead_code, reason = "shared with the kernels' own tests, which use all of it")]
mod support;
mod units;
