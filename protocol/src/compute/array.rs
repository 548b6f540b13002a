//! Element types of arrays, and the shape of a domain.

use serde::{Deserialize, Serialize};

/// Type of an array's values. All values are little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Element {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Signed integer of 32 bits.
    I32,
    /// Unsigned integer of 32 bits.
    U32,
    /// Signed integer of 64 bits.
    I64,
    /// Unsigned integer of 64 bits.
    U64,
    /// IEEE 754 binary16.
    F16,
    /// Unsigned integer of 8 bits.
    U8,
    /// Signed integer of 8 bits.
    I8,
    /// Unsigned integer of 16 bits.
    U16,
    /// Signed integer of 16 bits.
    I16,
    /// One byte: 0 is false, 1 is true.
    Bool,
    /// Two IEEE 754 binary32: real and imaginary part.
    Complex64,
    /// Two IEEE 754 binary64: real and imaginary part.
    Complex128,
}

impl Element {
    /// Every type, in the order of the numbers that kernels use (`TesseraArray::element`).
    pub const ALL: [Self; 14] = [
        Self::F32,
        Self::F64,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F16,
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::Bool,
        Self::Complex64,
        Self::Complex128,
    ];

    /// Returns the number that kernels use for the type, its place in [`Self::ALL`].
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Returns the size of one value in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::F16 | Self::U16 | Self::I16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::Bool => "bool",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
        }
    }

    /// Returns the name of the type in NumPy.
    pub fn numpy_name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::F16 => "float16",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::Bool => "bool_",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
        }
    }

    /// Returns whether this is a floating-point type of real numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// Returns the type of the real and imaginary parts; None for other than complex types.
    pub fn of_parts(self) -> Option<Self> {
        match self {
            Self::Complex64 => Some(Self::F32),
            Self::Complex128 => Some(Self::F64),
            _ => None,
        }
    }

    /// Returns whether this is an integer type with negative values.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns the type for a sum of such values, which needs more bits than one value.
    pub fn of_sum(self) -> Self {
        match self {
            Self::F16 | Self::F32 | Self::F64 => Self::F64,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Self::I64,
            Self::U8 | Self::U16 | Self::U32 | Self::U64 | Self::Bool => Self::U64,
            // No checked spec adds them up.
            Self::Complex64 | Self::Complex128 => self,
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Element {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|element| element.name() == text);
        known.ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|element| element.name()).collect();
            format!("`{text}` is not an element type: {}", all.join(", "))
        })
    }
}

/// Indices that a kernel runs over. In a checked spec, each edge is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// Length of the fastest axis.
    pub width: u32,
    /// Length of the second axis.
    pub height: u32,
    /// Length of the slowest axis.
    pub depth: u32,
}

impl Domain {
    /// Returns the number of indices. It cannot overflow in a checked spec, and saturates
    /// otherwise.
    pub fn len(&self) -> u64 {
        u64::from(self.width)
            .saturating_mul(u64::from(self.height))
            .saturating_mul(u64::from(self.depth))
    }

    /// Returns whether the domain has no index.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the shape of an array over the domain in C order: (depth, height, width, channels).
    /// Leading axes of length 1 are left out, and so is a single channel. At least one axis stays.
    pub fn shape(&self, channels: u8) -> Vec<u64> {
        let axes = [self.depth, self.height, self.width].map(u64::from);
        let first = axes.iter().position(|axis| *axis != 1).unwrap_or(2);
        let channels = (channels != 1).then_some(u64::from(channels));
        axes[first..].iter().copied().chain(channels).collect()
    }
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)?;
        if self.depth != 1 { write!(f, "x{}", self.depth) } else { Ok(()) }
    }
}

impl std::str::FromStr for Domain {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a domain; write `1000000`, `640x480` or `64x64x64`");
        let edges: Vec<u32> =
            text.split('x').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let edge = |axis: usize| edges.get(axis).copied().unwrap_or(1);
        match edges.len() {
            1..=3 => Ok(Self { width: edge(0), height: edge(1), depth: edge(2) }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_written_as_it_is_read() {
        for text in ["640x480", "64x32x16", "1000x1"] {
            assert_eq!(text.parse::<Domain>().unwrap().to_string(), text);
        }
        assert_eq!("7".parse::<Domain>(), Ok(Domain { width: 7, height: 1, depth: 1 }));
        for bad in ["", "x", "1x2x3x4", "-1", "1.5", "4294967296", "1x"] {
            assert!(bad.parse::<Domain>().is_err(), "{bad}");
        }
    }

    #[test]
    fn shapes_lose_leading_ones_and_a_single_channel() {
        let shape = |text: &str, channels| text.parse::<Domain>().unwrap().shape(channels);
        assert_eq!(shape("4x3x2", 3), [2, 3, 4, 3]);
        assert_eq!(shape("4x3", 1), [3, 4]);
        assert_eq!(shape("4", 1), [4]);
        assert_eq!(shape("4x1x2", 1), [2, 1, 4]);
        assert_eq!(shape("1", 1), [1]);
        assert_eq!(shape("1", 2), [1, 2]);
    }
}
