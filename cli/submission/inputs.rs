//! Reads what `--input` names: one array, or one for each frame. Reads headers and hashes files;
//! sends nothing.

use super::compute_files::{ComputeFiles, hashed, split, usage};
use super::job_inputs::{self, KnownJobs};
use crate::args::compute::ComputeArgs;
use crate::error::{CliError, Status};
use crate::pattern::Pattern;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tessera_protocol::compute::{FrameInput, InputArray, InputFile, npy};
use tessera_protocol::job::After;
use tessera_protocol::limits::FRAME_FILES_MAX;

/// What a kernel reads.
pub(super) struct Inputs {
    /// All inputs, in the order of their names.
    pub(super) inputs: Vec<InputArray>,
    /// Those that have a file for each frame, in the same order.
    pub(super) of_frames: Vec<FrameInput>,
    /// Jobs whose frames are read.
    pub(super) after: Vec<After>,
}

/// Reads what `--input` names. The files are added to `files`.
pub(super) fn inputs(
    args: &ComputeArgs,
    files: &mut ComputeFiles,
    known: &KnownJobs,
) -> Result<Inputs, CliError> {
    let (mut inputs, mut of_frames, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for text in &args.input {
        if let Some(read) = job_inputs::input(text, known) {
            let (input, wait) = read?;
            inputs.push(input);
            job_inputs::add_waits(&mut after, vec![wait])?;
            continue;
        }
        let (name, file) = split("input", text)?;
        let about = |error: CliError| error.context(format!("--input {name}"));
        match file.parse::<Pattern>() {
            Ok(pattern) if pattern.has_frame() => {
                let (first, files) = each(name, &pattern, args, files).map_err(about)?;
                inputs.push(first);
                of_frames.push(FrameInput { name: name.to_owned(), files });
            }
            // A name with a lone brace or percent sign is a name.
            _ => inputs.push(one(name, Path::new(file), files).map_err(about)?),
        }
    }
    inputs.sort_by(|a, b| a.name.cmp(&b.name));
    of_frames.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Inputs { inputs, of_frames, after })
}

/// The files that an `--input` names.
pub(super) fn files(text: &str, args: &ComputeArgs) -> Vec<PathBuf> {
    let Some((_, file)) = text.split_once('=').filter(|(_, file)| !file.starts_with("job:")) else {
        return Vec::new();
    };
    match file.parse::<Pattern>() {
        Ok(pattern) if pattern.has_frame() && args.frames.len() as usize <= FRAME_FILES_MAX => {
            args.frames.iter().map(|frame| pattern.path_for(frame)).collect()
        }
        _ => vec![file.into()],
    }
}

fn one(name: &str, path: &Path, files: &mut ComputeFiles) -> Result<InputArray, CliError> {
    let about = |error: CliError| error.context(format!("`{}`", path.display()));
    let opened = File::open(path).map_err(|error| about(CliError::of_file(error)))?;
    let length = opened.metadata().map_err(|error| about(error.into()))?.len();
    let mut head = Vec::new();
    let most = npy::HEADER_BYTES_MAX as u64 + 12;
    opened.take(most).read_to_end(&mut head).map_err(|error| about(error.into()))?;
    let header = npy::Header::read(&head, length)
        .map_err(|error| about(CliError::new(Status::Usage, error)))?;
    let (hash, length) = hashed(path)?;
    files.add(hash, length, path);
    let (element, shape) = (header.element, header.shape);
    Ok(InputArray { name: name.to_owned(), hash, length, element, shape, from: None })
}

/// One for each frame, all of the first one's element and shape. Returns the first and all files.
fn each(
    name: &str,
    pattern: &Pattern,
    args: &ComputeArgs,
    files: &mut ComputeFiles,
) -> Result<(InputArray, Vec<InputFile>), CliError> {
    if args.frames.len() as usize > FRAME_FILES_MAX {
        let text = format!("{} frames are more than {FRAME_FILES_MAX} files", args.frames.len());
        return Err(usage(text).hint("make several jobs of it"));
    }
    let mut first: Option<InputArray> = None;
    let mut all = Vec::new();
    for frame in args.frames.iter() {
        let path = pattern.path_for(frame);
        let input = one(name, &path, files)
            .map_err(|error| error.context(format!("the array of frame {frame}")))?;
        all.push(InputFile { hash: input.hash, length: input.length });
        let Some(first) = &first else {
            first = Some(input);
            continue;
        };
        if (input.element, &input.shape) != (first.element, &first.shape) {
            let found = format!("{} {:?}", input.element, input.shape);
            let wanted = format!("{} {:?}", first.element, first.shape);
            let text = format!("`{}` is {found}, the first frame's {wanted}", path.display());
            return Err(usage(text).hint("all frames of a job have one element and one shape"));
        }
    }
    let first = first.ok_or_else(|| usage("no frame at all"))?;
    Ok((first, all))
}
