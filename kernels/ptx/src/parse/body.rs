//! Bodies of functions: declarations, labels, statements. What a statement means is `decode`'s.

use std::collections::HashMap;

use super::Builder;
use super::Symbol;
use super::cursor::{Cursor, shortened, split_commas};
use super::declaration::{Declaration, declaration};
use super::scope::{Name, Scope};
use super::writes::Writes;
use crate::instruction::{Function, Instruction, Op, Place, SLOT_SINK, Special};
use crate::module::Type;
use crate::text::{Token, TokenKind};
use crate::{ParseError, decode};

/// Bytes of a function's stack frame at most.
const FRAME_BYTES_MAX: u64 = 512 << 10;
/// Slots of a function at most.
const SLOTS_MAX: usize = 1 << 20;
/// Braces inside each other at most.
const SCOPES_MAX: usize = 64;
/// What a register holds before it is written, cut to its width.
pub(crate) const REGISTER_POISON: u64 = 0xCDCD_CDCD_CDCD_CDCD;

/// One instruction as it is written.
pub(crate) struct Statement<'a> {
    pub(crate) line: u32,
    /// The opcode and its modifiers, without dots.
    pub(crate) parts: Vec<&'a str>,
    pub(crate) operands: Vec<&'a [Token<'a>]>,
}

/// A function in the making.
pub(crate) struct Body<'a, 'm> {
    pub(crate) module: &'m mut Builder,
    pub(crate) function: Function,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) writes: Writes,
    pub(crate) widths: Vec<u8>,
    pub(crate) constants: HashMap<u64, u32>,
    pub(crate) specials: HashMap<String, u32>,
    pub(crate) addresses: HashMap<(u32, u64), u32>,
    labels: HashMap<&'a str, u32>,
    /// Instruction, label it goes to, line.
    branches: Vec<(usize, &'a str, u32)>,
    /// Name, then its labels and line.
    tables: HashMap<&'a str, (Vec<&'a str>, u32)>,
    /// Instruction, table it uses, line.
    table_branches: Vec<(usize, &'a str, u32)>,
    frame_bytes: u64,
    pub(crate) line: u32,
}

impl<'a, 'm> Body<'a, 'm> {
    pub(crate) fn new(module: &'m mut Builder) -> Body<'a, 'm> {
        let function = Function {
            name: String::new(),
            code: Vec::new(),
            lines: Vec::new(),
            image: vec![0; 3],
            given: Vec::new(),
            specials: Vec::new(),
            relocations: Vec::new(),
            lists: Vec::new(),
            calls: Vec::new(),
            parameters: Vec::new(),
            results: Vec::new(),
            frame_bytes: 0,
            is_cooperative: false,
            exchange: None,
            calls_pointers: false,
        };
        Body {
            module,
            function,
            scopes: vec![Scope::default()],
            writes: Writes::default(),
            widths: vec![64, 1, 64],
            constants: HashMap::new(),
            specials: HashMap::new(),
            addresses: HashMap::new(),
            labels: HashMap::new(),
            branches: Vec::new(),
            tables: HashMap::new(),
            table_branches: Vec::new(),
            frame_bytes: 0,
            line: 0,
        }
    }

    pub(crate) fn frame_bytes(&self) -> u32 {
        self.frame_bytes as u32
    }

    /// Gives a variable its place in the frame; none where the frame would be too large.
    pub(crate) fn place(&mut self, found: &Declaration) -> Option<u32> {
        let offset = self.frame_bytes.next_multiple_of(u64::from(found.align));
        let end = offset.checked_add(found.bytes).filter(|end| *end <= FRAME_BYTES_MAX)?;
        self.frame_bytes = end;
        let name = Name::Frame { offset: offset as u32, bytes: found.bytes as u32 };
        self.declare(&found.name, name);
        Some(offset as u32)
    }

