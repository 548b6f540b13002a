//! Kernels and arrays that are wrong: each is told clearly, and the node stays in service.

use crate::compute::fixture::{Farm, example, kernel, not_run};

/// A job that works, to show that the node does.
fn works(farm: &Farm) {
    let mandelbrot = example("mandelbrot.ptx");
    let size = ["--domain", "8x8", "--element", "u32", "--arg", "steps=9", "--out", "works.npy"];
    farm.text(&[&["compute", mandelbrot.as_str()][..], &size].concat());
}

#[test]
fn a_kernel_that_fails_fails_its_job_and_nothing_else() {
    let farm = Farm::start_for_endless_kernels();
    let endless = kernel("endless.ptx");
    let size = ["--domain", "64", "--out", "never.npy", "--time-limit", "1"];
    let (status, error) = farm.failure(&[&["compute", endless.as_str()][..], &size].concat());
    assert_eq!(status, 3, "{error}");
    assert!(
        error.contains("kernel `endless.ptx` did not end within 1 s"),
        "{error}\n{}",
        farm.logs()
    );
    works(&farm);

    let outside = kernel("outside.ptx");
    let (status, error) =
        farm.failure(&["compute", &outside, "--domain", "64", "--out", "never.npy"]);
    assert_eq!(status, 3, "{error}");
    let told = error.contains("kernel `outside.ptx` failed at indices 0 to 63")
        && error.contains("outside of its memory");
    assert!(told, "{error}\n{}", farm.logs());
    works(&farm);
    farm.wait_until_ready();
    farm.assert_in_service();
}

#[test]
fn impossible_jobs_are_refused_before_they_are_sent() {
    let farm = Farm::start(0);
    let blur = example("blur.ptx");
    let image = format!("image={}", example("image.npy"));
    let base = ["compute", blur.as_str(), "--domain", "32x24", "--channels", "3", "--out", "o.npy"];
    let refused = |more: &[&str]| farm.failure(&[&base[..], more].concat());

    let (status, error) = refused(&[]);
    assert!(status == 2 && error.contains("--input image=FILE.npy"), "{status}: {error}");
    let (status, error) = refused(&["--input", &image, "--arg", "radios=1"]);
    assert!(
        status == 2 && error.contains("no variable `radios`; it has image"),
        "{status}: {error}"
    );
    let (status, error) = refused(&["--input", &image, "--arg", "radius=1.5"]);
    assert!(status == 2 && error.contains("1.5 is not a whole number"), "{status}: {error}");
    let (status, error) = refused(&["--input", &image, "--arg", "radius=one"]);
    assert!(status == 2 && error.contains("`one` is not a number"), "{status}: {error}");
    let (status, error) = refused(&["--input", "image=absent.npy"]);
    assert!(status == 4 && error.contains("absent.npy"), "{status}: {error}");

    let whole = std::fs::read(example("image.npy")).unwrap();
    let mut huge = whole.clone();
    let at = whole.windows(9).position(|bytes| bytes == b"(24, 32, ").unwrap();
    huge[at..at + 9].copy_from_slice(b"(9999999,");
    let mut fortran = whole.clone();
    let at = whole.windows(5).position(|bytes| bytes == b"False").unwrap();
    fortran[at..at + 5].copy_from_slice(b"True ");
    let wrong = [
        (whole[..whole.len() - 1].to_vec(), "the file has"),
        (whole[..40].to_vec(), "cut short"),
        (b"P6 32 24 255".to_vec(), "not a .npy file"),
        (huge, "needs"),
        (fortran, "Fortran"),
    ];
    for (bytes, expected) in wrong {
        std::fs::write(farm.path("wrong.npy"), bytes).unwrap();
        let (status, error) = refused(&["--input", "image=wrong.npy"]);
        assert!(
            status == 2 && error.contains("wrong.npy") && error.contains(expected),
            "{status}: {error}"
        );
    }
}

#[test]
fn a_compile_error_names_the_users_line_here_and_on_a_node() {
    if std::env::var_os("TESSERA_NVRTC").is_none() && tessera_nvrtc::Nvrtc::find().is_err() {
        return not_run("compile errors: no NVRTC is found");
    }
    let farm = Farm::start(1);
    let broken = kernel("broken.cu");
    let size = ["--domain", "8", "--out", "never.npy"];
    let (status, error) = farm.failure(&[&["compute", broken.as_str()][..], &size].concat());
    assert_eq!(status, 1, "{error}");
    assert!(error.contains("broken.cu(7)") && error.contains("nowhere"), "{error}");
    let on_node = [&["compute", broken.as_str(), "--compile-on-node"][..], &size].concat();
    let (status, error) = farm.failure(&on_node);
    assert_eq!(status, 3, "{error}\n{}", farm.logs());
    assert!(error.contains("broken.cu(7)") && error.contains("nowhere"), "{error}");
    works(&farm);
    let mandelbrot = example("mandelbrot.cu");
    let size = ["--domain", "8x8", "--element", "u32", "--arg", "steps=9", "--out", "compiled.npy"];
    farm.text(&[&["compute", mandelbrot.as_str(), "--compile-on-node"][..], &size].concat());
    assert!(
        farm.read("compiled.npy") == farm.read("works.npy"),
        "another kernel than the one sent as PTX"
    );
    farm.assert_in_service();
}
