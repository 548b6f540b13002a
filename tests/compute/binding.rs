//! What a kernel says about its inputs, chunks and variables is kept, or the job is refused before
//! it is sent.

use crate::compute::fixture::kernel;
use crate::compute::local::{compute, values};
use tessera_fake_cuda::{Config, Device, Rack};
use tessera_protocol::compute::{Element, npy};

/// A folder and a fake GPU.
struct Bench {
    folder: tempfile::TempDir,
    rack: Rack,
}

impl Bench {
    fn new() -> Self {
        let rack = Rack::new(&Config::of(1, Device::default())).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), rack }
    }

    fn write(&self, name: &str, element: Element, shape: &[u64], bytes: &[u8]) {
        let file = [&npy::header_bytes(element, shape), bytes].concat();
        std::fs::write(self.folder.path().join(name), file).unwrap();
    }

    /// Runs a kernel's PTX; its exit status and standard error.
    fn run(&self, name: &str, arguments: &str) -> (Option<i32>, String) {
        self.run_file(&kernel(&format!("{name}.ptx")), arguments)
    }

    /// Runs a PTX file.
    fn run_file(&self, ptx: &str, arguments: &str) -> (Option<i32>, String) {
        let words = [ptx].into_iter().chain(arguments.split_whitespace());
        let words: Vec<&str> = words.chain(["--device", "cuda", "--out", "out.npy"]).collect();
        let output = compute(self.folder.path(), Some(&self.rack), &words);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The values of a run that must succeed.
    fn values<const N: usize, T>(
        &self,
        (name, arguments): (&str, &str),
        read: impl Fn([u8; N]) -> T,
    ) -> Vec<T> {
        let (status, told) = self.run(name, arguments);
        assert_eq!(status, Some(0), "{name} {arguments}: {told}");
        values(&self.folder.path().join("out.npy"), read)
    }

    fn refused(&self, name: &str, arguments: &str, expected: &[&str]) {
        let (status, told) = self.run(name, arguments);
        assert_eq!(status, Some(2), "{name} {arguments}: {told}");
        for expected in expected {
            assert!(told.contains(expected), "{name} {arguments}: {expected}: {told}");
        }
    }
}

#[test]
fn an_input_of_another_type_is_refused_with_the_numpy_call() {
    let bench = Bench::new();
    let numbers = [0.5f64, -1.5, 1e-3, 4.0];
    bench.write("f64.npy", Element::F64, &[4], numbers.map(f64::to_le_bytes).as_flattened());
    let narrow = numbers.map(|number| number as f32);
    bench.write("f32.npy", Element::F32, &[4], narrow.map(f32::to_le_bytes).as_flattened());
    bench.write("i32.npy", Element::I32, &[4], &[0; 16]);
    let told = ["the kernel reads `a` as f32", "the input holds f64", "a.astype(np.float32)"];
    bench.refused("load", "--domain 4 --input a=f64.npy", &told);
    bench.refused("load", "--domain 4 --input a=i32.npy", &["holds i32", "np.float32"]);
    let right = ("load", "--domain 4 --input a=f32.npy");
    assert_eq!(bench.values(right, f32::from_le_bytes), narrow);
    // Beyond the array's end.
    let longer = ("load", "--domain 5 --input a=f32.npy");
    assert_eq!(bench.values(longer, f32::from_le_bytes)[4], 0.0);

    // Where the PTX does not show which array is read, the kernel looks.
    let right = ("load_any", "--domain 4 --input a=f32.npy");
    assert_eq!(bench.values(right, f32::from_le_bytes), narrow);
    let (status, told) = bench.run("load_any", "--domain 4 --input a=f64.npy");
    assert!(status == Some(3) && told.contains("as tessera_load does"), "{status:?}: {told}");
}

