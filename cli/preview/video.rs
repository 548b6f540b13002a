//! A video of frames, made by ffmpeg, which gets them as plain pixels one after the other.

use crate::error::{CliError, Status};
use crate::table::printable;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

const FFMPEG: &str = "ffmpeg";
/// Longest edge of a video, pixels: what players on any machine show.
pub(crate) const EDGE_MAX: u32 = 1920;
/// Bytes of ffmpeg's errors that are told.
const SAID_MAX: u64 = 4096;
/// Written as HDTV has it (ITU-R BT.709), and said so: without, players guess.
const COLORS: [&str; 8] = [
    "-vf",
    "scale=out_color_matrix=bt709:out_range=tv",
    "-colorspace",
    "bt709",
    "-color_primaries",
    "bt709",
    "-color_trc",
    "iec61966-2-1",
];

/// The size of a video of pictures: not above [`EDGE_MAX`], and even, as most codecs want it.
pub(crate) fn size(whole: (u32, u32)) -> (u32, u32) {
    let (width, height) = super::fitting(whole, (EDGE_MAX, EDGE_MAX));
    (width & !1, height & !1)
}

/// A video that is being written.
#[derive(Debug)]
pub(crate) struct Video {
    ffmpeg: Child,
    /// None when all frames have been written.
    input: Option<ChildStdin>,
    /// Where it is written until it is whole.
    part: tempfile::TempPath,
    target: PathBuf,
}

impl Video {
    /// Starts ffmpeg for a video of frames of this size, so many in a second.
    pub(crate) fn begin(
        target: &Path,
        (width, height): (u32, u32),
        fps: f64,
    ) -> Result<Self, CliError> {
        let part = part_of(target)?;
        let started = Command::new(FFMPEG)
            .args(["-hide_banner", "-loglevel", "error", "-y", "-f", "rawvideo"])
            .args(["-pixel_format", "rgb24", "-video_size", &format!("{width}x{height}")])
            .args(["-framerate", &fps.to_string(), "-i", "pipe:0"])
            .args(COLORS)
            .args(["-pix_fmt", "yuv420p"])
            .arg(&part)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut ffmpeg = started.map_err(|error| {
            let is_missing = error.kind() == ErrorKind::NotFound;
            let message = format!("cannot run {FFMPEG}: {error}");
            CliError::new(Status::Failure, message).hint_if(is_missing.then_some(
                "install it (`apt install ffmpeg`), or fetch the frames with `tessera fetch`",
            ))
        })?;
        let input = ffmpeg.stdin.take();
        Ok(Self { ffmpeg, input, part, target: target.to_owned() })
    }

    /// Adds a frame: R, G and B of each pixel.
    pub(crate) async fn add(&mut self, rgb: &[u8]) -> Result<(), CliError> {
        let Some(input) = &mut self.input else { return Ok(()) };
        match input.write_all(rgb).await {
            Ok(()) => Ok(()),
            // It has ended, and says why.
            Err(_) => Err(self.failed().await),
        }
    }

    /// Waits until ffmpeg has written everything, and gives the file its name. `overwrite`: also
    /// where something has it.
    pub(crate) async fn end(mut self, overwrite: bool) -> Result<(), CliError> {
        if let Some(mut input) = self.input.take() {
            let _ = input.shutdown().await;
        }
        let said = said(&mut self.ffmpeg).await;
        let status = self.ffmpeg.wait().await?;
        if !status.success() {
            return Err(refused(&said));
        }
        let (part, target) = (self.part, self.target);
        let named = match overwrite {
            true => part.persist(&target),
            false => part.persist_noclobber(&target),
        };
        named.map_err(|error| {
            CliError::from(error.error).context(format!("cannot write `{}`", target.display()))
        })
    }

    async fn failed(&mut self) -> CliError {
        self.input = None;
        refused(&said(&mut self.ffmpeg).await)
    }
}

/// A name beside the target, with its ending, which tells ffmpeg the kind.
fn part_of(target: &Path) -> Result<tempfile::TempPath, CliError> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let Some(ending) = target.extension().and_then(|ending| ending.to_str()) else {
        let message = format!("`{}` does not say which kind of video", target.display());
        return Err(CliError::new(Status::Usage, message).hint("name it film.mp4, say"));
    };
    let file = tempfile::Builder::new()
        .prefix(".tessera-video-")
        // What a file is given otherwise: the user's mask takes its part away.
        .permissions(Permissions::from_mode(0o666))
        .suffix(&format!(".{ending}"))
        .tempfile_in(folder)
        .map_err(|error| {
            let about = format!("cannot write to the folder `{}`", folder.display());
            CliError::from(error).context(about)
        })?;
    Ok(file.into_temp_path())
}

async fn said(ffmpeg: &mut Child) -> String {
    let mut said = Vec::new();
    if let Some(errors) = &mut ffmpeg.stderr {
        // What cannot be read is not told.
        let _ = errors.take(SAID_MAX).read_to_end(&mut said).await;
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn refused(said: &str) -> CliError {
    let lines: Vec<String> = said.lines().take(4).map(printable).collect();
    let said = if lines.is_empty() { "it said nothing".to_owned() } else { lines.join("; ") };
    CliError::new(Status::Failure, format!("{FFMPEG} made no video: {said}"))
        .hint("its name's ending says which kind it is: .mp4 and .mkv are known everywhere")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_video_is_even_and_no_larger_than_players_show() {
        assert_eq!(size((3840, 2160)), (1920, 1080));
        assert_eq!(size((641, 479)), (640, 478));
        assert_eq!(size((1000, 4000)), (480, 1920));
        assert_eq!(part_of(Path::new("film")).unwrap_err().status(), Status::Usage);
    }
}
