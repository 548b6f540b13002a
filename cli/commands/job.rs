//! `job`: shows one job with its frames and failures.

use super::{job_set, logs};
use crate::args::job::{JobArgs, JobCommand};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::submission::after::words;
use crate::table::{bytes, count, counted, printable, span};
use crate::{job_id, json, kernel_text};
use serde_json::Value;
use std::fmt::Write as _;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::compute::OutputArray;
use tessera_protocol::cost::{Amount, Stored, device_time, money, space_time};
use tessera_protocol::job::options::{self, away_from_default};
use tessera_protocol::status::{CopyCount, FrameState, FrameStatus, JobDetail, RoundStatus};
use tessera_protocol::utc::utc;
use tessera_protocol::{JobId, JobKind, JobSpec, RenderSpec};
use tessera_transport::FarmClient;

/// `tessera job`.
pub(crate) async fn run(args: JobArgs) -> Result<Status, CliError> {
    if let Some(JobCommand::Set(args)) = args.command {
        return job_set::run(args).await;
    }
    let farm = Farm::of(&args.farm)?;
    let client = farm.connect().await?;
    let job = job_id::find_on(&client, args.job.as_deref().unwrap_or_default()).await?;
    let Response::Job(detail) = client.request(&Request::Job(job)).await? else {
        return Err(unexpected());
    };
    let frames = if args.frames { Some(frames(&client, job).await?) } else { None };
    client.close().await;
    let text = match detail.spec.kind.compute() {
        Some(_) => kernel_text::of(&farm, job).await,
        None => String::new(),
    };
    if args.json {
        let mut value = json::value(&detail)?;
        write_wait(&mut value, &detail);
        if let Some(frames) = &frames {
            value["frames"] = json::value(frames)?;
        }
        if !text.is_empty() {
            value["kernel_text"] = text.into();
        }
        json::print_value(&value)?;
    } else {
        let mut words = describe(&detail, frames.as_deref().unwrap_or_default());
        for line in kernel_text::lines(&text) {
            // Writing to a string does not fail.
            let _ = writeln!(words, "{:<12}{line}", "printed");
        }
        if !detail.failures.is_empty() {
            for line in logs::last_of(&farm, job).await {
                let _ = writeln!(words, "{:<12}{}", "said", logs::words(&line));
            }
        }
        json::line(words.trim_end())?;
    }
    Ok(Status::Done)
}

/// All frames of a job, page by page.
pub(crate) async fn frames(client: &FarmClient, job: JobId) -> Result<Vec<FrameStatus>, CliError> {
    let mut all = Vec::new();
    loop {
        let from = u32::try_from(all.len()).map_err(|_| unexpected())?;
        let Response::Frames(page) = client.request(&Request::Frames { job, from }).await? else {
            return Err(unexpected());
        };
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

fn describe(detail: &JobDetail, frames: &[FrameStatus]) -> String {
    let JobDetail { summary, spec, fingerprint, failures, copies, devices_waited_millis, .. } =
        detail;
    let mut text = String::new();
    let mut field = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<12}{}", printable(&value));
    };
    field("job", summary.job.to_string());
    field("name", spec.name.clone());
    field("state", summary.state.name().to_owned());
    if !summary.note.is_empty() {
        field("note", summary.note.clone());
    }
    field("owner", super::jobs::owner(summary));
    field("priority", summary.priority.to_string());
    let notify = Some(spec.notify.join(", ")).filter(|names| !names.is_empty());
    for (name, value) in [("batch", &spec.batch), ("pool", &spec.pool), ("notify", &notify)] {
        value.iter().for_each(|value| field(name, value.clone()));
    }
    let subject = subject(&spec.kind, metered(detail));
    for (name, value) in bounds(spec).chain(waits(detail)).chain(subject) {
        field(name, value);
    }
    let frames_wanted = spec.kind.frames();
    field("frames", format!("{frames_wanted}: {} of {} done", summary.frames_done, summary.frames));
    let leased = summary.units_leased;
    field(
        "units",
        format!("{} of {} committed, {leased} leased", summary.units_committed, summary.units),
    );
    if let Some(secs) = summary.left_secs {
        field("left", format!("about {}", span(secs)));
    }
    field("samples", samples_words(detail));
    if summary.device_millis > 0 {
        field("time", time_words(detail));
    }
    if detail.stored != Stored::default() {
        field("storage", storage_words(detail));
    }
    if *copies != CopyCount::default() {
        field("copies", copy_words(copies));
    }
    // Of a film it is worth saying that none waited: its next frame was always ready.
    let is_film = summary.frames > 1 && summary.units_committed > 0;
    if is_film || *devices_waited_millis > 0 {
        field("devices", waited_words(*devices_waited_millis));
    }
    if let Some(fingerprint) = fingerprint {
        field("fingerprint", fingerprint.to_string());
    }
    for frame in frames {
        let samples =
            frame.samples.map(|samples| format!("; as --spp {samples}")).unwrap_or_default();
        field(&frame.frame.to_string(), frame_words(&frame.state) + &samples);
    }
    for failure in failures {
        field("failure", format!("{} on {}: {}", failure.unit, failure.node, failure.reason));
    }
    text
}

