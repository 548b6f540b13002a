//! Tells the linker that the shared object stays loaded: its threads outlive a program's `dlclose`.
//! Decides nothing else.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
