//! `submit --test-frame`: a small frame that is rendered first, and what a job should take of
//! devices, by it. The frame is a job of its own, which is deleted when its time is known.

use super::watch::{detail_of, follow};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::progress::{Doing, Uploads};
use crate::submission::send::{Sources, submit};
use crate::table::{bytes, counted};
use serde::Serialize;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::cost::{Amount, Worth, device_time, money};
use tessera_protocol::job::CropSpec;
use tessera_protocol::selection::{JobChange, JobsChange};
use tessera_protocol::status::{FrameState, FrameStatus, JobDetail, NodeState};
use tessera_protocol::{FrameSet, JobId, JobKind, JobSpec, RenderSpec};

/// By how much each edge of the small frame is shorter, and of another one that follows where the
/// first took little.
const SMALLER: [u32; 2] = [4, 2];
/// Device time in milliseconds beside which what a frame costs at any size is little.
const ENOUGH_MILLIS: u64 = 10_000;
/// Milliseconds of 30 days.
const MONTH_MILLIS: u128 = 30 * 86_400_000;
/// Least edge of the small frame in pixels, where the frame has as many.
const EDGE_LEAST: u32 = 64;

/// What a job should take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Prediction {
    /// Device time of the small frame, in milliseconds.
    test_millis: u64,
    /// Device time of the job, in milliseconds.
    device_millis: u64,
    /// What that costs, at the prices that the small frame had.
    cost: Amount,
    /// Bytes of the files of all frames.
    file_bytes: u64,
    /// What these cost for 30 days, at the price of now.
    month_cost: Amount,
    /// Name of the currency; empty where nothing has a price.
    currency: String,
    /// Devices that are ready for it now, in its pool.
    devices: u64,
    /// Seconds that it should take on these if it has them for itself; None without a device.
    secs: Option<u64>,
}

impl Prediction {
    /// What is said of it.
    pub(crate) fn words(&self) -> String {
        let cost = money(self.cost, &self.currency);
        let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
        let alone = match self.secs {
            Some(secs) => {
                let devices = counted(self.devices, "device");
                let are = if self.devices == 1 { "is" } else { "are" };
                format!("; about {} on the {devices} that {are} ready", device_time(secs * 1000))
            }
            None => "; no device is ready".to_owned(),
        };
        let (test, all) = (device_time(self.test_millis), device_time(self.device_millis));
        format!("test frame: {test} of devices; the job: about {all}{cost}{alone}{}", self.files())
    }

    /// What is said of its files.
    fn files(&self) -> String {
        let month = money(self.month_cost, &self.currency).filter(|_| self.month_cost > Amount(0));
        let month = month.map(|cost| format!(", {cost} for 30 days")).unwrap_or_default();
        format!("; its files: about {}{month}", bytes(self.file_bytes).trim())
    }
}

/// Renders a small frame of a job on the farm, and returns what the job should take.
pub(crate) async fn predict(
    farm: &Farm,
    spec: &JobSpec,
    files: &dyn Sources,
    uploads: &mut Uploads,
) -> Result<Prediction, CliError> {
    let JobKind::Render(render) = &spec.kind else {
        let text = "--test-frame is for scenes: what a kernel takes is not known by its pixels";
        return Err(CliError::new(Status::Usage, text));
    };
    let mut tests = Vec::new();
    for smaller in SMALLER {
        let small = small(render, smaller);
        let (detail, file_bytes) = tested(farm, spec, &small, (files, uploads)).await?;
        tests.push(Test::of(&small, &detail, file_bytes));
        if tests.iter().any(|test| test.millis >= ENOUGH_MILLIS) {
            break;
        }
    }
    let Response::Costs(report) = farm.ask(&Request::Costs { month: None }).await? else {
        return Err(unexpected());
    };
    let devices = devices(farm, spec.pool.as_deref()).await?;
    let all = pixels(render) * u128::from(render.frames.len());
    let device_millis = expected(&tests, all, |test| test.millis);
    let file_bytes = expected(&tests, all, |test| test.file_bytes);
    let month = u128::from(file_bytes) * MONTH_MILLIS;
    Ok(Prediction {
        test_millis: tests.iter().map(|test| test.millis).sum(),
        device_millis,
        cost: Amount(expected(&tests, all, |test| test.cost)),
        file_bytes,
        month_cost: Worth::of_space(month, report.gb_month).amount(),
        currency: report.currency,
        devices,
        secs: (devices > 0).then(|| device_millis.div_ceil(1000 * devices)),
    })
}

