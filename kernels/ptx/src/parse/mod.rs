//! Modules: directives, variables, kernels and functions in the order of the text. Instructions are
//! `decode`'s.

pub(crate) mod body;
pub(crate) mod cursor;
mod declaration;
mod link;
pub(crate) mod operand;
pub(crate) mod scope;
mod writes;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use self::body::Body;
use self::cursor::Cursor;
use self::declaration::{Declaration, declaration, initialiser};
use crate::ParseError;
use crate::instruction::{Function, Place};
use crate::module::{Kernel, Module, Parameter, Space, Variable};
use crate::text::{TokenKind, tokens};

/// Bytes of parameters of one kernel or function at most.
const PARAMETER_BYTES_MAX: u64 = 32 << 10;
/// Bytes of a block's shared memory at most.
pub(crate) const SHARED_BYTES_MAX: u64 = 228 << 10;
/// Functions of a module at most.
const FUNCTIONS_MAX: usize = 4096;
/// Threads of a block at most.
pub(crate) const BLOCK_THREADS_MAX: u32 = 1024;

/// What a name of the module stands for.
#[derive(Clone, Copy)]
pub(crate) enum Symbol {
    /// Index of a variable.
    Variable(u32),
    /// Offset in the block's shared memory.
    Shared(u32),
    /// Shared memory whose size the launch gives; it follows all other.
    SharedDynamic,
}

/// A module in the making.
pub(crate) struct Builder {
    version: (u32, u32),
    target: String,
    kernels: Vec<Kernel>,
    variables: Vec<Variable>,
    functions: Vec<Function>,
    pub(crate) symbols: HashMap<String, Symbol>,
    pub(crate) shared_bytes: u64,
    has_dynamic_shared: bool,
}

/// Reads a whole module.
pub(crate) fn module(source: &str) -> Result<Module, ParseError> {
    let tokens = tokens(source)?;
    let mut cursor = Cursor::new(&tokens);
    let mut builder = Builder {
        version: (0, 0),
        target: String::new(),
        kernels: Vec::new(),
        variables: Vec::new(),
        functions: Vec::new(),
        symbols: HashMap::new(),
        shared_bytes: 0,
        has_dynamic_shared: false,
    };
    while cursor.peek().is_some() {
        builder.item(&mut cursor)?;
    }
    if builder.version == (0, 0) {
        return Err(ParseError::new(1, "no `.version`: this is not PTX"));
    }
    link::link(&mut builder.functions)?;
    builder.finish(source)
}

impl Builder {
    /// One directive, variable or function.
    fn item(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
        let mut is_extern = false;
        while let Some(token) = cursor.peek() {
            match token.text {
                ".visible" | ".weak" | ".common" => {}
                ".extern" => is_extern = true,
                _ => break,
            }
            cursor.next();
        }
        let Some(token) = cursor.peek().filter(|token| token.kind == TokenKind::Dot) else {
            return Err(cursor.wrong("a directive expected"));
        };
        match token.text {
            ".file" | ".loc" => cursor.skip_line(),
            _ => {
                cursor.next();
                match token.text {
                    ".version" => self.version = version(cursor)?,
                    ".target" => self.target = target(cursor)?,
                    ".address_size" if cursor.number(64)? == 64 => {}
                    ".address_size" => {
                        return Err(cursor.wrong("only 64-bit addresses are modelled"));
                    }
                    ".entry" => self.function(cursor, true)?,
                    ".func" => self.function(cursor, false)?,
                    ".const" => self.variable(cursor, Space::Const, is_extern)?,
                    ".global" => self.variable(cursor, Space::Global, is_extern)?,
                    ".shared" => self.shared(cursor)?,
                    ".pragma" | ".alias" => drop(cursor.until(";")?),
                    ".section" => section(cursor)?,
                    other => {
                        return Err(
                            cursor.wrong(format!("`{}` is not known", cursor::shortened(other)))
                        );
                    }
                }
            }
        }
        Ok(())
    }