    fn declare(&mut self, name: &str, meaning: Name) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name.to_owned(), meaning);
        }
    }

    /// Reads to the closing brace.
    pub(crate) fn read(mut self, cursor: &mut Cursor<'a>) -> Result<Function, ParseError> {
        while !self.scopes.is_empty() {
            let Some(token) = cursor.peek() else {
                return Err(
                    cursor.wrong(format!("`{}` has no end", shortened(&self.function.name)))
                );
            };
            self.line = token.line;
            match (token.kind, token.text) {
                (TokenKind::Mark, "{") if self.scopes.len() < SCOPES_MAX => {
                    cursor.next();
                    self.scopes.push(Scope::default());
                }
                (TokenKind::Mark, "}") => {
                    cursor.next();
                    self.scopes.pop();
                }
                (TokenKind::Mark, ";") => drop(cursor.next()),
                (TokenKind::Dot, _) => self.directive(cursor)?,
                (TokenKind::Word, label) if cursor.second_is(":") => self.label(cursor, label)?,
                (TokenKind::Word, _) | (TokenKind::Mark, "@") => self.statement(cursor)?,
                _ => {
                    return Err(
                        cursor.wrong(format!("`{}` begins no statement", shortened(token.text)))
                    );
                }
            }
        }
        self.emit(Instruction::new(Op::Return));
        self.resolve()?;
        self.function.frame_bytes = (self.frame_bytes as u32).next_multiple_of(16);
        self.function.given = self.writes.given(SLOT_SINK + 1);
        Ok(self.function)
    }

    fn label(&mut self, cursor: &mut Cursor<'a>, label: &'a str) -> Result<(), ParseError> {
        cursor.next();
        cursor.next();
        if cursor.take(".branchtargets") {
            let targets = split_commas(cursor.until(";")?);
            let names = targets.iter().filter_map(|target| target.first()).map(|token| token.text);
            self.tables.insert(label, (names.collect(), self.line));
            return Ok(());
        }
        self.writes.enter();
        match self.labels.insert(label, self.function.code.len() as u32) {
            None => Ok(()),
            Some(_) => Err(cursor.wrong(format!("label `{}` stands here twice", shortened(label)))),
        }
    }

    fn directive(&mut self, cursor: &mut Cursor<'a>) -> Result<(), ParseError> {
        let Some(token) = cursor.peek() else { return Ok(()) };
        if matches!(token.text, ".loc" | ".file") {
            cursor.skip_line();
            return Ok(());
        }
        cursor.next();
        match token.text {
            ".reg" => self.registers(cursor),
            ".local" | ".param" => {
                let found = declaration(cursor)?;
                cursor.expect(";")?;
                let placed = self.place(&found);
                placed.map(drop).ok_or_else(|| {
                    cursor.wrong(format!("more than {FRAME_BYTES_MAX} bytes of local memory"))
                })
            }
            ".shared" => {
                let (name, symbol) = self.module.shared_symbol(cursor)?;
                match symbol {
                    Symbol::Shared(offset) => self.declare(&name, Name::Shared(offset)),
                    _ => self.declare(&name, Name::SharedDynamic),
                }
                Ok(())
            }
            ".pragma" => cursor.until(";").map(drop),
            other => {
                Err(cursor.wrong(format!("`{}` is not known in a function", shortened(other))))
            }
        }
    }

    /// `.reg .b32 %r<7>, %x;`
    fn registers(&mut self, cursor: &mut Cursor<'a>) -> Result<(), ParseError> {
        let mut bits = None;
        while let Some(token) = cursor.peek().filter(|token| token.kind == TokenKind::Dot) {
            bits = Type::named(token.text).map(|found| found.bits);
            cursor.next();
        }
        let bits = bits.ok_or_else(|| cursor.wrong("a register's type expected"))?;
        loop {
            let name = cursor.word()?;
            if cursor.take("<") {
                let count = cursor.number(u64::from(u32::MAX))?;
                cursor.expect(">")?;
                if let Some(scope) = self.scopes.last_mut() {
                    scope.ranges.insert(name.to_owned(), (count, bits));
                }
            } else {
                let slot = self.register_slot(bits)?;
                self.declare(name, Name::Register { slot, bits });
            }
            if !cursor.take(",") {
                return cursor.expect(";");
            }
        }
    }

    fn statement(&mut self, cursor: &mut Cursor<'a>) -> Result<(), ParseError> {
        let mut guard = None;
        if cursor.take("@") {
            let negated = cursor.take("!");
            guard = Some((negated, self.guard(cursor)?));
        }
        let mut parts = vec![cursor.word()?];
        while let Some(token) = cursor.peek().filter(|token| token.kind == TokenKind::Dot) {
            parts.push(token.text.trim_start_matches('.'));
            cursor.next();
        }
        let operands = split_commas(cursor.until(";")?);
        let statement = Statement { line: self.line, parts, operands };
        let Some((negated, slot)) = guard else {
            decode::statement(self, &statement)?;
            self.writes.end_statement(false);
            return Ok(());
        };
        // A guarded instruction is jumped over; a guarded jump needs no jump around it.
        let skip = if negated { Op::BranchIf } else { Op::BranchUnless };
        let at = self.emit(Instruction { a: slot, ..Instruction::new(skip) });
        decode::statement(self, &statement)?;
        self.writes.end_statement(true);
        let next = self.function.code.len();
        let only = &self.function.code[at + 1..];
        if let [Instruction { op: Op::Branch, .. }] = only {
            self.function.code.pop();
            self.function.lines.pop();
            let taken = if negated { Op::BranchUnless } else { Op::BranchIf };
            self.function.code[at].op = taken;
            if let Some(branch) = self.branches.last_mut() {
                branch.0 = at;
            }
        } else {
            self.function.code[at].imm = next as u64;
        }
        Ok(())
    }

    fn guard(&mut self, cursor: &mut Cursor<'a>) -> Result<u32, ParseError> {
        let name = cursor.word()?;
        match self.name(name)? {
            Some(Name::Register { slot, bits: 1 }) => Ok(slot),
            _ => Err(cursor.wrong(format!("`{}` is no predicate", shortened(name)))),
        }
    }

    pub(crate) fn branch_to(&mut self, instruction: Instruction, label: &'a str) {
        let at = self.emit(instruction);
        self.branches.push((at, label, self.line));
    }

    pub(crate) fn branch_by(&mut self, instruction: Instruction, table: &'a str) {
        let at = self.emit(instruction);
        self.table_branches.push((at, table, self.line));
    }

    pub(crate) fn emit(&mut self, instruction: Instruction) -> usize {
        self.function.code.push(instruction);
        self.function.lines.push(self.line);
        self.function.code.len() - 1
    }

    /// A new slot of some width, poisoned.
    pub(crate) fn register_slot(&mut self, bits: u8) -> Result<u32, ParseError> {
        self.new_slot(REGISTER_POISON >> (64 - u32::from(bits)), bits)
    }

    pub(crate) fn new_slot(&mut self, value: u64, bits: u8) -> Result<u32, ParseError> {
        let slots = self.function.image.len();
        if slots >= SLOTS_MAX {
            return Err(ParseError::new(
                self.line,
                format!("more than {SLOTS_MAX} registers and constants"),
            ));
        }
        self.function.image.push(value);
        self.widths.push(bits);
        Ok(slots as u32)
    }

    pub(crate) fn special_slot(
        &mut self,
        name: String,
        special: Special,
    ) -> Result<u32, ParseError> {
        let slot = self.new_slot(0, 32)?;
        self.specials.insert(name, slot);
        self.function.specials.push((slot, special));
        Ok(slot)
    }

    pub(crate) fn frame_place(&mut self, name: &str) -> Result<Option<Place>, ParseError> {
        match self.name(name)? {
            Some(Name::Frame { offset, bytes }) => Ok(Some(Place { offset, bytes })),
            _ => Ok(None),
        }
    }

    /// Gives every branch its target.
    fn resolve(&mut self) -> Result<(), ParseError> {
        let unknown =
            |line, label| ParseError::new(line, format!("no label `{}`", shortened(label)));
        for (at, label, line) in &self.branches {
            let target = *self.labels.get(label).ok_or_else(|| unknown(*line, label))?;
            self.function.code[*at].imm = u64::from(target);
        }
        for (at, table, line) in &self.table_branches {
            let (labels, _) = self.tables.get(table).ok_or_else(|| unknown(*line, table))?;
            self.function.code[*at].d = self.function.lists.len() as u32;
            self.function.code[*at].b = labels.len() as u32;
            for label in labels {
                let target = *self.labels.get(label).ok_or_else(|| unknown(*line, label))?;
                self.function.lists.push(target);
            }
        }
        Ok(())
    }
}
