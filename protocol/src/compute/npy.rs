//! NumPy's array files: writes a header, and reads one that may be malformed. Owns no values.
//!
//! Writes version 1.0; reads versions 1.0, 2.0 and 3.0
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>). A file has magic
//! bytes, a version, the length of the header, and a Python dictionary with `descr`,
//! `fortran_order` and `shape`.

use super::Element;

const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Longest header that is read, in bytes. A header of four axes has under 128 bytes, and NumPy pads
/// to a multiple of 64.
pub const HEADER_BYTES_MAX: usize = 4096;
/// Most axes of an array.
pub const AXES_MAX: usize = 4;
/// The values begin at a multiple of this, in bytes.
const ALIGNMENT: usize = 64;

/// Content of a file's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the values.
    pub element: Element,
    /// Axes in C order, slowest first. A single value has no axes.
    pub shape: Vec<u64>,
    /// Position of the first value in the file, in bytes.
    pub data_offset: usize,
}

/// Why a file cannot be used as an array.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    /// The file is not a `.npy` file.
    #[error("not a .npy file; numpy.save(FILE, array) writes one")]
    Foreign,
    /// The file ends within its header.
    #[error("the .npy header is cut short")]
    Short,
    /// The version is not known.
    #[error("the .npy version {0}.{1} is not known; 1.0 to 3.0 are")]
    Version(u8, u8),
    /// The header is longer than any array needs.
    #[error("the .npy header of {0} bytes is longer than {HEADER_BYTES_MAX}")]
    Long(u64),
    /// The header is not the dictionary that it should be.
    #[error("the .npy header is malformed: {0}")]
    Malformed(&'static str),
    /// The values have a type that is not supported.
    #[error(
        "values of type `{0}` cannot be used; convert with array.astype('<f4') or <f2, <f8, an \
            integer such as <i4 or |u1, |b1, <c8, <c16"
    )]
    Type(String),
    /// The array is stored in Fortran order.
    #[error("the array is in Fortran order; save numpy.ascontiguousarray(array)")]
    Fortran,
    /// The array has too many axes.
    #[error("the array has {0} axes, more than {AXES_MAX}")]
    Axes(usize),
    /// The number of values does not fit into 64 bits.
    #[error("the shape {0:?} has more values than can be")]
    Huge(Vec<u64>),
    /// The file has too few or too many values for its shape.
    #[error("the shape {shape:?} needs {expected} bytes of values, the file has {found}")]
    Length {
        /// Shape in the header.
        shape: Vec<u64>,
        /// Bytes that the shape needs.
        expected: u64,
        /// Bytes that the file has.
        found: u64,
    },
}

impl Header {
    /// Returns the number of values; None if it does not fit into a u64.
    pub fn values(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, axis| product.checked_mul(*axis))
    }

    /// Reads a header from the first bytes of a file, and compares it with the file's length. Needs
    /// the whole file or [`HEADER_BYTES_MAX`] + 12 bytes. A length in the header never causes an
    /// allocation.
    pub fn read(bytes: &[u8], file_length: u64) -> Result<Self, NpyError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(NpyError::Foreign)?;
        let (major, minor) =
            (*rest.first().ok_or(NpyError::Short)?, *rest.get(1).ok_or(NpyError::Short)?);
        let (length, from) = match (major, minor, rest) {
            (1, 0, [_, _, a, b, ..]) => (u64::from(u16::from_le_bytes([*a, *b])), 10),
            (2 | 3, 0, [_, _, a, b, c, d, ..]) => {
                (u64::from(u32::from_le_bytes([*a, *b, *c, *d])), 12)
            }
            (1..=3, 0, _) => return Err(NpyError::Short),
            _ => return Err(NpyError::Version(major, minor)),
        };
        if length > HEADER_BYTES_MAX as u64 {
            return Err(NpyError::Long(length));
        }
        let data_offset = from + length as usize;
        let text = bytes.get(from..data_offset).ok_or(NpyError::Short)?;
        let text = std::str::from_utf8(text).map_err(|_| NpyError::Malformed("it is not text"))?;
        let header = Self { data_offset, ..dictionary(text)? };
        let huge = || NpyError::Huge(header.shape.clone());
        let expected =
            header.values().and_then(|values| values.checked_mul(header.element.bytes() as u64));
        let expected = expected.ok_or_else(huge)?;
        let found = file_length.saturating_sub(data_offset as u64);
        if found != expected {
            return Err(NpyError::Length { shape: header.shape, expected, found });
        }
        Ok(header)
    }
}

