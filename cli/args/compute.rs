//! Options of `compute`.

use super::after::AfterArgs;
use super::chosen::Chosen;
use super::devices::DeviceArgs;
use super::export::ExportArg;
use super::farm::FarmArgs;
use super::tries::TriesArgs;
use clap::Args;
use std::path::PathBuf;
use tessera_protocol::FrameSet;
use tessera_protocol::compute::{Block, Domain, Element, Reduction};

const EXAMPLES: &str = "\
Examples:
  tessera compute mandelbrot.cu --domain 1920x1080 --arg steps=500 --out mandelbrot.npy
  tessera compute monte_carlo.cu --domain 10000000 --reduce sum --out pi.npy
  tessera compute blur.ptx --domain 640x480 --channels 3 --input image=in.npy \\
    --arg radius=4 --out out.exr
  tessera compute nbody.cu --domain 1024x2 --channels 4 --frames 1-100 --feed state \\
    --input state=start.npy --out 'step.####.npy'
  tessera compute heat.cu --domain 512x512 --steps 1000 --feed u --input u=start.npy \\
    --frames 1-20 --out 'heat.####.npy'
  tessera compute matmul.cu --domain 96x64 --block 16x16 --input A=a.npy --input B=b.npy \\
    --out c.npy
  tessera compute fluid.cu --domain 512x512 --input cells=start.npy --output next=f64x9 \\
    --output density=f32 --output speed=f32x2 --output mass=f64:sum --out 'fluid.{output}.npy'
  tessera compute builtin:resize --domain 320x240 --channels 3 --input image=in.npy \\
    --arg filter=lanczos --out small.png --local

A kernel is extern \"C\" __global__ void compute(TesseraChunk chunk); --header prints what it
includes, and docs/compute.md explains it. Where NVRTC is found, .cu files are compiled on this
machine, otherwise on a node that has it.";

