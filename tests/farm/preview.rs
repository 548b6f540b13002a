//! Pictures of jobs in a terminal, and a video of a film.

use std::path::Path;
use std::process::Command;
use tessera_support::farm::{Farm, library, skipped, tessera};

/// A film of so many frames, finished.
fn film(farm: &Farm, frames: &str, options: &[&str]) -> String {
    let all = ["--size", "64x48", "--spp", "1", "--tile", "64", "--frames", frames];
    let job = farm.submit(&library("cornell-box.gltf"), &[&all[..], options].concat());
    farm.text(&["wait", &job]);
    job
}

/// The status and both outputs of a command.
fn told(farm: &Farm, arguments: &[&str]) -> (i32, String, String) {
    let output = farm.run(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("it ended by itself"), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_finished_frame_is_shown_in_every_form() {
    let farm = Farm::start(1, 1);
    let job = film(&farm, "3-4", &["--format", "exr,jpeg"]);
    let blocks = ["preview", &job, "--as", "blocks", "--columns", "32"];
    let (status, out, error) = told(&farm, &blocks);
    // 32 × 24 pixels, two of them above each other in a character.
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((status, lines.len()), (0, 12), "{error}");
    assert!(lines.iter().all(|line| line.matches('▀').count() == 32), "{out}");
    assert!(error.ends_with("frame 4: finished\n"), "{error}");
    let (_, darker, _) = told(&farm, &[&blocks[..], &["--exposure", "-3"]].concat());
    assert_ne!(darker, out, "three stops are seen");
    let (_, other, error) = told(&farm, &[&blocks[..], &["--frame", "3"]].concat());
    assert!(other.contains('▀') && error.contains("frame 3: finished"), "{error}");
    let (_, out, _) = told(&farm, &["preview", &job, "--as", "sixel"]);
    assert!(out.starts_with("\x1bP0;1;0q\"1;1;64;48#") && out.ends_with("\x1b\\\n"), "{out}");
    let (_, out, _) = told(&farm, &["preview", &job, "--as", "kitty"]);
    assert!(out.starts_with("\x1b_Ga=T,f=100,q=2,c=7,r=3,m="), "{out}");
    // Where nobody can be asked there are characters, as many as a terminal usually has.
    let (_, out, _) = told(&farm, &["preview", &job]);
    assert_eq!(out.lines().next().map(|line| line.matches('▀').count()), Some(59), "{out}");
}

#[test]
fn the_terminal_says_which_form_it_knows() {
    let farm = Farm::start(1, 1);
    let job = film(&farm, "1", &["--format", "png"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/farm/terminal.py");
    for (answer, start) in [
        (r"\x1b_Gi=31;OK\x1b\\\x1b[?62;4c", "\x1b_Ga=T,f=100"),
        (r"\x1b[?62;4;22c", "\x1bP0;1;0q"),
        (r"\x1b[?62;22c", "\x1b[38;"),
    ] {
        let preview = farm.command(&["preview", &job]);
        let mut command = Command::new("python3");
        command.arg(&script).args([answer, tessera()]).args(preview.get_args());
        preview.get_envs().for_each(|(name, value)| match value {
            Some(value) => drop(command.env(name, value)),
            None => drop(command.env_remove(name)),
        });
        let output = command.output().expect("python3");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        let (question, shown) = text.split_once("\x1b[c").expect("the terminal is asked");
        assert!(question.contains("a=q") && shown.starts_with(start), "{answer}: {shown:?}");
        assert!(shown.contains("frame 1: finished"), "{shown:?}");
    }
}

#[test]
fn a_frame_is_shown_while_it_is_rendered() {
    let mut farm = Farm::start(0, 1);
    let options = ["--size", "128x96", "--spp", "4000", "--tile", "64", "--frames", "7"];
    let job = farm.submit(&library("cornell-box.gltf"), &options);
    let nothing = told(&farm, &["preview", &job, "--within", "1"]);
    assert_eq!(nothing.0, 4, "{}", nothing.2);
    assert!(nothing.2.contains("no tile of frame 7") && nothing.2.contains("--within"));
    let line = ["preview", &job, "--within", "120", "--as", "blocks", "--columns", "40"];
    let mut command = farm.command(&line);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let waiting = command.spawn().expect("tessera");
    // It asks for the tiles before a node can have made one.
    farm.add_node("rig", 1);
    let output = waiting.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}\n{}", farm.logs());
    assert!(
        error.contains("frame 7: being rendered; ") && error.contains(" of 4 tiles"),
        "{error}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains('▀'));
}

#[test]
fn what_cannot_be_shown_is_said() {
    let farm = Farm::start(1, 1);
    let job = film(&farm, "1", &[]);
    for (line, status, text) in [
        (&["preview", &job, "--frame", "2"][..], 4, "the job has no frame 2"),
        (&["preview", &job, "--columns", "2"], 2, "4..=1000"),
        (&["preview", &job, "--fps", "12"], 2, "--video"),
        (&["preview", &job, "--video", "film"], 2, "which kind of video"),
        (&["preview", &job, "--exposure", "nan"], 2, "not within -32 and 32"),
    ] {
        let told = told(&farm, line);
        assert!(told.0 == status && told.2.contains(text), "{line:?}: {told:?}");
    }
    let ones = farm.folder().join("ones.npy");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 8), }";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let text = format!("{header:117}\n");
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(1f32.to_le_bytes().repeat(64));
    std::fs::write(&ones, bytes).expect("an array");
    let input = format!("image={}", ones.display());
    let sent = ["compute", "builtin:resize", "--domain", "4x4", "--input", &input];
    let out = farm.text(&[&sent[..], &["--arg", "filter=box", "--detach"]].concat());
    let array = out.trim();
    farm.text(&["wait", array]);
    let told = told(&farm, &["preview", array]);
    assert!(told.0 == 2 && told.2.contains("arrays, not pictures"), "{told:?}");
}

/// Where ffmpeg is not installed, only what is said of that is checked.
#[test]
fn a_film_becomes_a_video() {
    let farm = Farm::start(1, 1);
    let job = film(&farm, "1-6", &["--format", "png"]);
    let video = farm.folder().join("film.mp4");
    let path = video.to_str().expect("UTF-8");
    let line = ["preview", &job, "--video", path, "--fps", "12"];
    let mut without = farm.command(&line);
    let output = without.env("PATH", "").output().expect("tessera");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot run ffmpeg") && error.contains("install it"), "{error}");
    let left = || {
        let entries = std::fs::read_dir(farm.folder()).expect("a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.contains("video") || name.ends_with(".mp4")).collect::<Vec<_>>()
    };
    assert_eq!(left(), Vec::<String>::new(), "nothing is left of it");
    if Command::new("ffprobe").arg("-version").output().is_err() {
        return skipped("no ffmpeg: videos are not made");
    }
    let (status, out, error) = told(&farm, &line);
    assert_eq!((status, out.trim(), left().len()), (0, path, 1), "{error}");
    let probe = Command::new("ffprobe")
        .args(["-v", "error", "-count_frames", "-show_entries"])
        .args(["stream=width,height,nb_read_frames,r_frame_rate,pix_fmt,color_space"])
        .args(["-of", "default=noprint_wrappers=1", path])
        .output()
        .expect("ffprobe");
    let probed = String::from_utf8_lossy(&probe.stdout);
    for field in [
        "width=64",
        "height=48",
        "pix_fmt=yuv420p",
        "r_frame_rate=12/1",
        "nb_read_frames=6",
        "color_space=bt709",
    ] {
        assert!(probed.contains(field), "{field}: {probed}");
    }
    let again = told(&farm, &line);
    assert!(again.0 == 9 && again.2.contains("--overwrite"), "{again:?}");
    let (status, _, error) = told(&farm, &[&line[..], &["--overwrite"]].concat());
    assert_eq!(status, 0, "{error}");
    let wrong = farm.folder().join("film.text");
    let told = told(&farm, &["preview", &job, "--video", wrong.to_str().expect("UTF-8")]);
    assert!(told.0 == 1 && told.2.contains("made no video"), "{told:?}");
}
