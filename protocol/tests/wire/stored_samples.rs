//! Named values of what is said about results and files in a farm's store.

use crate::samples::{hash, lease, named, result_headers, uuid};
use tessera_protocol::frame_files::*;
use tessera_protocol::job::*;
use tessera_protocol::node::*;
use tessera_protocol::status::*;
use tessera_protocol::stored::*;
use tessera_protocol::stream::{InputsReply, InputsRequest, StoredPart};
use tessera_protocol::*;

pub(crate) fn store_offer() -> StoreOffer {
    let header = result_headers().headers[0];
    let film = StoredShape::Film { width: 64, height: 32, channels: 3, samples: 8 };
    let chunk = StoredShape::Chunk(compute::ChunkShape { count: 5, bytes: 20 });
    let piece = StoredShape::Finished(Piece::Band { first: 3, rows: 4 });
    let shapes = [film, chunk, piece];
    StoreOffer { results: shapes.map(|shape| StoredResult { header, shape }).to_vec() }
}

pub(crate) fn store_replies() -> Vec<(String, StoreReply)> {
    let put = StoreReply::Put { url: "https://s3.example/x?sign".into() };
    named(vec![put, StoreReply::SendThem, StoreReply::NotWanted], |reply| match reply {
        StoreReply::Put { .. } => "store_reply.put",
        StoreReply::SendThem => "store_reply.send_them",
        StoreReply::NotWanted => "store_reply.not_wanted",
    })
}

pub(crate) fn files_request() -> FilesRequest {
    FilesRequest { order: 3 }
}

pub(crate) fn files_replies() -> Vec<(String, FilesReply)> {
    let addresses = vec!["https://s3.example/x?sign".to_owned()];
    let order = |purpose| {
        FilesReply::Order(Box::new(FilesOrder {
            job: JobId(uuid(1)),
            frame: FrameNumber(2),
            spec: Box::new(RawJobSpec::from(&JobKind::Render(RenderSpec::default()))),
            fingerprint: None,
            samples: 64,
            samples_mean: Some(1.5),
            addresses: Addresses::new(&["https://s3.example/y?sign".to_owned()]),
            pieces: vec![StoredPart { place: 0, object: 0, offset: 7, length: 99, hash: hash(1) }],
            purpose,
        }))
    };
    let put = order(FilesPurpose::Put(addresses.clone()));
    let all = vec![put, order(FilesPurpose::Compare(addresses)), FilesReply::Over];
    named(all, |reply| match reply {
        FilesReply::Order(_) => "files_reply.order",
        FilesReply::Over => "files_reply.over",
    })
}

pub(crate) fn files_reports() -> Vec<(String, FilesReport)> {
    let file =
        FrameFile { format: "exr".into(), hash: hash(1), length: 1 << 33, pixels_sha256: [2; 32] };
    let files = vec![file];
    let all = vec![
        FilesReport::Made(files.clone()),
        FilesReport::Differs(files),
        FilesReport::Failed("r".into()),
    ];
    named(all, |report| match report {
        FilesReport::Made(_) => "files_report.made",
        FilesReport::Differs(_) => "files_report.differs",
        FilesReport::Failed(_) => "files_report.failed",
    })
}

pub(crate) fn inputs_request() -> InputsRequest {
    InputsRequest { lease: lease(), direct: true }
}

pub(crate) fn inputs_replies() -> Vec<(String, InputsReply)> {
    let inputs = InputsReply::Inputs { parts: 510, bytes: 48 << 20 };
    let part = StoredPart { place: 1, object: 0, offset: 7, length: 99, hash: hash(1) };
    let elsewhere = InputsReply::Elsewhere {
        addresses: Addresses::new(&["https://s3.example/x?sign".to_owned()]),
        parts: vec![part],
    };
    named(vec![inputs, InputsReply::Refused("r".into()), elsewhere], |reply| match reply {
        InputsReply::Inputs { .. } => "inputs_reply.inputs",
        InputsReply::Refused(_) => "inputs_reply.refused",
        InputsReply::Elsewhere { .. } => "inputs_reply.elsewhere",
    })
}
