//! Headers of kernels, arguments from a file, and small element types: with NVRTC on this machine
//! and on a node.

use crate::compute::fixture::{Farm, not_run};
use tessera_protocol::compute::{Element, half_of_f64, half_to_f64, npy};

/// Whether there is an NVRTC to compile with.
fn has_nvrtc(test: &str) -> bool {
    let found = tessera_nvrtc::Nvrtc::find();
    if let Err(error) = &found {
        not_run(&format!("{test}: {error}"));
    }
    found.is_ok()
}

/// A kernel that stores one expression of `at.x`, after these lines.
fn kernel(lines: &str, expression: &str) -> String {
    format!(
        "#include \"tessera.cuh\"\n{lines}\n\
            extern \"C\" __global__ void compute(TesseraChunk c) {{\n\
            const TesseraIndex at = tessera_index(c);\nif (!at.valid) return;\n\
            tessera_store(c, at, 0, {expression});\n}}\n"
    )
}

fn write(farm: &Farm, name: &str, text: &str) {
    let path = std::path::PathBuf::from(farm.path(name));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs a kernel over 20 indices, compiled here and then on the node: the same bytes.
fn values(farm: &Farm, name: &str, more: &[&str]) -> (Element, Vec<u8>) {
    let base = ["compute", name, "--domain", "20", "--out", "out.npy"];
    let mut results = Vec::new();
    for place in [&[][..], &["--compile-on-node"]] {
        farm.text(&[&base, more, place].concat());
        results.push(farm.read("out.npy"));
    }
    assert!(results[0] == results[1], "{name}: compiled on the node it gives other values");
    let header = npy::Header::read(&results[0], results[0].len() as u64).unwrap();
    assert_eq!(header.shape, [20]);
    (header.element, results[0][header.data_offset..].to_vec())
}

fn floats(values: impl Fn(f32) -> f32) -> (Element, Vec<u8>) {
    let bytes = (0..20u8).flat_map(|x| values(f32::from(x)).to_le_bytes());
    (Element::F32, bytes.collect())
}

#[test]
fn kernels_include_standard_cuda_and_own_headers() {
    if !has_nvrtc("headers of kernels") {
        return;
    }
    let farm = Farm::start(1);
    write(&farm, "stdint.cu", &kernel("", "(float)(uint32_t)at.x"));
    assert_eq!(values(&farm, "stdint.cu", &[]), floats(|x| x));

    let lines = "#include <cmath>\n#include <limits>\n#include <type_traits>\n#include <cassert>";
    let sum = "std::fma(2.0f, (float)at.x, std::is_same_v<uint8_t, unsigned char> ? 1.0f : 0.0f) \
        + (at.x < std::numeric_limits<int32_t>::max() ? std::fabs(-0.5f) : 0.0f)";
    write(&farm, "standard.cu", &kernel(lines, sum));
    assert_eq!(values(&farm, "standard.cu", &[]), floats(|x| 2.0 * x + 1.5));

    write(
        &farm,
        "half.cu",
        &kernel("#include <cuda_fp16.h>", "__half2float(__float2half(at.x * 0.1f))"),
    );
    let rounded = |x: f32| half_to_f64(half_of_f64(f64::from(x * 0.1))) as f32;
    assert_eq!(values(&farm, "half.cu", &[]), floats(rounded));

    write(
        &farm,
        "own/own.cu",
        &kernel("#include \"mine.h\"\n#include <lib/twice.h>", "mine(at.x)"),
    );
    write(&farm, "own/mine.h", "#include <lib/twice.h>\n#define mine(x) (twice(x) + 1.0f)\n");
    write(&farm, "inc/lib/twice.h", "#pragma once\n#include \"../two.h\"\n");
    write(&farm, "inc/two.h", "static __device__ float twice(int x) { return x * 2.0f; }\n");
    assert_eq!(values(&farm, "own/own.cu", &["--include", "inc"]), floats(|x| 2.0 * x + 1.0));
    farm.assert_in_service();
}

#[test]
fn wrong_includes_are_refused_with_the_users_names() {
    if !has_nvrtc("wrong includes") {
        return;
    }
    let farm = Farm::start(1);
    let size = ["--domain", "4", "--out", "never.npy"];
    let compute = |more: &[&str]| farm.failure(&[&["compute", "k.cu"], &size[..], more].concat());
    for name in ["../../etc/passwd", "/etc/passwd"] {
        write(&farm, "k.cu", &kernel(&format!("#include \"{name}\""), "1.0f"));
        let (status, error) = compute(&[]);
        assert!(status == 2 && error.contains("k.cu(2)") && error.contains(name), "{error}");
    }
    std::fs::File::create(farm.path("huge.h")).unwrap().set_len(100 << 20).unwrap();
    write(&farm, "k.cu", &kernel("#include \"huge.h\"", "1.0f"));
    let (status, error) = compute(&[]);
    assert!(status == 2 && error.contains("huge.h") && error.contains("104857600"), "{error}");

    write(&farm, "k.cu", &kernel("#include \"lib/bad.h\"", "1.0f"));
    let (status, error) = compute(&[]);
    assert!(status == 1 && error.contains("lib/bad.h"), "{status}: {error}");
    write(&farm, "lib/bad.h", "\n#define X\nnonsense here;\n");
    let (status, error) = compute(&[]);
    assert!(status == 1 && error.contains("lib/bad.h(3)"), "{status}: {error}");
    let (status, error) = compute(&["--compile-on-node"]);
    assert!(status == 3 && error.contains("lib/bad.h(3)"), "{status}: {error}");
    farm.wait_until_ready();
    farm.assert_in_service();
}

/// An input of 20 values.
fn array(farm: &Farm, name: &str, element: Element, value: impl Fn(u8) -> Vec<u8>) -> String {
    let mut bytes = npy::header_bytes(element, &[20]);
    bytes.extend((0..20).flat_map(value));
    std::fs::write(farm.path(&format!("{name}.npy")), bytes).unwrap();
    format!("{name}={name}.npy")
}

#[test]
fn small_types_and_arguments_from_a_file_go_through() {
    if !has_nvrtc("small element types") {
        return;
    }
    let farm = Farm::start(1);
    let lines = "#include <cuda_fp16.h>\n\
        extern \"C\" __constant__ TesseraArray pixels, weights, waves, mask, deltas;\n\
        extern \"C\" __constant__ short offsets[2];\n\
        extern \"C\" __constant__ float gain = 1.0f;\n\
        __device__ short value(unsigned int i) {\n\
            if (!tessera_load<bool>(mask, i)) return -1;\n\
            float sum = tessera_load<uint8_t>(pixels, i);\n\
            sum = sum * __half2float(tessera_load<__half>(weights, i));\n\
            sum = sum + tessera_load<float2>(waves, i).y + tessera_load<int16_t>(deltas, i);\n\
            return (short)(int)(sum + gain * offsets[i & 1]);\n\
        }";
    write(&farm, "types.cu", &kernel(lines, "value(at.x)"));
    write(&farm, "a.json", "{\"gain\": 100, \"offsets\": {\"i16\": [[7], [-9]]}}");
    let inputs = [
        array(&farm, "pixels", Element::U8, |x| vec![200 + x]),
        array(&farm, "weights", Element::F16, |x| half_of_f64(f64::from(x)).to_le_bytes().to_vec()),
        array(&farm, "waves", Element::Complex64, |x| {
            [9.0, f32::from(x)].map(f32::to_le_bytes).concat()
        }),
        array(&farm, "mask", Element::Bool, |x| vec![u8::from(x != 5)]),
        array(&farm, "deltas", Element::I16, |x| (-300 * i16::from(x)).to_le_bytes().to_vec()),
    ];
    let mut more = vec!["--args", "a.json", "--arg", "gain=2", "--element", "i16"];
    for input in &inputs {
        more.extend(["--input", input]);
    }
    let expected = (0..20i16).flat_map(|x| {
        let sum = (200 + x) * x + x - 300 * x + 2 * if x & 1 == 1 { -9 } else { 7 };
        (if x == 5 { -1 } else { sum }).to_le_bytes()
    });
    let expected: Vec<u8> = expected.collect();
    assert_eq!(values(&farm, "types.cu", &more), (Element::I16, expected));

    write(&farm, "a.json", "{\"gian\": 100, \"offsets\": {\"i16\": [7, -9]}}");
    let base = ["compute", "types.cu", "--domain", "20", "--out", "never.npy"];
    let (status, error) = farm.failure(&[&base[..], &more].concat());
    assert!(status == 2 && error.contains("no variable `gian`; it has"), "{status}: {error}");
    write(&farm, "a.json", "{\"offsets\": [7, -9]}");
    let (status, error) = farm.failure(&[&base[..], &more].concat());
    assert!(status == 2 && error.contains("{\"f32\": [1, 2, 3]}"), "{status}: {error}");
    farm.assert_in_service();
}

/// What the standard says about its headers, as far as a compiler can check it.
const STATEMENTS: &str = r#"
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
struct Base {};
struct Derived : Base {};
enum class Small : short { one };
template <class T>
using Limits = std::numeric_limits<T>;
static_assert(sizeof(int8_t) == 1 && sizeof(uint16_t) == 2 && sizeof(std::int64_t) == 8);
static_assert(INT64_MIN < 0 && UINT64_MAX == ~0ull && UINT8_MAX == 255 && SIZE_MAX == UINT64_MAX);
static_assert(Limits<int>::min() == INT_MIN && Limits<int>::max() == INT_MAX);
static_assert(Limits<int8_t>::min() == -128 && Limits<uint16_t>::max() == 65535);
static_assert(Limits<uint64_t>::max() == UINT64_MAX && Limits<int64_t>::min() == INT64_MIN);
static_assert(Limits<char>::digits10 == 2 && Limits<short>::digits10 == 4);
static_assert(Limits<int>::digits10 == 9 && Limits<long>::digits10 == 18);
static_assert(Limits<unsigned long>::digits10 == 19 && Limits<bool>::max());
static_assert(Limits<float>::max() == 0x1.fffffep+127f && Limits<float>::min() == 0x1p-126f);
static_assert(Limits<float>::epsilon() == 0x1p-23f && Limits<float>::denorm_min() == 0x1p-149f);
static_assert(Limits<double>::max() == 0x1.fffffffffffffp+1023);
static_assert(Limits<double>::min() == 0x1p-1022 && Limits<double>::epsilon() == 0x1p-52);
static_assert(Limits<float>::infinity() > FLT_MAX && Limits<double>::infinity() > DBL_MAX);
static_assert(Limits<float>::quiet_NaN() != Limits<float>::quiet_NaN());
static_assert(std::is_integral_v<const uint8_t> && !std::is_integral_v<float>);
static_assert(std::is_floating_point_v<double> && std::is_arithmetic_v<bool>);
static_assert(std::is_signed_v<int> && std::is_unsigned_v<bool> && !std::is_signed_v<Base>);
static_assert(std::is_pointer_v<int* const> && std::is_reference_v<int&&>);
static_assert(std::is_function_v<int()> && std::is_array_v<int[2]> && std::is_enum_v<Small>);
static_assert(std::is_base_of_v<Base, Derived> && std::is_convertible_v<Derived*, Base*>);
static_assert(!std::is_convertible_v<Base*, Derived*> && std::is_constructible_v<int, float>);
static_assert(std::is_same_v<std::decay_t<int (&)[3]>, int*>);
static_assert(std::is_same_v<std::decay_t<int(float)>, int (*)(float)>);
static_assert(std::is_same_v<std::remove_cv_t<const volatile int>, int>);
static_assert(std::is_same_v<std::add_pointer_t<int&>, int*>);
static_assert(std::is_same_v<std::add_lvalue_reference_t<void>, void>);
static_assert(std::is_same_v<std::underlying_type_t<Small>, short>);
static_assert(std::is_same_v<std::make_unsigned_t<long>, unsigned long>);
static_assert(std::is_same_v<std::common_type_t<int, float, double>, double>);
static_assert(std::is_same_v<std::conditional_t<false, int, float>, float>);
static_assert(std::conjunction<>::value && !std::disjunction<>::value);
static_assert(std::rank<int[2][3]>::value == 2 && offsetof(dim3, y) == 4);
static_assert(std::min(2, 1) == 1 && std::max(1.0f, 2.0f) == 2.0f && std::clamp(5, 0, 3) == 3);
constexpr float infinite = INFINITY;
constexpr double huge = HUGE_VAL;
template <class T, std::enable_if_t<std::is_integral<T>::value, int> = 0>
__device__ T twice(T a) {
    return 2 * a;
}
extern "C" __global__ void everything(float* o, std::size_t n) {
    assert(n > 0);
    std::swap(o[1], o[2]);
    o[3] = std::fma(o[0], std::sqrt(o[4]), std::pow(o[5], 2.0f)) + std::min(o[6], infinite);
    o[4] = std::abs(-o[0]) + twice(3) + (std::isnan(o[1]) ? M_PI : NAN) + (float)huge;
    std::memcpy(o + 8, o, 16);
    std::printf("%f\n", o[0]);
}
"#;

#[test]
fn the_standard_headers_say_what_the_standard_says() {
    let compiler = match tessera_nvrtc::Nvrtc::find() {
        Ok(compiler) => compiler,
        Err(error) => return not_run(&format!("standard headers: {error}")),
    };
    let compile = |source: &str| tessera_node::compute::compile(&compiler, ("s.cu", source), &[]);
    compile(STATEMENTS).unwrap();
    // A user's header of the same name does not hide the standard's.
    let text = "#pragma once\n#include <math.h>\n#define TWO std::sqrt(4.0f)\n".to_owned();
    let own = [tessera_node::compute::Header { name: "math.h".into(), text }];
    let source = "#include \"math.h\"\nextern \"C\" __global__ void two(float* o) { *o = TWO; }\n";
    tessera_node::compute::compile(&compiler, ("two.cu", source), &own).unwrap();
    // Together with CUDA's own library, in both orders.
    let cuda = "#include <cuda/std/cstdint>\n#include <cuda/std/climits>\n#include <cuda_fp16.h>\n";
    if compile(cuda).is_err() {
        return not_run("headers beside CUDA's library: this NVRTC has none");
    }
    compile(&format!("{cuda}{STATEMENTS}")).unwrap();
    compile(&format!("{STATEMENTS}{cuda}")).unwrap();
}
