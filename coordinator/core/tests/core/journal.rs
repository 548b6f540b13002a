//! Pinned bytes of records. A layout that changes by accident fails here; one that changes on purpose is a new version of the record.

use tessera_core::{Moment, Record};
use tessera_protocol::ids::{Epoch, JobId};
use uuid::Uuid;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn records_of_version_4_have_their_pinned_bytes() {
    let job = JobId(Uuid::from_bytes([0x11; 16]));
    let id = format!("10{}", "11".repeat(16));
    let pinned = [
        (Record::JobPaused { job, by: "ada".to_owned(), at: Moment(300) }, format!("040f{id}03616461fb2c01")),
        (Record::JobResumed { job }, format!("0410{id}")),
        (
            Record::JobRetried { job, below: Epoch(9), by: "ada".to_owned(), at: Moment(300) },
            format!("0412{id}0903616461fb2c01"),
        ),
    ];
    for (record, expected) in pinned {
        let bytes = record.to_bytes().unwrap();
        assert_eq!(hex(&bytes), expected, "{record:?}");
        assert_eq!(Record::from_bytes(&bytes).unwrap(), record);
    }
}
