//! Pinned bytes of every message. An accidental change of the layout fails here. An intended one
//! gets a new protocol version (see `ProtocolVersion`) and, with it, new lines in `golden.txt`.

use crate::{log_samples, response_samples, samples, stored_samples};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Write;
use tessera_protocol::stored::StoreReceipt;
use tessera_protocol::stream::{ClockReading, StreamKind};
use tessera_protocol::{ChunkValues, Fingerprint, Hello, HelloError, TileSums, decode, encode};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns name and pinned hexadecimal of each line.
fn pinned() -> BTreeMap<&'static str, &'static str> {
    include_str!("golden.txt").lines().filter_map(|line| line.split_once(' ')).collect()
}

/// Encodes each value, adds its line to `found`, and checks that decoding gives the same value.
fn pin<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    found: &mut BTreeMap<String, String>,
    values: Vec<(String, T)>,
) {
    for (name, value) in values {
        let bytes = encode(&value).unwrap();
        assert_eq!(decode::<T>(&bytes).unwrap(), value, "{name}");
        let former = found.insert(name.clone(), hex(&bytes));
        assert_eq!(former, None, "{name} is there twice");
    }
}

#[test]
fn every_message_has_its_pinned_bytes() {
    let mut found = BTreeMap::new();
    pin(&mut found, samples::requests());
    pin(&mut found, response_samples::responses());
    pin(&mut found, samples::from_nodes());
    pin(&mut found, samples::to_nodes());
    pin(&mut found, samples::blob_replies());
    pin(&mut found, samples::blob_receipts());
    pin(&mut found, samples::enrol_replies());
    pin(&mut found, samples::renew_replies());
    pin(&mut found, vec![("renew_request".to_owned(), samples::renew_request())]);
    pin(&mut found, vec![("enrol_request".to_owned(), samples::enrol_request())]);
    pin(&mut found, vec![("result_headers".to_owned(), samples::result_headers())]);
    pin(&mut found, vec![("heartbeat".to_owned(), samples::heartbeat())]);
    pin(&mut found, vec![("blob_request".to_owned(), samples::blob_request())]);
    pin(&mut found, vec![("blob_offer".to_owned(), samples::blob_offer())]);
    pin(&mut found, vec![("blob_range".to_owned(), samples::blob_range())]);
    pin(&mut found, vec![("inputs_request".to_owned(), stored_samples::inputs_request())]);
    pin(&mut found, stored_samples::inputs_replies());
    pin(&mut found, vec![("store_offer".to_owned(), stored_samples::store_offer())]);
    pin(&mut found, stored_samples::store_replies());
    pin(&mut found, vec![("files_request".to_owned(), stored_samples::files_request())]);
    pin(&mut found, stored_samples::files_replies());
    pin(&mut found, stored_samples::files_reports());
    pin(&mut found, vec![("store_receipt".to_owned(), StoreReceipt { bytes: 1 << 20 })]);
    pin(&mut found, vec![("live_tile".to_owned(), samples::live_tile())]);
    pin(&mut found, vec![("log_lines".to_owned(), log_samples::lines())]);

    let reading = ClockReading { unix_millis: 0x0102_0304_0506 };
    pin(&mut found, vec![("clock_reading".to_owned(), reading)]);

    let pinned = pinned();
    let mut report = String::new();
    for (name, bytes) in &found {
        if pinned.get(name.as_str()) != Some(&bytes.as_str()) {
            writeln!(report, "{name} {bytes}").unwrap();
        }
    }
    let gone: Vec<_> = pinned.keys().filter(|name| !found.contains_key(**name)).collect();
    assert!(
        report.is_empty() && gone.is_empty(),
        "lines that differ from golden.txt:\n{report}gone: {gone:?}"
    );
}

#[test]
fn the_hello_is_frozen() {
    let hello = Hello {
        oldest: 1,
        newest: 0x0203,
        fingerprint: Fingerprint([0xab; 32]),
        build: "tessera 0.1.0".into(),
    };
    let bytes = hello.to_bytes();
    let expected =
        format!("54535241{}{}{}0d7465737365726120302e312e30", "0100", "0302", "ab".repeat(32));
    assert_eq!(hex(&bytes), expected);
    assert_eq!(Hello::from_bytes(&bytes), Ok(hello.clone()));
    assert_eq!(hello.agree(), Ok(1));
    for length in 0..bytes.len() {
        assert_eq!(Hello::from_bytes(&bytes[..length]), Err(HelloError::Short), "{length}");
    }
    let mut foreign = bytes;
    foreign[0] = b't';
    assert_eq!(Hello::from_bytes(&foreign), Err(HelloError::Foreign));
}

#[test]
fn a_hello_with_no_version_in_common_names_both_sides() {
    for (oldest, newest) in [(2, 9), (0, 0), (2, 1)] {
        let hello =
            Hello { oldest, newest, fingerprint: Fingerprint([0; 32]), build: "other".into() };
        let error = hello.agree().unwrap_err();
        assert_eq!(error, HelloError::Version { build: "other".into(), oldest, newest });
        assert!(error.to_string().contains("this build speaks 1 to 1"), "{error}");
    }
    let long = Hello { build: "é".repeat(200), ..Hello::ours(Fingerprint([0; 32])) };
    assert_eq!(Hello::from_bytes(&long.to_bytes()).unwrap().build, "é".repeat(127));
}

#[test]
fn kinds_of_streams_are_frozen() {
    use StreamKind::*;
    let kinds = [
        Hello,
        NodeControl,
        Result,
        Telemetry,
        BlobGet,
        BlobPut,
        Request,
        Enrol,
        Renew,
        Clock,
        BlobRange,
        FinishInputs,
        LiveTile,
        Log,
        StoreResults,
        FrameFiles,
    ];
    for (index, kind) in kinds.into_iter().enumerate() {
        assert_eq!(StreamKind::from_byte(index as u8 + 1), Some(kind));
    }
    assert_eq!((StreamKind::from_byte(0), StreamKind::from_byte(17)), (None, None));
}

#[test]
fn the_head_of_a_film_is_pinned() {
    let mut film = TileSums::empty(3, 2, 4);
    film.samples = 0x0102;
    // The rest is made by zstd, whose later versions may find a shorter form.
    assert_eq!(hex(&film.to_bytes()[..14]), "5453554d010403000200".to_owned() + "02010000");
}

#[test]
fn the_head_of_a_chunk_is_pinned() {
    let chunk = ChunkValues { count: 0x0102, width: 4, bytes: vec![0; 0x0408] };
    assert_eq!(hex(&chunk.to_bytes()[..16]), "5443484b01040000".to_owned() + "0201000008040000");
}