/// Renders a small frame of a job as a job of its own, and deletes it. Returns what came of it, and
/// the bytes of its files.
async fn tested(
    farm: &Farm,
    spec: &JobSpec,
    small: &RenderSpec,
    (files, uploads): (&dyn Sources, &mut Uploads),
) -> Result<(Box<JobDetail>, u64), CliError> {
    let test = JobSpec {
        name: format!("{}-test", spec.name),
        kind: JobKind::Render(small.clone()),
        after: Vec::new(),
        not_before: None,
        notify: Vec::new(),
        ..spec.clone()
    };
    let job = submit(farm, &test, files, uploads).await?;
    let followed = follow(farm, job, Doing::Rendering, false).await;
    let detail = match followed {
        Ok(_) => told_of(farm, job).await,
        Err(error) => Err(error.context("the test frame")),
    };
    forget(farm, job).await;
    detail
}

/// Returns what came of a job, and the bytes of its files.
async fn told_of(farm: &Farm, job: JobId) -> Result<(Box<JobDetail>, u64), CliError> {
    let detail = detail_of(farm, job).await?;
    let Response::Frames(frames) = farm.ask(&Request::Frames { job, from: 0 }).await? else {
        return Err(unexpected());
    };
    let length = |frame: &FrameStatus| match &frame.state {
        FrameState::Done(files) => files.iter().map(|file| file.length).sum(),
        _ => 0,
    };
    Ok((detail, frames.iter().map(length).sum()))
}

/// What a small frame took.
#[derive(Clone, Copy, Debug)]
struct Test {
    pixels: u128,
    /// Device time in milliseconds, without what was lost: that would not be lost again.
    millis: u64,
    /// What it costs, in millionths.
    cost: u64,
    file_bytes: u64,
}

impl Test {
    fn of(small: &RenderSpec, detail: &JobDetail, file_bytes: u64) -> Self {
        let all = detail.summary.device_millis;
        let lost: u64 = detail.spent.iter().map(|spent| spent.lost_millis).sum();
        let millis = all.saturating_sub(lost);
        let cost = u128::from(detail.summary.cost.0) * u128::from(millis) / u128::from(all.max(1));
        Self { pixels: pixels(small), millis, cost: cost as u64, file_bytes }
    }
}

/// Pixels of a frame that are rendered.
fn pixels(render: &RenderSpec) -> u128 {
    u128::from(render.rendered_window().pixels())
}

/// What so many pixels should take: as many times what a pixel of a test took. With two tests, what
/// the larger one took more, for the pixels that it has more; the rest is taken once.
fn expected(tests: &[Test], all: u128, of: impl Fn(&Test) -> u64) -> u64 {
    let scaled = match tests {
        [small, large] if large.pixels > small.pixels => {
            let more = u128::from(of(large).saturating_sub(of(small)));
            let (step, beyond) = (large.pixels - small.pixels, all.saturating_sub(large.pixels));
            u128::from(of(large)) + more * beyond / step
        }
        [.., last] => u128::from(of(last)) * all / last.pixels.max(1),
        [] => 0,
    };
    scaled.min(u128::from(u64::MAX)) as u64
}

/// The job's small frame: the middle one, with a part of each edge.
fn small(render: &RenderSpec, smaller: u32) -> RenderSpec {
    let middle = render.frames.get(render.frames.len() / 2);
    let edge = |pixels: u32| (pixels / smaller).max(EDGE_LEAST.min(pixels));
    let (width, height) = (edge(render.width), edge(render.height));
    let part = |place: u32, of: u32, whole: u32| {
        (u64::from(place) * u64::from(of) / u64::from(whole.max(1))) as u32
    };
    let crop = render.crop.map(|crop| {
        let x = part(crop.x, width, render.width).min(width - 1);
        let y = part(crop.y, height, render.height).min(height - 1);
        CropSpec {
            x,
            y,
            width: part(crop.width, width, render.width).clamp(1, width - x),
            height: part(crop.height, height, render.height).clamp(1, height - y),
        }
    });
    RenderSpec {
        frames: middle.map_or_else(|| render.frames.clone(), FrameSet::one),
        width,
        height,
        crop,
        overscan: part(render.overscan, width, render.width),
        ..render.clone()
    }
}

