//! Operands: registers, numbers, addresses and vectors become slots.

use super::Symbol;
use super::body::Body;
use super::cursor::{number, shortened};
use super::scope::Name;
use crate::ParseError;
use crate::decode::{Decoded, Reject};
use crate::instruction::{Instruction, Op, Relocation, SLOT_FRAME, SLOT_SINK, Special};
use crate::text::{Token, TokenKind};

/// Where an instruction reads or writes memory: a slot plus a constant.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub(crate) base: u32,
    pub(crate) offset: u64,
}

fn wrong(what: impl Into<String>) -> Reject {
    Reject::Wrong(what.into())
}

impl<'a> Body<'a, '_> {
    /// What a name of this function stands for that is read.
    pub(crate) fn name(&mut self, name: &str) -> Result<Option<Name>, ParseError> {
        let found = self.look_up(name)?;
        if let Some(Name::Register { slot, .. }) = found {
            self.writes.read(slot);
        }
        Ok(found)
    }

    /// What a name of this function stands for. A register of a range gets its slot when it is
    /// first met.
    fn look_up(&mut self, name: &str) -> Result<Option<Name>, ParseError> {
        for at in (0..self.scopes.len()).rev() {
            if let Some(found) = self.scopes[at].names.get(name) {
                return Ok(Some(*found));
            }
            if let Some(bits) = self.scopes[at].in_range(name) {
                let slot = self.register_slot(bits)?;
                let found = Name::Register { slot, bits };
                self.scopes[at].names.insert(name.to_owned(), found);
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Slot of a constant.
    pub(crate) fn constant(&mut self, value: u64) -> Decoded<u32> {
        if let Some(slot) = self.constants.get(&value) {
            return Ok(*slot);
        }
        let slot = self.new_slot(value, 64)?;
        self.constants.insert(value, slot);
        Ok(slot)
    }

    /// Slot of a value that is read: `bits` wide where it is a number.
    pub(crate) fn source(&mut self, tokens: &'a [Token<'a>], bits: u8) -> Decoded<u32> {
        let mask = u64::MAX >> (64 - u32::from(bits));
        let [first, rest @ ..] = tokens else { return Err(wrong("an operand is missing")) };
        match (first.kind, first.text) {
            (TokenKind::Number, _) if rest.is_empty() => {
                let value = number(first.text)
                    .ok_or_else(|| wrong(format!("`{}` is no number", first.text)))?;
                self.constant(value & mask)
            }
            (TokenKind::Mark, "-") => {
                let value =
                    single_number(rest).ok_or_else(|| wrong("a number expected after `-`"))?;
                self.constant(value.wrapping_neg() & mask)
            }
            (TokenKind::Mark, "!") => {
                let (source, one) = (self.source(rest, 1)?, self.constant(1)?);
                let d = self.new_slot(0, 1)?;
                self.emit(Instruction {
                    a: source,
                    b: one,
                    d,
                    imm: 1,
                    ..Instruction::new(Op::Xor)
                });
                Ok(d)
            }
            (TokenKind::Word, "WARP_SZ") => self.constant(32),
            (TokenKind::Word, _) => match self.register(tokens)? {
                Some(slot) => Ok(slot),
                None => self.address_of(tokens, mask),
            },
            _ => Err(wrong(format!("`{}` is no operand", shortened(first.text)))),
        }
    }

    /// Slot of a register, or of a special one such as `%tid.x`.
    fn register(&mut self, tokens: &'a [Token<'a>]) -> Decoded<Option<u32>> {
        let [first, rest @ ..] = tokens else { return Ok(None) };
        if rest.is_empty()
            && let Some(Name::Register { slot, .. }) = self.name(first.text)?
        {
            return Ok(Some(slot));
        }
        if !first.text.starts_with('%') {
            return Ok(None);
        }
        let name: String = tokens.iter().map(|token| token.text).collect();
        if let Some(slot) = self.specials.get(&name) {
            return Ok(Some(*slot));
        }
        match special(&name) {
            Some(special) => Ok(Some(self.special_slot(name, special)?)),
            None if is_special(&name) => Err(Reject::Unsupported),
            None => Err(wrong(format!("register `{}` is not declared", shortened(&name)))),
        }
    }

    /// Slot of the address of a variable, plus a constant.
    fn address_of(&mut self, tokens: &'a [Token<'a>], mask: u64) -> Decoded<u32> {
        let Address { base, offset } = self.symbol(tokens)?;
        if offset == 0 {
            return Ok(base);
        }
        let b = self.constant(offset)?;
        let d = self.new_slot(0, 64)?;
        self.emit(Instruction { a: base, b, d, imm: mask, ..Instruction::new(Op::Add) });
        Ok(d)
    }

    /// `[...]` without its brackets: a register or symbol, plus or minus a number.
    pub(crate) fn address(&mut self, operand: &'a [Token<'a>]) -> Decoded<Address> {
        let [open, inner @ .., close] = operand else { return Err(wrong("an address expected")) };
        if !open.is("[") || !close.is("]") || inner.is_empty() {
            return Err(wrong("an address in brackets expected"));
        }
        if inner[0].kind == TokenKind::Number {
            let offset = number(inner[0].text).ok_or_else(|| wrong("an address expected"))?;
            return Ok(Address { base: self.constant(0)?, offset });
        }
        let register = self.name(inner[0].text)?;
        if let Some(Name::Register { slot, .. }) = register {
            return Ok(Address { base: slot, offset: addend(&inner[1..])? });
        }
        self.symbol(inner)
    }

    fn symbol(&mut self, tokens: &'a [Token<'a>]) -> Decoded<Address> {
        let [first, rest @ ..] = tokens else { return Err(wrong("a name expected")) };
        let offset = addend(rest)?;
        let local = self.name(first.text)?;
        let global = self.module.symbols.get(first.text).copied();
        Ok(match (local, global) {
            (Some(Name::Frame { offset: start, .. }), _) => {
                Address { base: SLOT_FRAME, offset: offset.wrapping_add(u64::from(start)) }
            }
            (Some(Name::Shared(start)), _) | (None, Some(Symbol::Shared(start))) => {
                Address { base: self.constant(u64::from(start).wrapping_add(offset))?, offset: 0 }
            }
            (Some(Name::SharedDynamic), _) | (None, Some(Symbol::SharedDynamic)) => {
                let name = "$dynamic".to_owned();
                let base = match self.specials.get(&name) {
                    Some(slot) => *slot,
                    None => self.special_slot(name, Special::SharedBytes)?,
                };
                Address { base, offset }
            }
            (None, Some(Symbol::Variable(variable))) => {
                Address { base: self.variable_address(variable, offset)?, offset: 0 }
            }
            _ => return Err(wrong(format!("`{}` is not declared", shortened(first.text)))),
        })
    }

    fn variable_address(&mut self, variable: u32, addend: u64) -> Decoded<u32> {
        if let Some(slot) = self.addresses.get(&(variable, addend)) {
            return Ok(*slot);
        }
        let slot = self.new_slot(0, 64)?;
        self.addresses.insert((variable, addend), slot);
        self.function.relocations.push(Relocation { slot, variable, addend });
        Ok(slot)
    }

    /// Slot of a register that is written, and its width; `_` is nobody's.
    pub(crate) fn target(&mut self, tokens: &'a [Token<'a>]) -> Decoded<(u32, u8)> {
        match tokens {
            [token] if token.is("_") => Ok((SLOT_SINK, 64)),
            [token] if token.kind == TokenKind::Word => match self.look_up(token.text)? {
                Some(Name::Register { slot, bits }) => {
                    self.writes.write(slot);
                    Ok((slot, bits))
                }
                _ => Err(wrong(format!("register `{}` is not declared", shortened(token.text)))),
            },
            _ => Err(wrong("a register expected")),
        }
    }

    /// `{a, b}`: the operands inside; none where there are no braces.
    pub(crate) fn vector(tokens: &'a [Token<'a>]) -> Option<Vec<&'a [Token<'a>]>> {
        match tokens {
            [open, inner @ .., close] if open.is("{") && close.is("}") => {
                Some(super::cursor::split_commas(inner))
            }
            _ => None,
        }
    }
}

