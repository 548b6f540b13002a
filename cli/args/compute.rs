//! Options of `compute`.

use super::devices::DeviceArgs;
use super::farm::FarmArgs;
use clap::Args;
use std::path::PathBuf;
use tessera_protocol::FrameSet;
use tessera_protocol::compute::{Domain, Element, Reduction};

const EXAMPLES: &str = "\
Examples:
  tessera compute mandelbrot.cu --domain 1920x1080 --arg steps=500 --out mandelbrot.npy
  tessera compute monte_carlo.cu --domain 10000000 --reduce sum --out pi.npy
  tessera compute blur.ptx --domain 640x480 --channels 3 --input image=in.npy --arg radius=4 --out out.exr
  tessera compute nbody.cu --domain 1024x2 --channels 4 --frames 1-100 --feed state --input state=start.npy --out 'step.####.npy'
  tessera compute builtin:resize --domain 320x240 --channels 3 --input image=in.npy --arg filter=lanczos --out small.png --local

A kernel is `extern \"C\" __global__ void compute(TesseraChunk chunk)`; `--header` prints what it includes, and docs/compute.md
explains it. Where NVRTC is found,
    .cu files are compiled here; else a node that has it compiles them.";

/// Options of `compute`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ComputeArgs {
    /// Kernel: FILE.cu, FILE.ptx, or builtin:denoise, builtin:merge, builtin:resize,
    /// builtin:tonemap
    #[arg(required_unless_present = "header")]
    pub kernel: Option<String>,
    /// Where it runs: W, WxH or WxHxD indices
    #[arg(long, value_name = "WxH[xD]", required_unless_present = "header")]
    pub domain: Option<Domain>,
    /// File to write: .npy for anything, .exr or .png for pictures; a pattern where there are
    /// several frames
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["header", "detach"])]
    pub out: Option<PathBuf>,
    /// An array for the kernel's variable of that name
    #[arg(long, value_name = "NAME=FILE.npy", help_heading = "Kernel")]
    pub input: Vec<String>,
    /// A number for the kernel's variable of that name: 3, -0.5, or of a type and several:
    /// f32:1,2,3
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true, help_heading = "Kernel")]
    pub arg: Vec<String>,
    /// What the kernel writes at each index: f32, f64, i32, u32, i64, u64 [default: what its
    /// tessera_store writes, else f32]
    #[arg(long, value_name = "TYPE", help_heading = "Kernel")]
    pub element: Option<Element>,
    /// Values that it writes at each index, 1 to 4
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Kernel")]
    pub channels: u8,
    /// Reduce all values of a channel to one: sum, min, max; printed too
    #[arg(long, value_name = "HOW", help_heading = "Kernel")]
    pub reduce: Option<Reduction>,
    /// Seed of `tessera_random`
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Kernel")]
    pub seed: u64,
    /// Run once for each of these frames
    #[arg(long, value_name = "SPEC", default_value = "1", help_heading = "Frames")]
    pub frames: FrameSet,
    /// From the second frame on, this input is the result of the frame before
    #[arg(long, value_name = "NAME", help_heading = "Frames")]
    pub feed: Option<String>,
    /// Indices in a chunk; 0 lets the farm choose
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Job")]
    pub chunk: u32,
    /// Seconds that a chunk may take on a device
    #[arg(long, value_name = "SECS", default_value_t = 60, help_heading = "Job")]
    pub time_limit: u32,
    /// Name of the job [default: the kernel's]
    #[arg(long, value_name = "NAME", help_heading = "Job")]
    pub name: Option<String>,
    /// Share of the farm relative to other jobs, 0 to 100
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Job")]
    pub priority: u8,
    /// Give it to nodes of this pool alone [default: any node]
    #[arg(long, value_name = "POOL", help_heading = "Job")]
    pub pool: Option<String>,
    /// Use this machine alone, in this process, as `render` does; needs no farm
    #[arg(long, conflicts_with = "detach", help_heading = "Work")]
    pub local: bool,
    /// With --local: which devices, and how.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// Do not wait: print the job's id; `tessera fetch` gets the files
    #[arg(long, help_heading = "Job")]
    pub detach: bool,
    /// Send .cu files as they are, for a node to compile
    #[arg(long, help_heading = "Job")]
    pub compile_on_node: bool,
    /// Print the header that kernels include, and do nothing else
    #[arg(long)]
    pub header: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
