//! What the program loads before it begins.

use std::io::Read;

/// Where somebody gives flags of C++ in the environment, they count instead of ours.
#[test]
fn the_program_does_not_load_the_library_of_cpp() {
    let ours = std::env::var("CXXFLAGS").map_or(true, |flags| flags.contains("-fno-exceptions"));
    // The names of libraries are near its beginning.
    let file = std::fs::File::open(env!("CARGO_BIN_EXE_tessera")).expect("the program");
    let mut program = Vec::new();
    file.take(4 << 20).read_to_end(&mut program).expect("its beginning");
    let names = |name: &[u8]| program.windows(name.len()).any(|bytes| bytes == name);
    assert!(names(b"libc.so"), "it names the libraries that it loads");
    assert!(!ours || !names(b"libstdc++"), "libstdc++ is loaded at every start");
}
