//! Modules, functions, occupancy.

use super::current;
use crate::driver::driver;
use crate::driver::image::{self, Function, Image, Refusal};
use crate::ffi::{HostBytes, Out, Text, export};
use crate::status::Status;
use std::ffi::c_char;
use std::sync::Arc;
use std::time::Instant;

/// An image of PTX is a text that ends with a zero; no longer than this is looked for its end.
const TEXT_BYTES_MAX: usize = 256 << 20;

/// The bytes of an image: up to the zero for a text, its head for machine code.
fn image_bytes(image: Out<c_char>) -> Result<Vec<u8>, Status> {
    const HEAD: usize = 4;
    let mut bytes = Vec::new();
    for index in 0..TEXT_BYTES_MAX {
        let byte = image.get_at(index)?.cast_unsigned();
        // A real one has its class here. What stands for machine code in tests is text, as PTX is.
        let is_class = index == HEAD && matches!(byte, 1 | 2);
        if byte == 0 || (is_class && bytes.starts_with(b"\x7fELF")) {
            return Ok(bytes);
        }
        bytes.push(byte);
        if bytes.len() == HEAD && bytes == 0xBA55_ED50_u32.to_le_bytes() {
            return Ok(bytes);
        }
    }
    Err(Status::INVALID_IMAGE)
}

/// `CUjit_option` of cuda.h.
const JIT_WALL_TIME: u32 = 2;
const JIT_INFO_LOG: u32 = 3;
const JIT_INFO_LOG_BYTES: u32 = 4;
const JIT_ERROR_LOG: u32 = 5;
const JIT_ERROR_LOG_BYTES: u32 = 6;

/// The options of a load: pairs of a name and a value, which may be an answer.
struct Options {
    count: u32,
    names: Out<u32>,
    values: Out<usize>,
}

impl Options {
    fn find(&self, name: u32) -> Option<(usize, usize)> {
        let found =
            (0..self.count as usize).find(|index| self.names.get_at(*index).ok() == Some(name))?;
        Some((found, self.values.get_at(found).ok()?))
    }

    /// Fills a log's buffer, and its size's option with the bytes that were written.
    fn put_log(&self, buffer: u32, bytes: u32, text: &str) {
        let (Some((_, address)), Some((place, room))) = (self.find(buffer), self.find(bytes))
        else {
            return;
        };
        // The size is a C `unsigned int` in a pointer's clothes.
        let room = room as u32 as usize;
        let mut log = text.as_bytes()[..text.len().min(room.saturating_sub(1))].to_vec();
        log.push(0);
        HostBytes { address, length: room }.write(&log);
        let _ = self.values.put_at(place, log.len());
    }

    fn put_wall_time(&self, since: Instant) {
        if let Some((place, _)) = self.find(JIT_WALL_TIME) {
            let millis = since.elapsed().as_secs_f32() * 1e3;
            let _ = self.values.put_at(place, millis.to_bits() as usize);
        }
    }
}

fn load(handle: Out<u64>, image: &[u8], options: &Options) -> Result<(), Status> {
    let context = current()?;
    let start = Instant::now();
    let loaded = image::load(&context, image);
    options.put_wall_time(start);
    match loaded {
        Ok(image) => {
            options.put_log(JIT_INFO_LOG, JIT_INFO_LOG_BYTES, "");
            options.put_log(JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES, "");
            Ok(handle.put(driver().images.insert(image))?)
        }
        Err(Refusal { status, log }) => {
            options.put_log(JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES, &log);
            Err(status)
        }
    }
}

fn module(handle: u64) -> Result<Arc<Image>, Status> {
    driver().ready()?;
    let image = driver().images.get(handle).ok_or(Status::INVALID_HANDLE)?;
    image.context.alive()?;
    Ok(image)
}

/// A function by its handle.
pub(super) fn function(handle: u64) -> Result<Arc<Function>, Status> {
    driver().ready()?;
    let function = driver().functions.get(handle).ok_or(Status::INVALID_HANDLE)?;
    function.context.alive()?;
    Ok(function)
}

