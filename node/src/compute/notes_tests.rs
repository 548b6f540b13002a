//! Tests of the notes in PTX, in the forms that NVRTC 13.5 gives them.

use super::*;

/// A function with loads of `a` and `b`, and a load through a parameter.
const LOADS: &str = "\
.visible .entry compute(
	.param .align 8 .b8 compute_param_0[48]
)
{
	ld.const.u64 	%rd3, [a];
	// begin inline asm
	// tessera_load f32 %rd3
	// end inline asm
	ld.const.u64 	%rd21, [b];
	ld.const.u64 	%rd22, [c];
	@%p2 mov.u64 	%rd24, %rd21;
	selp.b64 	%rd23, %rd22, %rd24, %p5;
	// tessera_load f64 %rd23
	ld.const.u64 	%rd9, [d+48];
	// tessera_load i32 %rd9
}
.func  (.param .b32 func_retval0) other(
	.param .b64 other_param_0
)
{
	ld.param.u64 	%rd3, [other_param_0];
	// tessera_load u32 %rd3
	ld.const.v2.u64 	{%rd4, %rd5}, [e];
	// tessera_load i64 %rd4
}
";

#[test]
fn loads_are_traced_to_their_arrays() {
    let loads = Accesses::loads(LOADS);
    let of = |names: &[(&str, Element)]| {
        let one = |(name, element): &(&str, Element)| {
            ((*name).to_owned(), [*element].into_iter().collect::<BTreeSet<_>>())
        };
        names.iter().map(one).collect::<BTreeMap<_, _>>()
    };
    use Element::{F32, F64, I32, I64, U32};
    assert_eq!(loads.arrays, of(&[("a", F32), ("b", F64), ("c", F64)]));
    assert_eq!(loads.others, [I32, U32, I64].into_iter().collect());
    assert_eq!(loads.mismatch("a", F64), [F32]);
    assert_eq!(loads.mismatch("a", F32), []);
    assert_eq!(loads.mismatch("a", I32), [], "a load of an unknown array may be the right one");
    assert_eq!(loads.mismatch("z", F64), [], "nothing is known of it");
    assert_eq!(Accesses::loads("// nothing"), Accesses::default());
}

#[test]
fn tracing_ends_for_circles_and_long_chains() {
    let chain = |length: usize| {
        let moves = (0..length).map(|at| format!("mov.u64 %rd{}, %rd{at};\n", at + 1));
        let moves: String = moves.collect();
        format!(".entry k()\nld.const.u64 %rd0, [a];\n{moves}// tessera_load f32 %rd{length}\n")
    };
    assert_eq!(Accesses::loads(&chain(10)).arrays.len(), 1);
    assert_eq!(Accesses::loads(&chain(100)).others.len(), 1);
    let circle = ".entry k()\nmov.b64 %rd1, %rd2;\nmov.b64 %rd2, %rd1;\n// tessera_load f32 %rd1\n";
    assert_eq!(Accesses::loads(circle), Accesses::default());
}

#[test]
fn a_kernel_says_what_its_chunks_must_hold() {
    let multiple = |notes: &str| {
        let text = format!(".version 7.0\n.target sm_75\n.address_size 64\n{notes}");
        let module = Module::parse(&text).unwrap();
        chunk_multiple(&module, &Domain { width: 96, height: 64, depth: 1 })
    };
    let align = ".const .align 4 .u32 tessera_chunk_align = 1000;\n";
    let rows = ".const .align 4 .u32 tessera_chunk_rows = 16;\n";
    assert_eq!(multiple(""), Some(1));
    assert_eq!(multiple(align), Some(1000));
    assert_eq!(multiple(rows), Some(1536));
    assert_eq!(multiple(&format!("{align}{rows}")), Some(192_000));
    assert_eq!(multiple(&align.replace("1000", "0")), None);
    assert_eq!(multiple(&align.replace(" = 1000", "")), None);
    assert_eq!(multiple(&rows.replace("16", "4294967295")), None);
}

#[test]
fn stores_are_traced_to_their_outputs() {
    let text = LOADS.replace("tessera_load", "tessera_output");
    assert_eq!(Accesses::stores(&text).arrays, Accesses::loads(LOADS).arrays);
    assert_eq!(output_elements(&text)["b"], [Element::F64].into_iter().collect());
    assert_eq!(output_elements(LOADS), BTreeMap::new());
    assert_eq!(stored_elements(&text), BTreeSet::new(), "such a store is not into the chunk");
}
