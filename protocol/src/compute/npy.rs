//! NumPy's array files: reading a header that may lie, and writing one. Owns no values.
//!
//! Version 1.0 is written; 1.0, 2.0 and 3.0 are read
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>): magic, version,
//! length of the header, then a Python dictionary with `descr`, `fortran_order` and `shape`.

use super::Element;

const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Longest header that is read: one of four axes has under 128 bytes, and numpy pads to 64.
pub const HEADER_BYTES_MAX: usize = 4096;
/// Axes at most.
pub const AXES_MAX: usize = 4;
/// Header and what stands before the values begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of its values.
    pub element: Element,
    /// Axes in C order, slowest first; none for a single value.
    pub shape: Vec<u64>,
    /// Where the values begin, bytes.
    pub data_offset: usize,
}

/// Why a file is no array that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    /// Not such a file.
    #[error("not a .npy file; numpy.save(FILE, array) writes one")]
    Foreign,
    /// It ends within its header.
    #[error("the .npy header is cut short")]
    Short,
    /// A version from the future.
    #[error("the .npy version {0}.{1} is not known; 1.0 to 3.0 are")]
    Version(u8, u8),
    /// Longer than any header needs.
    #[error("the .npy header of {0} bytes is longer than {HEADER_BYTES_MAX}")]
    Long(u64),
    /// Not the dictionary that it should be.
    #[error("the .npy header is malformed: {0}")]
    Malformed(&'static str),
    /// Values of another type.
    #[error(
        "values of type `{0}` cannot be used; convert with array.astype('<f4') or <f8, <i4, <u4, \
            <i8, <u8"
    )]
    Type(String),
    /// Columns first.
    #[error("the array is in Fortran order; save numpy.ascontiguousarray(array)")]
    Fortran,
    /// Too many axes.
    #[error("the array has {0} axes, more than {AXES_MAX}")]
    Axes(usize),
    /// More values than a number can say.
    #[error("the shape {0:?} has more values than can be")]
    Huge(Vec<u64>),
    /// Too few or too many values for the shape.
    #[error("the shape {shape:?} needs {expected} bytes of values, the file has {found}")]
    Length {
        /// The shape.
        shape: Vec<u64>,
        /// Bytes that it needs.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
}

impl Header {
    /// Values in all; None where that is beyond a u64.
    pub fn values(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, axis| product.checked_mul(*axis))
    }

    /// Reads a header from the first bytes of a file (all of it, or [`HEADER_BYTES_MAX`] and 12
    /// more), and compares it with the file's length. Nothing is allocated on the header's word.
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
        let text = std::str::from_utf8(text).map_err(|_| NpyError::Malformed("it is no text"))?;
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

/// The bytes before the values of an array: version 1.0, C order, little endian.
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
    }
}

/// The three entries of the dictionary, each once, in any order.
fn dictionary(text: &str) -> Result<Header, NpyError> {
    let malformed = NpyError::Malformed;
    let inner = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let mut rest = inner.ok_or(malformed("it is no dictionary"))?.trim_start();
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
        // An array of one axis is the same in both orders.
        (Some(_), Some(true), Some(shape)) if shape.len() > 1 => Err(NpyError::Fortran),
        (Some(element), Some(_), Some(shape)) => Ok(Header { element, shape, data_offset: 0 }),
        _ => Err(malformed("`descr`, `fortran_order` or `shape` is missing")),
    }
}

/// A text in quotes, and what comes after it.
fn quoted(text: &str) -> Result<(&str, &str), NpyError> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let quote = quote.ok_or(NpyError::Malformed("a key or type is not in quotes"))?;
    text[1..].split_once(quote).ok_or(NpyError::Malformed("a quote is not closed"))
}

/// Numbers in round brackets, and what comes after them.
fn tuple(text: &str) -> Result<(Vec<u64>, &str), NpyError> {
    let inside = text.strip_prefix('(').and_then(|text| text.split_once(')'));
    let (inside, after) = inside.ok_or(NpyError::Malformed("`shape` is no tuple"))?;
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
        axes.push(axis.ok_or(NpyError::Malformed("an axis of `shape` is no number"))?);
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
