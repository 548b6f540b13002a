//! Machine code of the kernels that is installed on this machine (`tessera-cubins`). Finds and
//! reads it; whether it computes what it should is shown by the known answers.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use tessera_kernels::cuda::KernelSet;

/// Most bytes of a file. Ours have some megabytes.
const BYTES_MAX: u64 = 64 << 20;
/// First bytes of machine code.
const MAGIC: &[u8] = b"\x7fELF";

/// The folder of machine code, and the device that wants some.
#[derive(Debug)]
pub(super) struct Cubins {
    pub(super) folder: PathBuf,
    /// Compute capability of the device: major, minor.
    pub(super) capability: (u32, u32),
}

/// Machine code of a set of kernels.
#[derive(Debug)]
pub(super) struct Cubin {
    /// Compute capability that it was made for.
    pub(super) capability: (u32, u32),
    /// The file, and a zero.
    pub(super) image: Vec<u8>,
}

impl Cubins {
    /// Returns the machine code that suits the device best: made for the same major number, and for
    /// the highest minor one up to the device's. None if there is none; an error says why what is
    /// there cannot be read.
    pub(super) fn find(&self, set: KernelSet) -> Result<Option<Cubin>, String> {
        let (major, device) = self.capability;
        for capability in (0..=device).rev().map(|minor| (major, minor)) {
            let path = self.folder.join(set.cubin_name(capability));
            if let Some(image) = read(&path).map_err(|why| format!("{}: {why}", path.display()))? {
                return Ok(Some(Cubin { capability, image }));
            }
        }
        Ok(None)
    }
}

/// Reads a file; None if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut image = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut image).map_err(|error| error.to_string())?;
    if image.len() as u64 > BYTES_MAX || !image.starts_with(MAGIC) {
        return Err("it is not machine code".to_owned());
    }
    image.push(0);
    Ok(Some(image))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_same_major_number_and_no_newer_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let of = |capability| Cubins { folder: folder.path().to_owned(), capability };
        let put = |set: KernelSet, capability, bytes: &[u8]| {
            std::fs::write(folder.path().join(set.cubin_name(capability)), bytes).unwrap();
        };
        let found = |capability| {
            of(capability).find(KernelSet::Plain).map(|found| found.map(|cubin| cubin.capability))
        };
        assert_eq!(found((8, 6)), Ok(None));
        put(KernelSet::Plain, (8, 0), b"\x7fELF80");
        put(KernelSet::Plain, (8, 9), b"\x7fELF89");
        put(KernelSet::Instances, (8, 6), b"\x7fELF86");
        let wanted = [((8, 6), Some((8, 0))), ((8, 9), Some((8, 9))), ((9, 0), None)];
        wanted.into_iter().for_each(|(device, of)| assert_eq!(found(device), Ok(of)));
        assert_eq!(of((8, 0)).find(KernelSet::Plain).unwrap().unwrap().image, b"\x7fELF80\0");
        put(KernelSet::Plain, (8, 6), b"no code");
        let problem = found((8, 7)).unwrap_err();
        assert!(problem.contains("sm_86") && problem.ends_with("not machine code"), "{problem}");
    }
}
