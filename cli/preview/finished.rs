//! The picture of a finished frame, from the file that shows best how it is meant.

use super::{Area, Small};
use crate::error::{CliError, Status};
use crate::frame_files::fetch;
use crate::picture::{self, Encoding, Picture};
use std::path::Path;
use tessera_protocol::status::FrameFile;
use tessera_protocol::{FrameNumber, JobId};
use tessera_transport::FarmClient;
use tessera_transport::blob::Existing;
use tokio::task::spawn_blocking;

/// Formats of pictures: those with the colours that were meant come first.
const SHOWN: [&str; 3] = ["png", "jpg", "exr"];
const LINEAR: [&str; 3] = ["exr", "png", "jpg"];

/// The file of a frame that a preview is made from. `is_exposed`: from light rather than from what
/// was made of it for displays.
pub(crate) fn best(files: &[FrameFile], is_exposed: bool) -> Option<&FrameFile> {
    let order = if is_exposed { LINEAR } else { SHOWN };
    order.into_iter().find_map(|format| files.iter().find(|file| file.format == format))
}

/// Fetches a file into a folder that is ours, reads it, and scales it down to what `size` says of
/// the picture's own. The file is deleted.
pub(crate) async fn picture(
    client: &FarmClient,
    (of, file): ((JobId, FrameNumber), &FrameFile),
    folder: &Path,
    size: impl FnOnce((u32, u32)) -> (u32, u32) + Send + 'static,
) -> Result<Small, CliError> {
    let path = folder.join(format!("frame.{}", file.format));
    fetch(client, (of, file), (&path, Existing::Replace), &mut |_| {}).await?;
    let read = spawn_blocking(move || {
        let picture = picture::read(&path);
        // The folder goes at the end in any case.
        let _ = std::fs::remove_file(&path);
        picture.map(|picture| small(&picture, size((picture.width, picture.height))))
    });
    let read = read.await.map_err(|error| CliError::new(Status::Failure, error))?;
    read.map_err(CliError::of_file)
}

/// Scales a picture down; what is transparent is black.
fn small(picture: &Picture, size: (u32, u32)) -> Small {
    let whole = (picture.width, picture.height);
    let mut small = Small::new(whole, size);
    // Colours of scenes have been multiplied by it.
    let alpha = picture.alpha.as_ref().filter(|_| picture.encoding == Encoding::Display);
    let color = |at: usize| match alpha {
        Some(alpha) => picture.pixels[at].map(|value| value * alpha[at]),
        None => picture.pixels[at],
    };
    small.put(&Area { left: 0, top: 0, width: whole.0, height: whole.1, color: &color });
    small
}
