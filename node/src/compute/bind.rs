//! Binds inputs and arguments to a kernel's variables by name. Errors about missing, unknown or
//! mistyped values list the kernel's variables.

use super::bind_error::BindError;
use super::notes::{Accesses, chunk_multiple, notes_chunks, output_elements, stored_elements};
pub(crate) use super::values::builtin_values;
use super::values::bytes_of;
use super::variables::{find, is_array, is_output, known, wrong};
use tessera_kernels::compute::{ArrayParams, BLOCK_THREADS, ChunkParams, ENTRY};
use tessera_protocol::compute::{Block, ComputeSpec, Domain, Element, Program};
use tessera_ptx::{Kernel, Module, Space, Variable};

/// Most shared memory that a kernel can declare with a size, on any device.
const STATIC_SHARED_BYTES_MAX: u32 = 48 << 10;

/// A kernel with the values of all its variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The entry to launch.
    pub entry: String,
    /// Threads of a block.
    pub block: Block,
    /// Dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// Variables and their bytes. Arrays are bound by the names of the inputs.
    pub values: Vec<(String, Vec<u8>)>,
    /// Variables that the kernel can write. Each gets its first value again before every chunk.
    pub writable: Vec<Writable>,
}

/// A variable that a kernel can write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writable {
    /// Name of the variable.
    pub name: String,
    /// Whether it is zero at the start.
    pub is_zero: bool,
}

/// Binds the inputs and arguments of a job to the variables of its kernel, of which `ptx` is the
/// text.
///
/// # Errors
/// The first thing that does not fit.
pub fn bind(ptx: &str, spec: &ComputeSpec) -> Result<Bound, BindError> {
    let mut values = match &spec.program {
        Program::Builtin(name) => builtin_values(name, spec)?,
        Program::Ptx(_) | Program::Cuda(_) => Vec::new(),
    };
    let module = Module::parse(ptx)?;
    let entry = match &spec.program {
        Program::Builtin(name) => name.as_str(),
        Program::Ptx(_) | Program::Cuda(_) => ENTRY,
    };
    let kernel = check_entry(&module, entry)?;
    let block = block_of(kernel, spec)?;
    check_shared(&module, kernel, spec)?;
    for input in &spec.inputs {
        let variable = find(&module, &input.name)?;
        let builtin = !spec.needs_cuda() && variable.bytes == ArrayParams::BYTES as u64;
        if !builtin && !is_array(variable) {
            return Err(wrong(variable, "an input goes into a `__constant__ TesseraArray`"));
        }
    }
    check_outputs(ptx, &module, spec)?;
    if spec.needs_cuda() {
        check_notes(ptx, spec)?;
        check_chunks(&module, kernel, (spec, block))?;
        let unbound = |variable: &&Variable| {
            is_array(variable) && !spec.inputs.iter().any(|input| input.name == variable.name)
        };
        if let Some(variable) = module.variables().iter().find(unbound) {
            return Err(BindError::Missing(variable.name.clone()));
        }
        for argument in &spec.arguments {
            let variable = find(&module, &argument.name)?;
            values.push((argument.name.clone(), bytes_of(variable, argument)?));
        }
    }
    let writable = writable(&module, spec);
    let entry = entry.to_owned();
    Ok(Bound { entry, block, shared_bytes: spec.shared_bytes, values, writable })
}

fn names(elements: &[Element]) -> String {
    elements.iter().map(|element| element.name()).collect::<Vec<_>>().join(", ")
}

/// Compares the job's outputs with the kernel's variables, and with what it stores into them.
fn check_outputs(ptx: &str, module: &Module, spec: &ComputeSpec) -> Result<(), BindError> {
    let stores = Accesses::stores(ptx);
    for output in &spec.outputs {
        let variable = find(module, &output.name)?;
        if !is_output(variable) {
            return Err(wrong(variable, "an output goes into a `__constant__ TesseraOutput`"));
        }
        let stored = stores.mismatch(&output.name, output.element);
        if !stored.is_empty() {
            let (name, stored) = (output.name.clone(), names(&stored));
            return Err(BindError::Output { name, stored, element: output.element });
        }
    }
    let all: Vec<&str> = outputs_of(module).map(|variable| variable.name.as_str()).collect();
    let asked = |name: &&&str| spec.outputs.iter().any(|output| output.name == **name);
    if let Some(name) = all.iter().find(|name| !asked(name)) {
        let stored = output_elements(ptx).remove(*name).unwrap_or_default();
        let element = stored.first().map_or("TYPE", |element| element.name()).to_owned();
        let (name, known) = ((*name).to_owned(), known(module));
        return Err(BindError::MissingOutput { name, element, known });
    }
    match all.is_empty() || stored_elements(ptx).is_empty() {
        true => Ok(()),
        false => Err(BindError::TwoForms(all.join(", "))),
    }
}

fn outputs_of(module: &Module) -> impl Iterator<Item = &Variable> {
    module.variables().iter().filter(|variable| is_output(variable))
}

/// Returns the names of the kernel's outputs, which are variables of the type `TesseraOutput`.
///
/// # Errors
/// The text is not PTX.
pub fn output_names(ptx: &str) -> Result<Vec<String>, BindError> {
    let module = Module::parse(ptx)?;
    Ok(outputs_of(&module).map(|variable| variable.name.clone()).collect())
}

