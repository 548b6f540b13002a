//! Tests of binding, with a PTX text that has a variable of every kind.

use super::*;
use tessera_protocol::BlobHash;
use tessera_protocol::compute::{ArgumentValue, Domain, InputArray};
use tessera_protocol::job::AssetFile;

const PTX: &str = "\
.version 7.0
.target sm_75
.address_size 64
.const .align 8 .b8 image[56];
.const .align 4 .f32 gain;
.const .align 8 .f64 scale;
.const .align 4 .u32 count;
.const .align 4 .b8 weights[12];
.visible .entry compute(.param .align 8 .b8 chunk[56])
.maxntid 128, 1, 1
{ ret; }
";

fn spec(arguments: &[(&str, Option<Element>, &[Number])]) -> ComputeSpec {
    let arguments = arguments.iter().map(|(name, element, numbers)| Argument {
        name: (*name).to_owned(),
        value: ArgumentValue { element: *element, numbers: numbers.to_vec() },
    });
    let input = InputArray {
        name: "image".into(),
        hash: BlobHash([1; 32]),
        length: 144,
        element: Element::F32,
        shape: vec![2, 2],
    };
    let file = AssetFile { path: "a.ptx".into(), hash: BlobHash([2; 32]), length: 1 };
    let domain = Domain { width: 2, height: 2, depth: 1 };
    ComputeSpec {
        inputs: vec![input],
        arguments: arguments.collect(),
        ..ComputeSpec::new(Program::Ptx(file), domain)
    }
}

fn problem(spec: &ComputeSpec) -> String {
    bind(PTX, spec).unwrap_err().to_string()
}

#[test]
fn values_get_the_type_of_their_variable() {
    let three = [Number::Real(0.5), Number::Integer(2), Number::Real(-1.0)];
    let all = spec(&[
        ("count", None, &[Number::Integer(-1)]),
        ("gain", None, &[Number::Integer(3)]),
        ("scale", None, &[Number::Real(0.1)]),
        ("weights", Some(Element::F32), &three),
    ]);
    let bound = bind(PTX, &all).unwrap();
    assert_eq!((bound.entry.as_str(), bound.block), ("compute", Block::line(128)));
    let bytes: Vec<&[u8]> = bound.values.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    assert_eq!(bytes[0], [0xff; 4]);
    assert_eq!(bytes[1], 3f32.to_le_bytes());
    assert_eq!(bytes[2], 0.1f64.to_le_bytes());
    assert_eq!(bytes[3], [0.5f32, 2.0, -1.0].map(f32::to_le_bytes).concat());
}

#[test]
fn mismatched_arguments_are_refused_with_the_kernels_variables() {
    let unknown = problem(&spec(&[("gian", None, &[Number::Integer(1)])]));
    assert!(unknown.contains("`gian`") && unknown.contains("gain (f32), scale (f64)"), "{unknown}");
    let missing = problem(&ComputeSpec { inputs: vec![], ..spec(&[]) });
    assert!(missing.contains("--input image=FILE.npy"), "{missing}");
    let whole = problem(&spec(&[("count", None, &[Number::Real(1.5)])]));
    assert!(whole.contains("32-bit integer") && whole.contains("1.5"), "{whole}");
    for (name, element, number) in [
        ("count", None, Number::Integer(1 << 40)),
        ("gain", None, Number::Real(1e300)),
        ("gain", Some(Element::F64), Number::Real(1.0)),
        ("count", Some(Element::F32), Number::Real(1.0)),
        ("weights", None, Number::Real(1.0)),
        ("weights", Some(Element::F32), Number::Real(1.0)),
        ("image", None, Number::Integer(1)),
    ] {
        let mut spec = spec(&[(name, element, &[number])]);
        if name == "image" {
            spec.inputs.clear();
        }
        assert!(bind(PTX, &spec).is_err(), "{name} {number:?}");
    }
    let mut scalar = spec(&[]);
    scalar.inputs[0].name = "gain".into();
    assert!(problem(&scalar).contains("TesseraArray"));
}

