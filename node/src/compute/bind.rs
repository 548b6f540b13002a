//! Binds inputs and arguments to a kernel's variables by name. Errors about missing, unknown or
//! mistyped values list the kernel's variables.

use super::notes::{
    Accesses, chunk_multiple, is_note, notes_chunks, output_elements, stored_elements,
};
use tessera_kernels::compute::{
    ArrayParams, BLOCK_THREADS, ChunkParams, ENTRY, OutputParams, builtin,
};
use tessera_protocol::compute::{
    Argument, Block, ComputeSpec, Domain, Element, Number, Program, half_of_f64,
};
use tessera_ptx::{Kernel, Module, ParseError, Space, Type, TypeKind, Variable};

/// Most shared memory that a kernel can declare with a size, on any device.
const STATIC_SHARED_BYTES_MAX: u32 = 48 << 10;

/// Why a kernel cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The text is not PTX.
    #[error("the PTX cannot be read")]
    Parse(#[from] ParseError),
    /// There is no entry of that name, or it has other parameters.
    #[error("the kernel must be `extern \"C\" __global__ void {ENTRY}(TesseraChunk chunk)`; {0}")]
    Entry(String),
    /// The kernel has no variable for an input or argument.
    #[error("the kernel has no variable `{name}`; it has {known}")]
    Unknown {
        /// Name that was given.
        name: String,
        /// Names of the kernel's variables.
        known: String,
    },
    /// No input fills this variable.
    #[error("the kernel reads the array `{0}`: give --input {0}=FILE.npy")]
    Missing(String),
    /// No output is asked for of this variable.
    #[error(
        "the kernel writes the output `{name}`: give --output {name}={element}; it has {known}"
    )]
    MissingOutput {
        /// Name of the variable.
        name: String,
        /// Type that the kernel stores, or the word TYPE.
        element: String,
        /// Names of the kernel's variables.
        known: String,
    },
    /// The kernel stores another type into an output than the job names.
    #[error(
        "the kernel stores {stored} into the output `{name}`, and --output says {element}: give \
            --output {name}={stored}, or change the kernel"
    )]
    Output {
        /// Name of the variable.
        name: String,
        /// Types of its `tessera_store`, separated by commas.
        stored: String,
        /// Element type of the job.
        element: Element,
    },
    /// The kernel has named outputs, and stores into the chunk as well.
    #[error(
        "the kernel has named outputs ({0}), and a tessera_store(chunk, ...) as well: store into \
            an output instead"
    )]
    TwoForms(String),
    /// A value has another type or size than the variable.
    #[error("`{name}` is {found} in the kernel: {problem}")]
    Type {
        /// Name of the variable.
        name: String,
        /// Type of the variable.
        found: String,
        /// Description of the fault.
        problem: String,
    },
    /// The kernel stores another element type than the job names.
    #[error(
        "the kernel stores {stored}, and --element says {element}; leave that out, or change the \
            kernel"
    )]
    Element {
        /// Types of its `tessera_store`, separated by commas.
        stored: String,
        /// Element type of the job.
        element: Element,
    },
    /// The kernel cannot be launched with such blocks, or without shared memory.
    #[error("{0}")]
    Launch(String),
    /// The kernel loads another element type than an input has.
    #[error(
        "the kernel reads `{name}` as {loaded}, and the input holds {element}: convert it \
            ({convert}), or change the kernel's tessera_load"
    )]
    Load {
        /// Name of the input.
        name: String,
        /// Types of the kernel's `tessera_load` of it, separated by commas.
        loaded: String,
        /// Type of the input.
        element: Element,
        /// Call of NumPy that converts the input.
        convert: String,
    },
    /// The kernel needs whole multiples of more indices than the job promises.
    #[error(
        "the kernel needs chunks of a multiple of {needed} indices, and the job's are of \
            {promised}: give --chunk-align {needed}"
    )]
    Chunks {
        /// Number of indices.
        needed: u32,
        /// Number of indices of which the job's chunks are multiples.
        promised: u32,
    },
    /// The threads of the kernel's blocks work together, and nothing says what a chunk holds.
    #[error(
        "the kernel's threads work together (`{instruction}`), and nothing says where a chunk may \
            begin: the domain's {chunks} chunks begin every {indices} indices. Write \
            TESSERA_CHUNK_ALIGN(N); outside of the kernel's functions, or give --chunk-align N. N \
            is {threads} where each block has a range of indices of its own, the height of a tile \
            times the domain's width, {width}, where blocks make tiles of it, and 1 where a chunk \
            may begin anywhere"
    )]
    Unaligned {
        /// The first instruction by which they do.
        instruction: String,
        /// Number of chunks.
        chunks: u64,
        /// Indices of a chunk.
        indices: u32,
        /// Threads of a block.
        threads: u32,
        /// Indices in a row of the domain.
        width: u32,
    },
    /// The kernel's note on its chunks is no number of indices.
    #[error("the multiple that the kernel asks for its chunks is 0 or more than a chunk holds")]
    ChunkNote,
    /// The built-in kernel does not accept the value.
    #[error("{0}")]
    Builtin(String),
}

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

