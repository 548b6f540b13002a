//! Bounds of what a stream of results announces.

use crate::samples;
use tessera_protocol::limits::{RESULT_BYTES_MAX, RESULT_HEADERS_MAX, RESULTS_MAX};
use tessera_protocol::node::{ResultHeader, ResultHeaders};
use tessera_protocol::{BlobHash, Epoch, FrameNumber, JobId, Lease, UnitIndex, UnitKey, encode};

// promise: P8
#[test]
fn announced_results_have_bounds() {
    let of = |lengths: &[u32]| {
        let first = samples::result_headers().headers[0];
        let headers = lengths.iter().map(|length| ResultHeader { length: *length, ..first });
        ResultHeaders { headers: headers.collect() }.bytes()
    };
    let most = RESULT_BYTES_MAX as u32;
    assert_eq!([of(&[0]), of(&[3, 4]), of(&[most])], [Ok(0), Ok(7), Ok(RESULT_BYTES_MAX)]);
    assert_eq!(of(&[1; RESULTS_MAX]), Ok(RESULTS_MAX));
    for wrong in [&[][..], &[1; RESULTS_MAX + 1], &[most, 1], &[u32::MAX; RESULTS_MAX]] {
        assert!(of(wrong).is_err(), "{wrong:?}");
    }
    let wide = ResultHeader {
        lease: Lease {
            unit: UnitKey {
                job: JobId(uuid::Uuid::max()),
                frame: FrameNumber(u32::MAX),
                unit: UnitIndex(u32::MAX),
            },
            epoch: Epoch(u64::MAX),
        },
        hash: BlobHash([0xff; 32]),
        length: u32::MAX,
        device: u8::MAX,
        device_micros: u64::MAX,
        waited_micros: u64::MAX,
        device_bytes: u64::MAX,
        rays: u64::MAX,
        first_sample: u32::MAX,
    };
    let all = ResultHeaders { headers: vec![wide; RESULTS_MAX] };
    assert!(encode(&all).unwrap().len() <= RESULT_HEADERS_MAX);
}
