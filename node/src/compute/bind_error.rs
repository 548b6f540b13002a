//! Why a kernel cannot be used, in words for its author.

use tessera_kernels::compute::ENTRY;
use tessera_protocol::compute::Element;
use tessera_ptx::ParseError;

/// Why a kernel cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The text is not PTX.
    #[error("the PTX cannot be read")]
    Parse(#[from] ParseError),
    /// There is no entry of that name, or it has other parameters.
    #[error("the kernel must be `extern \"C\" __global__ void {ENTRY}(TesseraChunk chunk)`; {0}")]
    Entry(String),
    /// The kernel has no variable for an input or argument.
    #[error("the kernel has no variable `{name}`; it has {known}")]
    Unknown {
        /// Name that was given.
        name: String,
        /// Names of the kernel's variables.
        known: String,
    },
    /// No input fills this variable.
    #[error("the kernel reads the array `{0}`: give --input {0}=FILE.npy")]
    Missing(String),
    /// No output is asked for of this variable.
    #[error(
        "the kernel writes the output `{name}`: give --output {name}={element}; it has {known}"
    )]
    MissingOutput {
        /// Name of the variable.
        name: String,
        /// Type that the kernel stores, or the word TYPE.
        element: String,
        /// Names of the kernel's variables.
        known: String,
    },
    /// The kernel stores another type into an output than the job names.
    #[error(
        "the kernel stores {stored} into the output `{name}`, and --output says {element}: give \
            --output {name}={stored}, or change the kernel"
    )]
    Output {
        /// Name of the variable.
        name: String,
        /// Types of its `tessera_store`, separated by commas.
        stored: String,
        /// Element type of the job.
        element: Element,
    },
    /// The kernel has named outputs, and stores into the chunk as well.
    #[error(
        "the kernel has named outputs ({0}), and a tessera_store(chunk, ...) as well: store into \
            an output instead"
    )]
    TwoForms(String),
    /// A value has another type or size than the variable.
    #[error("`{name}` is {found} in the kernel: {problem}")]
    Type {
        /// Name of the variable.
        name: String,
        /// Type of the variable.
        found: String,
        /// Description of the fault.
        problem: String,
    },
    /// The kernel stores another element type than the job names.
    #[error(
        "the kernel stores {stored}, and --element says {element}; leave that out, or change the \
            kernel"
    )]
    Element {
        /// Types of its `tessera_store`, separated by commas.
        stored: String,
        /// Element type of the job.
        element: Element,
    },
    /// The kernel cannot be launched with such blocks, or without shared memory.
    #[error("{0}")]
    Launch(String),
    /// The kernel loads another element type than an input has.
    #[error(
        "the kernel reads `{name}` as {loaded}, and the input holds {element}: convert it \
            ({convert}), or change the kernel's tessera_load"
    )]
    Load {
        /// Name of the input.
        name: String,
        /// Types of the kernel's `tessera_load` of it, separated by commas.
        loaded: String,
        /// Type of the input.
        element: Element,
        /// Call of NumPy that converts the input.
        convert: String,
    },
    /// The kernel needs whole multiples of more indices than the job promises.
    #[error(
        "the kernel needs chunks of a multiple of {needed} indices, and the job's are of \
            {promised}: give --chunk-align {needed}"
    )]
    Chunks {
        /// Number of indices.
        needed: u32,
        /// Number of indices of which the job's chunks are multiples.
        promised: u32,
    },
    /// The threads of the kernel's blocks work together, and nothing says what a chunk holds.
    #[error(
        "the kernel's threads work together (`{instruction}`), and nothing says where a chunk may \
            begin: the domain's {chunks} chunks begin every {indices} indices. Write \
            TESSERA_CHUNK_ALIGN(N); outside of the kernel's functions, or give --chunk-align N. N \
            is {threads} where each block has a range of indices of its own, the height of a tile \
            times the domain's width, {width}, where blocks make tiles of it, and 1 where a chunk \
            may begin anywhere. A kernel for blocks of two or three axes needs only --block WxH"
    )]
    Unaligned {
        /// The first instruction by which they do.
        instruction: String,
        /// Number of chunks.
        chunks: u64,
        /// Indices of a chunk.
        indices: u32,
        /// Threads of a block.
        threads: u32,
        /// Indices in a row of the domain.
        width: u32,
    },
    /// The kernel's note on its chunks is no number of indices.
    #[error("the multiple that the kernel asks for its chunks is 0 or more than a chunk holds")]
    ChunkNote,
    /// The built-in kernel does not accept the value.
    #[error("{0}")]
    Builtin(String),
}