/// Encodes the bytes before the values of an array: version 1.0, C order, little endian.
pub fn header_bytes(element: Element, shape: &[u64]) -> Vec<u8> {
    let axes: String = shape.iter().map(|axis| format!("{axis}, ")).collect();
    // Python writes one axis as (7,) and several as (2, 3).
    let axes = match shape.len() {
        0 | 1 => axes.trim_end(),
        _ => axes.trim_end().trim_end_matches(','),
    };
    let mut text =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({axes}), }}", descr(element));
    let used = MAGIC.len() + 4 + text.len() + 1;
    text.push_str(&" ".repeat(used.next_multiple_of(ALIGNMENT) - used));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn descr(element: Element) -> &'static str {
    match element {
        Element::F32 => "<f4",
        Element::F64 => "<f8",
        Element::I32 => "<i4",
        Element::U32 => "<u4",
        Element::I64 => "<i8",
        Element::U64 => "<u8",
        Element::F16 => "<f2",
        Element::U8 => "|u1",
        Element::I8 => "|i1",
        Element::U16 => "<u2",
        Element::I16 => "<i2",
        Element::Bool => "|b1",
        Element::Complex64 => "<c8",
        Element::Complex128 => "<c16",
    }
}

/// Reads the three entries of the dictionary, which come in any order and each once.
fn dictionary(text: &str) -> Result<Header, NpyError> {
    let malformed = NpyError::Malformed;
    let inner = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let mut rest = inner.ok_or(malformed("it is not a dictionary"))?.trim_start();
    let (mut element, mut fortran, mut shape) = (None, None, None);
    while !rest.is_empty() {
        let (key, after) = quoted(rest)?;
        let after = after
            .trim_start()
            .strip_prefix(':')
            .ok_or(malformed("a key has no value"))?
            .trim_start();
        let (twice, after) = match key {
            "descr" => {
                let (name, after) = quoted(after)?;
                (element.replace(element_of(name)?).is_some(), after)
            }
            "fortran_order" => {
                let word = ["True", "False"].into_iter().find(|word| after.starts_with(word));
                let word = word.ok_or(malformed("`fortran_order` is neither True nor False"))?;
                (fortran.replace(word == "True").is_some(), &after[word.len()..])
            }
            "shape" => {
                let (axes, after) = tuple(after)?;
                (shape.replace(axes).is_some(), after)
            }
            _ => {
                return Err(malformed(
                    "it has a key that is none of `descr`, `fortran_order`, `shape`",
                ));
            }
        };
        if twice {
            return Err(malformed("a key is there twice"));
        }
        rest = after.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if rest.is_empty() => rest,
            None => return Err(malformed("there is no comma between two entries")),
        };
    }
    match (element, fortran, shape) {
        // An array of one axis is the same in C and in Fortran order.
        (Some(_), Some(true), Some(shape)) if shape.len() > 1 => Err(NpyError::Fortran),
        (Some(element), Some(_), Some(shape)) => Ok(Header { element, shape, data_offset: 0 }),
        _ => Err(malformed("`descr`, `fortran_order` or `shape` is missing")),
    }
}

/// Reads a text in quotes. Returns it and the rest of the input.
fn quoted(text: &str) -> Result<(&str, &str), NpyError> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let quote = quote.ok_or(NpyError::Malformed("a key or type is not in quotes"))?;
    text[1..].split_once(quote).ok_or(NpyError::Malformed("a quote is not closed"))
}

/// Reads numbers in round brackets. Returns them and the rest of the input.
fn tuple(text: &str) -> Result<(Vec<u64>, &str), NpyError> {
    let inside = text.strip_prefix('(').and_then(|text| text.split_once(')'));
    let (inside, after) = inside.ok_or(NpyError::Malformed("`shape` is not a tuple"))?;
    let mut axes = Vec::new();
    let mut parts: Vec<&str> = inside.split(',').map(str::trim).collect();
    if parts.last() == Some(&"") {
        parts.pop();
    }
    for part in parts {
        // Python 2 wrote longs with an L.
        let digits = part.strip_suffix('L').unwrap_or(part);
        let good = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let axis = digits.parse().ok().filter(|_| good);
        axes.push(axis.ok_or(NpyError::Malformed("an axis of `shape` is not a number"))?);
    }
    if axes.len() > AXES_MAX {
        return Err(NpyError::Axes(axes.len()));
    }
    Ok((axes, after))
}

fn element_of(name: &str) -> Result<Element, NpyError> {
    let known = Element::ALL.into_iter().find(|element| descr(*element) == name);
    known.ok_or_else(|| NpyError::Type(name.chars().take(32).collect()))
}

#[cfg(test)]
#[path = "npy_tests.rs"]
mod tests;
