//! Writes the committed PTX images again:
//! `cargo run --release -p tessera-kernels --example make_ptx`. Needs NVRTC of the pinned version
//! (`pip install nvidia-cuda-nvrtc==13.5.37`), found by the loader or named by `TESSERA_NVRTC`.

use std::process::ExitCode;
use tessera_nvrtc::Nvrtc;
use tessera_support::images::{IMAGES, NVRTC_VERSION, is_pinned};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let compiler = Nvrtc::find()?;
    for image in IMAGES {
        let ptx = image.make(&compiler)?;
        if !is_pinned(&ptx) {
            let (major, minor) = compiler.version();
            return Err(format!(
                "NVRTC {major}.{minor} is not {NVRTC_VERSION}, whose output is committed"
            )
            .into());
        }
        let packed = tessera_kernels::pack_ptx(&ptx)?;
        std::fs::write(image.path(), &packed)?;
        eprintln!("{}: {} bytes, packed {}", image.file, ptx.len(), packed.len());
    }
    Ok(())
}
