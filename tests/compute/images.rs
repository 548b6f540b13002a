//! The PTX that is committed beside kernels: made from them, byte for byte, by the pinned NVRTC.
//! `TESSERA_BLESS=1` writes it anew.

use crate::compute::fixture::{example, kernel, not_run};
use std::path::Path;
use tessera_node::compute::{Header, includes};
use tessera_nvrtc::Nvrtc;

const KERNELS: &[&str] = &[
    "mandelbrot",
    "monte_carlo",
    "nbody",
    "blur",
    "heat",
    "matmul",
    "convolve",
    "option",
    "lattice",
    "fluid",
];
const OF_TESTS: &[&str] = &[
    "asserts",
    "counter",
    "counts",
    "dynamic",
    "endless",
    "load",
    "load_any",
    "outputs",
    "outputs_any",
    "outside",
    "places",
    "prints",
    "random",
    "reverse",
    "structure",
    "talks",
    "tiles",
    "turns",
];
/// The version of NVRTC whose output is committed, as PTX names it.
const PINNED: &str = "V13.5.37";

#[test]
fn committed_ptx_is_made_from_its_source() {
    let Ok(compiler) = Nvrtc::find() else {
        return not_run("PTX of the examples against their sources: no NVRTC is found");
    };
    let places =
        KERNELS.iter().map(|name| example(name)).chain(OF_TESTS.iter().map(|name| kernel(name)));
    for place in places {
        let source = std::fs::read_to_string(format!("{place}.cu")).unwrap();
        let name = format!("{}.cu", place.rsplit('/').next().unwrap());
        let headers = headers_of(&place, &source);
        let ptx = tessera_node::compute::compile(&compiler, (&name, &source), &headers);
        let ptx = ptx.unwrap_or_else(|error| panic!("{place}: {error}"));
        let ptx = ptx.ptx;
        if !ptx.contains(PINNED) {
            return not_run(
                "PTX of the examples against their sources: another NVRTC than the pinned one",
            );
        }
        if std::env::var_os("TESSERA_BLESS").is_some() {
            std::fs::write(format!("{place}.ptx"), &ptx).unwrap();
        }
        let committed = std::fs::read_to_string(format!("{place}.ptx")).unwrap_or_default();
        assert!(
            committed == ptx,
            "{place}.ptx is not what its source gives; make it with TESSERA_BLESS=1"
        );
    }
}

/// The headers of its own that a kernel includes: they lie beside it.
fn headers_of(place: &str, source: &str) -> Vec<Header> {
    let folder = Path::new(place).parent().expect("a folder");
    let texts = includes(source).into_iter().filter(|include| include.quoted);
    texts
        .filter_map(|include| {
            let text = std::fs::read_to_string(folder.join(&include.name)).ok()?;
            Some(Header { name: include.name, text })
        })
        .collect()
}