/// Compares what the kernel's notes say of its types with the job.
fn check_notes(ptx: &str, spec: &ComputeSpec) -> Result<(), BindError> {
    let stored: Vec<Element> = stored_elements(ptx).into_iter().collect();
    let is_plain = spec.outputs.is_empty();
    if is_plain && !stored.is_empty() && !stored.contains(&spec.element) {
        return Err(BindError::Element { stored: names(&stored), element: spec.element });
    }
    let loads = Accesses::loads(ptx);
    for input in &spec.inputs {
        let loaded = loads.mismatch(&input.name, input.element);
        if let Some(first) = loaded.first() {
            return Err(BindError::Load {
                name: input.name.clone(),
                loaded: names(&loaded),
                element: input.element,
                convert: format!("{}.astype(np.{})", input.name, first.numpy_name()),
            });
        }
    }
    Ok(())
}

/// Compares what the kernel needs of its chunks with what the job promises.
fn check_chunks(
    module: &Module,
    kernel: &Kernel,
    (spec, block): (&ComputeSpec, Block),
) -> Result<(), BindError> {
    let needed = chunk_multiple(module, &spec.domain).ok_or(BindError::ChunkNote)?;
    let promised = spec.chunk_align.max(1);
    if !promised.is_multiple_of(needed) {
        return Err(BindError::Chunks { needed, promised });
    }
    let indices = spec.chunk_indices();
    let chunks = spec.domain.len().div_ceil(indices.into());
    match &kernel.exchange {
        Some(instruction) if chunks > 1 && !spec.says_chunks() && !notes_chunks(module) => {
            let (threads, width) = (block.threads(), spec.domain.width);
            let instruction = instruction.clone();
            Err(BindError::Unaligned { instruction, chunks, indices, threads, width })
        }
        _ => Ok(()),
    }
}

/// Returns the number of indices of which the kernel's chunks must be multiples, if it says one.
///
/// # Errors
/// The text is not PTX, or its note is not a number of indices.
pub fn chunk_multiple_of(ptx: &str, domain: &Domain) -> Result<Option<u32>, BindError> {
    let module = Module::parse(ptx)?;
    let multiple = chunk_multiple(&module, domain).ok_or(BindError::ChunkNote)?;
    Ok(notes_chunks(&module).then_some(multiple))
}

/// Returns the variables in global memory; the kernel cannot write others.
fn writable(module: &Module, spec: &ComputeSpec) -> Vec<Writable> {
    let is_set = |name: &str| {
        spec.inputs.iter().any(|input| input.name == name)
            || spec.arguments.iter().any(|argument| argument.name == name)
            || spec.outputs.iter().any(|output| output.name == name)
    };
    let variables = module.variables().iter().filter(|variable| variable.space == Space::Global);
    variables
        .map(|variable| Writable {
            name: variable.name.clone(),
            is_zero: variable.initial().iter().all(|byte| *byte == 0) && !is_set(&variable.name),
        })
        .collect()
}

fn check_entry<'m>(module: &'m Module, entry: &str) -> Result<&'m Kernel, BindError> {
    let Some(kernel) = module.kernel(entry) else {
        let names: Vec<&str> =
            module.kernels().iter().map(|kernel| kernel.name.as_str()).take(8).collect();
        return Err(BindError::Entry(match names.is_empty() {
            true => "there is no kernel at all".to_owned(),
            false => format!("it has {}", names.join(", ")),
        }));
    };
    match (kernel.parameters.len(), kernel.parameter_bytes as usize) {
        (1, ChunkParams::BYTES) => Ok(kernel),
        (count, bytes) => Err(BindError::Entry(format!(
            "it takes {count} parameters of {bytes} bytes; include \"tessera.cuh\""
        ))),
    }
}

/// Returns the threads of a block: as the job says, else as many as the kernel's bounds say, else
/// [`BLOCK_THREADS`].
fn block_of(kernel: &Kernel, spec: &ComputeSpec) -> Result<Block, BindError> {
    let most = kernel.threads_max.max(1);
    if let Some([x, y, z]) = kernel.block_required {
        let required = Block { x, y, z };
        return match spec.block {
            None if required.is_line() => Ok(required),
            Some(block) if block == required => Ok(required),
            _ => Err(BindError::Launch(format!(
                "the kernel takes blocks of {required} threads and no others (.reqntid): give \
                    --block {required}"
            ))),
        };
    }
    match spec.block {
        Some(block) if kernel.has_bounds && block.threads() > most => {
            Err(BindError::Launch(format!(
                "--block {block} has {} threads, more than the {most} that the kernel's \
                __launch_bounds__ allow",
                block.threads()
            )))
        }
        Some(block) => Ok(block),
        None if kernel.has_bounds => Ok(Block::line(most)),
        None => Ok(Block::line(BLOCK_THREADS)),
    }
}

fn check_shared(module: &Module, kernel: &Kernel, spec: &ComputeSpec) -> Result<(), BindError> {
    if kernel.has_dynamic_shared && spec.shared_bytes == 0 {
        return Err(BindError::Launch(
            "the kernel has dynamic shared memory (extern __shared__): give its size with \
                --shared BYTES"
                .to_owned(),
        ));
    }
    // The text does not say which of several kernels uses what is declared.
    if module.kernels().len() == 1 && kernel.shared_bytes > STATIC_SHARED_BYTES_MAX {
        return Err(BindError::Launch(format!(
            "the kernel declares {} bytes of __shared__ memory, more than the \
                {STATIC_SHARED_BYTES_MAX} that a compiler allows; declare it extern __shared__, \
                and give its size with --shared BYTES",
            kernel.shared_bytes
        )));
    }
    Ok(())
}

#[cfg(test)]
#[path = "bind_tests.rs"]
mod tests;
