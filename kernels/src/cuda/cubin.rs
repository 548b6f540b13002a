//! Machine code of the kernels that is made of the PTX ahead of time: for which devices, and what
//! its files are called.

use super::KernelSet;

/// Compute capabilities, major and minor, for which machine code is made. Each runs on later ones
/// with the same major number too.
pub const CUBIN_CAPABILITIES: [(u32, u32); 8] =
    [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0)];

impl KernelSet {
    /// Returns the name of the file with the set's machine code for a compute capability. It says
    /// of which PTX the code was made, so that another build does not take it.
    pub fn cubin_name(self, (major, minor): (u32, u32)) -> String {
        let set = match self {
            KernelSet::Plain => "plain",
            KernelSet::Instances => "instances",
        };
        let hash = blake3::hash(self.ptx().as_bytes()).to_hex();
        format!("{set}-{}.sm_{major}{minor}.cubin", &hash[..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_set_and_capability_has_a_file_of_its_own() {
        let names = KernelSet::ALL.map(|set| CUBIN_CAPABILITIES.map(|of| set.cubin_name(of)));
        let names: BTreeSet<String> = names.into_iter().flatten().collect();
        assert_eq!(names.len(), 2 * CUBIN_CAPABILITIES.len());
        let last = KernelSet::Instances.cubin_name((12, 0));
        assert!(last.starts_with("instances-") && last.ends_with(".sm_120.cubin"), "{last}");
    }
}
