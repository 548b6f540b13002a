//! `support-bundle`: what is in it, and what is not.

use tessera_support::farm::{Farm, library};

#[test]
fn a_bundle_says_what_is_wrong_and_shows_no_secret() {
    let farm = Farm::start(1, 1);
    let folder = farm.folder();
    let job = farm.submit(&library("cornell-box.gltf"), &["--size", "8x8", "--spp", "1"]);
    farm.text(&["wait", &job]);
    let settings = folder.join("settings.toml");
    std::fs::write(&settings, "[submit]\nspp = 4\n").expect("settings");
    let output = folder.join("support.txt");
    let data = farm.data();
    let (output, data) = (output.to_str().expect("a path"), data.to_str().expect("a path"));
    let mut command =
        farm.command(&["support-bundle", "-o", output, "--data", data, "--job", &job]);
    command.env("TESSERA_CONFIG", &settings).env("TESSERA_FARM_KEY", "/a/hidden/place");
    command.env("TESSERA_STORE", "postgres://ada:sesame@db/farm");
    let done = command.output().expect("tessera");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("read it before you send it"), "{said}");
    let text = std::fs::read_to_string(output).expect("the bundle");
    for part in [
        "==> program\nversion ",
        "==> environment\n",
        "TESSERA_FARM_KEY=(hidden)",
        "TESSERA_STORE=postgres://(hidden)@db/farm",
        "spp = 4",
        "==> tessera doctor\n",
        "==> tessera nodes",
        "node-0",
        "==> tessera logs ",
        &format!("==> files of {data}\n"),
        "==> journalctl -u tessera-node.service",
    ] {
        assert!(text.contains(part), "{part} is not there\n{text}");
    }
    assert!(!text.contains("sesame") && !text.contains("/a/hidden/place"));
    // Nothing of a key's content, although the folder's files are listed.
    assert!(text.contains("authority") && !text.contains("PRIVATE KEY"));
    // A file that is there is never replaced.
    let again = farm.run(&["support-bundle", "-o", output, "--no-farm"]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && said.contains("name another file"), "{said}");
    assert_eq!(std::fs::read_to_string(output).expect("the bundle"), text);
}
