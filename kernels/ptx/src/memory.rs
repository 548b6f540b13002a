//! Device memory: allocations with bounds, poisoned when new. Knows no threads.

use crate::{Cause, MemoryError};

/// An allocation's number stands above these bits of its address: neighbours are 64 GiB apart, so
/// that an index which runs out of one array does not land in another.
const SEGMENT_BITS: u32 = 36;
/// Numbers below it are never allocations: 0 holds the null pointer.
const FIRST_SEGMENT: usize = 4;
/// What new memory holds.
pub(crate) const POISON: u8 = 0xCD;
/// Generic addresses of a thread's own stack begin here.
pub(crate) const STACK_WINDOW: u64 = 1 << SEGMENT_BITS;
/// Generic addresses of a block's shared memory begin here.
pub(crate) const SHARED_WINDOW: u64 = 2 << SEGMENT_BITS;

#[derive(Default)]
struct Segment {
    bytes: Vec<u8>,
    is_live: bool,
}

/// All allocations of a machine.
pub(crate) struct Memory {
    segments: Vec<Segment>,
    capacity: u64,
    used: u64,
}

/// The window that a generic address belongs to.
pub(crate) fn window(address: u64) -> u64 {
    address >> SEGMENT_BITS << SEGMENT_BITS
}

/// An address without its window.
pub(crate) fn offset(address: u64) -> u64 {
    address & ((1 << SEGMENT_BITS) - 1)
}

impl Memory {
    pub(crate) fn new(capacity: u64) -> Memory {
        let mut segments = Vec::new();
        segments.resize_with(FIRST_SEGMENT, Segment::default);
        Memory { segments, capacity, used: 0 }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// New memory, all [`POISON`]. An allocation of 0 bytes has an address of its own.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<u64, MemoryError> {
        let free = self.capacity - self.used;
        let full = MemoryError::Full { asked: bytes, free };
        if bytes > free
            || bytes >= 1 << SEGMENT_BITS
            || self.segments.len() >= 1 << (63 - SEGMENT_BITS)
        {
            return Err(full);
        }
        let length = usize::try_from(bytes).map_err(|_| full)?;
        let mut data = Vec::new();
        data.try_reserve_exact(length).map_err(|_| full)?;
        data.resize(length, POISON);
        self.used += bytes;
        self.segments.push(Segment { bytes: data, is_live: true });
        Ok(((self.segments.len() - 1) as u64) << SEGMENT_BITS)
    }

    /// Gives memory back. Its address is not used again, so that a late access is noticed.
    pub(crate) fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let segment =
            usize::try_from(address >> SEGMENT_BITS).ok().and_then(|at| self.segments.get_mut(at));
        match segment.filter(|segment| segment.is_live && offset(address) == 0) {
            None => Err(MemoryError::NotAllocated(address)),
            Some(segment) => {
                self.used -= segment.bytes.len() as u64;
                *segment = Segment::default();
                Ok(())
            }
        }
    }

    /// Start and length of the allocation that holds an address.
    pub(crate) fn range(&self, address: u64) -> Option<(u64, u64)> {
        let segment = self.segments.get(usize::try_from(address >> SEGMENT_BITS).ok()?)?;
        let length = segment.bytes.len() as u64;
        (segment.is_live && offset(address) < length.max(1)).then_some((window(address), length))
    }

    #[inline(always)]
    pub(crate) fn slice(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let start = offset(address) as usize;
        self.segments.get((address >> SEGMENT_BITS) as usize)?.bytes.get(start..start + bytes)
    }

    #[inline(always)]
    pub(crate) fn slice_mut(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let start = offset(address) as usize;
        self.segments
            .get_mut((address >> SEGMENT_BITS) as usize)?
            .bytes
            .get_mut(start..start + bytes)
    }

    /// A range as the host asks for it.
    pub(crate) fn host_slice(&self, address: u64, bytes: u64) -> Result<&[u8], MemoryError> {
        let out_of_bounds = MemoryError::OutOfBounds { address, bytes };
        if bytes == 0 {
            return Ok(&[]);
        }
        let length = usize::try_from(bytes)
            .ok()
            .filter(|_| bytes <= 1 << SEGMENT_BITS)
            .ok_or(out_of_bounds)?;
        self.slice(address, length).ok_or(out_of_bounds)
    }

    /// A range as the host asks for it.
    pub(crate) fn host_slice_mut(
        &mut self,
        address: u64,
        bytes: u64,
    ) -> Result<&mut [u8], MemoryError> {
        let out_of_bounds = MemoryError::OutOfBounds { address, bytes };
        if bytes == 0 {
            return Ok(&mut []);
        }
        let length = usize::try_from(bytes)
            .ok()
            .filter(|_| bytes <= 1 << SEGMENT_BITS)
            .ok_or(out_of_bounds)?;
        self.slice_mut(address, length).ok_or(out_of_bounds)
    }
}

/// An unsigned number of 1, 2, 4 or 8 bytes.
#[inline(always)]
pub(crate) fn get(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// Writes the low 1, 2, 4 or 8 bytes of a number.
#[inline(always)]
pub(crate) fn put(bytes: &mut [u8], value: u64) {
    let value = value.to_le_bytes();
    match bytes.len() {
        1 => bytes.copy_from_slice(&value[..1]),
        2 => bytes.copy_from_slice(&value[..2]),
        4 => bytes.copy_from_slice(&value[..4]),
        8 => bytes.copy_from_slice(&value),
        _ => {}
    }
}

/// Refuses an address that is no multiple of `bytes`, a power of two.
#[inline(always)]
pub(crate) fn check_alignment(address: u64, bytes: u32) -> Result<(), Cause> {
    match address & u64::from(bytes - 1) {
        0 => Ok(()),
        _ => Err(Cause::Misaligned { address, bytes }),
    }
}
