//! What a job's kernel writes and what becomes of it: the outputs, their places in a chunk, and the
//! checks of them.

use super::output::{Layout, OutputArray};
use super::spec::{ComputeFormat, ComputeSpec, Program, is_identifier};
use super::{ChunkShape, Domain, Element, Reduction};
use crate::job::error::{SpecError, wrong};
use crate::limits::*;
use std::borrow::Cow;

impl ComputeSpec {
    /// Returns what the kernel writes, at least one: its named outputs, or the one without a name.
    pub fn written(&self) -> Cow<'_, [OutputArray]> {
        if !self.outputs.is_empty() {
            return Cow::Borrowed(&self.outputs);
        }
        let (element, channels) = (self.element, self.channels);
        let (reduction, keys) = (self.reduction, self.keys);
        Cow::Owned(vec![OutputArray { name: String::new(), channels, element, reduction, keys }])
    }

    /// Returns the size of one index's values in bytes, of all outputs together.
    pub fn index_bytes(&self) -> u64 {
        self.written().iter().map(OutputArray::index_bytes).sum()
    }

    /// Returns where the values of each output lie in the memory that a chunk writes.
    pub fn value_layout(&self, count: u32) -> Layout {
        Layout::of(&self.written(), |output| output.value_bytes(count.into()))
    }

    /// Returns where the values or partial results of each output lie in the result of a chunk.
    pub fn result_layout(&self, count: u32) -> Layout {
        Layout::of(&self.written(), |output| output.result_bytes(count.into()))
    }

    /// Returns the size of the result of a chunk with `count` indices.
    pub fn chunk_shape(&self, count: u32) -> ChunkShape {
        let bytes = self.result_layout(count).bytes;
        ChunkShape { count, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
    }

    /// Returns the width by which the result of a chunk is shuffled: that of the smallest value
    /// that is kept, which all others are multiples of.
    pub fn result_width(&self) -> u8 {
        let outputs = self.written();
        let kept = outputs.iter().filter(|output| output.reduction.is_none());
        kept.map(|output| output.element.bytes() as u8).min().unwrap_or(1)
    }

    /// Returns the position of the output that is fed, among what is written; None without a feed.
    pub fn fed_output(&self) -> Option<usize> {
        self.feed.as_ref()?;
        let name = self.feed_from.as_deref().unwrap_or_default();
        self.written().iter().position(|output| output.name == name)
    }

    /// Returns the ends of the names of a finished frame's files: for each output, one for each
    /// format.
    pub fn extensions(&self) -> Vec<String> {
        let outputs = self.written();
        let of = |output: &OutputArray| {
            let formats = self.formats.iter();
            formats.map(|format| output.file_extension(format.extension())).collect::<Vec<_>>()
        };
        outputs.iter().flat_map(of).collect()
    }
}

/// Refuses an output: by the option that sets the value, or by the output's name.
fn wrong_of(
    output: &OutputArray,
    option: &'static str,
    problem: impl Into<String>,
) -> Result<(), SpecError> {
    match output.name.as_str() {
        "" => wrong(option, problem),
        name => wrong("output", format!("`{name}`: {}", problem.into())),
    }
}

/// Checks the outputs by themselves. Bounds their number.
pub(super) fn check_outputs(spec: &ComputeSpec) -> Result<(), SpecError> {
    check_names(spec)?;
    let outputs = spec.written();
    for output in outputs.iter() {
        check_output(spec, output)?;
    }
    let bytes = outputs
        .iter()
        .filter_map(OutputArray::reducing)
        .fold(0u64, |sum, what| sum.saturating_add(what.partial_bytes()));
    if bytes > CHUNK_BYTES_MAX {
        let text = format!(
            "the reductions make {bytes} bytes of partial results, more than {CHUNK_BYTES_MAX}"
        );
        return wrong(if spec.outputs.is_empty() { "keys" } else { "output" }, text);
    }
    if spec.steps > 1 {
        let count = u32::try_from(spec.domain.len()).unwrap_or(u32::MAX);
        let layouts = [spec.value_layout(count), spec.result_layout(count)];
        if let Some(layout) = layouts.iter().find(|layout| layout.bytes > STEPPED_BYTES_MAX) {
            let text = format!(
                "{} bytes of values and partial results are more than the {STEPPED_BYTES_MAX} of \
                    a frame of several steps, which is one chunk",
                layout.bytes
            );
            return wrong("domain", text);
        }
    }
    Ok(())
}

/// Checks which output is fed, and the files of all. Comes after the check of the inputs.
pub(super) fn check_files(spec: &ComputeSpec) -> Result<(), SpecError> {
    check_feed(spec)?;
    check_formats(spec)
}

