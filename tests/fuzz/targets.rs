//! The list of decoders. What each does stands in `wire.rs`, `finishing.rs`, `texts.rs` and
//! `files.rs`.

use crate::driver::{Decoder, Target};
use crate::{files, finishing, texts, wire};

/// All of them, those that are fast first.
pub(crate) fn all() -> Vec<Target> {
    let fast = |name: &'static str, run: Decoder, seeds: Vec<Vec<u8>>| Target {
        name,
        is_slow: false,
        run,
        seeds,
    };
    let slow = |name: &'static str, run: Decoder, seeds: Vec<Vec<u8>>| Target {
        name,
        is_slow: true,
        run,
        seeds,
    };
    let messages = wire::messages;
    vec![
        fast("hello", wire::hello, wire::hellos()),
        fast("client-request", wire::request, messages("request")),
        fast("client-response", wire::response, messages("response")),
        fast("from-node", wire::from_node, messages("node")),
        fast("to-node", wire::to_node, messages("coordinator")),
        fast("blob-messages", wire::blobs, messages("blob")),
        fast("enrolment", wire::enrolment, messages("enrol")),
        fast("result-headers", wire::result_headers, messages("result")),
        fast("live-tile", wire::live_tile, messages("live_tile")),
        fast("log-lines", wire::log_lines, messages("log_lines")),
        fast("job-spec", wire::job_spec, wire::specs()),
        fast("described-job", wire::described_job, wire::described_jobs()),
        fast("chunk", wire::chunk, wire::chunks()),
        fast("piece", finishing::piece, finishing::pieces()),
        fast("finishing-inputs", finishing::inputs, finishing::all_inputs()),
        fast("journal-record", wire::record, wire::records()),
        fast("snapshot", wire::snapshot, wire::snapshots()),
        fast("spool-entry", wire::spool_entry, wire::spool_entries()),
        fast("npy", wire::npy, wire::arrays()),
        fast("certificate", wire::certificate, wire::certificates()),
        fast("frames", texts::frames, texts::seeds(texts::FRAMES)),
        fast("values", texts::values, texts::seeds(texts::VALUES)),
        fast("pattern", texts::pattern, texts::seeds(texts::PATTERNS)),
        fast("address-and-token", texts::address, texts::seeds(texts::ADDRESSES)),
        slow("film", wire::film, wire::films()),
        slow("ptx", texts::ptx, texts::kernels()),
        slow("arguments", texts::arguments, texts::seeds(texts::COMMANDS)),
        slow("scene", files::scene, files::scenes()),
        slow("map", files::map, files::maps()),
        slow("image", files::image, files::images()),
    ]
}
