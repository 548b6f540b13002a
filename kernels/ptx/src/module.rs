//! A module as it was read: kernels with their parameters, variables, functions. Does not read and
//! does not run.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::instruction::{Function, Op};
use crate::{ParseError, parse};

/// Family of a PTX type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// `.b8` to `.b64`: bits without meaning.
    Bits,
    /// `.u8` to `.u64`.
    Unsigned,
    /// `.s8` to `.s64`.
    Signed,
    /// `.f16` to `.f64`.
    Float,
    /// `.pred`.
    Predicate,
}

/// A fundamental PTX type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its family.
    pub kind: TypeKind,
    /// 8 to 64; 1 for a predicate.
    pub bits: u8,
}

impl Type {
    /// Reads `f32`, or `.f32`.
    pub(crate) fn named(name: &str) -> Option<Type> {
        let name = name.trim_start_matches('.');
        if name == "pred" {
            return Some(Type { kind: TypeKind::Predicate, bits: 1 });
        }
        let kind = match name.as_bytes().first()? {
            b'b' => TypeKind::Bits,
            b'u' => TypeKind::Unsigned,
            b's' => TypeKind::Signed,
            b'f' => TypeKind::Float,
            _ => return None,
        };
        let bits = match name.get(1..)? {
            "8" if kind != TypeKind::Float => 8,
            "16" => 16,
            "32" => 32,
            "64" => 64,
            _ => return None,
        };
        Some(Type { kind, bits })
    }

    /// Bytes in memory; a predicate has none.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits / 8)
    }

    pub(crate) fn is_signed(self) -> bool {
        self.kind == TypeKind::Signed
    }

    /// One in every bit of the type.
    pub(crate) fn mask(self) -> u64 {
        u64::MAX >> (64 - u32::from(self.bits))
    }
}

/// Where a module's variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// `.const`
    Const,
    /// `.global`
    Global,
}

/// A variable of the module, which the host can read and set when the module is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its symbol.
    pub name: String,
    /// Where it lives.
    pub space: Space,
    /// Of one element, as declared; structures are `.b8`.
    pub element: Type,
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u32,
    /// First bytes; zeros follow.
    pub(crate) initial: Vec<u8>,
}

impl Variable {
    /// First bytes of its initial value; zeros follow. Empty without an initialiser.
    pub fn initial(&self) -> &[u8] {
        &self.initial
    }
}

/// One parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// First byte among the launch's parameters.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A kernel of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its symbol.
    pub name: String,
    /// Its parameters, in order, laid out as a launch passes them.
    pub parameters: Vec<Parameter>,
    /// Bytes of all parameters.
    pub parameter_bytes: u32,
    /// Bytes of a block's shared memory known at compile time.
    pub shared_bytes: u32,
    /// Bytes of a thread's stack frame beside the parameters.
    pub local_bytes: u32,
    /// Threads a block at most (`.maxntid`, `.reqntid`), 1024 where nothing is said.
    pub threads_max: u32,
    /// Whether the text says how many threads a block has at most.
    pub has_bounds: bool,
    /// Threads of a block along each axis, where it must have just those (`.reqntid`).
    pub block_required: Option<[u32; 3]>,
    /// Whether the module has shared memory whose size a launch decides.
    pub has_dynamic_shared: bool,
    /// The first instruction, in the kernel or in what it calls, by which threads of a block work
    /// together, without operands, as `bar.sync`: barriers, exchanges within a warp, and what
    /// changes shared memory in common. None where each thread works alone.
    pub exchange: Option<String>,
    pub(crate) function: u32,
}

/// An instruction that no setting of the machine can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The kernel or function that it stands in.
    pub function: String,
    /// Line of the text, from 1.
    pub line: u32,
    /// That line.
    pub instruction: String,
}

/// What was read of one PTX text.
#[derive(Debug)]
pub struct Module {
    pub(crate) source: Arc<str>,
    pub(crate) line_starts: Vec<u32>,
    pub(crate) version: (u32, u32),
    pub(crate) target: String,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) kernel_by_name: BTreeMap<String, u32>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<Function>,
}

impl Module {
    /// Reads PTX text. Never panics, and needs memory in proportion to the text.
    ///
    /// Instructions that the machine does not model are read too ([`Module::unsupported`]): running
    /// one is a fault.
    ///
    /// # Errors
    /// [`ParseError`] with the line of what is not PTX.
    pub fn parse(source: &str) -> Result<Module, ParseError> {
        parse::module(source)
    }

    /// `.version`, as (major, minor).
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// `.target`, for example `sm_75`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// All kernels, in the order of the text.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// A kernel by its symbol.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.get(*self.kernel_by_name.get(name)? as usize)
    }

    /// All `.const` and `.global` variables, in the order of the text.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The instructions that no setting of the machine can run.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        let mut found = Vec::new();
        for function in &self.functions {
            let lines = function.code.iter().zip(&function.lines);
            for (_, line) in lines.filter(|(instruction, _)| instruction.op == Op::Unsupported) {
                let instruction = self.line(*line).to_owned();
                found.push(Unsupported {
                    function: function.name.clone(),
                    line: *line,
                    instruction,
                });
            }
        }
        found
    }

    /// A line of the text, from 1, without the blanks around it.
    pub fn line(&self, line: u32) -> &str {
        let index = (line as usize).saturating_sub(1);
        let start = self.line_starts.get(index).map_or(0, |start| *start as usize);
        let end = self.line_starts.get(index + 1).map_or(self.source.len(), |end| *end as usize);
        self.source.get(start..end).unwrap_or_default().trim()
    }
}
