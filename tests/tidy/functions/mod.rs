//! Lengths of functions: Rust by its syntax, C++ by its braces, Python by its indentation.

mod cpp;
mod function;
mod python;
mod rust;

use crate::{files, none, shown};
use function::Function;

/// Lines of a function at most, from its head to its end.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that may be longer, and why.
const LONG: &[(&str, &str, &str)] = &[(
    "kernels/ptx/src/run/straight.rs",
    "straight",
    "one match over the instructions; any cut of it would hide that every one is handled",
)];

#[test]
fn functions_are_short() {
    let mut findings = Vec::new();
    let mut unused: Vec<(&str, &str)> = LONG.iter().map(|(path, name, _)| (*path, *name)).collect();
    for path in files(&["rs", "h", "cu", "cuh", "cpp", "c", "py"]) {
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        let shown = shown(&path);
        let functions = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => rust::functions(&text).unwrap_or_else(|error| panic!("{shown}: {error}")),
            Some("py") => python::functions(&text),
            _ => cpp::functions(&text),
        };
        for Function { line, name, length } in functions {
            if length <= FUNCTION_LINES_MAX {
                continue;
            }
            match unused.iter().position(|listed| *listed == (shown.as_str(), name.as_str())) {
                Some(index) => drop(unused.remove(index)),
                None => findings.push(format!("{shown}:{line}: {name}: {length} lines")),
            }
        }
    }
    findings
        .extend(unused.iter().map(|(path, name)| format!("{path}: {name}: listed for nothing")));
    none("functions above 70 lines", findings);
}