/// Options of `compute`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ComputeArgs {
    /// Kernel: FILE.cu, FILE.ptx, builtin:denoise, builtin:merge, builtin:resize or builtin:tonemap
    #[arg(required_unless_present = "header")]
    pub kernel: Option<String>,
    /// Size of the domain: W, WxH or WxHxD indices
    #[arg(long, value_name = "WxH[xD]", required_unless_present = "header")]
    pub domain: Option<Domain>,
    /// File to write, in place of a file that is there: .npy for any result, .exr or .png for
    /// pictures; a pattern for several frames, with {output} for named outputs
    #[arg(short, long, value_name = "FILE")]
    #[arg(required_unless_present_any = ["header", "detach", "export"])]
    pub out: Option<PathBuf>,
    /// Header of the kernel, or a folder with headers, besides the kernel's own folder; may be
    /// given more than once
    #[arg(long, value_name = "FILE|DIR", help_heading = "Kernel")]
    pub include: Vec<PathBuf>,
    /// Array for the kernel's variable NAME; with several frames also a pattern, a file for each:
    /// NAME=in.####.npy. NAME=job:JOB or NAME=job:JOB/OUTPUT reads the frames of another job, for
    /// which this one then waits. May be given more than once
    #[arg(long, value_name = "NAME=FILE.npy", help_heading = "Kernel")]
    pub input: Vec<String>,
    /// Number for the kernel's variable NAME: 3 or -0.5; with a type and several values: f32:1,2,3
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true, help_heading = "Kernel")]
    pub arg: Vec<String>,
    /// JSON file with arguments: an object of numbers, booleans, texts as in --arg, and arrays with
    /// their type, as {"f32": [1, 2]}; --arg takes precedence
    #[arg(long, value_name = "FILE.json", help_heading = "Kernel")]
    pub args: Option<PathBuf>,
    /// Type of the values that the kernel writes: f16, f32, f64, i8, u8, i16, u16, i32, u32, i64,
    /// u64, bool, complex64, complex128 [default: as in its tessera_store, else f32]
    #[arg(long, value_name = "TYPE", help_heading = "Kernel")]
    pub element: Option<Element>,
    /// Named output of the kernel, its type and number of channels: flux=f64, id=u32x3; after a
    /// colon a reduction, and after another its keys: total=f64:sum, bins=u8:count:256. The type
    /// can be left out where the kernel shows it. May be given more than once
    #[arg(long, value_name = "NAME=TYPE[xN][:HOW[:KEYS]]", help_heading = "Kernel")]
    #[arg(conflicts_with_all = ["element", "channels", "reduce", "keys"])]
    pub output: Vec<String>,
    /// Number of values that the kernel writes per index, 1 to 64; pictures have 1, 3 or 4
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Kernel")]
    pub channels: u8,
    /// Reduce all values of a channel to one, which is also printed: sum, mean, min, max, argmin,
    /// argmax; or with --keys: count
    #[arg(long, value_name = "HOW", help_heading = "Kernel")]
    pub reduce: Option<Reduction>,
    /// With --reduce: reduce the indices of each key apart. An index's key is its first channel, 0
    /// to N - 1; an index with any other is left out
    #[arg(long, value_name = "N", default_value_t = 0, requires = "reduce")]
    #[arg(hide_default_value = true, help_heading = "Kernel")]
    pub keys: u32,
    /// Threads of a block: 512, 16x16 or 8x8x8 [default: as in the kernel's __launch_bounds__, else
    /// 256]
    #[arg(long, value_name = "X[xY[xZ]]", help_heading = "Kernel")]
    pub block: Option<Block>,
    /// Dynamic shared memory of a block, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0, help_heading = "Kernel")]
    pub shared: u32,
    /// Seed of the random numbers (tessera_random)
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Kernel")]
    pub seed: u64,
    /// Frames to run: 5, 1-100, 1-100x2, or a comma-separated list of these
    #[arg(long, value_name = "SPEC", default_value = "1", help_heading = "Frames")]
    pub frames: FrameSet,
    /// Input that is the result of the previous frame, from the second frame on; with named outputs
    /// also which of them: NAME=OUTPUT
    #[arg(long, value_name = "NAME[=OUTPUT]", help_heading = "Frames")]
    pub feed: Option<String>,
    /// Launches per frame: each reads the result of the one before as the --feed input, on one
    /// device, and the last one's result is the frame
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = "Frames")]
    pub steps: u32,
    /// Indices per chunk, 0 to choose automatically
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Job")]
    pub chunk: u32,
    /// Make every chunk a multiple of N indices, except at the domain's end, for kernels whose
    /// threads work together; 1 if a chunk may begin anywhere [default: as in the kernel]
    #[arg(long, value_name = "N", help_heading = "Job",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk_align: Option<u32>,
    /// Maximum time of a chunk on a device, with all its steps, in seconds
    #[arg(long, value_name = "SECS", default_value_t = 60, help_heading = "Job")]
    pub time_limit: u32,
    /// The kernel is meant to give other results each time: none are compared
    #[arg(long, help_heading = "Kernel")]
    pub nondeterministic: bool,
    /// Name of the job [default: the kernel's]
    #[arg(long, value_name = "NAME", help_heading = "Job")]
    pub name: Option<String>,
    /// Share of the job among your own, 0 to 100; operators can raise it above 50 later
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Job")]
    pub priority: u8,
    /// Use only nodes of this pool [default: any node]
    #[arg(long, value_name = "POOL", help_heading = "Job")]
    pub pool: Option<String>,
    /// How often and how long the farm tries.
    #[command(flatten)]
    pub tries: TriesArgs,
    /// Most nodes that work on the job at a time [default: no bound]
    #[arg(long, value_name = "N", help_heading = "Job")]
    pub max_nodes: Option<u32>,
    /// Also tell this webhook or mail target of the farm about the job; may be given more than once
    #[arg(long, value_name = "TARGET", value_delimiter = ',', help_heading = "Job")]
    pub notify: Vec<String>,
    /// What the job waits for.
    #[command(flatten)]
    pub after: AfterArgs,
    /// Run on this machine, in this process, as render does; needs no farm
    #[arg(long, conflicts_with_all = ["detach", "after", "after_any", "not_before"])]
    #[arg(help_heading = "Work")]
    pub local: bool,
    /// With --local: which devices, and how.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// Print the id of the job and do not wait; tessera fetch gets the files
    #[arg(long, help_heading = "Job")]
    pub detach: bool,
    /// Check everything and print a template for farms of other kinds: openjd. Its tasks run this
    /// command with --local
    #[arg(long, value_name = "FORM", conflicts_with_all = ["detach", "json", "local"])]
    #[arg(help_heading = "Job")]
    pub export: Option<ExportArg>,
    /// Send .cu files as they are, for a node to compile
    #[arg(long, help_heading = "Job")]
    pub compile_on_node: bool,
    /// Print the header that kernels include, and exit
    #[arg(long)]
    pub header: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
    /// The options that are set, as they were written.
    #[arg(skip)]
    pub chosen: Chosen,
}
