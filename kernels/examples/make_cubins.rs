//! Makes the machine code of the kernels ahead of time, for nodes that are not to wait for their
//! driver's compiler. NVIDIA's assembler makes it of the committed PTX:
//!
//!     cargo run --release -p tessera-kernels --example make_cubins -- PTXAS FOLDER
//!
//! Prints the name and the size of each file. `docs/gpu.md` says which assembler, and who uses the
//! files.
#![expect(clippy::print_stdout, reason = "a tool for the command line")]

use std::error::Error;
use std::path::Path;
use std::process::Command;
use tessera_kernels::cuda::{CUBIN_CAPABILITIES, KernelSet};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(ptxas), Some(folder), None) = (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: make_cubins PTXAS FOLDER".into());
    };
    let (ptxas, folder) = (Path::new(&ptxas), Path::new(&folder));
    std::fs::create_dir_all(folder)?;
    let ends: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let make = |set| scope.spawn(move || made(ptxas, folder, set));
        let begun = KernelSet::ALL.map(make);
        let end = |begun: std::thread::ScopedJoinHandle<'_, _>| {
            begun.join().unwrap_or_else(|_| Err("a thread panicked".into()))
        };
        begun.into_iter().map(end).collect()
    });
    Ok(ends.into_iter().collect::<Result<_, _>>()?)
}

/// Makes all files of a set of kernels.
fn made(ptxas: &Path, folder: &Path, set: KernelSet) -> Result<(), String> {
    let source = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    std::fs::write(source.path(), set.ptx()).map_err(|error| error.to_string())?;
    for (major, minor) in CUBIN_CAPABILITIES {
        let name = set.cubin_name((major, minor));
        let made = folder.join(&name);
        let mut command = Command::new(ptxas);
        command.arg(format!("-arch=sm_{major}{minor}")).arg("-o").arg(&made).arg(source.path());
        let output = command.output().map_err(|error| format!("{}: {error}", ptxas.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{name}: {}: {said}", output.status));
        }
        let length = std::fs::metadata(&made).map_err(|error| format!("{name}: {error}"))?.len();
        println!("{name} {length}");
    }
    Ok(())
}
