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
