//! The built-in kernels: their names, the variables that they read, and which inputs fit. Runs none
//! of them.

use crate::host::{FRAME_EDGE_MAX, SAMPLES_MAX};

/// Kind of a variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VariableKind {
    /// An array of f32.
    Array,
    /// A number, with its default.
    Float(f32),
    /// A whole number.
    Whole {
        /// Default value.
        standard: u32,
        /// Smallest value.
        least: u32,
        /// Largest value.
        most: u32,
    },
    /// One of these words, by its position. The first one is the default.
    Choice(&'static [&'static str]),
}

/// A variable that a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    /// Name in the PTX and on the command line.
    pub name: &'static str,
    /// Kind of the variable.
    pub kind: VariableKind,
}

/// A kernel that every build has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Builtin {
    /// Name of the kernel, and of its entry in the image of compute kernels.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Variables that the kernel reads: arrays first, then numbers, in the order of its C
    /// structure.
    pub variables: &'static [Variable],
    /// Numbers of channels that it can write.
    pub channels: &'static [u8],
}

/// Properties of an input that matter to a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputShape<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether the values are f32.
    pub is_f32: bool,
    /// Axes, slowest first.
    pub shape: &'a [u64],
}

const fn array(name: &'static str) -> Variable {
    Variable { name, kind: VariableKind::Array }
}

/// Every built-in kernel, by name.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "denoise",
        about: "a pass of the denoiser over `picture`, the mean of all samples and the second \
            half's share of it",
        variables: &[
            array("picture"),
            array("albedo"),
            array("normal"),
            array("depth"),
            Variable {
                name: "samples",
                kind: VariableKind::Whole { standard: 2, least: 2, most: SAMPLES_MAX },
            },
            Variable { name: "pass", kind: VariableKind::Choice(&["first", "second"]) },
        ],
        channels: &[3],
    },
    Builtin {
        name: "merge",
        about: "weight_a × a + weight_b × b, of two arrays as large as the result",
        variables: &[
            array("a"),
            array("b"),
            Variable { name: "weight_a", kind: VariableKind::Float(0.5) },
            Variable { name: "weight_b", kind: VariableKind::Float(0.5) },
        ],
        channels: &[1, 2, 3, 4],
    },
    Builtin {
        name: "resize",
        about: "the picture `image` (height, width[, channels]) in the size of the domain",
        variables: &[
            array("image"),
            Variable {
                name: "filter",
                kind: VariableKind::Choice(&["box", "triangle", "mitchell", "lanczos"]),
            },
        ],
        channels: &[1, 2, 3, 4],
    },
    Builtin {
        name: "tonemap",
        about: "scene-linear `image` to linear display values in [0, 1]; PNG adds the display's \
            curve",
        variables: &[
            array("image"),
            Variable { name: "exposure", kind: VariableKind::Float(0.0) },
            Variable {
                name: "curve",
                kind: VariableKind::Choice(&["standard", "pbr-neutral", "agx", "filmic"]),
            },
        ],
        channels: &[1, 3, 4],
    },
];

