//! Turns the options of `compute` into a job spec and its files. Compiles kernels where NVRTC is
//! found. Sends nothing.

use super::send::Sources;
use crate::args::compute::ComputeArgs;
use crate::error::{CliError, Status};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use tessera_node::compute as node;
use tessera_nvrtc::{Nvrtc, NvrtcError};
use tessera_protocol::compute::{
    Argument, ArgumentValue, ComputeFormat, ComputeSpec, Element, InputArray, Number, Program, npy,
};
use tessera_protocol::job::AssetFile;
use tessera_protocol::limits::PROGRAM_BYTES_MAX;
use tessera_protocol::{BlobHash, JobKind, JobSpec, RawJobSpec};
use tessera_transport::client::hash_file;

/// A job and its files.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) spec: JobSpec,
    pub(crate) files: ComputeFiles,
}

/// Files of a compute job on this machine.
#[derive(Debug, Default)]
pub(crate) struct ComputeFiles {
    files: Vec<(BlobHash, u64, PathBuf)>,
    /// A kernel that was compiled here, until it is sent.
    _compiled: Option<NamedTempFile>,
}

impl Sources for ComputeFiles {
    fn hashes(&self) -> Vec<BlobHash> {
        self.files.iter().map(|(hash, ..)| *hash).collect()
    }

    fn source(&self, hash: BlobHash) -> Option<(u64, &Path)> {
        let found = self.files.iter().find(|(of, ..)| *of == hash)?;
        Some((found.1, &found.2))
    }
}

fn usage(text: impl Into<String>) -> CliError {
    CliError::new(Status::Usage, text.into())
}

/// The job of these options, checked as far as this machine can. Blocks: reads and hashes files,
/// compiles.
pub(crate) fn prepare(args: &ComputeArgs) -> Result<Prepared, CliError> {
    let (Some(kernel), Some(domain)) = (&args.kernel, args.domain) else {
        return Err(usage("a kernel and --domain are needed"));
    };
    let mut files = ComputeFiles::default();
    let (program, ptx) = program(kernel, args, &mut files)?;
    let mut inputs = inputs(args, &mut files)?;
    inputs.sort_by(|a, b| a.name.cmp(&b.name));
    let mut arguments = arguments(args, &program)?;
    arguments.sort_by(|a, b| a.name.cmp(&b.name));
    let element = element(args, ptx.as_deref())?;
    let compute = ComputeSpec {
        program,
        inputs,
        arguments,
        domain,
        channels: args.channels,
        element,
        reduction: args.reduce,
        formats: formats(args)?,
        chunk: args.chunk,
        frames: args.frames.clone(),
        feed: args.feed.clone(),
        steps: args.steps,
        block: args.block,
        shared_bytes: args.shared,
        seed: args.seed,
        time_limit_secs: args.time_limit,
    };
    if let Some(ptx) = ptx {
        let bound = node::bind(&ptx, &compute);
        bound
            .map_err(|error| CliError::new(Status::Usage, error).context(format!("`{kernel}`")))?;
    }
    let device_bytes = compute.device_bytes();
    let name = args.name.clone().unwrap_or_else(|| default_name(kernel));
    let kind = JobKind::Compute(compute);
    let (priority, pool) = (args.priority, args.pool.clone());
    let spec = JobSpec { priority, device_bytes, pool, ..JobSpec::new(name, kind) };
    let checked = RawJobSpec::from(spec).check();
    let spec = checked.map_err(|error| usage(format!("--{}: {}", error.field, error.problem)))?;
    Ok(Prepared { spec, files })
}

/// The type of the values: as asked for, else what the kernel is known to store, else f32. Binding
/// finds what is asked for wrongly.
fn element(args: &ComputeArgs, ptx: Option<&str>) -> Result<Element, CliError> {
    let stored: Vec<Element> =
        ptx.map(node::stored_elements).unwrap_or_default().into_iter().collect();
    match (args.element, stored.as_slice()) {
        (Some(element), _) => Ok(element),
        (None, [element]) => Ok(*element),
        (None, []) => Ok(Element::F32),
        (None, several) => {
            let names =
                several.iter().map(|element| element.name()).collect::<Vec<_>>().join(" and ");
            Err(usage(format!("the kernel stores {names}: which of them is the result's?"))
                .hint(format!("say so: --element {}", several[0])))
        }
    }
}

