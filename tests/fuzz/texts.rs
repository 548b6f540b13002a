//! Decoders of what people write: frames, sizes, patterns, addresses, kernels, command lines.

use clap::Parser;
use tessera_cli::args::Cli;
use tessera_cli::args::time::parse_ttl;
use tessera_cli::pattern::Pattern;
use tessera_cli::vectors::{EnvironmentArg, FrameSize, parse_vector};
use tessera_protocol::limits::JOB_FRAMES_MAX;
use tessera_protocol::{FrameSet, JobId};
use tessera_ptx::Module;
use tessera_transport::{Address, JoinToken};

pub(crate) const FRAMES: &[&str] =
    &["5", "1-100", "1-100x2", "1,2,3", "0-999999", "7-7x9,100-2000x13,5"];
pub(crate) const VALUES: &[&str] =
    &["1920x1080", "1,2,3", "-1e3,0.5,inf", "#ff8000", "none", "a.hdr", "90s", "365d"];
pub(crate) const PATTERNS: &[&str] =
    &["frame.####.exr", "%04d.png", "{frame:04}.exr", "{{a}}%%{frame}", "a/b/#c##d", "%d%d"];
pub(crate) const ADDRESSES: &[&str] = &[
    "127.0.0.1:7420",
    "[::1]:7420",
    "farm.example:1",
    "00000000-0000-7000-8000-000000000000",
    "tessera1-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.\
     AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
];
/// Words apart by lines.
pub(crate) const COMMANDS: &[&str] = &[
    "render\na.gltf\n-o\nx.exr\n--size\n640x480\n--frames\n1-10x2\n--env\n1,1,1",
    "submit\na.glb\n--format\nexr,png\n--priority\n50\n--dry-run",
    "node\n--coordinator\nhost:7420\n--device\ncuda:1,cpu\n--max-idle\n30m",
    "inspect\na.glb\n--env\n#ffffff\n--json\n--scene-memory\n512",
    "token\ncreate\n--role\nnode\n--ttl\n24h\n--uses\n3",
];

pub(crate) fn seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "no text".into())
}

/// What was read is written and read again, and holds no more than it may.
pub(crate) fn frames(bytes: &[u8]) -> Result<(), String> {
    let frames: FrameSet =
        text(bytes)?.parse().map_err(|error: tessera_protocol::FrameSetError| error.to_string())?;
    assert!(!frames.is_empty() && frames.len() <= JOB_FRAMES_MAX);
    let first = frames.get(0).expect("the first frame");
    assert_eq!((frames.position(first), frames.iter().next()), (Some(0), Some(first)));
    // A step that leads nowhere need not be written.
    let again = frames.to_string().parse::<FrameSet>().expect("what was written can be read");
    assert!(again.len() == frames.len() && again.iter().take(1000).eq(frames.iter().take(1000)));
    Ok(())
}

pub(crate) fn values(bytes: &[u8]) -> Result<(), String> {
    let text = text(bytes)?;
    let size = text.parse::<FrameSize>().map(drop).map_err(|error| error.to_string());
    let vector = parse_vector(text).map(drop).map_err(|error| error.to_string());
    let light = text.parse::<EnvironmentArg>().map(drop).map_err(|error| error.to_string());
    let time = parse_ttl(text).map(drop);
    size.or(vector).or(light).or(time)
}

pub(crate) fn pattern(bytes: &[u8]) -> Result<(), String> {
    text(bytes)?.parse::<Pattern>().map(drop).map_err(|error| error.to_string())
}

pub(crate) fn address(bytes: &[u8]) -> Result<(), String> {
    let text = text(bytes)?;
    let address = text.parse::<Address>().map(drop).map_err(|error| error.to_string());
    let token = text.parse::<JoinToken>().map(drop).map_err(|error| error.to_string());
    let job = text.parse::<JobId>().map(drop).map_err(|error| error.to_string());
    address.or(token).or(job)
}

pub(crate) fn ptx(bytes: &[u8]) -> Result<(), String> {
    Module::parse(&String::from_utf8_lossy(bytes)).map(drop).map_err(|error| error.to_string())
}

pub(crate) fn kernels() -> Vec<Vec<u8>> {
    let small = ".version 7.0\n.target sm_75\n.address_size 64\n.const .align 4 .u32 radius = 2;\n\
        .visible .entry compute(\n.param .align 8 .b8 compute_param_0[56]\n)\n{\n\
        .reg .pred %p<3>;\n.reg .b32 %r<9>;\n\
        .reg .b64 %rd<4>;\n.reg .f32 %f<4>;\nld.param.u64 %rd1, [compute_param_0];\n\
        mov.u32 %r1, %tid.x;\n\
        setp.gt.u32 %p1, %r1, 7;\n@%p1 bra $L__BB0_2;\nadd.s32 %r2, %r1, -1;\n\
        fma.rn.f32 %f1, %f2, 0f3F800000, %f3;\n\
        $L__BB0_2:\nret;\n}\n";
    vec![small.as_bytes().to_vec()]
}

pub(crate) fn arguments(bytes: &[u8]) -> Result<(), String> {
    let words = std::iter::once("tessera").chain(text(bytes)?.split('\n'));
    // Help and version are answers too.
    Cli::try_parse_from(words).map(drop).map_err(|error| error.kind().to_string())
}
