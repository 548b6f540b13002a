//! For this crate's tests: results of computing in lanes and one by one (`source/tests/lanes.cpp`).

use crate::host::{Isa, available_isas};

/// Words that [`lanes`] takes for each of eight lanes.
pub const LANE_WORDS_IN: usize = 8;
const LANE_WORDS_OUT: usize = 64;
type LaneResults = [[u32; LANE_WORDS_OUT]; 8];

type LanesEntry = unsafe extern "C" fn(
    words: *const [u32; LANE_WORDS_IN],
    alone: *mut [u32; LANE_WORDS_OUT],
    lanes: *mut [u32; LANE_WORDS_OUT],
);

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn tessera_test_lanes_v2(
        words: *const [u32; LANE_WORDS_IN],
        alone: *mut [u32; LANE_WORDS_OUT],
        lanes: *mut [u32; LANE_WORDS_OUT],
    );
    fn tessera_test_lanes_v3(
        words: *const [u32; LANE_WORDS_IN],
        alone: *mut [u32; LANE_WORDS_OUT],
        lanes: *mut [u32; LANE_WORDS_OUT],
    );
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" {
    fn tessera_test_lanes_base(
        words: *const [u32; LANE_WORDS_IN],
        alone: *mut [u32; LANE_WORDS_OUT],
        lanes: *mut [u32; LANE_WORDS_OUT],
    );
}

/// What the kernels' functions make of eight lanes of words (`source/tests/lanes.cpp`): one lane
/// after the other, and all at once.
///
/// # Panics
/// Where this processor lacks the instruction set.
pub fn lanes(isa: Isa, words: &[[u32; LANE_WORDS_IN]; 8]) -> (LaneResults, LaneResults) {
    assert!(
        available_isas().contains(&isa),
        "{isa:?} is not among this processor's instruction sets"
    );
    let mut results = ([[0; LANE_WORDS_OUT]; 8], [[0; LANE_WORDS_OUT]; 8]);
    // SAFETY: the entry reads and writes eight lanes of as many words, and the processor has its
    // instruction set.
    unsafe { lanes_entry(isa)(words.as_ptr(), results.0.as_mut_ptr(), results.1.as_mut_ptr()) };
    results
}

#[cfg(target_arch = "x86_64")]
fn lanes_entry(isa: Isa) -> LanesEntry {
    if isa == Isa::V3 { tessera_test_lanes_v3 } else { tessera_test_lanes_v2 }
}

#[cfg(not(target_arch = "x86_64"))]
fn lanes_entry(_: Isa) -> LanesEntry {
    tessera_test_lanes_base
}