#[test]
fn a_kernel_that_stores_another_type_is_refused() {
    let noting = |types: &[&str]| {
        let notes: String =
            types.iter().map(|name| format!("\t// tessera_store {name}\n")).collect();
        PTX.replace("{ ret; }", &format!("{{\n{notes} ret; }}"))
    };
    assert_eq!(stored_elements(PTX).len(), 0);
    assert!(bind(PTX, &spec(&[])).is_ok(), "a kernel that writes by itself has an unknown type");
    assert!(bind(&noting(&["f32"]), &spec(&[])).is_ok());
    assert!(
        bind(&noting(&["u32", "f32"]), &spec(&[])).is_ok(),
        "bits of one type may be stored as another"
    );
    let told = bind(&noting(&["u32", "u32"]), &spec(&[])).unwrap_err().to_string();
    assert!(told.contains("stores u32") && told.contains("--element says f32"), "{told}");
    assert_eq!(
        stored_elements(&noting(&["u64", "i32"])).into_iter().collect::<Vec<_>>(),
        [Element::I32, Element::U64]
    );
}

#[test]
fn a_kernel_of_another_form_is_refused() {
    let entry = |ptx: &str| bind(ptx, &spec(&[])).unwrap_err().to_string();
    assert!(entry(&PTX.replace("entry compute", "entry main")).contains("it has main"));
    assert!(entry(&PTX.replace("chunk[56]", "chunk[40]")).contains("40 bytes"));
    assert!(bind("not PTX", &spec(&[])).is_err());
}

#[test]
fn a_builtin_kernel_takes_its_named_arguments() {
    let mut spec = spec(&[("filter", None, &[Number::Integer(3)])]);
    spec.program = Program::Builtin("resize".into());
    let bound = bind(tessera_kernels::compute::ptx(), &spec).unwrap();
    assert_eq!(bound.values, [("filter".to_owned(), vec![3, 0, 0, 0])]);
    spec.arguments[0].name = "sharpness".into();
    let unknown = bind(tessera_kernels::compute::ptx(), &spec).unwrap_err().to_string();
    assert!(unknown.contains("image, filter"), "{unknown}");
    spec.program = Program::Builtin("nothing".into());
    assert!(bind(tessera_kernels::compute::ptx(), &spec).is_err());
}

#[test]
fn blocks_are_what_job_and_kernel_say() {
    let block = |ptx: &str, block: Option<&str>| {
        let block = block.map(|text| text.parse().unwrap());
        let bound = bind(ptx, &ComputeSpec { block, ..spec(&[]) });
        bound.map(|bound| bound.block.to_string()).map_err(|error| error.to_string())
    };
    let with = |bounds: &str| PTX.replace(".maxntid 128, 1, 1", bounds);
    assert_eq!(block(&with(""), None).unwrap(), "256");
    assert_eq!(block(&with(".maxntid 1024"), None).unwrap(), "1024");
    assert_eq!(block(&with(".reqntid 64"), None).unwrap(), "64");
    assert_eq!(block(&with(""), Some("32x32")).unwrap(), "32x32");
    assert_eq!(block(PTX, Some("8x16")).unwrap(), "8x16");
    let told = block(PTX, Some("16x16")).unwrap_err();
    assert!(told.contains("256 threads, more than the 128"), "{told}");
    let told = block(&with(".reqntid 8, 8"), None).unwrap_err();
    assert!(told.contains("give --block 8x8"), "{told}");
    assert_eq!(block(&with(".reqntid 8, 8"), Some("8x8")).unwrap(), "8x8");
}

#[test]
fn shared_memory_is_asked_for_before_a_launch() {
    let with = |declared: &str| PTX.replace(".visible", &format!("{declared}\n.visible"));
    let dynamic = with(".extern .shared .align 16 .b8 s[];");
    let told = bind(&dynamic, &spec(&[])).unwrap_err().to_string();
    assert!(told.contains("--shared BYTES"), "{told}");
    let given = bind(&dynamic, &ComputeSpec { shared_bytes: 4096, ..spec(&[]) }).unwrap();
    assert_eq!(given.shared_bytes, 4096);
    assert!(bind(&with(".shared .align 4 .b8 s[49152];"), &spec(&[])).is_ok());
    let told = bind(&with(".shared .align 4 .b8 s[65536];"), &spec(&[])).unwrap_err().to_string();
    assert!(told.contains("declares 65536 bytes") && told.contains("49152"), "{told}");
}