/// Returns a built-in kernel by its name.
pub fn builtin(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

impl Builtin {
    /// Returns the arrays that the kernel reads, in order.
    pub fn arrays(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.variables
            .iter()
            .filter(|variable| variable.kind == VariableKind::Array)
            .map(|v| v.name)
    }

    /// Bits of its numbers, in order: those that `given` knows by name, else what they are where
    /// nothing is said.
    ///
    /// # Errors
    /// A choice that there is not, or a number out of range.
    pub fn numbers(&self, given: impl Fn(&str) -> Option<f64>) -> Result<Vec<u32>, String> {
        let mut bits = Vec::new();
        for Variable { name, kind } in self.variables {
            match kind {
                VariableKind::Array => {}
                VariableKind::Float(standard) => {
                    bits.push(given(name).map_or(*standard, |value| value as f32).to_bits());
                }
                VariableKind::Whole { standard, least, most } => {
                    let value = given(name).unwrap_or(f64::from(*standard));
                    if value.fract() != 0.0
                        || !(f64::from(*least)..=f64::from(*most)).contains(&value)
                    {
                        return Err(format!(
                            "`{name}` of `{}` is {value}, not a whole number from {least} to \
                                {most}",
                            self.name
                        ));
                    }
                    bits.push(value as u32);
                }
                VariableKind::Choice(words) => {
                    let value = given(name).unwrap_or(0.0);
                    let choice = (0..words.len()).find(|choice| *choice as f64 == value);
                    let choice = choice.ok_or_else(|| {
                        format!(
                            "`{name}` of `{}` is {value}, not one of {}",
                            self.name,
                            words.join(", ")
                        )
                    })?;
                    bits.push(choice as u32);
                }
            }
        }
        Ok(bits)
    }

    /// Whether these inputs and this result suit it: width, height and depth of the domain,
    /// channels, f32 or not.
    ///
    /// # Errors
    /// What does not, and what would.
    pub fn check(
        &self,
        [width, height, depth]: [u32; 3],
        (channels, is_f32): (u8, bool),
        inputs: &[InputShape<'_>],
    ) -> Result<(), String> {
        let name = self.name;
        if !is_f32 {
            return Err(format!("`{name}` writes f32"));
        }
        if !self.channels.contains(&channels) {
            return Err(format!("`{name}` writes {:?} channels, not {channels}", self.channels));
        }
        let values = [width, height, depth, u32::from(channels)];
        let values =
            values.iter().fold(1u64, |product, edge| product.saturating_mul(u64::from(*edge)));
        for wanted in self.arrays() {
            let given = inputs.iter().find(|input| input.name == wanted);
            let input = given.ok_or_else(|| format!("`{name}` needs --input {wanted}=FILE.npy"))?;
            if !input.is_f32 {
                return Err(format!(
                    "`{name}` reads f32; convert `{wanted}` with array.astype('<f4')"
                ));
            }
            if name == "resize" {
                check_picture(input, depth, channels)?;
            } else if name == "denoise" {
                check_frame(input, [width, height, depth])?;
            } else if input.shape.iter().fold(1u64, |length, axis| length.saturating_mul(*axis))
                != values
            {
                return Err(format!(
                    "`{wanted}` has the shape {:?}, and the result has {values} values \
                     ({width}x{height}x{depth} with {channels} \
                     channels); they must be as many",
                    input.shape
                ));
            }
        }
        Ok(())
    }
}

/// Checks a picture that `resize` reads. It must have as many channels as the kernel writes.
fn check_picture(input: &InputShape<'_>, depth: u32, channels: u8) -> Result<(), String> {
    let found = input.shape.get(2).copied().unwrap_or(1);
    let edges = input.shape.iter().take(2).all(|edge| (1..=1 << 20).contains(edge));
    let flat = matches!(input.shape.len(), 2 | 3) && edges && depth == 1;
    match flat && found == u64::from(channels) {
        true => Ok(()),
        false => Err(format!(
            "`resize` reads a picture (height, width[, channels]) of as many channels as it writes \
                ({channels}), not {:?}",
            input.shape
        )),
    }
}

/// Checks an array of a frame that `denoise` reads. Its name decides its shape.
fn check_frame(input: &InputShape<'_>, [width, height, depth]: [u32; 3]) -> Result<(), String> {
    let edge = 1..=FRAME_EDGE_MAX;
    if !edge.contains(&width) || !edge.contains(&height) || depth > 2 {
        return Err(format!(
            "`denoise` has a domain of WIDTHxHEIGHT, each at most {FRAME_EDGE_MAX}, for the \
             picture alone, or of WIDTHxHEIGHTx2 for its second \
             half too, not {width}x{height}x{depth}"
        ));
    }
    let (rows, columns) = (u64::from(height), u64::from(width));
    let wanted = match input.name {
        "picture" => vec![2, rows, columns, 3],
        "depth" => vec![rows, columns],
        _ => vec![rows, columns, 3],
    };
    match input.shape == wanted {
        true => Ok(()),
        false => Err(format!(
            "`{}` of `denoise` has the shape {:?}, and the domain {width}x{height} needs \
                {wanted:?}",
            input.name, input.shape
        )),
    }
}
