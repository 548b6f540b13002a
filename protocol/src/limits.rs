//! Every limit of what may cross the wire, with its arithmetic.

/// Largest frame edge in pixels: 32k × 32k is the largest film that anybody prints.
pub const FRAME_EDGE_MAX: u32 = 32_768;
/// Largest frame area: 2^28 pixels (16k × 16k). A row of 256 px tiles is then at most 32k × 256
/// pixels.
pub const FRAME_PIXELS_MAX: u64 = 1 << 28;
/// Smallest tile edge: below it, the cost of a lease exceeds the work.
pub const TILE_EDGE_MIN: u32 = 8;
/// Largest tile edge: 512 × 512 pixels × 16 channels × 8 bytes is 32 MiB of sums.
pub const TILE_EDGE_MAX: u32 = 512;
/// Samples per pixel at most: 2^20, so that an i64 film cannot overflow (see the film's arithmetic
/// in `film.rs`).
pub const SPP_MAX: u32 = 1 << 20;
/// Scatterings at most.
pub const DEPTH_MAX: u32 = 1024;
/// Units of one frame at most: a bitmap of 2 MiB.
pub const FRAME_UNITS_MAX: u64 = 1 << 24;
/// Frames of one job at most: three hours at 24 frames a second is 259,200.
pub const JOB_FRAMES_MAX: u32 = 1 << 18;
/// Largest frame number.
pub const FRAME_NUMBER_MAX: u32 = 9_999_999;
/// Units of one job at most: 2^31 bits of bitmap is 256 MiB.
pub const JOB_UNITS_MAX: u64 = 1 << 31;
/// Asset files of one scene at most.
pub const SCENE_FILES_MAX: usize = 4096;
/// Longest path of an asset within its scene, bytes.
pub const ASSET_PATH_MAX: usize = 1024;
/// Largest blob: one asset file or one finished frame (32-bit float RGB of 2^28 pixels is 3 GiB).
pub const BLOB_BYTES_MAX: u64 = 8 << 30;
/// Largest control message: a list of 4096 files × (1024 + 40) bytes is 4.2 MiB.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Least bound of light: what is darker than this shows on no picture.
pub const CLAMP_MIN: f64 = 1e-6;
/// Greatest bound of light: what a film takes at a time (`FILM_VALUE_MAX`).
pub const CLAMP_MAX: f64 = 262_144.0;
/// Samples per pixel of a frame that is denoised at least: its noise is the difference between two
/// halves of them.
pub const DENOISE_SPP_MIN: u32 = 2;
/// Corners of a lens that is not round, at least.
pub const BLADES_MIN: u8 = 3;
/// Corners of a lens that is not round, at most: what has more is round to the eye.
pub const BLADES_MAX: u8 = 16;
/// Largest result on the wire: 32 MiB of sums (512 × 512 pixels, 16 channels) cannot grow by more
/// than a 16th in compression, plus its header.
pub const RESULT_BYTES_MAX: usize = 34 << 20;
/// Longest name (job, node, pool, tag), bytes.
pub const NAME_MAX: usize = 128;
/// Longest reason or error text, bytes; longer ones are cut.
pub const REASON_MAX: usize = 2048;
/// Leases in one message at most.
pub const LEASES_MAX: usize = 1024;
/// Devices of one node at most: 16 GPUs of 4 MIG slices. A position among them fits a byte.
pub const DEVICES_MAX: usize = 64;
/// Reasons for low clocks in one device's telemetry at most; NVML knows nine.
pub const THROTTLES_MAX: usize = 16;
/// Rows of a listing (jobs, nodes) in one answer at most.
pub const ROWS_MAX: usize = 4096;
/// Frames in one page of a job's frame list.
pub const FRAME_PAGE_MAX: usize = 16_384;
/// Jobs that are not finished at most.
pub const OPEN_JOBS_MAX: usize = 10_000;
/// Indices of a domain at most: 2^40, so that a sum of them fits the width of `ExactSum`.
pub const DOMAIN_MAX: u64 = 1 << 40;
/// Bytes that a chunk writes at most: 16 MiB is a million indices of four floats, and far below
/// [`RESULT_BYTES_MAX`].
pub const CHUNK_BYTES_MAX: u64 = 16 << 20;
/// Largest kernel, as source or PTX: a thousand times the examples.
pub const PROGRAM_BYTES_MAX: u64 = 16 << 20;
/// Inputs of a compute job at most.
pub const INPUTS_MAX: usize = 64;
/// Arguments of a compute job at most.
pub const ARGUMENTS_MAX: usize = 256;
/// Numbers of one argument at most: 4096 of 8 bytes are half of a device's constant memory.
pub const ARGUMENT_NUMBERS_MAX: usize = 4096;
/// Longest name of a variable, bytes.
pub const IDENTIFIER_MAX: usize = 128;
/// Seconds that a chunk may ask for at most.
pub const COMPUTE_SECS_MAX: u32 = 3600;
