//! Values of arguments as the bytes of variables: of users' kernels, and of built-in ones.

use super::bind_error::BindError;
use super::notes::is_note;
use super::variables::{is_array, is_output, wrong};
use tessera_kernels::compute::builtin;
use tessera_protocol::compute::{Argument, ComputeSpec, Element, Number, half_of_f64};
use tessera_ptx::{Type, TypeKind, Variable};

/// Returns the bytes of an argument in its variable.
pub(super) fn bytes_of(variable: &Variable, argument: &Argument) -> Result<Vec<u8>, BindError> {
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
pub(crate) fn builtin_values(
    name: &str,
    spec: &ComputeSpec,
) -> Result<Vec<(String, Vec<u8>)>, BindError> {
    let numbers = builtin_numbers(name, spec)?;
    let variables = builtin(name).map_or(&[][..], |kernel| kernel.variables);
    let names =
        variables.iter().map(|variable| variable.name).skip(variables.len() - numbers.len());
    Ok(names
        .map(str::to_owned)
        .zip(numbers.iter().map(|bits| bits.to_le_bytes().to_vec()))
        .collect())
}
