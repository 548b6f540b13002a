//! The request for a compute job, and the checks of its values.

use super::block::Block;
use super::input::{FrameInput, InputArray};
use super::output::OutputArray;
use super::{Domain, Element, PtxNeeds, Reduction, npy};
use crate::frames::FrameSet;
use crate::ids::{BlobHash, FrameNumber};
use crate::job::asset::{AssetFile, is_confined_path};
use crate::job::error::{SpecError, wrong};
use crate::limits::*;
use serde::{Deserialize, Serialize};

/// Kernel that runs at every index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// A built-in kernel, by its name. It runs on every device.
    Builtin(String),
    /// The user's kernel as PTX. It runs on CUDA devices.
    Ptx(AssetFile),
    /// The user's kernel as CUDA C++, which a node compiles. It runs on CUDA devices.
    Cuda(AssetFile),
}

impl Program {
    /// Returns the name for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Builtin(name) => name,
            Self::Ptx(file) | Self::Cuda(file) => &file.path,
        }
    }

    /// Returns the kernel's file; None for a built-in kernel.
    pub fn file(&self) -> Option<&AssetFile> {
        match self {
            Self::Builtin(_) => None,
            Self::Ptx(file) | Self::Cuda(file) => Some(file),
        }
    }
}

/// A number in the form in which it was written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Number {
    /// A whole number that fits into an i64.
    Integer(i64),
    /// A larger whole number.
    Unsigned(u64),
    /// Any other number except NaN.
    Real(f64),
}

/// Type and numbers of an argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArgumentValue {
    /// Type of the numbers. None takes the type of the kernel's variable, and is only for single
    /// numbers.
    pub element: Option<Element>,
    /// Numbers, at least one.
    pub numbers: Vec<Number>,
}

/// A value that a kernel reads through its variable of this name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Argument {
    /// Name of the variable.
    pub name: String,
    /// Type and numbers of the argument.
    pub value: ArgumentValue,
}

/// A file format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeFormat {
    /// NumPy's array file, for any result.
    Npy,
    /// EXR with 32-bit floats and ZIP: two axes of f32 with 1, 3 or 4 channels.
    Exr,
    /// PNG with 8-bit sRGB of linear values in [0, 1], for the same results as EXR.
    Png,
}

impl ComputeFormat {
    /// Returns the file name extension.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Exr => "exr",
            Self::Png => "png",
        }
    }
}

/// A kernel over a domain, with everything that it reads and writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ComputeSpec {
    /// Kernel to run, by name or as source.
    pub program: Program,
    /// What the program needs of a driver and a device, if it is PTX that says so. Nodes without
    /// that get no unit.
    pub ptx: Option<PtxNeeds>,
    /// Headers for a kernel in CUDA C++, ascending by path, each path once. A path is the name in
    /// the kernel's `#include`.
    pub headers: Vec<AssetFile>,
    /// Arrays that the kernel reads, ascending by name, each name once.
    pub inputs: Vec<InputArray>,
    /// Inputs that have another file for each frame, ascending by name.
    pub frame_inputs: Vec<FrameInput>,
    /// Values that the kernel reads, ascending by name. Each name occurs once and is not an
    /// input's.
    pub arguments: Vec<Argument>,
    /// Indices that the kernel runs over.
    pub domain: Domain,
    /// Named outputs of the kernel, ascending by name, each name once. Where there are some, the
    /// four fields after this one are at their defaults.
    pub outputs: Vec<OutputArray>,
    /// Number of values that the kernel writes at each index, 1 to [`CHANNELS_MAX`].
    pub channels: u8,
    /// Type of these values.
    pub element: Element,
    /// Reduction of the values; None keeps all of them.
    pub reduction: Option<Reduction>,
    /// Number of keys of the reduction, whose first channel is an index's key; 0 reduces all
    /// indices together.
    pub keys: u32,
    /// File formats, at least one, each once.
    pub formats: Vec<ComputeFormat>,
    /// Indices in one chunk; 0 lets the splitter choose.
    pub chunk: u32,
    /// Every chunk is a multiple of so many indices, except the one at the domain's end if the
    /// domain is none. 1 allows any chunk, and so does 0, which says nothing: it is for kernels
    /// whose threads work alone.
    pub chunk_align: u32,
    /// Frames of the job. The kernel runs once for each.
    pub frames: FrameSet,
    /// Name of the input that, from the second frame on, is the result of the previous frame.
    pub feed: Option<String>,
    /// Name of the output that is fed; None for a kernel without named outputs.
    pub feed_from: Option<String>,
    /// Launches of a frame, 1 to [`STEPS_MAX`]. From the second on, the fed input is the result of
    /// the launch before; the last one's result is the frame's.
    pub steps: u32,
    /// Threads of a block; None leaves it to the kernel.
    pub block: Option<Block>,
    /// Dynamic shared memory of a block in bytes, at most [`SHARED_BYTES_MAX`].
    pub shared_bytes: u32,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Longest time that a chunk, with all its steps, can take on a device in seconds, 1 to
    /// [`COMPUTE_SECS_MAX`].
    pub time_limit_secs: u32,
    /// Whether the kernel is meant to give other results each time: then none are compared.
    pub nondeterministic: bool,
}

