//! `doctor`: checks whether this machine can be a node, or what a coordinator's store promises.
//! Each check prints a line; a failed one sets the exit status.

use super::node::{data_folder, with_devices};
use crate::args::blobs::BlobArgs;
use crate::args::doctor::DoctorArgs;
use crate::doctor::burn::{Burned, burn, condition};
use crate::doctor::{Finding, Verdict, clock, devices, disk, machine, network, store};
use crate::error::{CliError, Status};
use crate::json;
use crate::standard::{Frame, Look};
use crate::table::count;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tessera_node::Config;
use tessera_node::device::Devices;

/// `tessera doctor`.
pub(crate) async fn run(args: DoctorArgs) -> Result<Status, CliError> {
    let mut report = Report { json: args.json, findings: Vec::new() };
    let data = data_folder(args.data.as_ref())?;
    report.add(clock::look())?;
    if let Some(address) = &args.store {
        return look_at_store(report, address, &args, &data.join("identity")).await;
    }
    for finding in disk::look(&data, args.cache.saturating_mul(1 << 20)) {
        report.add(finding)?;
    }
    look_at_network(&mut report, &args, &data.join("identity")).await?;
    // Workers keep what they compile; where there is no folder yet, none is left behind.
    let scratch = tempfile::tempdir()?;
    let place = if data.is_dir() { &data } else { scratch.path() };
    let config = with_devices(Config::new("", place, "doctor"), &args.devices);
    // Devices open and work in threads of their own, and waiting for them blocks.
    let burn_time = args.burn.map(Duration::from_secs);
    let (report, burned) = tokio::task::spawn_blocking(move || examine(report, &config, burn_time))
        .await
        .map_err(|error| CliError::new(Status::Failure, error))??;
    report.conclude("this machine cannot be a node as it is", burned.as_deref())
}

/// The addresses that are asked about.
async fn look_at_network(
    report: &mut Report,
    args: &DoctorArgs,
    identity: &Path,
) -> Result<(), CliError> {
    for address in &args.listen {
        report.add(network::listen(*address))?;
    }
    if let Some(coordinator) = &args.coordinator {
        for finding in network::coordinator(coordinator, identity).await {
            report.add(finding)?;
        }
    }
    Ok(())
}

/// The state and the files of a coordinator.
async fn look_at_store(
    mut report: Report,
    address: &str,
    args: &DoctorArgs,
    identity: &Path,
) -> Result<Status, CliError> {
    look_at_network(&mut report, args, identity).await?;
    let blobs = BlobArgs { blobs: args.blobs.clone(), credentials: args.credentials.clone() };
    let places = store::Places::of(address, &args.password, &blobs)?;
    // Each asks its service, and waits for the answers.
    let found = tokio::task::spawn_blocking(move || places.look());
    for finding in found.await.map_err(|error| CliError::new(Status::Failure, error))? {
        report.add(finding)?;
    }
    report.conclude("a coordinator cannot rely on this store as it is", None)
}

/// The devices, and what depends on their kind.
fn examine(
    mut report: Report,
    config: &Config,
    burn_time: Option<Duration>,
) -> Result<(Report, Option<Vec<Burned>>), CliError> {
    for finding in devices::driver(config) {
        report.add(finding)?;
    }
    let opened = devices::open(config);
    let any_gpu = |opened: &Devices| opened.devices.iter().any(|device| devices::is_gpu(&**device));
    let gpu = opened.as_ref().is_ok_and(any_gpu);
    for finding in machine::look(gpu) {
        report.add(finding)?;
    }
    report.add(devices::compiler(config, gpu))?;
    let opened = match opened {
        Ok(opened) => opened,
        Err(finding) => {
            report.add(finding)?;
            return Ok((report, None));
        }
    };
    let frames = Frame::library(Look::ANSWER)?;
    for device in &opened.devices {
        report.add(devices::known_answers(&**device, &frames))?;
    }
    let Some(time) = burn_time else { return Ok((report, None)) };
    let burned = burn(&opened.devices, time, &mut |line| eprintln!("{line}"))?;
    for one in &burned {
        report.add(judge(one, time))?;
    }
    Ok((report, Some(burned)))
}

fn judge(burned: &Burned, time: Duration) -> Finding {
    let Burned { device, frames, wrong, samples_per_second, busy, failure, .. } = burned;
    let text = format!(
        "{device}: {frames} frames in {} s, {wrong} wrong, {}samples/s, busy {:.0} %{}",
        time.as_secs(),
        count(*samples_per_second),
        busy * 100.0,
        condition(&burned.telemetry)
    );
    match failure {
        _ if burned.is_well() => Finding::ok("burn", text),
        Some(failure) => Finding::fail(
            "burn",
            format!("{text}; then {failure}"),
            "leave it out, and have it checked",
        ),
        None => Finding::fail(
            "burn",
            text,
            "it computes wrongly under load: leave it out, and have it checked",
        ),
    }
}

/// Findings, which are printed as they are found unless the output is JSON.
struct Report {
    json: bool,
    findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, finding: Finding) -> Result<(), CliError> {
        if !self.json {
            json::line(&finding.for_people())?;
        }
        self.findings.push(finding);
        Ok(())
    }

    /// Prints what is left, and fails if a check did, with what that means.
    fn conclude(self, meaning: &str, burned: Option<&[Burned]>) -> Result<Status, CliError> {
        let worst =
            self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok);
        if self.json {
            json::print(&json!({ "verdict": worst, "findings": self.findings, "burn": burned }))?;
        }
        if worst < Verdict::Fail {
            return Ok(Status::Done);
        }
        let failed =
            self.findings.iter().filter(|finding| finding.verdict == Verdict::Fail).count();
        let what =
            if failed == 1 { "a check fails".to_owned() } else { format!("{failed} checks fail") };
        Err(CliError::new(Status::Failure, format!("{meaning}: {what}")))
    }
}
