//! Start, version and error names.

use crate::driver::driver;
use crate::ffi::{Out, export};
use crate::status::{Status, described};
use std::ffi::c_char;

export! { Status;
    fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        driver().initialise()
    }

    // Asked by NVRTC, which reads the table's size, first in it, without looking at the status: a
    // table of nothing but that.
    fn cuGetExportTable(table: Out<*const u64>, _id: *const u8) {
        static EMPTY: u64 = 8;
        Ok(table.put(&raw const EMPTY)?)
    }

    fn cuDriverGetVersion(version: Out<i32>) {
        Ok(version.put(driver().config.driver)?)
    }

    fn cuGetErrorName(code: u32, name: Out<*const c_char>) {
        let (text, _) = described(code).ok_or(Status::INVALID_VALUE)?;
        Ok(name.put(text.as_ptr())?)
    }

    fn cuGetErrorString(code: u32, string: Out<*const c_char>) {
        let (_, text) = described(code).ok_or(Status::INVALID_VALUE)?;
        Ok(string.put(text.as_ptr())?)
    }

    fn cuProfilerStart() {
        driver().ready()
    }

    fn cuProfilerStop() {
        driver().ready()
    }
}
