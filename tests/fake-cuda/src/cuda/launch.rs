//! Launches.

use super::{module, stream};
use crate::driver::image::Function;
use crate::driver::launch::Launch;
use crate::driver::queue::Operation;
use crate::ffi::{HostBytes, Out, export};
use crate::status::Status;
use std::sync::Arc;

/// Names in the array `extra` of a launch (cuda.h): its end, a buffer with all parameters, the
/// address of the buffer's size.
const EXTRA_END: usize = 0;
const EXTRA_BUFFER: usize = 1;
const EXTRA_BYTES: usize = 2;

/// The bytes of all parameters: each read from where the program keeps it, at the call, as CUDA
/// does.
fn parameters(function: &Function, each: Out<usize>, extra: Out<usize>) -> Result<Vec<u8>, Status> {
    if !extra.is_null() {
        return from_buffer(extra);
    }
    let mut bytes = vec![0; function.kernel.parameter_bytes as usize];
    for (index, parameter) in function.kernel.parameters.iter().enumerate() {
        let (offset, length) = (parameter.offset as usize, parameter.bytes as usize);
        let value = HostBytes { address: each.get_at(index)?, length }.read();
        let place = bytes.get_mut(offset..offset + length).ok_or(Status::INVALID_VALUE)?;
        if value.len() != length {
            return Err(Status::INVALID_VALUE);
        }
        place.copy_from_slice(&value);
    }
    Ok(bytes)
}

fn from_buffer(extra: Out<usize>) -> Result<Vec<u8>, Status> {
    let (mut address, mut length) = (0, 0);
    for pair in 0..4 {
        match extra.get_at(pair * 2)? {
            EXTRA_END => break,
            EXTRA_BUFFER => address = extra.get_at(pair * 2 + 1)?,
            EXTRA_BYTES => {
                let size =
                    HostBytes { address: extra.get_at(pair * 2 + 1)?, length: size_of::<usize>() }
                        .read();
                length = usize::from_le_bytes(size.try_into().map_err(|_| Status::INVALID_VALUE)?);
            }
            _ => return Err(Status::INVALID_VALUE),
        }
    }
    Ok(HostBytes { address, length }.read())
}

export! { Status;
    fn cuLaunchKernel(
        handle: u64,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32,
        on: u64,
        each: Out<usize>,
        extra: Out<usize>,
    ) {
        let (function, stream) = (module::function(handle)?, stream(on)?);
        if !Arc::ptr_eq(&function.context, &stream.context) {
            return Err(Status::INVALID_HANDLE);
        }
        let parameters = parameters(&function, each, extra)?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let launch = Launch { function, grid, block, shared_bytes, parameters };
        launch.check()?;
        stream.context.queue.push(stream.lane, Operation::Launch(Box::new(launch)));
        Ok(())
    }
}
