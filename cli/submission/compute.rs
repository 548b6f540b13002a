//! Turns the options of `compute` into a job spec and its files. Compiles kernels where NVRTC is
//! found. Sends nothing.

use super::arguments;
use super::compute_files::{ComputeFiles, hashed, split, usage};
use super::headers::{self, Found};
use super::inputs::{Inputs, inputs};
use super::job_inputs::KnownJobs;
use super::outputs;
use crate::args::compute::ComputeArgs;
use crate::error::{CliError, Status};
use crate::kernel_text;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use tempfile::NamedTempFile;
use tessera_node::compute::{self as node, BindError};
use tessera_nvrtc::{Nvrtc, NvrtcError};
use tessera_protocol::compute::{
    Argument, ArgumentValue, ComputeFormat, ComputeSpec, Element, Number, Program, PtxNeeds,
    least_common_multiple,
};
use tessera_protocol::job::AssetFile;
use tessera_protocol::limits::PROGRAM_BYTES_MAX;
use tessera_protocol::names::file_name;
use tessera_protocol::{JobKind, JobSpec, RawJobSpec};

/// A job and its files.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) spec: JobSpec,
    pub(crate) files: ComputeFiles,
}

/// A kernel as nodes get it.
#[derive(Clone, Debug)]
struct Kernel {
    program: Program,
    /// Its headers, where a node compiles it.
    headers: Vec<AssetFile>,
    /// Its PTX, where it is known here.
    ptx: Option<Arc<str>>,
    files: ComputeFiles,
}

/// Kernels that are read and compiled once for all jobs that run them.
#[derive(Debug, Default)]
pub(crate) struct Kernels(HashMap<String, Kernel>);

impl Kernels {
    fn of(&mut self, kernel: &str, args: &ComputeArgs) -> Result<Kernel, CliError> {
        let key = format!("{kernel:?} {:?} {}", args.include, args.compile_on_node);
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        let mut files = ComputeFiles::default();
        let (program, headers, ptx) = program(kernel, args, &mut files)?;
        let read = Kernel { program, headers, ptx: ptx.map(Arc::from), files };
        self.0.insert(key, read.clone());
        Ok(read)
    }
}