    fn variable(
        &mut self,
        cursor: &mut Cursor<'_>,
        space: Space,
        is_extern: bool,
    ) -> Result<(), ParseError> {
        let mut found = declaration(cursor)?;
        initialiser(cursor, &mut found)?;
        cursor.expect(";")?;
        if is_extern {
            return Err(cursor.wrong(format!("`{}` is of another module; link it in", found.name)));
        }
        let Declaration { name, element, bytes, align, initial } = found;
        self.symbols.insert(name.clone(), Symbol::Variable(self.variables.len() as u32));
        self.variables.push(Variable { name, space, element, bytes, align, initial });
        Ok(())
    }

    /// Shared memory of the module, or of one of its functions.
    pub(crate) fn shared(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
        let (name, symbol) = self.shared_symbol(cursor)?;
        self.symbols.insert(name, symbol);
        Ok(())
    }

    pub(crate) fn shared_symbol(
        &mut self,
        cursor: &mut Cursor<'_>,
    ) -> Result<(String, Symbol), ParseError> {
        let found = declaration(cursor)?;
        cursor.expect(";")?;
        if found.bytes == 0 {
            self.has_dynamic_shared = true;
            return Ok((found.name, Symbol::SharedDynamic));
        }
        let offset = self.shared_bytes.next_multiple_of(u64::from(found.align));
        let end = offset.checked_add(found.bytes).filter(|end| *end <= SHARED_BYTES_MAX);
        self.shared_bytes = end.ok_or_else(|| {
            cursor.wrong(format!("more than {SHARED_BYTES_MAX} bytes of shared memory"))
        })?;
        Ok((found.name, Symbol::Shared(offset as u32)))
    }

    fn function(&mut self, cursor: &mut Cursor<'_>, is_kernel: bool) -> Result<(), ParseError> {
        let mut body = Body::new(self);
        if cursor.peek_is("(") {
            body.function.results = parameters(cursor, &mut body)?.1;
        }
        body.function.name = cursor.word()?.to_owned();
        let line = cursor.line();
        let (mut listed, mut places) = (Vec::new(), Vec::new());
        if cursor.peek_is("(") {
            (listed, places) = parameters(cursor, &mut body)?;
        }
        let Tuning { threads, has_bounds, block_required } = tuning(cursor)?;
        if cursor.take(";") {
            return Ok(());
        }
        cursor.expect("{")?;
        let parameter_bytes = body.frame_bytes();
        body.function.parameters = places;
        let function = body.read(cursor)?;
        if is_kernel {
            if self.kernels.iter().any(|kernel| kernel.name == function.name) {
                return Err(ParseError::new(
                    line,
                    format!("kernel `{}` stands here twice", function.name),
                ));
            }
            self.kernels.push(Kernel {
                name: function.name.clone(),
                parameters: listed,
                parameter_bytes,
                shared_bytes: 0,
                local_bytes: function.frame_bytes - parameter_bytes,
                threads_max: threads,
                has_bounds,
                block_required,
                has_dynamic_shared: false,
                exchange: None,
                function: self.functions.len() as u32,
            });
        }
        self.functions.push(function);
        match self.functions.len() <= FUNCTIONS_MAX {
            true => Ok(()),
            false => Err(ParseError::new(line, format!("more than {FUNCTIONS_MAX} functions"))),
        }
    }

    fn finish(mut self, source: &str) -> Result<Module, ParseError> {
        let shared_bytes = self.shared_bytes as u32;
        for kernel in &mut self.kernels {
            kernel.shared_bytes = shared_bytes;
            kernel.has_dynamic_shared = self.has_dynamic_shared;
            let function = self.functions.get(kernel.function as usize);
            kernel.exchange = function.and_then(|function| function.exchange.clone());
        }
        let names = self.kernels.iter().zip(0..).map(|(kernel, at)| (kernel.name.clone(), at));
        let kernel_by_name: BTreeMap<String, u32> = names.collect();
        let ends = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1)).collect();
        Ok(Module {
            source: Arc::from(source),
            line_starts,
            version: self.version,
            target: self.target,
            kernels: self.kernels,
            kernel_by_name,
            variables: self.variables,
            functions: self.functions,
        })
    }
}

