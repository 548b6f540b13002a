//! Writes the sample scenes of `scenes/library/`:
//! `cargo run --release -p tessera-scenes --example make_library -- FOLDER`. Owns their contents;
//! `scenes/library/README.md` says what each is for.

mod builder;
mod cornell;
mod drink;
mod lights;
mod materials;
mod spinning;
mod sunflower;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: make_library FOLDER");
        return ExitCode::from(2);
    };
    let scenes = [
        ("cornell-box", cornell::scene()),
        ("material-row", materials::scene()),
        ("many-lights", lights::scene()),
        ("spinning-cube", spinning::scene()),
        ("sunflower", sunflower::scene()),
        ("drink", drink::scene()),
    ];
    for (name, scene) in scenes {
        let file = folder.join(format!("{name}.gltf"));
        if let Err(error) = std::fs::write(&file, scene.into_json()) {
            eprintln!("error: cannot write `{}`: {error}", file.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
