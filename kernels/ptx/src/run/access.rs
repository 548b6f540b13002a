//! Accesses to memory: bounds, alignment, generic addresses, atomics.

use super::Core;
use super::integer::signed;
use crate::Cause;
use crate::instruction::{Atomic, Function, Instruction, Op};
use crate::memory::{SHARED_WINDOW, STACK_WINDOW, check_alignment, get, offset, put, window};

/// Bytes of something that a thread or a block owns, from a place that may be anywhere.
#[inline(always)]
fn part(bytes: &mut [u8], address: u64, length: u32) -> Option<&mut [u8]> {
    let start = usize::try_from(address).ok()?;
    bytes.get_mut(start..start.checked_add(length as usize)?)
}

/// A loaded element as its register holds it.
#[inline(always)]
fn extended(i: &Instruction, value: u64) -> u64 {
    match i.flags & 1 {
        0 => value,
        _ => signed(value, i.bits) as u64 & (u64::MAX >> (64 - i.c.clamp(1, 64))),
    }
}

impl Core<'_> {
    #[inline(always)]
    pub(super) fn load(
        &mut self,
        i: &Instruction,
        r: &[u64],
        stack: &mut [u8],
    ) -> Result<u64, Cause> {
        let bytes = u32::from(i.bits) / 8;
        let address = r[i.a as usize].wrapping_add(i.imm);
        check_alignment(address, bytes)?;
        match self.memory.slice(address, bytes as usize) {
            Some(found) => Ok(extended(i, get(found))),
            None => Ok(extended(i, get(self.window_bytes(i, address, bytes, stack)?))),
        }
    }

    #[inline(always)]
    pub(super) fn store(
        &mut self,
        i: &Instruction,
        r: &[u64],
        stack: &mut [u8],
    ) -> Result<(), Cause> {
        let bytes = u32::from(i.bits) / 8;
        let address = r[i.a as usize].wrapping_add(i.imm);
        check_alignment(address, bytes)?;
        match self.memory.slice_mut(address, bytes as usize) {
            Some(found) => put(found, r[i.b as usize]),
            None => put(self.window_bytes(i, address, bytes, stack)?, r[i.b as usize]),
        }
        Ok(())
    }

    /// What is not global memory: the thread's stack or the block's shared memory, where the access
    /// is generic.
    #[cold]
    fn window_bytes<'a>(
        &'a mut self,
        i: &Instruction,
        address: u64,
        bytes: u32,
        stack: &'a mut [u8],
    ) -> Result<&'a mut [u8], Cause> {
        let found = match window(address) {
            STACK_WINDOW if i.flags & 2 == 0 => part(stack, offset(address), bytes),
            SHARED_WINDOW if i.flags & 2 == 0 => part(&mut self.shared, offset(address), bytes),
            _ => None,
        };
        found.ok_or(Cause::OutOfBounds { address, bytes })
    }

    pub(super) fn load_stack(
        &mut self,
        i: &Instruction,
        r: &[u64],
        stack: &mut [u8],
    ) -> Result<u64, Cause> {
        Ok(extended(i, get(place(stack, i, r, 1)?)))
    }

    pub(super) fn load_shared(&mut self, i: &Instruction, r: &[u64]) -> Result<u64, Cause> {
        Ok(extended(i, get(place(&mut self.shared, i, r, 1)?)))
    }

    pub(super) fn store_stack(
        &mut self,
        i: &Instruction,
        r: &[u64],
        stack: &mut [u8],
    ) -> Result<(), Cause> {
        put(place(stack, i, r, 1)?, r[i.b as usize]);
        Ok(())
    }

    pub(super) fn store_shared(&mut self, i: &Instruction, r: &[u64]) -> Result<(), Cause> {
        put(place(&mut self.shared, i, r, 1)?, r[i.b as usize]);
        Ok(())
    }

    /// The bytes of a vector access, wherever they are.
    fn many<'a>(
        &'a mut self,
        i: &Instruction,
        r: &[u64],
        stack: &'a mut [u8],
    ) -> Result<&'a mut [u8], Cause> {
        match i.op {
            Op::LoadStackMany | Op::StoreStackMany => place(stack, i, r, i.count),
            Op::LoadSharedMany | Op::StoreSharedMany => place(&mut self.shared, i, r, i.count),
            _ => {
                let bytes = u32::from(i.bits) / 8 * u32::from(i.count);
                let address = r[i.a as usize].wrapping_add(i.imm);
                check_alignment(address, bytes)?;
                match self.memory.slice(address, bytes as usize).is_some() {
                    true => self
                        .memory
                        .slice_mut(address, bytes as usize)
                        .ok_or(Cause::OutOfBounds { address, bytes }),
                    false => self.window_bytes(i, address, bytes, stack),
                }
            }
        }
    }

    pub(super) fn load_many(
        &mut self,
        function: &Function,
        i: &Instruction,
        r: &mut [u64],
        stack: &mut [u8],
    ) -> Result<(), Cause> {
        let size = usize::from(i.bits) / 8;
        let found = self.many(i, r, stack)?;
        let slots = &function.lists[i.d as usize..][..usize::from(i.count)];
        for (slot, bytes) in slots.iter().zip(found.chunks_exact(size)) {
            r[*slot as usize] = extended(i, get(bytes));
        }
        Ok(())
    }

    pub(super) fn store_many(
        &mut self,
        function: &Function,
        i: &Instruction,
        r: &[u64],
        stack: &mut [u8],
    ) -> Result<(), Cause> {
        let size = usize::from(i.bits) / 8;
        let found = self.many(i, r, stack)?;
        let slots = &function.lists[i.d as usize..][..usize::from(i.count)];
        for (slot, bytes) in slots.iter().zip(found.chunks_exact_mut(size)) {
            put(bytes, r[*slot as usize]);
        }
        Ok(())
    }

    /// Changes memory and gives what was there. Threads run one after the other, so this is atomic.
    pub(super) fn atomic(
        &mut self,
        i: &Instruction,
        r: &[u64],
        stack: &mut [u8],
    ) -> Result<u64, Cause> {
        let bytes = u32::from(i.bits) / 8;
        let address = r[i.a as usize].wrapping_add(i.imm);
        check_alignment(address, bytes)?;
        let found = match i.count {
            1 => part(&mut self.shared, address & 0xFFFF_FFFF, bytes)
                .ok_or(Cause::OutOfBounds { address, bytes })?,
            _ if self.memory.slice(address, bytes as usize).is_some() => self
                .memory
                .slice_mut(address, bytes as usize)
                .ok_or(Cause::OutOfBounds { address, bytes })?,
            _ => self.window_bytes(i, address, bytes, stack)?,
        };
        let old = get(found);
        put(found, combined(i, old, r[i.b as usize], r[i.c as usize]));
        Ok(old)
    }
}