/// `( .param ... , ... )`: what is listed, and where each lies in the function's frame.
fn parameters(
    cursor: &mut Cursor<'_>,
    body: &mut Body<'_, '_>,
) -> Result<(Vec<Parameter>, Vec<Place>), ParseError> {
    cursor.expect("(")?;
    let (mut listed, mut places) = (Vec::new(), Vec::new());
    while !cursor.take(")") {
        if !listed.is_empty() {
            cursor.expect(",")?;
        }
        cursor.expect(".param")?;
        let found = declaration(cursor)?;
        let offset = body.place(&found).ok_or_else(|| {
            cursor.wrong(format!("more than {PARAMETER_BYTES_MAX} bytes of parameters"))
        })?;
        let bytes = found.bytes as u32;
        places.push(Place { offset, bytes });
        listed.push(Parameter { name: found.name, offset, bytes, align: found.align });
    }
    match u64::from(body.frame_bytes()) <= PARAMETER_BYTES_MAX {
        true => Ok((listed, places)),
        false => Err(cursor.wrong(format!("more than {PARAMETER_BYTES_MAX} bytes of parameters"))),
    }
}

/// What a function says of its blocks.
struct Tuning {
    threads: u32,
    has_bounds: bool,
    block_required: Option<[u32; 3]>,
}

/// Reads what tunes a function.
fn tuning(cursor: &mut Cursor<'_>) -> Result<Tuning, ParseError> {
    let mut tuning = Tuning { threads: BLOCK_THREADS_MAX, has_bounds: false, block_required: None };
    while let Some(token) = cursor.peek().filter(|token| token.kind == TokenKind::Dot) {
        cursor.next();
        match token.text {
            ".maxntid" | ".reqntid" => {
                let edges = edges(cursor)?;
                let product =
                    edges.iter().fold(1u32, |product, edge| product.saturating_mul(*edge));
                tuning.threads = product.min(BLOCK_THREADS_MAX);
                tuning.has_bounds = true;
                if token.text == ".reqntid" {
                    tuning.block_required = Some(edges);
                }
            }
            ".pragma" => drop(cursor.until(";")?),
            _ => {
                while cursor
                    .peek()
                    .is_some_and(|token| token.kind == TokenKind::Number || token.is(","))
                {
                    cursor.next();
                }
            }
        }
    }
    Ok(tuning)
}

/// One to three numbers; 1 for those that are not said.
fn edges(cursor: &mut Cursor<'_>) -> Result<[u32; 3], ParseError> {
    let mut edges = [1; 3];
    for edge in &mut edges {
        *edge = cursor.number(1 << 16)? as u32;
        if !cursor.take(",") {
            return Ok(edges);
        }
    }
    Err(cursor.wrong("a block has at most three axes"))
}

fn version(cursor: &mut Cursor<'_>) -> Result<(u32, u32), ParseError> {
    let major = cursor.number(99)?;
    let minor = cursor.next().and_then(|token| token.text.strip_prefix('.')?.parse().ok());
    minor.map(|minor| (major as u32, minor)).ok_or_else(|| cursor.wrong("a version is like 7.0"))
}

fn target(cursor: &mut Cursor<'_>) -> Result<String, ParseError> {
    let name = cursor.word()?.to_owned();
    while cursor.take(",") {
        cursor.word()?;
    }
    Ok(name)
}

/// Debugging information, which says nothing about what is computed.
fn section(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    while cursor.next().is_some_and(|token| !token.is("{")) {}
    cursor.until("}").map(drop)
}