/// Returns the fields of how often, how long, where at most and from when on a job is worked on.
fn bounds(spec: &JobSpec) -> impl Iterator<Item = (&'static str, String)> {
    let attempts = spec.retry.attempts.map(|attempts| format!("{attempts} of a unit"));
    let give_up = spec.retry.give_up_secs.map(|secs| format!("after {}", span(secs.into())));
    let nodes = spec.max_nodes.map(|nodes| format!("at most {nodes} at a time"));
    let fields = [
        ("attempts", attempts),
        ("give up", give_up),
        ("nodes", nodes),
        ("not before", spec.not_before.map(utc)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// Counts the samples that are committed, and those kept from nodes that left.
fn samples_words(detail: &JobDetail) -> String {
    let samples = count(detail.summary.samples_committed as f64);
    let kept = match detail.summary.samples_kept {
        0 => String::new(),
        kept => format!(", {} of them kept from nodes that left", count(kept as f64).trim_end()),
    };
    format!("{}{kept}", samples.trim_end())
}

/// Says what device time was spent, of which devices, what it costs, and what is left to spend.
fn time_words(detail: &JobDetail) -> String {
    let JobDetail { summary, spent, left_millis, currency, .. } = detail;
    let lost: u64 = spent.iter().map(|spent| spent.lost_millis).sum();
    let devices: Vec<&str> = spent.iter().map(|spent| spent.device.as_str()).collect();
    let mut text = format!("{} of {}", device_time(summary.device_millis), devices.join(", "));
    if lost > 0 {
        text += &format!(", {} of it lost", device_time(lost));
    }
    let time: u64 = spent.iter().map(|spent| spent.cost.0).sum();
    if let Some(cost) = money(Amount(time), currency) {
        text += &format!(": {cost}");
    }
    match left_millis {
        Some(left @ 1..) => text + &format!("; about {} to go", device_time(*left)),
        _ => text,
    }
}

/// Says what space the finished frames took for how long, and what it costs.
fn storage_words(detail: &JobDetail) -> String {
    let space = space_time(detail.stored.byte_hours);
    match money(detail.stored.cost, &detail.currency) {
        Some(cost) => format!("{space}: {cost}"),
        None => space,
    }
}

/// Returns the exposure that was metered for a job, with the frame that it was metered in. None if
/// it is not metered, or not yet.
pub(crate) fn metered(detail: &JobDetail) -> Option<String> {
    let render = detail.spec.kind.render()?;
    // No other frame is finished before it.
    let frame = render.metered_frame().filter(|_| detail.summary.frames_done > 0)?;
    Some(format!("{} stops, metered in frame {}", render.exposure, frame.0))
}

/// Returns the fields that name the jobs that this one waits for, and those that wait for it.
fn waits(detail: &JobDetail) -> Vec<(&'static str, String)> {
    let named = detail.awaited_by.len() as u64;
    let more = (detail.awaited_count > named)
        .then(|| ("before", format!("{} more", detail.awaited_count - named)));
    let after = detail.after.iter().map(|after| ("after", words(after)));
    let before = detail.awaited_by.iter().map(|before| ("before", words(before)));
    after.chain(before).chain(more).collect()
}

/// Returns the fields that describe what a job makes, and from which files.
fn subject(kind: &JobKind, exposure: Option<String>) -> Vec<(&'static str, String)> {
    let files = kind.files();
    let total = bytes(files.iter().map(|(_, _, length)| length).sum());
    let files = counted(files.len() as u64, "file");
    match kind {
        JobKind::Render(render) => {
            let RenderSpec { width, height, spp, depth, .. } = render;
            let samples = match render.time_secs {
                Some(secs) => format!("at most {spp} spp in {} a frame", span(secs.into())),
                None => format!("{spp} spp"),
            };
            let chosen = options::words(&away_from_default(render));
            let mut fields = vec![
                ("scene", format!("{}, {files}, {total}", render.scene)),
                ("picture", format!("{width}x{height}, {samples}, depth {depth}")),
            ];
            fields.extend(chosen.map(|words| ("options", words)));
            fields.extend(exposure.map(|stops| ("exposure", stops)));
            fields
        }
        JobKind::Compute(compute) => {
            let outputs = compute.written();
            let outputs = outputs.iter().map(output_words).collect::<Vec<_>>().join(", ");
            let kernel = format!("{}, {files}, {total}", compute.program.name());
            let mut fields = vec![("kernel", kernel)];
            match compute.outputs.is_empty() {
                true => fields.push(("domain", format!("{}, {outputs}", compute.domain))),
                false => {
                    fields.push(("domain", compute.domain.to_string()));
                    fields.push(("outputs", outputs));
                }
            }
            if compute.nondeterministic {
                let words = "none: results are meant to differ (--nondeterministic)";
                fields.push(("verification", words.to_owned()));
            }
            if compute.steps > 1 {
                fields.push(("steps", format!("{} in a frame", compute.steps)));
            }
            fields.extend(compute.block.map(|block| ("block", format!("{block} threads"))));
            if compute.shared_bytes > 0 {
                fields.push(("shared", format!("{} bytes in a block", compute.shared_bytes)));
            }
            fields
        }
    }
}

/// What a kernel writes: `flux: 1 × f64 sum`.
fn output_words(output: &OutputArray) -> String {
    let OutputArray { name, channels, element, .. } = output;
    let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let reduced = output.reduction.map(|reduction| format!(" {}", reduction.name()));
    format!("{name}{channels} × {element}{}", reduced.unwrap_or_default())
}

/// Units that two nodes worked on at once, and what that cost.
fn copy_words(copies: &CopyCount) -> String {
    let CopyCount { running, won, lost, wasted_millis } = copies;
    let wasted = *wasted_millis as f64 / 1e3;
    format!(
        "{running} running, {won} first, {lost} not first; leases of {wasted:.1} s were stopped"
    )
}

/// For how long devices had nothing to do because a frame was not prepared.
fn waited_words(millis: u64) -> String {
    let time = match millis {
        0 => return "never waited for frames".to_owned(),
        1..1000 => format!("{millis} ms"),
        1000..120_000 => format!("{:.1} s", millis as f64 / 1e3),
        _ => span(millis / 1000),
    };
    format!("waited {time} in all for frames to be prepared")
}

/// Writes the same in seconds, as other times of devices are.
fn write_wait(value: &mut Value, detail: &JobDetail) {
    if let Value::Object(fields) = value {
        fields.remove("devices_waited_millis");
        let secs = detail.devices_waited_millis as f64 / 1e3;
        fields.insert("devices_waited_s".to_owned(), secs.into());
    }
}

fn frame_words(state: &FrameState) -> String {
    match state {
        FrameState::Open { committed, units, round } => {
            let units = format!("{committed} of {units} units");
            round.map_or(units.clone(), |round| format!("{}; {units} so far", round_words(&round)))
        }
        FrameState::Resolving => "resolving".into(),
        FrameState::Finishing { done, pieces } => {
            format!("finishing: {done} of {pieces} pieces")
        }
        FrameState::Failed(reason) => format!("failed: {reason}"),
        FrameState::Done(files) => {
            let files = files
                .iter()
                .map(|file| format!("{} {} {}", file.format, bytes(file.length), file.hash));
            format!("done: {}", files.collect::<Vec<_>>().join(", "))
        }
    }
}

fn round_words(status: &RoundStatus) -> String {
    let RoundStatus { round, rounds, tiles_open, tiles, samples } = status;
    format!(
        "round {round} of at most {rounds}, {samples} samples a pixel for {tiles_open} of {tiles} \
            tiles"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_of_devices_is_told_in_plain_units() {
        let words = [0, 40, 12_345, 119_999, 120_000, 7_300_000].map(waited_words);
        let times = ["40 ms", "12.3 s", "120.0 s", "2 min", "2 h"];
        assert_eq!(words[0], "never waited for frames");
        for (words, time) in words[1..].iter().zip(times) {
            assert_eq!(*words, format!("waited {time} in all for frames to be prepared"));
        }
    }
}
