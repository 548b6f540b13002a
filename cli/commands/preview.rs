//! `preview`: shows a frame of a job in the terminal, or makes a video of its frames.

use super::job;
use crate::args::preview::{Form, PreviewArgs};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::preview::blocks::Palette;
use crate::preview::terminal::{Known, Room};
use crate::preview::video::{self, Video};
use crate::preview::{Small, blocks, finished, fitting, kitty, live, sixel};
use crate::table::counted;
use crate::{job_id, json};
use std::io::Write;
use std::time::Duration;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::live::Watched;
use tessera_protocol::status::{FrameFile, FrameState, FrameStatus, JobDetail};
use tessera_protocol::{FrameNumber, JobId};
use tessera_transport::FarmClient;

/// `tessera preview`.
pub(crate) async fn run(args: PreviewArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let job = job_id::find(&farm, &args.job).await?;
    let client = farm.connect().await?;
    let Response::Job(detail) = client.request(&Request::Job(job)).await? else {
        return Err(unexpected());
    };
    let frames = job::frames(&client, job).await?;
    let shown = match &args.video {
        None => show(&farm, &client, (&args, &detail), &frames).await,
        Some(_) => film(&client, (&args, job), &frames).await,
    };
    client.close().await;
    shown.map(|()| Status::Done)
}

/// Shows one frame.
async fn show(
    farm: &Farm,
    client: &FarmClient,
    (args, detail): (&PreviewArgs, &JobDetail),
    frames: &[FrameStatus],
) -> Result<(), CliError> {
    let frame = chosen(frames, args.frame)?;
    let form = Shape::of(args);
    let room = Room::find(args.columns);
    let box_of = form.pixels(&room);
    let (mut picture, about) = match &frame.state {
        FrameState::Done(files) => {
            let of = ((detail.summary.job, frame.frame), picture_of(files, args.exposure)?);
            let folder = folder()?;
            let size = move |whole| fitting(whole, box_of);
            let picture = finished::picture(client, of, folder.path(), size).await?;
            (picture, "finished".to_owned())
        }
        FrameState::Failed(why) => {
            let message = format!("frame {} has failed: {why}", frame.frame.0);
            return Err(CliError::new(Status::JobFailed, message));
        }
        FrameState::Open { .. } | FrameState::Resolving | FrameState::Finishing { .. } => {
            unfinished(farm, (args, detail), frame.frame, box_of).await?
        }
    };
    picture.scale(args.exposure.exp2());
    let text = form.text(&picture, &room)?;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    eprintln!("frame {}: {about}", frame.frame.0);
    Ok(())
}

/// The frame that is asked for, or the last finished one, or the first.
fn chosen(frames: &[FrameStatus], wanted: Option<u32>) -> Result<&FrameStatus, CliError> {
    let is_done = |status: &&FrameStatus| matches!(status.state, FrameState::Done(_));
    match wanted {
        Some(number) => frames.iter().find(|status| status.frame.0 == number).ok_or_else(|| {
            CliError::new(Status::NotFound, format!("the job has no frame {number}"))
        }),
        None => frames.iter().rfind(is_done).or(frames.first()).ok_or_else(unexpected),
    }
}

fn picture_of(files: &[FrameFile], exposure: f64) -> Result<&FrameFile, CliError> {
    finished::best(files, exposure != 0.0).ok_or_else(|| {
        CliError::new(Status::Usage, "the job's results are arrays, not pictures")
            .hint("`tessera fetch` gets them")
    })
}

