//! The `tessera` program; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tessera_cli::main(std::env::args_os().collect())
}
