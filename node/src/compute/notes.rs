//! What `tessera.cuh` leaves in the PTX for Tessera to read: the types that a kernel stores, into
//! its chunk and into named outputs, and loads, and the multiple of indices that its chunks must
//! hold. Reads text; refuses nothing.

use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::compute::{Domain, Element, least_common_multiple};
use tessera_ptx::{Module, Variable};

/// Mark that `tessera_store` into the chunk leaves, before the name of its type.
const STORED: &str = "// tessera_store ";
/// Mark that `tessera_store` into a named output leaves, before the name of its type and the
/// register that holds the address of the values.
const STORED_IN: &str = "// tessera_output ";
/// Mark that `tessera_load` leaves, before the name of its type and the register that holds the
/// address of the values.
const LOADED: &str = "// tessera_load ";
/// Variable by which a kernel asks for a multiple of indices.
const CHUNK_ALIGN: &str = "tessera_chunk_align";
/// Variable by which a kernel asks for a multiple of rows of the domain.
const CHUNK_ROWS: &str = "tessera_chunk_rows";
/// Most instructions that are looked at to find the array of one load or store.
const TRACE_MAX: usize = 64;

/// Returns whether a variable is a note to Tessera, and no argument.
pub(super) fn is_note(variable: &Variable) -> bool {
    variable.name == CHUNK_ALIGN || variable.name == CHUNK_ROWS
}

/// Returns whether a kernel says what its chunks must hold.
pub(super) fn notes_chunks(module: &Module) -> bool {
    module.variables().iter().any(is_note)
}

/// Returns the number of indices of which a kernel's chunks must be multiples, over a domain; 1 if
/// it says nothing. `None` if the number is 0 or too large for a chunk.
pub(super) fn chunk_multiple(module: &Module, domain: &Domain) -> Option<u32> {
    let note = |name: &str| {
        let variable = module.variables().iter().find(|variable| variable.name == name)?;
        let mut bytes = [0; 4];
        let initial = &variable.initial()[..variable.initial().len().min(4)];
        bytes[..initial.len()].copy_from_slice(initial);
        Some(u64::from(u32::from_le_bytes(bytes)))
    };
    let indices = note(CHUNK_ALIGN).unwrap_or(1);
    let rows = note(CHUNK_ROWS).map_or(1, |rows| rows * u64::from(domain.width));
    u32::try_from(least_common_multiple(indices, rows)).ok().filter(|multiple| *multiple > 0)
}

/// Returns the types that a kernel stores, according to its PTX. Empty if it does not use
/// `tessera_store`.
pub fn stored_elements(ptx: &str) -> BTreeSet<Element> {
    let noted = ptx.lines().filter_map(|line| line.trim().strip_prefix(STORED));
    noted.filter_map(|name| name.trim().parse().ok()).collect()
}

/// Returns the types that a kernel stores into each named output, where its PTX shows which output
/// it is.
pub fn output_elements(ptx: &str) -> BTreeMap<String, BTreeSet<Element>> {
    Accesses::stores(ptx).arrays
}

/// The types that a kernel loads from its arrays, or stores into its named outputs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Accesses {
    /// Types by the name of the array, where the PTX shows which array it is.
    arrays: BTreeMap<String, BTreeSet<Element>>,
    /// Types of the other accesses.
    others: BTreeSet<Element>,
}

impl Accesses {
    /// Returns the types as which an array is accessed, if none of them is the array's. Empty if it
    /// may be right, and the kernel checks it at run time.
    pub(super) fn mismatch(&self, array: &str, element: Element) -> Vec<Element> {
        let types = self.arrays.get(array).filter(|types| !types.contains(&element));
        let types = types.filter(|_| !self.others.contains(&element));
        types.into_iter().flatten().copied().collect()
    }

    /// Finds the loads in a PTX text.
    pub(super) fn loads(ptx: &str) -> Self {
        Self::of(ptx, LOADED)
    }

    /// Finds the stores into named outputs in a PTX text.
    pub(super) fn stores(ptx: &str) -> Self {
        Self::of(ptx, STORED_IN)
    }

