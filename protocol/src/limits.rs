//! Limits of everything that crosses the wire, with their arithmetic.

/// Largest frame edge in pixels. No larger film than 32k × 32k is printed.
pub const FRAME_EDGE_MAX: u32 = 32_768;
/// Largest frame area: 2^28 pixels (16k × 16k). A row of 256 px tiles is then at most 32k × 256
/// pixels.
pub const FRAME_PIXELS_MAX: u64 = 1 << 28;
/// Smallest tile edge: below it, the cost of a lease exceeds the work.
pub const TILE_EDGE_MIN: u32 = 8;
/// Largest tile edge: 512 × 512 pixels × 32 channels × 8 bytes is 64 MiB of sums.
pub const TILE_EDGE_MAX: u32 = 512;
/// Most samples per pixel: 2^20, so that an i64 film cannot overflow (see the arithmetic in
/// `film.rs`).
pub const SPP_MAX: u32 = 1 << 20;
/// Most scattering events of a path.
pub const DEPTH_MAX: u32 = 1024;
/// Most units of one frame: a bitmap of 2 MiB.
pub const FRAME_UNITS_MAX: u64 = 1 << 24;
/// Most frames of one job: three hours at 24 frames per second are 259,200.
pub const JOB_FRAMES_MAX: u32 = 1 << 18;
/// Largest frame number; it has seven digits.
pub const FRAME_NUMBER_MAX: u32 = 9_999_999;
/// Most units of one job: 2^31 bits of bitmap are 256 MiB.
pub const JOB_UNITS_MAX: u64 = 1 << 31;
/// Latest time before which a job can be told not to begin, in seconds since the Unix epoch: the
/// end of the year 9999.
pub const NOT_BEFORE_MAX: u64 = 253_402_300_799;
/// Most asset files of one scene.
pub const SCENE_FILES_MAX: usize = 4096;
/// Longest path of an asset within its scene, in bytes.
pub const ASSET_PATH_MAX: usize = 1024;
/// Largest blob: one asset file or one finished frame (32-bit float RGB of 2^28 pixels is 3 GiB).
pub const BLOB_BYTES_MAX: u64 = 8 << 30;
/// Largest control message: a list of 4096 files × (1024 + 40) bytes is 4.2 MiB.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Lowest bound of `--clamp`: darker light is not visible in any picture.
pub const CLAMP_MIN: f64 = 1e-6;
/// Highest bound of `--clamp`: the largest value that a film can add (`FILM_VALUE_MAX`).
pub const CLAMP_MAX: f64 = 262_144.0;
/// Fewest samples per pixel of a denoised frame. Its noise is the difference between two halves of
/// them.
pub const DENOISE_SPP_MIN: u32 = 2;
/// Pixels on every side of a picture that denoising it reads: twice the reach of a pass.
pub const DENOISE_REACH: u32 = 46;
/// Most pixels beyond each edge of a frame or a crop: an eighth of the largest frame.
pub const OVERSCAN_MAX: u32 = 4096;
/// Fewest corners of a lens that is not round.
pub const BLADES_MIN: u8 = 3;
/// Most corners of a lens that is not round. With more corners it looks round.
pub const BLADES_MAX: u8 = 16;
/// Most animations that a job can choose.
pub const ANIMATIONS_MAX: usize = 64;
/// Largest shift of a camera, in frame widths and heights.
pub const SHIFT_MAX: f32 = 8.0;
/// Largest result on the wire in bytes. Compression makes 64 MiB of sums (512 × 512 pixels, 32
/// channels) at most a 16th larger; then comes the header.
pub const RESULT_BYTES_MAX: usize = 68 << 20;
/// Most results of one stream. A node that makes a thousand a second then sends sixteen streams.
pub const RESULTS_MAX: usize = 64;
/// Longest announcement of a stream's results in bytes: a header has at most 115.
pub const RESULT_HEADERS_MAX: usize = RESULTS_MAX * 128;
/// Longest offer of results that a node can store itself, in bytes: a header and a shape have at
/// most 150.
pub const STORE_OFFER_MAX: usize = RESULTS_MAX * 192;
/// Longest report about the files of a frame, in bytes: each has a hundred.
pub const FILES_REPORT_MAX: usize = 16 << 10;
/// Longest name (job, node, pool, tag) in bytes.
pub const NAME_MAX: usize = 128;
/// Longest reason or error text in bytes. Longer texts are cut.
pub const REASON_MAX: usize = 2048;
/// Longest address for HTTP in bytes: a signed one with the token of a session has two thousand.
pub const ADDRESS_MAX: usize = 8 << 10;
/// Longest text that a chunk of a user's kernel prints, in bytes. More is cut.
pub const UNIT_TEXT_BYTES_MAX: usize = 16 << 10;
/// Longest text that all chunks of a job print, in bytes. More is not kept.
pub const JOB_TEXT_BYTES_MAX: usize = 64 << 10;
/// Most leases in one message.
pub const LEASES_MAX: usize = 1024;
/// Most devices of one node: 16 GPUs with 4 MIG slices each. A device's position fits into a byte.
pub const DEVICES_MAX: usize = 64;
/// Most reasons for low clocks in the telemetry of one device. NVML knows nine.
pub const THROTTLES_MAX: usize = 16;
/// Most rows of a listing of nodes in one answer.
pub const ROWS_MAX: usize = 4096;
/// Most jobs in one page of a listing: with the longest names and notes 1024 × 2.5 KiB.
pub const JOB_PAGE_MAX: usize = 1024;
/// Most jobs that one request can name.
pub const JOB_TEXTS_MAX: usize = OPEN_JOBS_MAX;
/// Most jobs that one request changes: as many as can be open. Their names in the answer are at
/// most 10,000 × 0.3 KiB.
pub const JOBS_CHANGED_MAX: usize = OPEN_JOBS_MAX;
/// Most targets of events that one job names.
pub const NOTIFY_MAX: usize = 16;
/// Longest name of a target of events in bytes.
pub const TARGET_NAME_MAX: usize = 64;
/// Most jobs that one job waits for.
pub const AFTER_MAX: usize = 64;
/// Most jobs that wait for the same job: what one frame of it may make ready.
pub const AWAITED_MAX: usize = 1024;
/// Most jobs that the details of a job name of those that wait for it; the others are counted.
pub const AWAITED_NAMED_MAX: usize = 64;
/// Most refusals that the answer to a change of many jobs names; the others are counted.
pub const REFUSALS_NAMED_MAX: usize = 100;
/// Most jobs that are named where a text means several.
pub const MEANINGS_NAMED_MAX: usize = 8;
/// Most frames in one page of a job's frame list.
pub const FRAME_PAGE_MAX: usize = 16_384;
/// Most jobs that are not finished.
pub const OPEN_JOBS_MAX: usize = 10_000;
/// Largest bound on the nodes that work on a job.
pub const NODES_MAX: u32 = 1_000_000;
/// Most indices of a domain: 2^40, so that a sum of them fits into an `ExactSum`.
pub const DOMAIN_MAX: u64 = 1 << 40;
/// Most bytes that a chunk writes. 16 MiB are a million indices of four floats, and far below
/// [`RESULT_BYTES_MAX`].
pub const CHUNK_BYTES_MAX: u64 = 16 << 20;
/// Most bytes of a frame of several steps, which is one chunk: eight million values of 8 bytes.
/// Less than [`RESULT_BYTES_MAX`] also where they do not compress.
pub const STEPPED_BYTES_MAX: u64 = 64 << 20;
/// Most steps of a frame: a million of the shortest, of some microseconds, are seconds.
pub const STEPS_MAX: u32 = 1 << 20;
/// Most values that a kernel writes at each index: twice the populations of the largest
/// lattice in use (D3Q27).
pub const CHANNELS_MAX: u8 = 64;
/// Most threads of a block on any CUDA device, in all and along the first two axes.
pub const BLOCK_THREADS_MAX: u32 = 1024;
/// Most threads of a block along its third axis, on any CUDA device.
pub const BLOCK_DEPTH_MAX: u32 = 64;
/// Most blocks of a grid along its second and third axis, on any CUDA device.
pub const GRID_EDGE_MAX: u64 = 65_535;
/// Most shared memory of a block in bytes: compute capability 9.0 and 10.0 have the most.
pub const SHARED_BYTES_MAX: u32 = 227 << 10;
/// Largest kernel in bytes, as source or PTX: a thousand times the size of the examples.
pub const PROGRAM_BYTES_MAX: u64 = 16 << 20;
/// Most headers of a kernel that nodes compile.
pub const HEADERS_MAX: usize = 1024;
/// Most bytes of all headers of a kernel together.
pub const HEADERS_BYTES_MAX: u64 = 16 << 20;
/// Most named outputs of a kernel.
pub const OUTPUTS_MAX: usize = 16;
/// Most inputs of a compute job.
pub const INPUTS_MAX: usize = 64;
/// Most files of a compute job's inputs that have one for each frame, together.
pub const FRAME_FILES_MAX: usize = 1 << 16;
/// Most arguments of a compute job.
pub const ARGUMENTS_MAX: usize = 256;
/// Most numbers of one argument: 4096 of 8 bytes are half of a device's constant memory.
pub const ARGUMENT_NUMBERS_MAX: usize = 4096;
/// Longest name of a variable, in bytes.
pub const IDENTIFIER_MAX: usize = 128;
/// Longest time that a chunk can ask for, in seconds.
pub const COMPUTE_SECS_MAX: u32 = 3600;
/// Most failed attempts of a unit that a job may ask for.
pub const ATTEMPTS_MAX: u8 = 100;
/// Longest wait that a job may ask for before it is given up: 30 days.
pub const GIVE_UP_SECS_MAX: u32 = 30 * 86_400;
/// Most bytes of a preset: a template has some thousand.
pub const PRESET_BYTES_MAX: usize = 32 << 10;
/// Most presets of a farm.
pub const PRESETS_MAX: usize = 128;