fn single_number(tokens: &[Token<'_>]) -> Option<u64> {
    match tokens {
        [token] if token.kind == TokenKind::Number => number(token.text),
        _ => None,
    }
}

/// `+ 4`, `- 4`, `+ -4` or nothing.
fn addend(tokens: &[Token<'_>]) -> Decoded<u64> {
    let (negative, rest) = match tokens {
        [] => return Ok(0),
        [plus, minus, rest @ ..] if plus.is("+") && minus.is("-") => (true, rest),
        [sign, rest @ ..] if sign.is("+") => (false, rest),
        [sign, rest @ ..] if sign.is("-") => (true, rest),
        _ => return Err(wrong("an address is a name and a number")),
    };
    let value = single_number(rest).ok_or_else(|| wrong("an address is a name and a number"))?;
    Ok(if negative { value.wrapping_neg() } else { value })
}

/// The special registers that are functions of a thread's place alone.
fn special(name: &str) -> Option<Special> {
    let axis =
        |suffix: &str| ["x", "y", "z"].iter().position(|axis| *axis == suffix).map(|at| at as u8);
    let (head, tail) = name.split_once('.').unwrap_or((name, ""));
    Some(match head {
        "%tid" => Special::Thread(axis(tail)?),
        "%ctaid" => Special::Block(axis(tail)?),
        "%ntid" => Special::Threads(axis(tail)?),
        "%nctaid" => Special::Blocks(axis(tail)?),
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        "%nwarpid" => Special::Warps,
        "%lanemask_eq" => Special::LanesEqual,
        "%lanemask_lt" => Special::LanesBelow,
        "%lanemask_le" => Special::LanesUpTo,
        "%lanemask_gt" => Special::LanesAbove,
        "%lanemask_ge" => Special::LanesFrom,
        _ => return None,
    })
}

/// Special registers that tell the time or the place on the chip: never the same twice.
fn is_special(name: &str) -> bool {
    let heads =
        ["%clock", "%globaltimer", "%smid", "%nsmid", "%gridid", "%envreg", "%pm", "%dynamic_smem"];
    let sizes =
        ["%total_smem_size", "%aggr_smem_size", "%cluster", "%nclusterid", "%is_explicit_cluster"];
    heads.iter().chain(&sizes).any(|head| name.starts_with(head))
}
