//! `bench`: measures each device on the standard scenes, and compares with an earlier measurement.

use super::node::with_devices;
use crate::args::bench::BenchArgs;
use crate::bench::{Bench, Measured, VERSION, measure};
use crate::error::{CliError, Status};
use crate::standard::{Frame, Look};
use crate::table::{count, printable, table};
use crate::{json, small_file};
use std::path::Path;
use tessera_node::Config;

/// Bytes of a baseline at most: thousands of results.
const BASELINE_BYTES_MAX: u64 = 16 << 20;

/// `tessera bench`.
pub(crate) async fn run(args: BenchArgs) -> Result<Status, CliError> {
    // Before the work, so that a wrong file costs nothing.
    let baseline = args.baseline.as_deref().map(read).transpose()?;
    let options = args.clone();
    let measured = tokio::task::spawn_blocking(move || work(&options)).await;
    let mut bench = measured.map_err(|error| CliError::new(Status::Failure, error))??;
    if let Some(baseline) = &baseline {
        bench.compare(baseline);
    }
    if let Some(file) = &args.save {
        let text = serde_json::to_string_pretty(&bench).map_err(std::io::Error::from)?;
        std::fs::write(file, text + "\n").map_err(|error| about(file, error))?;
    }
    match args.json {
        true => json::print(&bench)?,
        false => json::line(describe(&bench).trim_end())?,
    }
    let below = args.fail_below.map(|ratio| bench.below(ratio)).unwrap_or_default();
    if below.is_empty() {
        return Ok(Status::Done);
    }
    let scenes: Vec<String> =
        below.iter().map(|result| format!("{} on {}", result.scene, result.slot)).collect();
    Err(CliError::new(
        Status::Failure,
        format!("slower than --fail-below allows: {}", scenes.join(", ")),
    )
    .hint("a scene or device that the baseline lacks counts as slower; --save writes a new one"))
}

/// Measures every device on every scene. Blocks.
fn work(args: &BenchArgs) -> Result<Bench, CliError> {
    let config = with_devices(Config::new("", std::env::temp_dir(), "bench"), &args.devices);
    let opened = tessera_node::device::open(&config).map_err(tessera_node::NodeError::from)?;
    let frames = if args.scenes.is_empty() {
        Frame::library(Look::BENCH)?
    } else {
        args.scenes.iter().map(|scene| Frame::of(scene, Look::BENCH)).collect::<Result<_, _>>()?
    };
    let mut results = Vec::new();
    for device in &opened.devices {
        for frame in &frames {
            let about = |error| {
                CliError::new(Status::Failure, error).context(format!(
                    "{} on {}",
                    frame.name,
                    device.info().slot
                ))
            };
            results.push(measure(&**device, frame, args.rounds as usize, args.spp).map_err(about)?);
        }
    }
    let fingerprint =
        tessera_node::fingerprint().0.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Bench { version: VERSION, build: env!("CARGO_PKG_VERSION").into(), fingerprint, results })
}

fn read(file: &Path) -> Result<Bench, CliError> {
    let text = small_file::read(file, BASELINE_BYTES_MAX).map_err(|error| about(file, error))?;
    let bench: Bench = serde_json::from_str(&text).map_err(|error| about(file, error.into()))?;
    if bench.version != VERSION {
        let found = bench.version;
        return Err(about(
            file,
            std::io::Error::other(format!("it is of form {found}, this build reads {VERSION}")),
        ));
    }
    Ok(bench)
}

fn about(file: &Path, error: std::io::Error) -> CliError {
    CliError::from(error).context(format!("`{}`", file.display()))
}

fn describe(bench: &Bench) -> String {
    let compared = bench.results.iter().any(|result| result.ratio.is_some());
    let mut head = vec!["SCENE", "DEVICE", "SAMPLES/S", "RAYS/S", "SPP", "SPREAD"];
    if compared {
        head.push("RATIO");
    }
    let rows: Vec<_> = bench.results.iter().map(|result| row(result, compared)).collect();
    table(&head, &rows)
}

fn row(result: &Measured, compared: bool) -> Vec<String> {
    let of = |pick: fn(f64, f64) -> f64| result.seconds.iter().copied().reduce(pick).unwrap_or(1.0);
    let spread = of(f64::max) / of(f64::min) - 1.0;
    let mut cells = vec![
        printable(&result.scene),
        format!("{} {}", result.slot, result.device),
        count(result.samples_per_second).trim_end().to_owned(),
        count(result.rays_per_second).trim_end().to_owned(),
        result.spp.to_string(),
        format!("{:.1} %", spread * 100.0),
    ];
    if compared {
        cells.push(result.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}")));
    }
    cells
}