fn default_name(kernel: &str) -> String {
    let stem = Path::new(kernel).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    kernel
        .strip_prefix("builtin:")
        .map(str::to_owned)
        .or(stem)
        .unwrap_or_else(|| "compute".to_owned())
}

fn formats(args: &ComputeArgs) -> Result<Vec<ComputeFormat>, CliError> {
    let extension = match &args.out {
        None => "npy".to_owned(),
        Some(out) => out.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase(),
    };
    let all = [ComputeFormat::Npy, ComputeFormat::Exr, ComputeFormat::Png];
    let wanted = all.into_iter().find(|format| format.extension() == extension);
    let wanted = wanted.ok_or_else(|| {
        usage(format!("--out: .{extension} is neither .npy, .exr nor .png"))
            .hint("the extension says the format")
    })?;
    // Frames are handed on as arrays.
    let fed = args.feed.is_some() && wanted != ComputeFormat::Npy;
    Ok(if fed { vec![ComputeFormat::Npy, wanted] } else { vec![wanted] })
}

/// The program, and its PTX where it is known here.
fn program(
    kernel: &str,
    args: &ComputeArgs,
    files: &mut ComputeFiles,
) -> Result<(Program, Option<String>), CliError> {
    if let Some(name) = kernel.strip_prefix("builtin:") {
        let program = Program::Builtin(name.to_owned());
        return Ok((program, Some(tessera_node::compute::builtin_ptx().to_owned())));
    }
    let path = Path::new(kernel);
    let text = read_kernel(path)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_ptx = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ptx"));
    if is_ptx {
        return Ok((Program::Ptx(asset(&name, path, files)?), Some(text)));
    }
    let compiled = if args.compile_on_node { None } else { compile(&name, &text)? };
    let Some(ptx) = compiled else {
        return Ok((Program::Cuda(asset(&name, path, files)?), None));
    };
    let mut file = NamedTempFile::new()?;
    file.write_all(ptx.as_bytes())?;
    file.flush()?;
    let program = Program::Ptx(asset(&name, file.path(), files)?);
    files._compiled = Some(file);
    Ok((program, Some(ptx)))
}

fn read_kernel(path: &Path) -> Result<String, CliError> {
    let about = |error: CliError| error.context(format!("`{}`", path.display()));
    let file = File::open(path).map_err(|error| about(CliError::of_file(error)))?;
    let mut bytes = Vec::new();
    file.take(PROGRAM_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| about(error.into()))?;
    if bytes.len() as u64 > PROGRAM_BYTES_MAX {
        return Err(about(usage(format!("a kernel has at most {PROGRAM_BYTES_MAX} bytes"))));
    }
    String::from_utf8(bytes).map_err(|_| about(usage("it is not UTF-8 text")))
}

/// PTX of a kernel in CUDA C++; None where there is no compiler here.
fn compile(name: &str, source: &str) -> Result<Option<String>, CliError> {
    let compiler = match Nvrtc::find() {
        Ok(compiler) => compiler,
        Err(NvrtcError::NotFound { .. }) => {
            tracing::warn!("no NVRTC here: `{name}` is sent as it is, for a node to compile");
            return Ok(None);
        }
        Err(error) => return Err(CliError::new(Status::Failure, error).context("NVRTC")),
    };
    let compiled = node::compile(&compiler, name, source).map_err(|error| {
        CliError::new(Status::Failure, error).context(format!("`{name}`")).hint(
            "`tessera compute --header` prints what a kernel may include; docs/compute.md has an \
                example",
        )
    })?;
    Ok(Some(compiled))
}

fn asset(name: &str, path: &Path, files: &mut ComputeFiles) -> Result<AssetFile, CliError> {
    let (hash, length) = hashed(path)?;
    files.files.push((hash, length, path.to_owned()));
    Ok(AssetFile { path: name.to_owned(), hash, length })
}

fn hashed(path: &Path) -> Result<(BlobHash, u64), CliError> {
    hash_file(path).map_err(|error| CliError::from(error).context(format!("`{}`", path.display())))
}

fn split<'a>(option: &'static str, text: &'a str) -> Result<(&'a str, &'a str), CliError> {
    text.split_once('=')
        .ok_or_else(|| usage(format!("--{option}: `{text}` is not of the form NAME=VALUE")))
}