/// Checks the names of outputs, and that nothing is said for an output without one beside them.
fn check_names(spec: &ComputeSpec) -> Result<(), SpecError> {
    let outputs = &spec.outputs;
    if outputs.is_empty() {
        return Ok(());
    }
    if matches!(spec.program, Program::Builtin(_)) {
        return wrong("output", "a built-in kernel has one result, without a name");
    }
    if outputs.len() > OUTPUTS_MAX {
        let text = format!("{} outputs are more than {OUTPUTS_MAX}", outputs.len());
        return wrong("output", text);
    }
    if let Some(output) = outputs.iter().find(|output| !is_identifier(&output.name)) {
        return wrong("output", format!("{:?} is not the name of a variable", output.name));
    }
    if !outputs.windows(2).all(|pair| pair[0].name < pair[1].name) {
        return wrong("output", "outputs must be in the order of their names, each once");
    }
    let inputs = spec.inputs.iter().map(|input| &input.name);
    let mut others = inputs.chain(spec.arguments.iter().map(|argument| &argument.name));
    if let Some(name) = others.find(|name| outputs.iter().any(|output| output.name == **name)) {
        return wrong("output", format!("`{name}` is an input or an argument as well"));
    }
    let plain = (spec.channels, spec.element, spec.reduction, spec.keys);
    if plain != (1, Element::F32, None, 0) {
        let text = "channels, element, reduction and keys belong to each output by name: \
            --output NAME=TYPExCHANNELS:REDUCTION:KEYS";
        return wrong("output", text);
    }
    Ok(())
}

/// Checks the values and the reduction of one output.
fn check_output(spec: &ComputeSpec, output: &OutputArray) -> Result<(), SpecError> {
    if !(1..=CHANNELS_MAX).contains(&output.channels) {
        let text = format!("{} channels are not 1 to {CHANNELS_MAX}", output.channels);
        return wrong_of(output, "channels", text);
    }
    let Some(what) = output.reducing() else {
        if output.keys > 0 {
            let problem = "keys are for a reduction: count, or sum and the like";
            return wrong_of(output, "keys", problem);
        }
        let bytes = output.value_bytes(spec.domain.len());
        let text = format!("{bytes} bytes of results are more than {BLOB_BYTES_MAX}");
        return if bytes > BLOB_BYTES_MAX { wrong_of(output, "domain", text) } else { Ok(()) };
    };
    if output.element.of_parts().is_some() {
        let element = output.element;
        let text =
            format!("{element} values have no order and no exact sum here; store their parts");
        return wrong_of(output, "reduce", text);
    }
    match (what.reduction, output.keys) {
        (Reduction::Count, 0) => {
            let keys = match output.name.as_str() {
                "" => "--keys N".to_owned(),
                name => format!("a number of keys, {name}=TYPE:count:N"),
            };
            let problem = format!("count needs {keys}: it counts the indices of each key");
            wrong_of(output, "reduce", problem)
        }
        (Reduction::Count, _) if output.channels != 1 => {
            wrong_of(output, "channels", "count takes one channel, the key")
        }
        (Reduction::Count, _) | (_, 0) => Ok(()),
        _ if output.channels < 2 => {
            let problem = "with keys the first channel is the key; values come after it";
            wrong_of(output, "channels", problem)
        }
        _ => Ok(()),
    }
}

/// Checks that the fed input takes the result of an output.
fn check_feed(spec: &ComputeSpec) -> Result<(), SpecError> {
    let Some(feed) = &spec.feed else {
        let stray = spec.feed_from.is_some();
        return if stray { wrong("feed", "an output without an input") } else { Ok(()) };
    };
    let Some(input) = spec.inputs.iter().find(|input| input.name == *feed) else {
        return wrong(
            "feed",
            format!("`{feed}` is not an input; give its first values with --input {feed}=FILE.npy"),
        );
    };
    let outputs = spec.written();
    let Some(output) = spec.fed_output().map(|place| &outputs[place]) else {
        let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        let problem = match &spec.feed_from {
            Some(name) => format!("`{name}` is not an output; there are {}", names.join(", ")),
            None => format!(
                "which output becomes `{feed}`? Say so: --feed {feed}=OUTPUT, one of {}",
                names.join(", ")
            ),
        };
        return wrong("feed", problem);
    };
    if output.reduction.is_some() {
        return wrong("feed", "a reduced result cannot be the next frame's input");
    }
    let (element, shape) = (output.result_element(), output.result_shape(&spec.domain));
    if input.element != element || input.shape != shape {
        return wrong(
            "feed",
            format!(
                "`{feed}` is {} {:?}, but the result that takes its place is {element} {shape:?}",
                input.element, input.shape
            ),
        );
    }
    if !spec.formats.contains(&ComputeFormat::Npy) {
        return wrong(
            "feed",
            "the format npy must be among the results, since frames are handed on as such",
        );
    }
    Ok(())
}

fn check_formats(spec: &ComputeSpec) -> Result<(), SpecError> {
    if spec.formats.is_empty() || !spec.formats.windows(2).all(|pair| pair[0] < pair[1]) {
        return wrong("out", "at least one format, in order, each once");
    }
    let picture = spec.formats.iter().find(|format| **format != ComputeFormat::Npy);
    let Some(picture) = picture else { return Ok(()) };
    let name = picture.extension();
    let Domain { width, height, depth } = spec.domain;
    let edges = [width, height].iter().all(|edge| *edge <= FRAME_EDGE_MAX);
    let flat = depth == 1 && edges && u64::from(width) * u64::from(height) <= FRAME_PIXELS_MAX;
    let is_picture = |output: &OutputArray| {
        let good = output.element == Element::F32 && matches!(output.channels, 1 | 3 | 4);
        flat && good && output.reduction.is_none()
    };
    let outputs = spec.written();
    let Some(other) = outputs.iter().find(|output| !is_picture(output)) else { return Ok(()) };
    let what = "two axes of f32 with 1, 3 or 4 channels, not reduced, within a frame's size";
    let which = match other.name.as_str() {
        "" => String::new(),
        name => format!(", and `{name}` is another"),
    };
    wrong("out", format!("{name} takes {what}{which}; npy takes everything"))
}