/// Threads of a block that fill a multiprocessor best, and blocks that fill the device.
fn potential(handle: u64, limit: i32) -> Result<(i32, i32), Status> {
    let function = function(handle)?;
    let most = function.threads_max();
    let most = if limit > 0 { most.min(limit) } else { most };
    let sizes = (1..=most / 32).map(|warps| warps * 32);
    let filled = |threads: i32| threads * function.blocks_per_multiprocessor(threads, 0);
    let best = sizes.max_by_key(|threads| (filled(*threads), *threads)).unwrap_or(most);
    let multiprocessors = driver().targets[function.context.target].multiprocessors;
    Ok((function.blocks_per_multiprocessor(best, 0) * multiprocessors, best))
}

fn put_potential(grid: Out<i32>, block: Out<i32>, handle: u64, limit: i32) -> Result<(), Status> {
    let (blocks, threads) = potential(handle, limit)?;
    grid.put(blocks)?;
    Ok(block.put(threads)?)
}

fn no_options() -> Options {
    Options { count: 0, names: Out::null(), values: Out::null() }
}

export! { Status;
    fn cuModuleLoadData(handle: Out<u64>, image: Out<c_char>) {
        load(handle, &image_bytes(image)?, &no_options())
    }

    fn cuModuleLoadDataEx(handle: Out<u64>, image: Out<c_char>, count: u32, names: Out<u32>,
    values: Out<usize>) {
        load(handle, &image_bytes(image)?, &Options { count, names, values })
    }

    fn cuModuleLoadFatBinary(_handle: Out<u64>, _image: Out<c_char>) {
        Err(Status::NO_BINARY_FOR_GPU)
    }

    fn cuModuleLoad(handle: Out<u64>, path: Text) {
        let bytes = std::fs::read(path.read()?).map_err(|_| Status::NOT_FOUND)?;
        load(handle, &bytes, &no_options())
    }

    fn cuModuleUnload(handle: u64) {
        let image = module(handle)?;
        image.context.finish(None)?;
        driver().functions.retain(|function| !Arc::ptr_eq(&function.image, &image));
        driver().images.remove(handle).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }

    fn cuModuleGetFunction(handle: Out<u64>, image: u64, name: Text) {
        let function = module(image)?.function(name.read()?)?;
        Ok(handle.put(driver().functions.insert(function))?)
    }

    fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, image: u64, name: Text) {
        let (start, length) = module(image)?.variable(name.read()?)?;
        address.put_if_any(start);
        bytes.put_if_any(length as usize);
        Ok(())
    }

    fn cuFuncGetAttribute(value: Out<i32>, attribute: u32, handle: u64) {
        Ok(value.put(function(handle)?.attribute(attribute)?)?)
    }

    fn cuFuncSetAttribute(handle: u64, attribute: u32, value: i32) {
        let function = function(handle)?;
        match attribute {
            8 => function.allow_shared(value)?,
            9 => {}
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    }

    fn cuFuncSetCacheConfig(handle: u64, _config: u32) {
        function(handle).map(|_| ())
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: Out<i32>, handle: u64, threads: i32,
    shared: usize) {
        Ok(blocks.put(function(handle)?.blocks_per_multiprocessor(threads, shared))?)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks: Out<i32>, handle: u64,
    threads: i32, shared: usize, _flags: u32) {
        Ok(blocks.put(function(handle)?.blocks_per_multiprocessor(threads, shared))?)
    }

    fn cuOccupancyMaxPotentialBlockSize(grid: Out<i32>, block: Out<i32>, handle: u64,
    _shared_of: usize, _shared: usize, limit: i32) {
        put_potential(grid, block, handle, limit)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(grid: Out<i32>, block: Out<i32>, handle: u64,
    _shared_of: usize, _shared: usize, limit: i32, _flags: u32) {
        put_potential(grid, block, handle, limit)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, handle: u64, blocks: i32,
    _threads: i32) {
        let taken = function(handle)?.kernel.shared_bytes as usize;
        let blocks = usize::try_from(blocks.max(1)).map_err(|_| Status::INVALID_VALUE)?;
        let each = (100_usize << 10) / blocks;
        Ok(bytes.put(each.saturating_sub(taken))?)
    }
}
