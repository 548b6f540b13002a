//! For tests: every single function of the kernels (`source/tests/functions.h`), on the host and as
//! a kernel of a separate image, with inputs for each. Not a stable interface; it changes with the
//! kernels.

use crate::CheckedScene;
use crate::cuda::{CompressedBvh, DeviceScene};
use crate::float_mode::FloatMode;
use crate::packed::PackedPtx;
use crate::test_hooks::Hierarchy;
use bytemuck::{Pod, Zeroable};
use std::ffi::{CStr, c_char};
use tessera_layout::SceneView;

/// Returns the image with a kernel for every function. It is not part of the product.
pub fn ptx() -> &'static str {
    static PACKED: PackedPtx = PackedPtx::new(include_bytes!("../images/unit-tests.ptx.zst"));
    PACKED.text()
}

/// Twin of `UnitFunction` in `source/tests/functions.cpp`.
#[repr(C)]
struct RawFunction {
    name: *const c_char,
    inputs: *const c_char,
    outputs: u32,
    run: *const std::ffi::c_void,
}

unsafe extern "C" {
    fn tessera_unit_functions(count: *mut u32) -> *const RawFunction;
    fn tessera_unit_run(
        which: u32,
        scene: *const SceneView,
        hierarchy: *const Hierarchy,
        inputs: *const u32,
        outputs: *mut u32,
        count: u64,
    );
}

/// One function: words in, words out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitFunction {
    /// Its name.
    pub name: &'static str,
    /// Kind of each input word: `f` any float, including NaN and infinities; `r` a finite float;
    /// `u` in [0, 1); `s` in [0, 1]; `b` any 32 bits.
    pub inputs: &'static str,
    /// Number of output words.
    pub outputs: usize,
    index: u32,
}

/// Returns every function.
pub fn unit_functions() -> Vec<UnitFunction> {
    let mut count = 0;
    // SAFETY: the entry gives a static array of `count` functions whose strings are static and
    // terminated.
    let raw = unsafe {
        let first = tessera_unit_functions(&mut count);
        std::slice::from_raw_parts(first, count as usize)
    };
    // SAFETY: as above.
    let text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default();
    raw.iter()
        .enumerate()
        .map(|(index, raw)| UnitFunction {
            name: text(raw.name),
            inputs: text(raw.inputs),
            outputs: raw.outputs as usize,
            index: index as u32,
        })
        .collect()
}

/// The parameter of every test kernel.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct UnitTestParams {
    scene: DeviceScene,
    inputs: u64,
    outputs: u64,
    count: u32,
    reserved: [u32; 3],
}

impl UnitFunction {
    /// Returns the name of the function's kernel in [`ptx`]: one thread per input, blocks of up to
    /// 64 threads.
    pub fn kernel(&self) -> String {
        format!("tessera_unit_{}", self.name)
    }

    /// Returns the kernel's parameter. Inputs and outputs are consecutive at their addresses.
    pub fn params(&self, scene: &DeviceScene, inputs: u64, outputs: u64, count: u32) -> Vec<u8> {
        let params = UnitTestParams { scene: *scene, inputs, outputs, count, reserved: [0; 3] };
        bytemuck::bytes_of(&params).to_vec()
    }

    /// Returns inputs for `count` calls: special values among random ones of many magnitudes. The
    /// same seed gives the same inputs.
    pub fn make_inputs(&self, count: usize, seed: u32) -> Vec<u32> {
        let mut random = Random(seed ^ 0x9e37_79b9);
        (0..count).flat_map(|_| self.inputs.bytes()).map(|kind| random.input(kind)).collect()
    }

    /// What the host computes.
    ///
    /// # Panics
    /// If the inputs are not a whole number of calls.
    pub fn run_on_host(&self, scene: &CheckedScene, inputs: &[u32]) -> Vec<u32> {
        assert!(inputs.len().is_multiple_of(self.inputs.len()), "a whole number of calls");
        let count = inputs.len() / self.inputs.len();
        let mut outputs = vec![0; count * self.outputs];
        let compressed = CompressedBvh::of(&scene.bvh, &scene.instances, &scene.meshes);
        let (nodes, triangles) = (compressed.nodes(), compressed.triangles());
        let _mode = FloatMode::strict();
        // SAFETY: the index is one of the list's; both arrays have the lengths that the function
        // reads and writes; the scene is checked, and functions bring indices into its arrays by
        // themselves.
        unsafe {
            let (inputs, outputs) = (inputs.as_ptr(), outputs.as_mut_ptr());
            tessera_unit_run(
                self.index,
                &scene.view(),
                &Hierarchy::of(&nodes, &triangles),
                inputs,
                outputs,
                count as u64,
            );
        }
        outputs
    }
}

/// Input words from a counter.
struct Random(u32);

/// Floats at the ends of the range.
const SPECIAL: [u32; 24] = [
    0,
    0x8000_0000, // negative zero
    1,
    0x8000_0001,
    0x007f_ffff, // the largest denormal
    0x0080_0000, // the least normal
    0x3f80_0000, // one, and around it
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x3f00_0000,
    0xbf00_0000,
    0x4000_0000,
    0x1e3c_e508, // 1e-20
    0x9e3c_e508,
    0x4b00_0000, // 2^23
    0xcb80_0001,
    0x7f7f_ffff, // the largest of either sign
    0xff7f_ffff,
    0x7f80_0000, // infinities
    0xff80_0000,
    0x7fc0_0000, // no numbers
    0xffc0_1234,
    0x7fa0_0000,
];

impl Random {
    fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        let mut value = self.0;
        value = (value ^ value >> 16).wrapping_mul(0x7feb_352d);
        value = (value ^ value >> 15).wrapping_mul(0x846c_a68b);
        value ^ value >> 16
    }

    /// Returns a number in [0, 1).
    fn unit(&mut self) -> f32 {
        (self.bits() >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    fn special(&mut self) -> u32 {
        SPECIAL[self.bits() as usize % SPECIAL.len()]
    }

    fn input(&mut self, kind: u8) -> u32 {
        let choice = self.bits() % 8;
        match kind {
            b'b' if choice == 0 => [0, 1, u32::MAX, 0x8000_0000][self.bits() as usize % 4],
            b'b' => self.bits(),
            b'u' if choice == 0 => {
                [0.0f32, 0.5, 0.999_999_94, 1.0 / 16_777_216.0][self.bits() as usize % 4].to_bits()
            }
            b'u' => self.unit().to_bits(),
            b's' if choice < 2 => {
                [0.0f32, 1.0, 0.5, 1e-3, 1e-40, -0.0][self.bits() as usize % 6].to_bits()
            }
            b's' => self.unit().to_bits(),
            b'f' if choice == 0 => self.special(),
            b'f' if choice == 1 => self.bits(),
            _ => self.finite(choice),
        }
    }

    fn finite(&mut self, choice: u32) -> u32 {
        match choice {
            0 => loop {
                let bits = self.special();
                if f32::from_bits(bits).is_finite() {
                    return bits;
                }
            },
            1 | 2 => {
                let exponent = 127 - 24 + self.bits() % 48;
                self.bits() & 0x807f_ffff | exponent << 23
            }
            3 => ((self.bits() % 17) as f32 * 0.25 - 2.0).to_bits(),
            _ => (8.0 * self.unit() - 4.0).to_bits(),
        }
    }
}
