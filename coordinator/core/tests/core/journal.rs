//! Pinned bytes of records. A layout that changes by accident fails here; one that changes on
//! purpose is a new version of the record.

use tessera_core::journal::Commit;
use tessera_core::{Moment, Record};
use tessera_protocol::ids::{BlobHash, Epoch, FrameNumber, JobId, NodeId, UnitIndex};
use tessera_protocol::job::JobEdit;
use uuid::Uuid;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn records_have_their_pinned_bytes() {
    let job = JobId(Uuid::from_bytes([0x11; 16]));
    let id = format!("10{}", "11".repeat(16));
    let (unit, epoch, node, hash) =
        (UnitIndex(5), Epoch(9), NodeId(Uuid::from_bytes([0x22; 16])), BlobHash([0x33; 32]));
    let commit = Commit { unit, epoch, node, hash, check: true };
    let frame = FrameNumber(7);
    let part = Record::PartCommitted { job, frame, commit, first: 16, samples: 300 };
    let dropped = Record::PartsDropped { job, frame, units: vec![unit], below: Epoch(10) };
    let change = JobEdit {
        name: Some("b".to_owned()),
        priority: Some(20),
        pool: None,
        max_nodes: Some(Some(3)),
        not_before: Some(Some(4)),
    };
    let (maker, bytes) = (format!("10{}", "22".repeat(16)), "33".repeat(32));
    let waited = format!("0121{id}10{}", "33".repeat(16));
    let pinned = [
        (part, format!("0113{id}070509{maker}{bytes}0110fb2c01")),
        (dropped, format!("0114{id}0701050a")),
        (
            Record::JobPaused { job, by: "ada".to_owned(), at: Moment(300) },
            format!("010f{id}03616461fb2c01"),
        ),
        (Record::JobResumed { job }, format!("0110{id}")),
        (
            Record::JobRetried { job, below: Epoch(9), by: "ada".to_owned(), at: Moment(300) },
            format!("0112{id}0903616461fb2c01"),
        ),
        (Record::ExposureMetered { job, stops: -3.5 }, format!("0116{id}000060c0")),
        (
            Record::JobChanged { job, change, by: "ada".to_owned(), at: Moment(300) },
            format!("011c{id}01016201140001010301010403616461fb2c01"),
        ),
        (Record::StorageCounted { at: Moment(300) }, "0124fb2c01".to_owned()),
        (Record::DeviceWaited { job, millis: 3000 }, format!("0120{id}fbb80b")),
        (Record::WaitEnded { job, on: JobId(Uuid::from_bytes([0x33; 16])) }, waited),
    ];
    for (record, expected) in pinned {
        let bytes = record.to_bytes().unwrap();
        assert_eq!(hex(&bytes), expected, "{record:?}");
        assert_eq!(Record::from_bytes(&bytes).unwrap(), record);
    }
}