fn find<'m>(module: &'m Module, name: &str) -> Result<&'m Variable, BindError> {
    let found = module.variables().iter().find(|variable| variable.name == name);
    found.ok_or_else(|| BindError::Unknown { name: name.to_owned(), known: known(module) })
}

/// Returns the names of the kernel's variables, for people.
fn known(module: &Module) -> String {
    let all: Vec<String> = module
        .variables()
        .iter()
        .filter(|variable| !is_nameless(variable) && !is_note(variable))
        .take(32)
        .map(|variable| format!("{} ({})", variable.name, description(variable)))
        .collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// Returns whether a variable is a `TesseraArray`, judged by its size and alignment, because PTX
/// has no names of structures.
fn is_array(variable: &Variable) -> bool {
    variable.bytes == ArrayParams::VARIABLE_BYTES
        && u64::from(variable.align) == ArrayParams::VARIABLE_BYTES
        && variable.element.bits == 8
}

/// Returns whether a variable is a `TesseraOutput`, judged in the same way.
fn is_output(variable: &Variable) -> bool {
    variable.bytes == OutputParams::VARIABLE_BYTES
        && u64::from(variable.align) == OutputParams::VARIABLE_ALIGN
        && variable.element.bits == 8
}

/// Returns whether a variable is of the compiler's making, such as a text.
fn is_nameless(variable: &&Variable) -> bool {
    variable.name.starts_with('$') || variable.name.starts_with("__unnamed_")
}

fn description(variable: &Variable) -> String {
    if is_array(variable) {
        return "an array".to_owned();
    }
    if is_output(variable) {
        return "an output".to_owned();
    }
    let Type { kind, bits } = variable.element;
    let name = match kind {
        TypeKind::Float => format!("f{bits}"),
        // PTX does not keep the sign of a variable.
        _ => format!("{bits}-bit integer"),
    };
    match variable.bytes == variable.element.bytes() {
        true => name,
        false => format!("{} bytes", variable.bytes),
    }
}

fn wrong(variable: &Variable, problem: impl Into<String>) -> BindError {
    BindError::Type {
        name: variable.name.clone(),
        found: description(variable),
        problem: problem.into(),
    }
}

/// Returns the bytes of an argument in its variable.
fn bytes_of(variable: &Variable, argument: &Argument) -> Result<Vec<u8>, BindError> {
    if is_array(variable) {
        return Err(wrong(variable, format!("give it with --input {}=FILE.npy", variable.name)));
    }
    if is_output(variable) {
        return Err(wrong(variable, format!("give it with --output {}=TYPE", variable.name)));
    }
    if is_note(variable) {
        return Err(wrong(variable, "it is the kernel's own; --chunk-align sets more"));
    }
    let (element, numbers) = (&argument.value.element, &argument.value.numbers);
    let single = variable.bytes == variable.element.bytes();
    let bytes: Result<Vec<Vec<u8>>, String> = match element {
        Some(element) => numbers.iter().map(|number| element_bytes(*element, *number)).collect(),
        None if !single => {
            let name = &variable.name;
            return Err(wrong(variable, format!("say of which type: --arg {name}=f32:1,2,3")));
        }
        None => numbers.iter().map(|number| scalar_bytes(variable.element, *number)).collect(),
    };
    let bytes = bytes.map_err(|problem| wrong(variable, problem))?.concat();
    let fits = element.is_none_or(|element| {
        !single
            || (element.bytes() as u64 == variable.bytes
                && element.is_float() == is_float(variable))
    });
    if bytes.len() as u64 != variable.bytes || !fits {
        let given = element.map_or("", |element| element.name());
        return Err(wrong(variable, format!("{} numbers {given} do not fit", numbers.len())));
    }
    Ok(bytes)
}

fn is_float(variable: &Variable) -> bool {
    variable.element.kind == TypeKind::Float
}

/// Returns a number as a variable of this type stores it. PTX does not keep the sign of an integer,
/// so both ranges are accepted.
fn scalar_bytes(of: Type, number: Number) -> Result<Vec<u8>, String> {
    match (of.kind, of.bits) {
        (TypeKind::Float, 32) => element_bytes(Element::F32, number),
        (TypeKind::Float, 64) => element_bytes(Element::F64, number),
        (TypeKind::Float | TypeKind::Predicate, _) => {
            Err("such a variable cannot be set".to_owned())
        }
        (_, bits) => {
            let whole = whole(number)?;
            let (least, most) = (-(1i128 << (bits - 1)), (1i128 << bits) - 1);
            if !(least..=most).contains(&whole) {
                return Err(format!("{whole} does not fit {bits} bits"));
            }
            Ok(whole.to_le_bytes()[..usize::from(bits / 8)].to_vec())
        }
    }
}

fn element_bytes(element: Element, number: Number) -> Result<Vec<u8>, String> {
    let range = |least: i128, most: i128| {
        let whole = whole(number)?;
        match (least..=most).contains(&whole) {
            true => Ok(whole.to_le_bytes()[..element.bytes()].to_vec()),
            false => Err(format!("{whole} is not in {least} to {most}")),
        }
    };
    match element {
        Element::F64 => Ok(real(number).to_le_bytes().to_vec()),
        Element::F32 => {
            let (exact, rounded) = (real(number), real(number) as f32);
            match rounded.is_finite() || exact.is_infinite() {
                true => Ok(rounded.to_le_bytes().to_vec()),
                false => Err(format!("{exact:e} is beyond f32")),
            }
        }
        Element::F16 => {
            let (exact, bits) = (real(number), half_of_f64(real(number)));
            match bits & 0x7fff == 0x7c00 && exact.is_finite() {
                true => Err(format!("{exact:e} is beyond f16")),
                false => Ok(bits.to_le_bytes().to_vec()),
            }
        }
        // Real and imaginary parts are numbers one after another.
        Element::Complex64 => element_bytes(Element::F32, number),
        Element::Complex128 => element_bytes(Element::F64, number),
        Element::Bool => range(0, 1),
        Element::U8 => range(0, u8::MAX.into()),
        Element::I8 => range(i8::MIN.into(), i8::MAX.into()),
        Element::U16 => range(0, u16::MAX.into()),
        Element::I16 => range(i16::MIN.into(), i16::MAX.into()),
        Element::I32 => range(i32::MIN.into(), i32::MAX.into()),
        Element::U32 => range(0, u32::MAX.into()),
        Element::I64 => range(i64::MIN.into(), i64::MAX.into()),
        Element::U64 => range(0, u64::MAX.into()),
    }
}

fn whole(number: Number) -> Result<i128, String> {
    match number {
        Number::Integer(value) => Ok(value.into()),
        Number::Unsigned(value) => Ok(value.into()),
        Number::Real(value) => Err(format!("{value} is not a whole number")),
    }
}

fn real(number: Number) -> f64 {
    match number {
        Number::Integer(value) => value as f64,
        Number::Unsigned(value) => value as f64,
        Number::Real(value) => value,
    }
}

/// Returns the numbers of a built-in kernel, after a check of its inputs and result.
pub(crate) fn builtin_numbers(name: &str, spec: &ComputeSpec) -> Result<Vec<u32>, BindError> {
    let kernel = builtin(name).ok_or_else(|| {
        let all: Vec<&str> =
            tessera_kernels::compute::BUILTINS.iter().map(|kernel| kernel.name).collect();
        BindError::Builtin(format!(
            "there is no built-in kernel `{name}`; there are {}",
            all.join(", ")
        ))
    })?;
    let inputs: Vec<_> = spec
        .inputs
        .iter()
        .map(|input| tessera_kernels::compute::InputShape {
            name: &input.name,
            is_f32: input.element == Element::F32,
            shape: &input.shape,
        })
        .collect();
    let known = |name: &str| kernel.variables.iter().any(|variable| variable.name == name);
    let names =
        inputs.iter().map(|input| input.name).chain(spec.arguments.iter().map(|a| a.name.as_str()));
    if let Some(name) = names.into_iter().find(|name| !known(name)) {
        let all: Vec<&str> = kernel.variables.iter().map(|variable| variable.name).collect();
        return Err(BindError::Unknown { name: name.to_owned(), known: all.join(", ") });
    }
    let domain = &spec.domain;
    let result = (spec.channels, spec.element == Element::F32);
    let edges = [domain.width, domain.height, domain.depth];
    kernel.check(edges, result, &inputs).map_err(BindError::Builtin)?;
    let given = |name: &str| {
        let argument = spec.arguments.iter().find(|argument| argument.name == name)?;
        argument.value.numbers.first().map(|number| real(*number))
    };
    kernel.numbers(given).map_err(BindError::Builtin)
}

/// Returns the kernel's variables by name, and their bytes.
fn builtin_values(name: &str, spec: &ComputeSpec) -> Result<Vec<(String, Vec<u8>)>, BindError> {
    let numbers = builtin_numbers(name, spec)?;
    let variables = builtin(name).map_or(&[][..], |kernel| kernel.variables);
    let names =
        variables.iter().map(|variable| variable.name).skip(variables.len() - numbers.len());
    Ok(names
        .map(str::to_owned)
        .zip(numbers.iter().map(|bits| bits.to_le_bytes().to_vec()))
        .collect())
}

#[cfg(test)]
#[path = "bind_tests.rs"]
mod tests;