fn inputs(args: &ComputeArgs, files: &mut ComputeFiles) -> Result<Vec<InputArray>, CliError> {
    let mut inputs = Vec::new();
    for text in &args.input {
        let (name, file) = split("input", text)?;
        let path = PathBuf::from(file);
        let about = |error: CliError| error.context(format!("--input {name}: `{file}`"));
        let opened = File::open(&path).map_err(|error| about(CliError::of_file(error)))?;
        let length = opened.metadata().map_err(|error| about(error.into()))?.len();
        let mut head = Vec::new();
        let most = npy::HEADER_BYTES_MAX as u64 + 12;
        opened.take(most).read_to_end(&mut head).map_err(|error| about(error.into()))?;
        let header = npy::Header::read(&head, length)
            .map_err(|error| about(CliError::new(Status::Usage, error)))?;
        let (hash, length) = hashed(&path)?;
        files.files.push((hash, length, path));
        let (element, shape) = (header.element, header.shape);
        inputs.push(InputArray { name: name.to_owned(), hash, length, element, shape });
    }
    Ok(inputs)
}

fn arguments(args: &ComputeArgs, program: &Program) -> Result<Vec<Argument>, CliError> {
    let mut arguments = Vec::new();
    for text in &args.arg {
        let (name, value) = split("arg", text)?;
        let words = words(program, name);
        let value = value_of(value, &words).ok_or_else(|| not_understood(name, value, &words))?;
        arguments.push(Argument { name: name.to_owned(), value });
    }
    Ok(arguments)
}

fn not_understood(name: &str, value: &str, words: &[&str]) -> CliError {
    if words.is_empty() {
        return usage(format!("--arg {name}: `{value}` is not a number"))
            .hint("write 3, -0.5, 1e-3, or of a type and several: f32:1,2,3");
    }
    usage(format!("--arg {name}: `{value}` is not one of: {}", words.join(", ")))
}

/// Words that a built-in kernel takes in the place of a number.
fn words(program: &Program, name: &str) -> Vec<&'static str> {
    match program {
        Program::Builtin(kernel) => node::choices(kernel, name),
        _ => Vec::new(),
    }
}

fn value_of(text: &str, words: &[&str]) -> Option<ArgumentValue> {
    if let Some(place) = words.iter().position(|word| *word == text) {
        return Some(ArgumentValue { element: None, numbers: vec![Number::Integer(place as i64)] });
    }
    let (element, numbers) = match text.split_once(':') {
        Some((element, numbers)) => (Some(element.parse::<Element>().ok()?), numbers),
        None => (None, text),
    };
    let numbers = numbers.split(',').map(number).collect::<Option<Vec<Number>>>()?;
    Some(ArgumentValue { element, numbers })
}

fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    match text {
        "true" => return Some(Number::Integer(1)),
        "false" => return Some(Number::Integer(0)),
        _ => {}
    }
    let whole = text.parse().map(Number::Integer).or_else(|_| text.parse().map(Number::Unsigned));
    whole.ok().or_else(|| text.parse().ok().filter(|real: &f64| !real.is_nan()).map(Number::Real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_type() {
        let value = |text: &str| {
            value_of(text, &["box", "lanczos"]).map(|value| (value.element, value.numbers))
        };
        assert_eq!(value("-3"), Some((None, vec![Number::Integer(-3)])));
        assert_eq!(value("1e-3"), Some((None, vec![Number::Real(1e-3)])));
        assert_eq!(value("18446744073709551615"), Some((None, vec![Number::Unsigned(u64::MAX)])));
        let list = vec![Number::Integer(1), Number::Real(2.5)];
        assert_eq!(value("f32:1, 2.5"), Some((Some(Element::F32), list)));
        assert_eq!(value("lanczos"), Some((None, vec![Number::Integer(1)])));
        for bad in ["", "x", "nan", "f16:1", "1,,2", "f32:"] {
            assert_eq!(value(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_right_ones() {
        let error = not_understood("filter", "foo", &["box", "lanczos"]).to_string();
        assert_eq!(error, "error: --arg filter: `foo` is not one of: box, lanczos");
        let error = not_understood("radius", "foo", &[]).to_string();
        assert!(error.contains("`foo` is not a number\nhint: write 3"), "{error}");
    }

    #[test]
    fn jobs_are_named_after_their_kernel() {
        assert_eq!(default_name("a/blur.cu"), "blur");
        assert_eq!(default_name("builtin:merge"), "merge");
    }
}