/// The job of these options, checked as far as this machine can. Blocks: reads and hashes files,
/// compiles.
pub(crate) fn prepare(
    args: &ComputeArgs,
    kernels: &mut Kernels,
    known: &KnownJobs,
) -> Result<Prepared, CliError> {
    let (Some(kernel), Some(domain)) = (&args.kernel, args.domain) else {
        return Err(usage("a kernel and --domain are needed"));
    };
    let mut files = ComputeFiles::default();
    let Kernel { program, headers, ptx, files: of_kernel } = kernels.of(kernel, args)?;
    files.add_all(&of_kernel);
    let Inputs { inputs, of_frames: frame_inputs, after } = inputs(args, &mut files, known)?;
    let mut arguments = arguments(args, &program)?;
    arguments.sort_by(|a, b| a.name.cmp(&b.name));
    let element = element(args, ptx.as_deref())?;
    let outputs = outputs::outputs(&args.output, ptx.as_deref())?;
    let (feed, feed_from) = outputs::feed(args.feed.as_deref());
    let sent = ptx.as_deref().filter(|_| matches!(program, Program::Ptx(_)));
    let about =
        |error: BindError| CliError::new(Status::Usage, error).context(format!("`{kernel}`"));
    let needed = ptx.as_ref().map_or(Ok(None), |ptx| node::chunk_multiple_of(ptx, &domain));
    let chunk_align = chunk_align(args, needed.map_err(about)?)?;
    let compute = ComputeSpec {
        ptx: sent.and_then(PtxNeeds::read),
        program,
        headers,
        inputs,
        frame_inputs,
        arguments,
        domain,
        outputs,
        channels: args.channels,
        element,
        reduction: args.reduce,
        keys: args.keys,
        formats: formats(args)?,
        chunk: args.chunk,
        chunk_align,
        frames: args.frames.clone(),
        feed,
        feed_from,
        steps: args.steps,
        block: args.block,
        shared_bytes: args.shared,
        seed: args.seed,
        time_limit_secs: args.time_limit,
        nondeterministic: args.nondeterministic,
    };
    if let Some(ptx) = ptx {
        node::bind(&ptx, &compute).map_err(about)?;
    }
    let device_bytes = compute.device_bytes();
    let name = args.name.clone().unwrap_or_else(|| default_name(kernel));
    let kind = JobKind::Compute(compute);
    let (priority, pool, max_nodes) = (args.priority, args.pool.clone(), args.max_nodes);
    let mut retry = args.tries.policy();
    if args.local {
        // This process is the only node there will be.
        retry.give_up_secs.get_or_insert(0);
    }
    let (notify, not_before) = (args.notify.clone(), args.after.not_before);
    let named = JobSpec { notify, after, not_before, ..JobSpec::new(name, kind) };
    let spec = JobSpec { priority, device_bytes, pool, retry, max_nodes, ..named };
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
        // Each of them has a type. Binding finds that the kernel stores into the chunk, too.
        _ if !args.output.is_empty() => Ok(Element::F32),
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

/// The multiple of indices that every chunk holds: of what is asked for and of what the kernel
/// needs; 0 where neither says anything.
fn chunk_align(args: &ComputeArgs, needed: Option<u32>) -> Result<u32, CliError> {
    if args.chunk_align.is_none() && needed.is_none() {
        return Ok(0);
    }
    let (asked, needed) = (args.chunk_align.unwrap_or(1), needed.unwrap_or(1));
    let multiple = least_common_multiple(asked.into(), needed.into());
    u32::try_from(multiple).ok().filter(|multiple| *multiple > 0).ok_or_else(|| {
        usage(format!("--chunk-align: {asked} does not go with the {needed} of the kernel"))
            .hint("leave it out: the kernel says by itself what it needs")
    })
}

/// Makes a job's name from the name of its kernel.
fn default_name(kernel: &str) -> String {
    let stem = Path::new(kernel).file_stem().unwrap_or_default().to_string_lossy();
    file_name(kernel.strip_prefix("builtin:").unwrap_or(&stem))
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

/// The program, its headers where a node compiles it, and its PTX where it is known here.
fn program(
    kernel: &str,
    args: &ComputeArgs,
    files: &mut ComputeFiles,
) -> Result<(Program, Vec<AssetFile>, Option<String>), CliError> {
    let is_source = |path: &Path| {
        path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("ptx"))
    };
    if !args.include.is_empty() && (kernel.starts_with("builtin:") || !is_source(kernel.as_ref())) {
        return Err(usage(format!("--include: `{kernel}` is not compiled, so it takes no header")));
    }
    if let Some(name) = kernel.strip_prefix("builtin:") {
        let program = Program::Builtin(name.to_owned());
        return Ok((program, vec![], Some(tessera_node::compute::builtin_ptx().to_owned())));
    }
    let path = Path::new(kernel);
    let text = read_kernel(path)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !is_source(path) {
        return Ok((Program::Ptx(asset(&name, path, files)?), vec![], Some(text)));
    }
    let found = headers::find(path, (&name, &text), &args.include)?;
    let compiled = if args.compile_on_node { None } else { compile(&name, &text, &found)? };
    let Some(ptx) = compiled else {
        let headers = found.iter().map(|found| asset(&found.header.name, &found.path, files));
        let headers = headers.collect::<Result<Vec<_>, _>>()?;
        return Ok((Program::Cuda(asset(&name, path, files)?), headers, None));
    };
    let mut file = NamedTempFile::new()?;
    file.write_all(ptx.as_bytes())?;
    file.flush()?;
    let program = Program::Ptx(asset(&name, file.path(), files)?);
    files.compiled = Some(Arc::new(file));
    Ok((program, vec![], Some(ptx)))
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
fn compile(name: &str, source: &str, found: &[Found]) -> Result<Option<String>, CliError> {
    let compiler = match Nvrtc::find() {
        Ok(compiler) => compiler,
        Err(NvrtcError::NotFound { .. }) => {
            tracing::warn!("no NVRTC here: `{name}` is sent as it is, for a node to compile");
            return Ok(None);
        }
        Err(error) => return Err(CliError::new(Status::Failure, error).context("NVRTC")),
    };
    let headers: Vec<node::Header> = found.iter().map(|found| found.header.clone()).collect();
    let compiled = node::compile(&compiler, (name, source), &headers).map_err(|error| {
        CliError::new(Status::Failure, error).context(format!("`{name}`")).hint(
            "`tessera compute --header` prints what every kernel may include, --include adds \
                headers of your own; docs/compute.md has an example",
        )
    })?;
    kernel_text::show_lines(&compiled.log);
    Ok(Some(compiled.ptx))
}

fn asset(name: &str, path: &Path, files: &mut ComputeFiles) -> Result<AssetFile, CliError> {
    let (hash, length) = hashed(path)?;
    files.add(hash, length, path);
    Ok(AssetFile { path: name.to_owned(), hash, length })
}

fn arguments(args: &ComputeArgs, program: &Program) -> Result<Vec<Argument>, CliError> {
    let mut arguments = Vec::new();
    for text in &args.arg {
        let (name, value) = split("arg", text)?;
        let words = words(program, name);
        let value = value_of(value, &words).ok_or_else(|| not_understood(name, value, &words))?;
        arguments.push(Argument { name: name.to_owned(), value });
    }
    if let Some(path) = &args.args {
        let of_text = |name: &str, text: &str| {
            let words = words(program, name);
            value_of(text, &words).ok_or_else(|| not_understood(name, text, &words))
        };
        let in_file = arguments::read(path, of_text)?;
        let given: Vec<String> = arguments.iter().map(|argument| argument.name.clone()).collect();
        arguments.extend(in_file.into_iter().filter(|argument| !given.contains(&argument.name)));
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
        let halves = vec![Number::Real(0.5), Number::Integer(1)];
        assert_eq!(value("f16:0.5,1"), Some((Some(Element::F16), halves)));
        assert_eq!(value("bool:true"), Some((Some(Element::Bool), vec![Number::Integer(1)])));
        assert_eq!(value("lanczos"), Some((None, vec![Number::Integer(1)])));
        for bad in ["", "x", "nan", "f8:1", "1,,2", "f32:"] {
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
