//! What is read of a module.

use tessera_ptx::{Module, Space};

pub(crate) const FEATURES: &str = include_str!("data/features.ptx");

#[test]
fn a_module_lists_its_kernels_and_variables() {
    let module = Module::parse(FEATURES).expect("the compiler's own text");
    assert_eq!(module.version(), (9, 5));
    assert_eq!(module.target(), "sm_75");
    let calls = module.kernel("calls").expect("the source has it");
    assert_eq!((calls.parameter_bytes, calls.threads_max), (40, 64));
    assert_eq!(
        (calls.parameters[0].offset, calls.parameters[0].bytes, calls.parameters[0].align),
        (0, 40, 8)
    );
    let exposure = module.variables().iter().find(|variable| variable.name == "exposure").expect("declared");
    assert_eq!((exposure.space, exposure.bytes, exposure.align), (Space::Const, 4, 4));
}
