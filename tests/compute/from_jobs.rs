//! Frames of a job as the input of another: the same bits as with files that somebody fetched.

use std::path::{Path, PathBuf};
use tessera_cli::picture;
use tessera_support::farm::{Farm, library};

/// Writes the colours of a picture as an array.
fn as_array(exr: &Path, npy: &Path) {
    let picture = picture::read(exr).expect("a picture");
    let shape = format!("({}, {}, 3)", picture.height, picture.width);
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let text = format!("{header:117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(picture.pixels.iter().flatten().flat_map(|value| value.to_le_bytes()));
    std::fs::write(npy, bytes).expect("an array");
}

/// The arrays of a job's frames.
fn arrays(farm: &Farm, job: &str) -> Vec<Vec<u8>> {
    farm.text(&["wait", job]);
    let folder = farm.folder().join(format!("arrays-{job}"));
    farm.text(&["fetch", job, "-o", folder.to_str().expect("a path")]);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "npy"))
        .collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).expect("an array")).collect()
}

fn resize<'a>(input: &'a str, frames: &'a str, domain: &'a str) -> Vec<&'a str> {
    let all = ["compute", "builtin:resize", "--domain", domain, "--channels", "3", "--detach"];
    all.into_iter().chain(["--input", input, "--frames", frames, "--out", "r.####.npy"]).collect()
}

// promise: P4
#[test]
fn frames_of_a_job_are_the_arrays_that_somebody_would_fetch() {
    let mut farm = Farm::start(0, 1);
    let film = farm.submit(
        &library("cornell-box.gltf"),
        &["--size", "40x32", "--spp", "4", "--frames", "1-3", "--denoise", "--name", "film"],
    );
    // All are there before anything is rendered; a job reads the film by its name, another that
    // one's results, and a third a single frame of it.
    let small = farm.text(&resize("image=job:film", "2-3", "20x16"));
    let tiny = farm.text(&resize(&format!("image=job:{small}"), "2-3", "5x4"));
    assert!(farm.text(&["job", &small]).contains("until it succeeds"));
    farm.start_with(2, 1);
    let (small, tiny) = (arrays(&farm, &small), arrays(&farm, &tiny));
    assert_eq!((small.len(), tiny.len()), (2, 2));
    assert!(small[0] != small[1], "both frames are the same");

    let folder = farm.folder().join("by-hand");
    farm.text(&["fetch", &film, "-o", folder.to_str().expect("a path")]);
    for frame in 2..=3 {
        let exr = folder.join(format!("film.{frame:04}.exr"));
        as_array(&exr, &folder.join(format!("in.{frame:04}.npy")));
    }
    let input = format!("image={}", folder.join("in.####.npy").display());
    let by_hand = farm.text(&resize(&input, "2-3", "20x16"));
    assert!(arrays(&farm, &by_hand) == small, "frames of the farm and of a client differ");
}

#[test]
fn a_template_computes_from_what_it_has_rendered() {
    let farm = Farm::start(1, 1);
    let scene = library("cornell-box.gltf");
    let text = format!(
        "tessera = 1\nname = 'chain'\n[[steps]]\nname = 'film'\nrender = '{}'\nsize = '32x24'\n\
         spp = 2\nframes = '1-2'\ntransparent = true\nenv = 'none'\n[[steps]]\nname = 'small'\n\
         compute = 'builtin:resize'\ndomain = '8x6'\nchannels = 4\nafter = ['film']\n\
         frames = '1-2'\ninput = ['image=job:film']\n",
        scene.display()
    );
    let path = farm.folder().join("chain.toml");
    std::fs::write(&path, &text).expect("a template");
    let path = path.to_str().expect("a path");
    let told = farm.text(&["submit", path, "--wait"]);
    let small = told.lines().nth(1).expect("two jobs");
    assert_eq!(arrays(&farm, small).len(), 2);
    let output = farm.run(&["submit", path, "--export", "openjd"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("reads frames of another job"), "{said}");
    for (from, to, told) in [
        ("after = ['film']\n", "", "does not wait for `film`"),
        ("'film']\nframes", "'film:frames']\nframes", "does not wait for `film`"),
        ("job:film'", "job:film/flux'", "has no output `flux`: it renders pictures"),
        ("channels = 4", "channels = 3", "step `small`"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(path, text.replace(from, to)).expect("a template");
        let output = farm.run(&["submit", path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(told), "{to}\n{said}");
    }
}

#[test]
fn inputs_that_no_job_gives_are_refused_by_their_names() {
    let farm = Farm::start(0, 1);
    let scene = library("cornell-box.gltf");
    farm.submit(&scene, &["--size", "8x8", "--spp", "1", "--format", "png", "--name", "png"]);
    farm.submit(&scene, &["--size", "8x8", "--spp", "1", "--frames", "1-2", "--name", "film"]);
    for (input, extra, told) in [
        ("image=job:nothing", &[][..], "there is no job `nothing`"),
        ("image=job:png", &[], "has no EXR files"),
        ("image=job:film/x", &[], "has no output `x`"),
        ("image=job:film", &["--after", "film:frames"], "all of it is waited for"),
        ("image=job:film", &["--frames", "1-3"], "has no frame 3; its frames are 1-2"),
        ("image=job:film", &["--local"], "needs the farm that has the job"),
    ] {
        let domain = ["compute", "builtin:resize", "--domain", "4x4", "--channels", "3"];
        let mut arguments = domain.to_vec();
        arguments.extend(["--input", input, "--out", "r.####.npy"]);
        arguments.extend(extra);
        if !extra.contains(&"--local") {
            arguments.push("--detach");
        }
        let output = farm.run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(told), "{input} {extra:?}\n{said}");
    }
}
