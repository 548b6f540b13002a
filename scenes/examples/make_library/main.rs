//! Writes the sample scenes of `scenes/library/`:
//! `cargo run --release -p tessera-scenes --example make_library -- FOLDER`. Their contents are in
//! `tests/support/src/library`.

use std::path::PathBuf;
use std::process::ExitCode;
use tessera_support::library::scenes;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: make_library FOLDER");
        return ExitCode::from(2);
    };
    for (name, scene) in scenes() {
        let file = folder.join(format!("{name}.gltf"));
        if let Err(error) = std::fs::write(&file, scene.into_json()) {
            eprintln!("error: cannot write `{}`: {error}", file.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
