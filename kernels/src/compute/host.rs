//! Built-in kernels on the CPU: one chunk at a time, on the calling thread.

use super::builtin::Builtin;
use super::denoise::denoise_chunk;
use super::layout::{ArrayParams, ChunkParams};
use crate::float_mode::FloatMode;
use crate::host::{Isa, available_isas};

/// An input in this process's memory.
#[derive(Clone, Copy, Debug)]
pub struct HostArray<'a> {
    /// Values, f32.
    pub values: &'a [f32],
    /// At most four axes, slowest first; their product is the number of values.
    pub shape: &'a [u64],
}

/// Why a chunk was not computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The processor cannot run this build.
    #[error("this processor cannot run kernels built for {0}")]
    Unsupported(Isa),
    /// Arrays, numbers or the result do not fit the kernel.
    #[error("built-in kernel `{0}` is called with other inputs or results than it has")]
    Call(&'static str),
}

/// The C entry of one kernel and host build.
type Entry = unsafe extern "C" fn(*const ChunkParams, *const u64);

macro_rules! entries {
    ($($name:literal => $($isa:pat => $symbol:ident),+);+ $(;)?) => {
        unsafe extern "C" {
            $($(fn $symbol(chunk: *const ChunkParams, params: *const u64);)+)+
        }

        fn entry(name: &str, isa: Isa) -> Option<Entry> {
            match (name, isa) {
                $($(($name, $isa) => Some($symbol),)+)+
                _ => None,
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
entries! {
    "merge" => Isa::V2 => tessera_merge_v2, Isa::V3 => tessera_merge_v3;
    "resize" => Isa::V2 => tessera_resize_v2, Isa::V3 => tessera_resize_v3;
    "tonemap" => Isa::V2 => tessera_tonemap_v2, Isa::V3 => tessera_tonemap_v3;
}

#[cfg(not(target_arch = "x86_64"))]
entries! {
    "merge" => Isa::Base => tessera_merge_base;
    "resize" => Isa::Base => tessera_resize_base;
    "tonemap" => Isa::Base => tessera_tonemap_base;
}

/// Runs a built-in kernel over a chunk (whose address of values is ignored) and writes its
/// `count × channels` values. The inputs have passed [`Builtin::check`]; `numbers` are
/// [`Builtin::numbers`].
///
/// # Errors
/// Where the processor lacks `isa`, or inputs, numbers or the result do not have the kernel's
/// number and length.
pub fn run(
    isa: Isa,
    builtin: &Builtin,
    chunk: &ChunkParams,
    arrays: &[HostArray<'_>],
    numbers: &[u32],
    out: &mut [f32],
) -> Result<(), HostError> {
    if builtin.name == "denoise" {
        return denoise_chunk(isa, chunk, arrays, numbers, out);
    }
    let available = available_isas().contains(&isa);
    let entry =
        entry(builtin.name, isa).filter(|_| available).ok_or(HostError::Unsupported(isa))?;
    let wanted = builtin.arrays().count();
    let whole = |array: &HostArray<'_>| {
        let values = array.shape.iter().fold(1u64, |product, axis| product.saturating_mul(*axis));
        array.shape.len() <= 4 && values == array.values.len() as u64
    };
    let values = u64::from(chunk.count) * u64::from(chunk.channels);
    let picture = builtin.name != "resize"
        || arrays.iter().all(|array| {
            // The kernel reads pixels with as many channels as it writes.
            matches!(array.shape.len(), 2 | 3)
                && array.shape.iter().all(|axis| (1..=1 << 20).contains(axis))
        });
    let good = arrays.len() == wanted
        && numbers.len() == builtin.variables.len() - wanted
        && arrays.iter().all(whole)
        && picture
        && out.len() as u64 == values
        && (1..=4).contains(&chunk.channels)
        && chunk.width > 0
        && chunk.height > 0;
    if !good {
        return Err(HostError::Call(builtin.name));
    }
    let mut params: Vec<u64> = Vec::new();
    for array in arrays {
        let ArrayParams { data, element, rank, shape, length } =
            ArrayParams::new(array.values.as_ptr() as u64, 0, array.shape);
        params.extend([data, u64::from(element) | u64::from(rank) << 32]);
        params.extend(shape);
        params.push(length);
    }
    for pair in numbers.chunks(2) {
        let second = pair.get(1).copied().unwrap_or(0);
        params.push(u64::from(pair[0]) | u64::from(second) << 32);
    }
    let chunk = ChunkParams { out: out.as_mut_ptr() as u64, ..*chunk };
    let _mode = FloatMode::strict();
    // SAFETY: the entry is this crate's own kernel and the processor has its instruction set; chunk
    // and params have the layouts of its C structures (56 bytes an array, then 4 a number); every
    // array says its own length, by which reads are bounded; it writes count × channels values,
    // which is the length of `out`.
    unsafe { entry(&chunk, params.as_ptr()) };
    Ok(())
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