/// Longest time of a chunk in seconds where a job gives none.
const TIME_LIMIT_SECS: u32 = 60;

impl Default for ComputeSpec {
    /// Returns a spec without a kernel, which no check accepts, with every option at its default.
    fn default() -> Self {
        let domain = Domain { width: 1, height: 1, depth: 1 };
        Self::new(Program::Builtin(String::new()), domain)
    }
}

impl ComputeSpec {
    /// Creates a job that runs a kernel over a domain, with every option at its default.
    pub fn new(program: Program, domain: Domain) -> Self {
        Self {
            program,
            ptx: None,
            headers: Vec::new(),
            inputs: Vec::new(),
            frame_inputs: Vec::new(),
            arguments: Vec::new(),
            domain,
            outputs: Vec::new(),
            channels: 1,
            element: Element::F32,
            reduction: None,
            keys: 0,
            formats: vec![ComputeFormat::Npy],
            chunk: 0,
            chunk_align: 0,
            frames: FrameSet::one(FrameNumber(1)),
            feed: None,
            feed_from: None,
            steps: 1,
            block: None,
            shared_bytes: 0,
            seed: 0,
            time_limit_secs: TIME_LIMIT_SECS,
            nondeterministic: false,
        }
    }

    /// Returns whether the job runs only on CUDA devices.
    pub fn needs_cuda(&self) -> bool {
        !matches!(self.program, Program::Builtin(_))
    }

    /// Returns whether the kernel is the user's own, whose results may differ without a node being
    /// wrong.
    pub fn runs_users_kernel(&self) -> bool {
        !matches!(self.program, Program::Builtin(_))
    }

    /// Returns a name for people, hash and length of every file that the job needs.
    pub fn files(&self) -> impl Iterator<Item = (&str, BlobHash, u64)> {
        let program = self.program.file().map(|file| (file.path.as_str(), file.hash, file.length));
        let found = self.inputs.iter().filter(|input| input.is_found());
        let inputs = found.map(|input| (input.name.as_str(), input.hash, input.length));
        let headers = self.headers.iter().map(|file| (file.path.as_str(), file.hash, file.length));
        program.into_iter().chain(headers).chain(inputs).chain(self.later_files())
    }

    /// Returns about how much device memory a chunk needs, in bytes: the inputs, and the values
    /// that it writes. Steps write two buffers in turn.
    pub fn device_bytes(&self) -> u64 {
        let largest = |input: &InputArray| {
            let of_frames = self.later_files().filter(|(name, ..)| *name == input.name);
            of_frames.map(|(.., length)| length).fold(input.length.max(input.bytes()), u64::max)
        };
        let inputs = self.inputs.iter().fold(0u64, |sum, input| sum.saturating_add(largest(input)));
        let values = match self.steps {
            0 | 1 => CHUNK_BYTES_MAX,
            _ => self.domain.len().saturating_mul(self.index_bytes()).saturating_mul(2),
        };
        inputs.saturating_add(values)
    }

