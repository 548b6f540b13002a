//! Messages whose lengths are wrong cause an error, and no large allocation before it.

use crate::samples;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;
use tessera_protocol::client::{EnrolReply, EnrolRequest, Request, Response};
use tessera_protocol::limits::MESSAGE_BYTES_MAX;
use tessera_protocol::node::{CoordinatorToNode, Heartbeat, NodeToCoordinator};
use tessera_protocol::{CodecError, FilmError, TileSums, decode, encode};

thread_local! {
    /// Largest allocation of this thread since the value was last set to 0.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which records the largest allocation.
struct Watched;

fn watch(size: usize) {
    // A thread that is ending has no cell any more, and runs no test.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

// SAFETY: every call goes to the system's allocator unchanged; the cell neither allocates nor has a
// destructor.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        watch(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, and every block came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        watch(size);
        // SAFETY: as for `dealloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Decodes bytes. Returns the result, and the largest allocation on the way.
fn watched<T>(work: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let result = work();
    (result, LARGEST.get())
}

#[test]
fn the_watched_allocator_sees_a_large_allocation() {
    let (_, largest) = watched(|| std::hint::black_box(vec![1u8; 3 << 20]));
    assert!(largest >= 3 << 20);
}

/// Returns a varint that claims `count` elements or bytes.
fn claim(count: u64) -> Vec<u8> {
    [&[253][..], &count.to_le_bytes()].concat()
}

// promise: P8
#[test]
fn a_claimed_length_is_not_believed() {
    fn refused<T: serde::de::DeserializeOwned + Debug>(prefix: &[u8]) {
        for count in [1 << 16, MESSAGE_BYTES_MAX as u64, 1 << 40, u64::MAX] {
            let bytes = [prefix, &claim(count), &[1; 40]].concat();
            let (result, largest) = watched(|| decode::<T>(&bytes));
            assert!(
                matches!(result, Err(CodecError::Malformed(_))),
                "{prefix:?} {count}: {result:?}"
            );
            // serde reserves at most a mebibyte before the elements arrive. For a text it reserves
            // at most the message's limit.
            assert!(largest <= MESSAGE_BYTES_MAX, "{prefix:?} {count}: {largest} bytes at once");
        }
    }
    // A list, a text, a list of lists, and a list after other fields.
    refused::<Vec<u64>>(&[]);
    refused::<String>(&[]);
    refused::<Request>(&[0]);
    refused::<Response>(&[2]);
    refused::<Response>(&[8]);
    refused::<EnrolRequest>(&[]);
    refused::<EnrolReply>(&[0, 1]);
    refused::<Heartbeat>(&[0]);
    refused::<CoordinatorToNode>(&[1]);
    refused::<NodeToCoordinator>(&[4]);
}

// promise: P8
#[test]
fn every_cut_of_a_message_is_an_error_and_so_is_a_byte_more() {
    for (name, request) in samples::requests() {
        let bytes = encode(&request).unwrap();
        for length in 0..bytes.len() {
            assert!(decode::<Request>(&bytes[..length]).is_err(), "{name} cut at {length}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(decode::<Request>(&longer), Err(CodecError::Trailing(1))), "{name}");
    }
}

// promise: P8
#[test]
fn flipped_bits_never_panic() {
    for (_, message) in samples::to_nodes() {
        let bytes = encode(&message).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let (_, largest) = watched(|| decode::<CoordinatorToNode>(&damaged).is_ok());
            assert!(largest <= MESSAGE_BYTES_MAX, "bit {bit}: {largest} bytes at once");
        }
    }
}

#[test]
fn a_message_beyond_the_limit_has_no_encoding() {
    let error = encode(&vec![0u8; MESSAGE_BYTES_MAX + 1]).unwrap_err();
    assert!(matches!(error, CodecError::TooLong(_) | CodecError::Unencodable(_)), "{error:?}");
    let error = decode::<Vec<u8>>(&vec![0; MESSAGE_BYTES_MAX + 1]).unwrap_err();
    assert!(matches!(error, CodecError::TooLong(_)), "{error:?}");
}

#[test]
fn a_film_whose_planes_expand_beyond_its_header_is_damaged() {
    let mut bytes = TileSums::empty(512, 512, 13).to_bytes();
    bytes[6..10].copy_from_slice(&[1, 0, 1, 0]);
    let (result, largest) = watched(|| TileSums::from_bytes(&bytes));
    assert_eq!(result, Err(FilmError::Damaged));
    assert!(largest < 1 << 20, "{largest} bytes at once");
}
