//! `diff`: compares two pictures.

use crate::args::diff::DiffArgs;
use crate::error::{CliError, Status};
use crate::json;
use crate::picture::{self, DiffOptions};

/// `tessera diff`.
pub(crate) fn run(args: DiffArgs) -> Result<Status, CliError> {
    let options = DiffOptions { pixels_per_degree: args.pixels_per_degree };
    let report = picture::run(&args.a, &args.b, &options).map_err(CliError::of_file)?;
    match args.json {
        true => json::print(&report)?,
        false => json::line(report.to_string().trim_end())?,
    }
    Ok(if report.passes(args.max_relmse) { Status::Done } else { Status::Failure })
}
