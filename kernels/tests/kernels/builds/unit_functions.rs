//! The list of unit functions: complete in the image, and giving something on the host.

use crate::builds::same_bits::varied;
use tessera_kernels::unit_tests::{ptx, unit_functions};

#[test]
fn every_unit_function_has_its_kernel_and_gives_something() {
    let scene = varied();
    let functions = unit_functions();
    assert!(functions.len() > 50);
    for function in functions {
        assert!(ptx().contains(&format!(".entry {}(", function.kernel())), "{}", function.name);
        let inputs = function.make_inputs(4000, 7);
        assert_eq!(inputs, function.make_inputs(4000, 7));
        let outputs = function.run_on_host(&scene, &inputs);
        let rows: std::collections::BTreeSet<&[u32]> = outputs.chunks(function.outputs).collect();
        assert!(rows.len() > 1, "{} gives only {} different results", function.name, rows.len());
    }
}
