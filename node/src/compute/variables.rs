//! A kernel's variables: which kinds there are, and how an error names them.

use super::bind_error::BindError;
use super::notes::is_note;
use tessera_kernels::compute::{ArrayParams, OutputParams};
use tessera_ptx::{Module, Type, TypeKind, Variable};

pub(super) fn find<'m>(module: &'m Module, name: &str) -> Result<&'m Variable, BindError> {
    let found = module.variables().iter().find(|variable| variable.name == name);
    found.ok_or_else(|| BindError::Unknown { name: name.to_owned(), known: known(module) })
}

/// Returns the names of the kernel's variables, for people.
pub(super) fn known(module: &Module) -> String {
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
pub(super) fn is_array(variable: &Variable) -> bool {
    variable.bytes == ArrayParams::VARIABLE_BYTES
        && u64::from(variable.align) == ArrayParams::VARIABLE_BYTES
        && variable.element.bits == 8
}

/// Returns whether a variable is a `TesseraOutput`, judged in the same way.
pub(super) fn is_output(variable: &Variable) -> bool {
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

pub(super) fn wrong(variable: &Variable, problem: impl Into<String>) -> BindError {
    BindError::Type {
        name: variable.name.clone(),
        found: description(variable),
        problem: problem.into(),
    }
}
