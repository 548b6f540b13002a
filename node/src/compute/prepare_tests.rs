//! Tests of the limits for prepared and kept frames.

use super::*;
use tessera_protocol::compute::{Domain, Element};

fn spec(edge: u64) -> ComputeSpec {
    let input = InputArray {
        name: "a".into(),
        hash: BlobHash([1; 32]),
        length: 128,
        element: Element::F32,
        shape: vec![edge],
        from: None,
    };
    let domain = Domain { width: 8, height: 1, depth: 1 };
    ComputeSpec {
        inputs: vec![input.clone(), InputArray { name: "b".into(), ..input }],
        ..ComputeSpec::new(Program::Builtin("merge".into()), domain)
    }
}

/// Returns a frame with one input of `words` words.
fn frame(id: u64, words: usize) -> Arc<PreparedCompute> {
    let array = LoadedArray {
        name: "a".into(),
        element: Element::F32,
        shape: vec![2 * words as u64],
        words: vec![0; words],
        length: 8 * words,
    };
    let source = Source::Ptx("".into());
    Arc::new(PreparedCompute {
        id,
        spec: spec(8),
        frame: FrameNumber(1),
        source,
        arrays: vec![array],
    })
}

#[test]
fn inputs_larger_than_memory_are_refused_with_both_sizes() {
    let enough = Preparations::new(8000, 9000, 0);
    assert_eq!(enough.check_memory(&spec(1000)), Ok(()));
    for (device, host, have) in
        [(8000, 90_000, 8000), (90_000, 8000, 8000), (0, 8007, 8007), (8007, 0, 8007)]
    {
        let refused = Preparations::new(device, host, 0).check_memory(&spec(1001));
        let told = match refused.expect_err("it is too large") {
            Failure::OutOfMemory(shortage) => {
                assert_eq!((shortage.needed, shortage.available), (8008, have));
                shortage.reason
            }
            Failure::Limit(LimitReached { limit: NodeLimit::Memory, reason }) => reason,
            other => panic!("{other:?}"),
        };
        assert!(
            told.contains("need 8008 bytes") && told.contains(&format!("has {have}")),
            "{told}"
        );
    }
    assert!(Preparations::new(1, 1, 0).check_memory(&spec(u64::MAX)).is_err());
    assert_eq!(
        Preparations::new(0, 0, 0).check_memory(&spec(u64::MAX)),
        Ok(()),
        "memory is unknown"
    );
}

#[test]
fn frames_are_kept_by_number_and_by_bytes() {
    let preparations = Preparations::new(0, 0, 100);
    let kept = || preparations.recent().iter().map(|(_, job)| job.id).collect::<Vec<_>>();
    for id in 1..=3 {
        preparations.keep(None, frame(id, 2));
    }
    assert_eq!(kept(), [2, 3]);
    preparations.keep(None, frame(4, 11));
    assert_eq!(kept(), [4], "16 and 88 bytes are more than 100");
    let large = frame(5, 13);
    preparations.keep(None, large.clone());
    assert!(kept().is_empty());
    assert_eq!(Arc::strong_count(&large), 1, "only those who use it have it");
}