/// What arrives of a frame that is being rendered, and what is said of it.
async fn unfinished(
    farm: &Farm,
    (args, detail): (&PreviewArgs, &JobDetail),
    frame: FrameNumber,
    box_of: (u32, u32),
) -> Result<(Small, String), CliError> {
    let number = frame.0;
    let Some(render) = detail.spec.kind.render() else {
        let message = format!("frame {number} is not finished, and only renders are shown before");
        return Err(CliError::new(Status::NotFound, message)
            .hint("`tessera watch` follows the job to its end"));
    };
    let window = render.data_window();
    let size = fitting((window.width(), window.height()), box_of);
    let what = Watched { job: detail.summary.job, frame: Some(frame) };
    let within = Duration::from_secs(args.within);
    let arrived = live::gather(farm, (what, render), size, within).await?;
    if arrived.tiles == 0 {
        let message =
            format!("no tile of frame {number} came within {}", counted(args.within, "second"));
        return Err(CliError::new(Status::NotFound, message).hint(
            "`tessera explain` says whether it waits; tiles that were done before are not shown \
                again: wait longer (--within), or for the finished frame",
        ));
    }
    let all = render.tiles().count();
    Ok((arrived.picture, format!("being rendered; {} of {all} tiles arrived", arrived.tiles)))
}

/// The form of a picture in the terminal.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Kitty,
    Sixel,
    Blocks(Palette),
}

impl Shape {
    /// What is asked for, or the best that the terminal knows.
    fn of(args: &PreviewArgs) -> Self {
        let blocks = || Self::Blocks(Palette::of_environment());
        match args.form {
            Form::Kitty => Self::Kitty,
            Form::Sixel => Self::Sixel,
            Form::Blocks => blocks(),
            Form::Auto => match Known::ask() {
                known if known.kitty => Self::Kitty,
                known if known.sixel => Self::Sixel,
                _ => blocks(),
            },
        }
    }

    /// Pixels that have room.
    fn pixels(self, room: &Room) -> (u32, u32) {
        match self {
            Self::Kitty | Self::Sixel => room.pixels(),
            Self::Blocks(_) => (room.cells.columns, room.cells.rows * 2),
        }
    }

    fn text(self, picture: &Small, room: &Room) -> Result<String, CliError> {
        let (size, rgb) = (picture.size(), picture.rgb8());
        match self {
            Self::Kitty => kitty::text(size, &rgb, room.taken(size))
                .map_err(|error| CliError::new(Status::Failure, error)),
            Self::Sixel => Ok(sixel::text(size, &rgb)),
            Self::Blocks(palette) => Ok(blocks::text(size.0, &rgb, palette)),
        }
    }
}

/// Makes a video of all frames that are finished.
async fn film(
    client: &FarmClient,
    (args, job): (&PreviewArgs, JobId),
    frames: &[FrameStatus],
) -> Result<(), CliError> {
    let Some(target) = &args.video else { return Ok(()) };
    if target.symlink_metadata().is_ok() && !args.overwrite {
        let message = format!("`{}` is there", target.display());
        return Err(CliError::new(Status::NotReplaced, message)
            .hint("name another file, or replace it (--overwrite)"));
    }
    let folder = folder()?;
    // The frame before, for those that are missing.
    let (mut video, mut shown, mut count) = (None, Vec::new(), 0u64);
    for status in frames {
        if let FrameState::Done(files) = &status.state {
            let of = ((job, status.frame), picture_of(files, args.exposure)?);
            let mut picture = finished::picture(client, of, folder.path(), video::size).await?;
            picture.scale(args.exposure.exp2());
            if video.is_none() {
                video = Some(Video::begin(target, picture.size(), args.fps)?);
            }
            shown = picture.rgb8();
            count += 1;
        }
        if let Some(video) = &mut video {
            video.add(&shown).await?;
        }
    }
    let Some(video) = video else {
        return Err(CliError::new(Status::NotFound, "no frame is finished yet")
            .hint("`tessera preview` without --video shows what is being rendered"));
    };
    video.end(args.overwrite).await?;
    let missing = frames.len() as u64 - count;
    if missing > 0 {
        eprintln!("{} not finished: each shows the one before it", counted(missing, "frame"));
    }
    json::line(&target.display().to_string())
}

fn folder() -> Result<tempfile::TempDir, CliError> {
    tempfile::tempdir().map_err(|error| CliError::from(error).context("a temporary folder"))
}