    fn of(ptx: &str, mark: &str) -> Self {
        let mut accesses = Self::default();
        if !ptx.contains(mark) {
            return accesses;
        }
        let mut function = Vec::new();
        for line in ptx.lines().map(str::trim) {
            if line.starts_with('.') && (line.contains(".entry") || line.contains(".func")) {
                accesses.add(&function, mark);
                function.clear();
            }
            function.push(line);
        }
        accesses.add(&function, mark);
        accesses
    }

    /// Adds the accesses of one function.
    fn add(&mut self, lines: &[&str], mark: &str) {
        let notes = lines.iter().filter_map(|line| noted(line, mark));
        let notes: BTreeSet<(Element, &str)> = notes.collect();
        if notes.is_empty() {
            return;
        }
        let mut definitions: BTreeMap<&str, Vec<Source<'_>>> = BTreeMap::new();
        for (registers, source) in lines.iter().filter_map(|line| definition(line)) {
            for register in registers {
                definitions.entry(register).or_default().push(source.clone());
            }
        }
        for (element, register) in notes {
            match arrays_of(register, &definitions) {
                Some(names) => names.into_iter().for_each(|name| {
                    self.arrays.entry(name.to_owned()).or_default().insert(element);
                }),
                None => drop(self.others.insert(element)),
            }
        }
    }
}

fn noted<'p>(line: &'p str, mark: &str) -> Option<(Element, &'p str)> {
    let (name, register) = line.strip_prefix(mark)?.split_once(' ')?;
    Some((name.parse().ok()?, register.trim()))
}

/// Where the value of a register comes from.
#[derive(Clone, Debug)]
enum Source<'p> {
    /// The first 8 bytes of a variable: for a `TesseraArray` or a `TesseraOutput`, the address of
    /// its values.
    Variable(&'p str),
    /// One of these registers.
    Registers(Vec<&'p str>),
    /// Something else.
    Other,
}

/// Reads the registers that an instruction writes, and where their value comes from.
fn definition(line: &str) -> Option<(Vec<&str>, Source<'_>)> {
    let line = match line.strip_prefix('@') {
        Some(guarded) => guarded.split_once(char::is_whitespace)?.1.trim_start(),
        None => line,
    };
    let (operation, operands) = line.strip_suffix(';')?.split_once(char::is_whitespace)?;
    let operands = operands.trim();
    let (targets, sources) = match operands.strip_prefix('{') {
        Some(vector) => vector.split_once('}')?,
        None => operands.split_once(',')?,
    };
    let targets: Vec<&str> = targets.split(',').map(str::trim).collect();
    if !targets.iter().all(|target| target.starts_with('%')) {
        return None;
    }
    let sources: Vec<&str> = sources.split(',').map(str::trim).filter(|s| !s.is_empty()).collect();
    let source = match (operation.split('.').next()?, sources.as_slice()) {
        // A vector holds other bytes as well; only a plain load is one address.
        ("ld", [address]) if targets.len() == 1 && operation.ends_with("64") => {
            let name = address.strip_prefix('[').and_then(|address| address.strip_suffix(']'));
            let name = name.filter(|name| !name.contains(['%', '+']) && !is_parameter(operation));
            name.map_or(Source::Other, Source::Variable)
        }
        ("mov" | "cvta", [register]) if register.starts_with('%') => {
            Source::Registers(vec![*register])
        }
        ("selp", [yes, no, _]) => Source::Registers(vec![*yes, *no]),
        _ => Source::Other,
    };
    Some((targets, source))
}

fn is_parameter(operation: &str) -> bool {
    operation.split('.').any(|part| matches!(part, "param" | "local" | "shared"))
}

/// Returns the variables from which a register's value may come; `None` where it is not seen.
fn arrays_of<'p>(
    register: &'p str,
    definitions: &BTreeMap<&'p str, Vec<Source<'p>>>,
) -> Option<BTreeSet<&'p str>> {
    let (mut names, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![register]);
    let mut steps = 0;
    while let Some(register) = open.pop() {
        if !seen.insert(register) {
            continue;
        }
        for source in definitions.get(register)? {
            steps += 1;
            if steps > TRACE_MAX {
                return None;
            }
            match source {
                Source::Variable(name) => drop(names.insert(*name)),
                Source::Registers(registers) => open.extend(registers),
                Source::Other => return None,
            }
        }
    }
    Some(names)
}

#[cfg(test)]
#[path = "notes_tests.rs"]
mod tests;