    /// Returns the hash of everything that a prepared job depends on: its program, headers and
    /// inputs.
    pub fn data_hash(&self) -> BlobHash {
        let mut hasher = blake3::Hasher::new_derive_key("tessera compute 1");
        hasher.update(self.program.name().as_bytes());
        for header in &self.headers {
            hasher.update(&(header.path.len() as u64).to_le_bytes());
            hasher.update(header.path.as_bytes());
        }
        for (_, hash, _) in self.files() {
            hasher.update(&hash.0);
        }
        BlobHash(*hasher.finalize().as_bytes())
    }
}

/// Returns whether a text is a C identifier of at most [`IDENTIFIER_MAX`] bytes.
pub fn is_identifier(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    first
        && name.len() <= IDENTIFIER_MAX
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Checks a spec. Bounds every length and every product.
pub(super) fn check(spec: &ComputeSpec) -> Result<(), SpecError> {
    check_program(spec)?;
    if spec.ptx.is_some() && !matches!(spec.program, Program::Ptx(_)) {
        return wrong("kernel", "only PTX needs a version of PTX");
    }
    check_headers(spec)?;
    check_domain(spec)?;
    check_chunks(spec)?;
    check_inputs(spec)?;
    check_arguments(spec)?;
    check_frames(spec)
}

fn check_program(spec: &ComputeSpec) -> Result<(), SpecError> {
    let program = &spec.program;
    if let Program::Builtin(name) = program
        && (name.is_empty()
            || name.len() > IDENTIFIER_MAX
            || !name.bytes().all(|b| b.is_ascii_graphic()))
    {
        return wrong("kernel", format!("{name:?} is not the name of a built-in kernel"));
    }
    let Some(file) = program.file() else {
        return match spec.nondeterministic {
            true => wrong("nondeterministic", "a built-in kernel always gives the same bits"),
            false => Ok(()),
        };
    };
    let named = is_confined_path(&file.path) && !file.path.contains('/');
    if !named || file.path.len() > NAME_MAX {
        return wrong("kernel", format!("{:?} is not the name of a file", file.path));
    }
    if file.length > PROGRAM_BYTES_MAX {
        let text =
            format!("{} bytes are more than the {PROGRAM_BYTES_MAX} of a kernel", file.length);
        return wrong("kernel", text);
    }
    Ok(())
}

fn check_headers(spec: &ComputeSpec) -> Result<(), SpecError> {
    let headers = &spec.headers;
    if headers.is_empty() {
        return Ok(());
    }
    if !matches!(spec.program, Program::Cuda(_)) {
        return wrong("include", "headers are for kernels in CUDA C++ that nodes compile");
    }
    if headers.len() > HEADERS_MAX {
        return wrong("include", format!("{} headers are more than {HEADERS_MAX}", headers.len()));
    }
    if let Some(file) = headers.iter().find(|file| !is_confined_path(&file.path)) {
        return wrong("include", format!("{:?} is not the path of a header", file.path));
    }
    if !headers.windows(2).all(|pair| pair[0].path < pair[1].path) {
        return wrong("include", "headers must be in the order of their paths, each once");
    }
    let bytes = headers.iter().fold(0u64, |sum, file| sum.saturating_add(file.length));
    if bytes > HEADERS_BYTES_MAX {
        let text = format!("{bytes} bytes of headers are more than {HEADERS_BYTES_MAX}");
        return wrong("include", text);
    }
    Ok(())
}

fn check_domain(spec: &ComputeSpec) -> Result<(), SpecError> {
    let (domain, indices) = (&spec.domain, spec.domain.len());
    if domain.is_empty() || indices > DOMAIN_MAX {
        return wrong("domain", format!("{domain} has {indices} indices, not 1 to {DOMAIN_MAX}"));
    }
    Ok(())
}

fn check_chunks(spec: &ComputeSpec) -> Result<(), SpecError> {
    let (chunk, align) = (u64::from(spec.chunk), u64::from(spec.chunk_align.max(1)));
    let chunk_bytes_max = spec.chunk_bytes_max();
    let most = chunk_bytes_max / spec.index_bytes().max(1);
    if !(1..=most).contains(&align) {
        return wrong(
            "chunk-align",
            format!("{align} is not in 1 to {most}, what a chunk can hold"),
        );
    }
    if chunk > most {
        let chunk_bytes = chunk.saturating_mul(spec.index_bytes());
        let text =
            format!("{chunk} indices write {chunk_bytes} bytes, more than {chunk_bytes_max}");
        return wrong("chunk", text);
    }
    if !chunk.is_multiple_of(align) {
        let below = chunk / align * align;
        let near = [below, below + align].into_iter().filter(|near| (1..=most).contains(near));
        let near = near.map(|near| near.to_string()).collect::<Vec<_>>().join(" or ");
        let text = format!(
            "{chunk} is not a multiple of {align}, which the kernel or --chunk-align asks for; \
                give {near}"
        );
        return wrong("chunk", text);
    }
    if chunk > 0 && spec.domain.len().div_ceil(chunk) > FRAME_UNITS_MAX {
        return wrong("chunk", format!("{chunk} makes more than {FRAME_UNITS_MAX} chunks"));
    }
    if !(1..=COMPUTE_SECS_MAX).contains(&spec.time_limit_secs) {
        let text = format!("{} s is not in 1 to {COMPUTE_SECS_MAX}", spec.time_limit_secs);
        return wrong("time-limit", text);
    }
    Ok(())
}

fn check_inputs(spec: &ComputeSpec) -> Result<(), SpecError> {
    if spec.inputs.len() > INPUTS_MAX {
        return wrong("input", format!("{} inputs are more than {INPUTS_MAX}", spec.inputs.len()));
    }
    if !spec.inputs.windows(2).all(|pair| pair[0].name < pair[1].name) {
        return wrong("input", "inputs must be in the order of their names, each once");
    }
    for input in &spec.inputs {
        let name = &input.name;
        if !is_identifier(name) {
            return wrong("input", format!("{name:?} is not the name of a variable"));
        }
        if input.shape.len() > npy::AXES_MAX {
            return wrong("input", format!("`{name}` has more than {} axes", npy::AXES_MAX));
        }
        if !input.fits(input.length) {
            let text =
                format!("`{name}` of shape {:?} cannot have {} bytes", input.shape, input.length);
            return wrong("input", text);
        }
    }
    Ok(())
}

fn check_arguments(spec: &ComputeSpec) -> Result<(), SpecError> {
    if spec.arguments.len() > ARGUMENTS_MAX {
        return wrong(
            "arg",
            format!("{} arguments are more than {ARGUMENTS_MAX}", spec.arguments.len()),
        );
    }
    if !spec.arguments.windows(2).all(|pair| pair[0].name < pair[1].name) {
        return wrong("arg", "arguments must be in the order of their names, each once");
    }
    for Argument { name, value } in &spec.arguments {
        if !is_identifier(name) {
            return wrong("arg", format!("{name:?} is not the name of a variable"));
        }
        if spec.inputs.iter().any(|input| input.name == *name) {
            return wrong("arg", format!("`{name}` is an input as well"));
        }
        let most = if value.element.is_some() { ARGUMENT_NUMBERS_MAX } else { 1 };
        if !(1..=most).contains(&value.numbers.len()) {
            let text = format!("`{name}` has {} numbers, not 1 to {most}", value.numbers.len());
            return wrong("arg", text);
        }
        if value.numbers.iter().any(|number| matches!(number, Number::Real(real) if real.is_nan()))
        {
            return wrong("arg", format!("`{name}` is not a number"));
        }
    }
    Ok(())
}

fn check_frames(spec: &ComputeSpec) -> Result<(), SpecError> {
    if spec.frames.is_empty() {
        return wrong("frames", "no frame at all");
    }
    let chunks = match spec.chunk {
        0 => 1,
        chunk => spec.domain.len().div_ceil(u64::from(chunk)),
    };
    if chunks.saturating_mul(u64::from(spec.frames.len())) > JOB_UNITS_MAX {
        return wrong("frames", format!("the job has more than {JOB_UNITS_MAX} chunks"));
    }
    Ok(())
}