#[test]
fn a_structure_is_an_argument_whatever_its_size() {
    let bench = Bench::new();
    let own = bench.values(("structure", "--domain 7"), f64::from_le_bytes);
    assert_eq!(own, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let given = ("structure", "--domain 7 --arg factors=f64:7,6,5,4,3,2,1.5");
    assert_eq!(bench.values(given, f64::from_le_bytes), [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.5]);
    bench.write("a.npy", Element::F64, &[7], &[0; 56]);
    bench.refused("structure", "--domain 7 --input factors=a.npy", &["TesseraArray"]);
}

#[test]
fn variables_that_a_kernel_writes_end_with_their_chunk() {
    let bench = Bench::new();
    let counts = |job: &str| bench.values(("counts", job), i32::from_le_bytes);
    let expected = |start: i32| {
        let chunks = (0..3).flat_map(|_| 0..8).chain(0..2);
        chunks.flat_map(|count| [count, 7 + count, start + count]).collect::<Vec<i32>>()
    };
    let job = "--domain 26 --chunk 8 --channels 3";
    assert_eq!(counts(job), expected(1));
    assert_eq!(counts(&format!("{job} --arg from_argument=40")), expected(40));
}

#[test]
fn chunks_hold_what_a_kernels_blocks_need() {
    let bench = Bench::new();
    let (rows, inner, columns) = (48usize, 32usize, 32usize);
    let left: Vec<f32> = (0..rows * inner).map(|at| (at % 7) as f32 - 3.0).collect();
    let right: Vec<f32> = (0..inner * columns).map(|at| (at % 5) as f32 - 2.0).collect();
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let write = |name: &str, shape: [usize; 2], values: &[f32]| {
        let bytes: Vec<u8> = bytes(values);
        bench.write(name, Element::F32, &shape.map(|edge| edge as u64), &bytes);
    };
    write("left.npy", [rows, inner], &left);
    write("right.npy", [inner, columns], &right);
    // Sums of whole numbers are exact in any order.
    let product = |row: usize, column: usize| {
        (0..inner).map(|k| left[row * inner + k] * right[k * columns + column]).sum::<f32>()
    };
    let expected: Vec<f32> =
        (0..rows).flat_map(|row| (0..columns).map(move |column| product(row, column))).collect();
    let job = "--domain 32x48 --input left=left.npy --input right=right.npy";
    for chunk in ["", "--chunk 512", "--chunk 1024", "--chunk-align 1024", "--chunk-align 3"] {
        let job = format!("{job} {chunk}");
        assert_eq!(bench.values(("tiles", &job), f32::from_le_bytes), expected, "{chunk}");
    }
    // The domain need not be a multiple.
    let shorter = bench.values(
        ("tiles", "--domain 32x41 --chunk 512 --input left=left.npy --input right=right.npy"),
        f32::from_le_bytes,
    );
    assert_eq!(shorter, expected[..32 * 41]);
    let refused = |more: &str, told: &[&str]| {
        bench.refused("tiles", &format!("{job} {more}"), told);
    };
    refused("--chunk 1000", &["--chunk:", "1000 is not a multiple of 512", "give 512 or 1024"]);
    refused("--chunk 512 --chunk-align 768", &["multiple of 1536", "give 1536"]);
    refused("--chunk-align 5000000", &["--chunk-align:"]);
    refused("--arg tessera_chunk_rows=1", &["--chunk-align sets more"]);

    // Without its note, the kernel would leave the ends of chunks zero.
    let text = std::fs::read_to_string(kernel("tiles.ptx")).unwrap();
    let lines = text.lines().filter(|line| !line.contains("tessera_chunk_rows"));
    let without: String = lines.flat_map(|line| [line, "\n"]).collect();
    std::fs::write(bench.folder.path().join("without.ptx"), without).unwrap();
    let run = |more: &str| bench.run_file("without.ptx", &format!("{job} {more}"));
    for chunk in ["--chunk 1000", "--chunk 1000 --block 256"] {
        let (status, told) = run(chunk);
        let says = told.contains("nothing says where a chunk may begin")
            && told.contains("times the domain's width, 32,");
        assert!(status == Some(2) && says, "{chunk}: {status:?}: {told}");
    }
    for chunk in ["", "--chunk 1024 --chunk-align 512"] {
        let (status, told) = run(chunk);
        assert_eq!(status, Some(0), "{chunk}: {told}");
        let found = values(&bench.folder.path().join("out.npy"), f32::from_le_bytes);
        assert_eq!(found, expected, "{chunk}");
    }
}
