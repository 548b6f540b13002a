//! Tests of binding, with a PTX text that has a variable of every kind.

use super::*;
use tessera_protocol::BlobHash;
use tessera_protocol::compute::{Argument, ArgumentValue, Domain, InputArray, Number, OutputArray};
use tessera_protocol::job::AssetFile;

const PTX: &str = "\
.version 7.0
.target sm_75
.address_size 64
.const .align 256 .b8 image[256];
.const .align 4 .f32 gain;
.const .align 8 .f64 scale;
.const .align 4 .u32 count;
.const .align 4 .b8 weights[12];
.const .align 8 .b8 structure[56];
.const .align 8 .b8 larger[256];
.global .align 4 .u32 counter;
.global .align 4 .u32 seven = 7;
.global .align 4 .f32 written;
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
        from: None,
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
fn small_and_complex_types_have_their_bytes() {
    let bytes = |element, numbers: &[Number]| {
        let ptx = ".version 7.0\n.target sm_75\n.address_size 64\n.const .align 8 .b8 a[8];\n\
            .visible .entry compute(.param .align 8 .b8 chunk[56])\n{ ret; }\n";
        let mut spec = spec(&[("a", Some(element), numbers)]);
        spec.inputs.clear();
        bind(ptx, &spec).map(|bound| bound.values[0].1.clone()).map_err(|error| error.to_string())
    };
    let whole = |numbers: &[i64]| numbers.iter().map(|n| Number::Integer(*n)).collect::<Vec<_>>();
    let reals = [1.0, -2.0, 0.1, 65504.0].map(Number::Real);
    let halves = [0x3c00u16, 0xc000, 0x2e66, 0x7bff].map(u16::to_le_bytes).concat();
    assert_eq!(bytes(Element::F16, &reals), Ok(halves));
    let eight = whole(&[-128, 127, 0, -1, 1, 2, 3, 4]);
    assert_eq!(bytes(Element::I8, &eight), Ok(vec![128, 127, 0, 255, 1, 2, 3, 4]));
    assert_eq!(
        bytes(Element::U16, &whole(&[65535, 0, 1, 2])),
        Ok(vec![255, 255, 0, 0, 1, 0, 2, 0])
    );
    assert_eq!(
        bytes(Element::Bool, &whole(&[1, 0, 1, 0, 0, 0, 0, 1])),
        Ok(vec![1, 0, 1, 0, 0, 0, 0, 1])
    );
    let complex = [1.5f32, -2.0].map(f32::to_le_bytes).concat();
    assert_eq!(bytes(Element::Complex64, &[Number::Real(1.5), Number::Integer(-2)]), Ok(complex));
    for (element, wrong) in [
        (Element::F16, vec![Number::Real(65520.0); 4]),
        (Element::U8, whole(&[256; 8])),
        (Element::I16, whole(&[-32769; 4])),
        (Element::Bool, whole(&[2; 8])),
        (Element::Complex64, whole(&[1])),
        (Element::Complex128, whole(&[1, 2])),
    ] {
        assert!(bytes(element, &wrong).is_err(), "{element}");
    }
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
fn an_input_that_the_kernel_loads_as_another_type_is_refused() {
    let loading = |types: &[&str]| {
        let notes = types.iter().map(|name| format!("\t// tessera_load {name} %rd1\n"));
        let notes: String = notes.collect();
        PTX.replace("{ ret; }", &format!("{{\n\tld.const.u64 %rd1, [image];\n{notes}\tret;\n}}"))
            .replace("{\n", "{\n.reg .b64 %rd<2>;\n")
    };
    assert!(bind(&loading(&["f32"]), &spec(&[])).is_ok());
    assert!(bind(&loading(&["f64", "f32"]), &spec(&[])).is_ok(), "it may choose by the element");
    let told = bind(&loading(&["f64", "i32"]), &spec(&[])).unwrap_err().to_string();
    assert!(told.contains("reads `image` as f64, i32, and the input holds f32"), "{told}");
    assert!(told.contains("image.astype(np.float64)"), "{told}");
}

#[test]
fn only_the_size_and_alignment_of_an_array_take_an_input() {
    let bytes: Vec<Number> = (0..7).map(Number::Integer).collect();
    let all = spec(&[("structure", Some(Element::F64), &bytes)]);
    assert_eq!(bind(PTX, &all).unwrap().values[0].1.len(), 56);
    for name in ["structure", "larger"] {
        let mut spec = spec(&[]);
        spec.inputs[0].name = name.into();
        assert!(problem(&spec).contains("TesseraArray"), "{name}");
    }
}

#[test]
fn variables_in_global_memory_are_restored() {
    let bound = bind(PTX, &spec(&[("written", None, &[Number::Integer(3)])])).unwrap();
    let restored: Vec<(&str, bool)> =
        bound.writable.iter().map(|variable| (&*variable.name, variable.is_zero)).collect();
    assert_eq!(restored, [("counter", true), ("seven", false), ("written", false)]);
    assert!(bind(PTX, &spec(&[])).unwrap().writable[2].is_zero);
}

#[test]
fn a_kernel_gets_the_multiple_that_its_chunks_need() {
    let note = ".const .align 4 .u32 tessera_chunk_align = 64;\n";
    let ptx = PTX.replace(".visible", &format!("{note}.visible"));
    let bind = |chunk_align, arguments: &[_]| {
        let result = bind(&ptx, &ComputeSpec { chunk_align, ..spec(arguments) });
        result.map_err(|error| error.to_string())
    };
    assert!(bind(64, &[]).is_ok() && bind(192, &[]).is_ok());
    assert!(bind(1, &[]).unwrap_err().contains("give --chunk-align 64"));
    let set = bind(64, &[("tessera_chunk_align", None, &[Number::Integer(1)])]).unwrap_err();
    assert!(set.contains("--chunk-align sets more"), "{set}");
    let unknown = bind(64, &[("x", None, &[Number::Integer(1)])]).unwrap_err();
    assert!(!unknown.contains("tessera_chunk_align"), "{unknown}");
    let zero = ptx.replace(" = 64", "");
    assert!(super::bind(&zero, &spec(&[])).unwrap_err().to_string().contains("is 0 or more"));
}

#[test]
fn threads_that_work_together_need_a_word_about_chunks() {
    let waiting = PTX.replace("{ ret; }", "{\n\tbar.sync \t0;\n\tret;\n}");
    let chunked = |chunk, width| ComputeSpec {
        chunk,
        domain: Domain { width, height: 64, depth: 1 },
        ..spec(&[])
    };
    let result = |ptx: &str, spec: &ComputeSpec| {
        bind(ptx, spec).map(|_| ()).map_err(|error| error.to_string())
    };
    let told = result(&waiting, &chunked(1000, 96)).unwrap_err();
    for part in [
        "(`bar.sync`)",
        "7 chunks begin every 1000 indices",
        "--chunk-align N",
        "TESSERA_CHUNK_ALIGN(N);",
        "N is 128 where each block",
        "times the domain's width, 96, where",
        "1 where a chunk may begin anywhere",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // 128,000 indices are two chunks of those that are chosen; a thousand are one.
    let told = result(&waiting, &chunked(0, 2000)).unwrap_err();
    assert!(told.contains("2 chunks begin every 65536"), "{told}");
    assert_eq!(result(&waiting, &chunked(0, 16)), Ok(()));
    assert_eq!(result(&waiting, &chunked(6144, 96)), Ok(()), "one chunk");
    assert_eq!(result(PTX, &chunked(1000, 96)), Ok(()), "each thread works alone");

    // Whatever says it, also that any chunk is right.
    for chunk_align in [1, 8] {
        assert_eq!(result(&waiting, &ComputeSpec { chunk_align, ..chunked(1000, 96) }), Ok(()));
    }
    let block = |text: &str| ComputeSpec { block: text.parse().ok(), ..chunked(768, 96) };
    assert_eq!(result(&waiting, &block("16x8")), Ok(()));
    assert!(result(&waiting, &block("128")).is_err(), "a line of threads says nothing of chunks");
    let note = ".const .align 4 .u32 tessera_chunk_align = 1;\n";
    let noting = waiting.replace(".visible", &format!("{note}.visible"));
    assert_eq!(result(&noting, &chunked(1000, 96)), Ok(()));
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

/// A kernel with two outputs, of which it stores into `flux`, and a structure of their size.
const OUTPUTS: &str = "\
.version 7.0
.target sm_75
.address_size 64
.const .align 128 .b8 flux[384];
.const .align 128 .b8 id[384];
.const .align 8 .b8 structure[384];
.visible .entry compute(.param .align 8 .b8 chunk[56])
{
.reg .b64 %rd<3>;
ld.const.u64 %rd1, [flux];
// tessera_output f64 %rd1
ret;
}
";

#[test]
fn outputs_are_those_of_the_kernel() {
    let job = |outputs: &[(&str, Element)]| {
        let output = |(name, element): &(&str, Element)| OutputArray {
            name: (*name).to_owned(),
            channels: 1,
            element: *element,
            reduction: None,
            keys: 0,
        };
        let outputs = outputs.iter().map(output).collect();
        ComputeSpec { outputs, inputs: vec![], ..spec(&[]) }
    };
    let told =
        |ptx: &str, outputs: &[(&str, Element)]| bind(ptx, &job(outputs)).unwrap_err().to_string();
    use Element::{F32, F64, U8};
    assert!(bind(OUTPUTS, &job(&[("flux", F64), ("id", U8)])).is_ok());
    assert_eq!(output_names(OUTPUTS).unwrap(), ["flux", "id"]);
    let missing = told(OUTPUTS, &[("id", U8)]);
    assert!(missing.contains("give --output flux=f64; it has flux (an output), id"), "{missing}");
    assert!(told(OUTPUTS, &[("flux", F64)]).contains("give --output id=TYPE"));
    assert!(told(OUTPUTS, &[("flx", F64)]).contains("it has flux (an output), id (an output)"));
    let mistyped = told(OUTPUTS, &[("flux", F32), ("id", U8)]);
    assert!(mistyped.contains("stores f64 into the output `flux`, and --output says f32"));
    let other = told(OUTPUTS, &[("structure", F32)]);
    assert!(other.contains("an output goes into a `__constant__ TesseraOutput`"), "{other}");
    let both = OUTPUTS.replace("ret;", "// tessera_store f32\nret;");
    let both = told(&both, &[("flux", F64), ("id", U8)]);
    assert!(both.contains("named outputs (flux, id), and a tessera_store(chunk, ...)"), "{both}");
    // One in global memory keeps what it is set to.
    let global = OUTPUTS.replace(".const .align 128 .b8 id", ".global .align 128 .b8 id");
    let bound = bind(&global, &job(&[("flux", F64), ("id", U8)])).unwrap();
    assert_eq!(bound.writable, [Writable { name: "id".into(), is_zero: false }]);
    let input = ComputeSpec { inputs: spec(&[]).inputs, ..job(&[("flux", F64), ("id", U8)]) };
    let input = bind(&OUTPUTS.replace("structure", "image"), &input).unwrap_err().to_string();
    assert!(input.contains("an input goes into a `__constant__ TesseraArray`"), "{input}");
}