/// Returns how many devices are ready, of a pool if there is one.
async fn devices(farm: &Farm, pool: Option<&str>) -> Result<u64, CliError> {
    let Response::Nodes(nodes) = farm.ask(&Request::Nodes).await? else {
        return Err(unexpected());
    };
    let ready = nodes.iter().filter(|node| {
        node.state == NodeState::Ready && pool.is_none_or(|pool| node.pool.as_deref() == Some(pool))
    });
    Ok(ready.map(|node| node.devices.len() as u64).sum())
}

/// Deletes the job of the small frame. It is no use to anybody if that does not work, and no harm.
async fn forget(farm: &Farm, job: JobId) {
    let cancel = JobChange::Cancel { reason: String::new() };
    for change in [cancel, JobChange::Forget] {
        let change = JobsChange::of_job(change, job);
        if let Err(error) = farm.ask(&Request::ChangeJobs(Box::new(change))).await {
            tracing::debug!(%error, %job, "the test frame is not deleted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::FrameNumber;

    fn render(width: u32, height: u32) -> RenderSpec {
        RenderSpec {
            width,
            height,
            frames: "1-9".parse().expect("frames"),
            ..RenderSpec::new("a.gltf", Vec::new())
        }
    }

    #[test]
    fn the_test_frame_is_the_middle_one_and_small() {
        let test = small(&render(1920, 1080), 4);
        assert_eq!((test.width, test.height), (480, 270));
        assert_eq!(test.frames, FrameSet::one(FrameNumber(5)));
        // A small frame is not made so small that little of it is seen.
        let test = small(&render(100, 40), 4);
        assert_eq!((test.width, test.height), (64, 40));
        let crop = Some(CropSpec { x: 1000, y: 1079, width: 920, height: 1 });
        let cropped = small(&RenderSpec { crop, overscan: 16, ..render(1920, 1080) }, 4);
        let expected = CropSpec { x: 250, y: 269, width: 230, height: 1 };
        assert_eq!((cropped.crop, cropped.overscan), (Some(expected), 4));
    }

    #[test]
    fn what_a_frame_costs_at_any_size_is_counted_once() {
        let test = |pixels, millis| Test { pixels, millis, cost: 2 * millis, file_bytes: 0 };
        let of = |tests: &[Test]| expected(tests, 1600, |test| test.millis);
        assert_eq!(of(&[test(100, 50)]), 800);
        // 30 ms at any size, and 0.2 ms a pixel.
        let two = [test(100, 50), test(400, 110)];
        assert_eq!((of(&two), expected(&two, 1600, |test| test.cost)), (350, 700));
        // A frame too small to be made smaller.
        assert_eq!(of(&[test(100, 50), test(100, 60)]), 960);
        assert_eq!(of(&[]), 0);
    }

    #[test]
    fn what_is_said_has_time_money_and_devices() {
        let prediction = Prediction {
            test_millis: 4500,
            device_millis: 7_200_000,
            cost: Amount(12_500_000),
            file_bytes: 2_400_000_000,
            month_cost: Amount(48_000),
            currency: "EUR".into(),
            devices: 2,
            secs: Some(3600),
        };
        assert_eq!(
            prediction.words(),
            format!(
                "test frame: 4.5 s of devices; the job: about 2 h 0 min, 12.50 EUR; about 1 h 0 \
                 min on the 2 devices that are ready; its files: about {}, 0.05 EUR for 30 days",
                bytes(2_400_000_000)
            )
        );
        let one = Prediction { devices: 1, ..prediction };
        assert!(one.words().contains("on the 1 device that is ready"), "{}", one.words());
        let bare = Prediction { currency: String::new(), cost: Amount(0), secs: None, ..one };
        let bare = Prediction { month_cost: Amount(0), ..bare };
        let expected = format!("about 2 h 0 min; no device is ready; {}", &bare.files()[2..]);
        assert!(bare.words().ends_with(&expected), "{}", bare.words());
    }
}
