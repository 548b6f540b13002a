//! A GPU as an ordinary program uses it through cudarc: the queue that Tessera's kernels ask for.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaStream, sys};
use std::ffi::{CString, c_void};
use std::sync::Arc;
use tessera_kernels::cuda::{Kernel, Queue};

/// A context, a stream and a module.
pub struct Gpu {
    /// The device.
    pub context: Arc<CudaContext>,
    /// Where launches are queued.
    pub stream: Arc<CudaStream>,
    module: sys::CUmodule,
}

impl Gpu {
    /// Opens a device and loads PTX.
    pub fn open(ordinal: usize, ptx: &str) -> Result<Gpu, DriverError> {
        let context = CudaContext::new(ordinal)?;
        let stream = context.new_stream()?;
        let text = CString::new(ptx).expect("PTX has no zeros");
        // SAFETY: the text ends with a zero and lives until the module is loaded.
        let module = unsafe { result::module::load_data(text.as_ptr().cast()) }?;
        Ok(Gpu { context, stream, module })
    }

    /// Starts a kernel by name; its parameters are one range of bytes.
    pub fn start(
        &self,
        name: &str,
        grid: u32,
        block: u32,
        params: &[u8],
    ) -> Result<(), DriverError> {
        self.start_on(&self.stream, name, grid, block, params)
    }

    /// The same, on another stream.
    pub fn start_on(
        &self,
        stream: &CudaStream,
        name: &str,
        grid: u32,
        block: u32,
        params: &[u8],
    ) -> Result<(), DriverError> {
        self.context.bind_to_thread()?;
        let name = CString::new(name).expect("a name has no zeros");
        // SAFETY: the module is loaded, and the driver reads the parameters before it returns.
        unsafe {
            let function = result::module::get_function(self.module, name)?;
            let mut each = [params.as_ptr().cast::<c_void>().cast_mut()];
            let stream = stream.cu_stream();
            result::launch_kernel(function, (grid, 1, 1), (block, 1, 1), 0, stream, &mut each)
        }
    }
}

impl Queue for Gpu {
    type Error = DriverError;

    fn allocate(&mut self, bytes: u64) -> Result<u64, DriverError> {
        self.context.bind_to_thread()?;
        // SAFETY: the memory is written before it is read.
        unsafe { result::malloc_sync(bytes as usize) }
    }

    fn release(&mut self, address: u64) {
        // SAFETY: `allocate` gave the address; a device that has failed has nothing to give back.
        let _ = self.context.bind_to_thread().and_then(|()| unsafe { result::free_sync(address) });
    }

    fn upload(&mut self, address: u64, bytes: &[u8]) -> Result<(), DriverError> {
        self.context.bind_to_thread()?;
        // SAFETY: the address is inside an allocation; pageable bytes are staged by the driver.
        unsafe { result::memcpy_htod_async(address, bytes, self.stream.cu_stream()) }
    }

    fn zero(&mut self, address: u64, bytes: u64) -> Result<(), DriverError> {
        self.context.bind_to_thread()?;
        // SAFETY: as above.
        unsafe { result::memset_d8_async(address, 0, bytes as usize, self.stream.cu_stream()) }
    }

    fn launch(
        &mut self,
        kernel: Kernel,
        grid: u32,
        block: u32,
        params: &[u8],
    ) -> Result<(), DriverError> {
        self.start(kernel.name(), grid, block, params)
    }

    fn download(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DriverError> {
        self.context.bind_to_thread()?;
        // SAFETY: as above; the stream is waited for before the bytes are used.
        unsafe { result::memcpy_dtoh_async(bytes, address, self.stream.cu_stream()) }?;
        self.stream.synchronize()
    }
}
