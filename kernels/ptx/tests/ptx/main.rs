//! The PTX crate against PTX of NVIDIA's compiler: reading, running, refusing.

mod arithmetic;
mod bench;
mod faults;
mod hostile;
mod printing;
mod profile;
mod reading;
mod threads;

use std::sync::Arc;
use tessera_ptx::{Fault, Limits, LoadedModule, Machine, Module, Settings, Stats};

/// `data/features.cu`, compiled.
pub(crate) const FEATURES: &str = include_str!("data/features.ptx");

/// A machine with [`FEATURES`] in it.
pub(crate) struct Rig {
    pub(crate) machine: Machine,
    pub(crate) module: LoadedModule,
}

impl Rig {
    pub(crate) fn new(settings: Settings) -> Rig {
        Rig::of(FEATURES, settings)
    }

    pub(crate) fn of(text: &str, settings: Settings) -> Rig {
        let module = Arc::new(Module::parse(text).expect("the text can be read"));
        let mut machine = Machine::new(settings);
        let module = machine.load(&module).expect("the variables fit");
        Rig { machine, module }
    }

    /// Memory with these words in it.
    pub(crate) fn words(&mut self, words: &[u32]) -> u64 {
        let address = self.machine.allocate(words.len() as u64 * 4).expect("it fits");
        self.machine.write(address, bytemuck::must_cast_slice(words)).expect("it was allocated");
        address
    }

    pub(crate) fn read(&self, address: u64, count: usize) -> Vec<u32> {
        let mut words = vec![0; count];
        let bytes = bytemuck::must_cast_slice_mut(&mut words);
        self.machine.read(address, bytes).expect("it was allocated");
        words
    }

    pub(crate) fn run(
        &mut self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        parameters: &[u8],
    ) -> Result<Stats, Fault> {
        self.machine.launch(&self.module, kernel, grid, block, 0, parameters, &Limits::default())
    }
}

/// Parameters one after the other: 8 bytes of an address or number, or 4.
pub(crate) fn parameters(values: &[(u64, usize)]) -> Vec<u8> {
    values.iter().flat_map(|(value, bytes)| value.to_le_bytes().into_iter().take(*bytes)).collect()
}

/// Numbers without pattern, and those at the ends.
pub(crate) fn numbers(count: usize) -> Vec<u32> {
    let special = [
        0,
        1,
        u32::MAX,
        0x8000_0000,
        0x7fff_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0001,
        0x3f80_0000,
        0x0000_0100,
    ];
    let mut state = 1u32;
    let mut next = move || {
        state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        (state ^ state >> 15).wrapping_mul(0x2c1b_3c6d)
    };
    (0..count)
        .map(|_| match next() % 6 {
            0 => special[next() as usize % special.len()],
            1 => ((next() % 2001) as f32 * 0.25 - 250.0).to_bits(),
            _ => next(),
        })
        .collect()
}