/// The bytes of an access to a stack or to shared memory, whose addresses are 32 bits wide.
#[inline(always)]
fn place<'a>(
    bytes: &'a mut [u8],
    i: &Instruction,
    r: &[u64],
    count: u8,
) -> Result<&'a mut [u8], Cause> {
    let length = u32::from(i.bits) / 8 * u32::from(count);
    let address = r[i.a as usize].wrapping_add(i.imm) & 0xFFFF_FFFF;
    check_alignment(address, length)?;
    part(bytes, address, length).ok_or(Cause::OutOfBounds { address, bytes: length })
}

/// What an atomic instruction leaves in memory.
fn combined(i: &Instruction, old: u64, b: u64, c: u64) -> u64 {
    let (old_s, b_s) = (signed(old, i.bits), signed(b, i.bits));
    match Atomic::ALL.get(usize::from(i.flags)).copied().unwrap_or(Atomic::Exchange) {
        Atomic::Add => old.wrapping_add(b),
        Atomic::MinU => old.min(b),
        Atomic::MaxU => old.max(b),
        Atomic::MinS => old_s.min(b_s) as u64,
        Atomic::MaxS => old_s.max(b_s) as u64,
        Atomic::And => old & b,
        Atomic::Or => old | b,
        Atomic::Xor => old ^ b,
        Atomic::Exchange => b,
        Atomic::CompareExchange => {
            if old == b {
                c
            } else {
                old
            }
        }
        Atomic::Increment => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        Atomic::Decrement => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
    }
}
