//! A pass of the denoiser over some rows of a frame, as a frame of a compute job for devices: its
//! arrays, its chunks, and the planes that their values are. Runs nothing.

use super::{LoadedArray, PreparedCompute, Source, next_id};
use std::ops::Range;
use tessera_kernels::compute::builtin;
use tessera_kernels::denoise::{COLORS, Fitted, Pass, Rows};
use tessera_layout::FILM_VALUE_MAX;
use tessera_protocol::compute::{
    Argument, ArgumentValue, ChunkValues, ComputeSpec, Domain, Element, InputArray, Number, Program,
};
use tessera_protocol::{BlobHash, FrameNumber};

/// Name of the kernel.
const KERNEL: &str = "denoise";
/// Channels of a colour.
const COLOR: usize = 3;
/// Longest time of a chunk in seconds. A device takes milliseconds.
const SECS_MAX: u32 = 30;

/// A pass, ready for any device.
pub(crate) struct PreparedPass {
    /// The frame of a compute job. The rows that are there are a whole picture for it: what lies
    /// further away than the denoiser reaches changes nothing.
    pub(crate) job: PreparedCompute,
    /// First index and number of indices of each chunk: of the picture, and of its second half.
    pub(crate) chunks: Vec<(u64, u32)>,
}

impl PreparedPass {
    /// Prepares the pass over `wanted` rows of the frame. None if the rows are too many for one, or
    /// have values that the kernel takes for others.
    pub(crate) fn new(rows: &Rows<'_>, wanted: &Range<usize>) -> Option<Self> {
        let width = rows.width;
        let height = rows.channels[0].len().checked_div(width)?;
        let first = wanted.start.checked_sub(rows.first_row)?;
        let halves = if rows.fitted == Fitted::WithHalf { 2 } else { 1 };
        let domain = Domain {
            width: u32::try_from(width).ok()?,
            height: u32::try_from(height).ok()?,
            depth: halves,
        };
        if !rows.channels.iter().copied().flatten().all(|value| is_taken(*value)) {
            return None;
        }
        let (w, h) = (width as u64, height as u64);
        let arrays = vec![
            interleaved("picture", vec![2, h, w, 3], &rows.channels[..COLORS]),
            interleaved("albedo", vec![h, w, 3], &rows.channels[6..9]),
            interleaved("normal", vec![h, w, 3], &rows.channels[9..12]),
            interleaved("depth", vec![h, w], &rows.channels[12..13]),
        ];
        let number = |name: &str, number: i64| Argument {
            name: name.to_owned(),
            value: ArgumentValue { element: None, numbers: vec![Number::Integer(number)] },
        };
        let spec = ComputeSpec {
            inputs: arrays.iter().map(input_of).collect(),
            arguments: vec![
                number("pass", if rows.pass == Pass::First { 0 } else { 1 }),
                number("samples", rows.samples.into()),
            ],
            channels: COLOR as u8,
            time_limit_secs: SECS_MAX,
            ..ComputeSpec::new(Program::Builtin(KERNEL.to_owned()), domain)
        };
        let source = Source::Builtin(builtin(KERNEL)?);
        let job = PreparedCompute { id: next_id(), spec, frame: FrameNumber(0), source, arrays };
        let count = u32::try_from(wanted.len() * width).ok()?;
        let begin = |half: u64| half * w * h + (first * width) as u64;
        let chunks = (0..u64::from(halves)).map(|half| (begin(half), count)).collect();
        Some(Self { job, chunks })
    }
}

/// Returns the planes that the values of all chunks are, three for each, in their order.
pub(crate) fn planes_of(chunks: &[ChunkValues]) -> Vec<Vec<f32>> {
    let plane = |chunk: &ChunkValues, channel: usize| {
        let value =
            |bytes: &[u8]| bytes.first_chunk().map_or(f32::NAN, |bytes| f32::from_le_bytes(*bytes));
        let values = chunk.bytes.chunks_exact(4 * COLOR);
        values.map(|pixel| value(&pixel[4 * channel..])).collect()
    };
    chunks.iter().flat_map(|chunk| (0..COLOR).map(move |channel| plane(chunk, channel))).collect()
}

/// Whether the kernel takes a value as it is. Of users' arrays it takes no other ones.
fn is_taken(value: f32) -> bool {
    value.abs() <= FILM_VALUE_MAX
}

/// Makes an array whose pixels lie together: of one plane for each channel, or of two pictures of
/// three, one after the other.
fn interleaved(name: &str, shape: Vec<u64>, planes: &[&[f32]]) -> LoadedArray {
    let length: usize = planes.iter().map(|plane| plane.len()).sum();
    let mut words = vec![0; length.div_ceil(2)];
    let values = &mut bytemuck::must_cast_slice_mut::<u64, f32>(&mut words)[..length];
    let mut rest = values;
    for planes in planes.chunks(COLOR) {
        let picture: usize = planes.iter().map(|plane| plane.len()).sum();
        let (values, after) = rest.split_at_mut(picture);
        for (channel, plane) in planes.iter().enumerate() {
            let places = values.iter_mut().skip(channel).step_by(planes.len());
            places.zip(*plane).for_each(|(to, value)| *to = *value);
        }
        rest = after;
    }
    let length = 4 * length;
    LoadedArray { name: name.to_owned(), element: Element::F32, shape, words, length }
}

/// Returns the input that an array is, of no file.
fn input_of(array: &LoadedArray) -> InputArray {
    InputArray {
        name: array.name.clone(),
        hash: BlobHash([0; 32]),
        length: 0,
        element: array.element,
        shape: array.shape.clone(),
        from: None,
    }
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
