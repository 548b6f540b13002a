//! Declarations: variables and parameters with type, alignment, size and first value. Places
//! nothing.

use super::cursor::{Cursor, number};
use crate::ParseError;
use crate::module::Type;
use crate::text::TokenKind;

/// Bytes of one variable at most.
const VARIABLE_BYTES_MAX: u64 = 1 << 34;

/// What a declaration says.
pub(crate) struct Declaration {
    pub(crate) name: String,
    pub(crate) element: Type,
    pub(crate) bytes: u64,
    pub(crate) align: u32,
    pub(crate) initial: Vec<u8>,
}

/// Reads from after the state space to after the name and its dimensions.
///
/// # Errors
/// [`ParseError`] for what is no declaration, or too large.
pub(crate) fn declaration(cursor: &mut Cursor<'_>) -> Result<Declaration, ParseError> {
    let mut align = None;
    let mut vector = 1u32;
    let mut element = None;
    while let Some(token) = cursor.peek().filter(|token| token.kind == TokenKind::Dot) {
        cursor.next();
        match token.text {
            ".align" => align = Some(alignment(cursor)?),
            ".v2" => vector = 2,
            ".v4" => vector = 4,
            // A pointer parameter says what it points to; nothing follows from it here.
            ".ptr" => pointer(cursor)?,
            ".attribute" => {
                cursor.expect("(")?;
                cursor.until(")")?;
            }
            name => match Type::named(name) {
                Some(found) => element = Some(found),
                None => return Err(cursor.wrong(format!("`{name}` is no type of a variable"))),
            },
        }
    }
    let element = element.ok_or_else(|| cursor.wrong("a type expected"))?;
    let name = cursor.word()?.to_owned();
    let mut bytes = element.bytes() * u64::from(vector);
    let natural = u32::try_from(bytes.max(1)).unwrap_or(1);
    while cursor.take("[") {
        let count = if cursor.peek_is("]") { 0 } else { cursor.number(VARIABLE_BYTES_MAX)? };
        cursor.expect("]")?;
        bytes = bytes.checked_mul(count).filter(|bytes| *bytes <= VARIABLE_BYTES_MAX).ok_or_else(
            || cursor.wrong(format!("`{name}` is larger than {VARIABLE_BYTES_MAX} bytes")),
        )?;
    }
    Ok(Declaration { name, element, bytes, align: align.unwrap_or(natural), initial: Vec::new() })
}

fn alignment(cursor: &mut Cursor<'_>) -> Result<u32, ParseError> {
    let align = cursor.number(1 << 16)?;
    match align.is_power_of_two() {
        true => Ok(align as u32),
        false => Err(cursor.wrong("an alignment is a power of two")),
    }
}

fn pointer(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    while let Some(token) = cursor.peek().filter(|token| token.kind == TokenKind::Dot) {
        match token.text {
            ".const" | ".global" | ".local" | ".shared" => {
                cursor.next();
            }
            ".align" => {
                cursor.next();
                alignment(cursor)?;
            }
            _ => break,
        }
    }
    Ok(())
}

/// Reads `= value` or `= { values }`, if there is one, into the declaration's first bytes.
///
/// # Errors
/// [`ParseError`] for values that are no numbers, or too many.
pub(crate) fn initialiser(
    cursor: &mut Cursor<'_>,
    into: &mut Declaration,
) -> Result<(), ParseError> {
    if !cursor.take("=") {
        return Ok(());
    }
    let mut depth = 0usize;
    loop {
        if cursor.take("{") {
            depth += 1;
        } else if cursor.take("}") {
            depth = depth.saturating_sub(1);
        } else if !cursor.take(",") {
            let value = value(cursor, into.element)?;
            let bytes = into.element.bytes() as usize;
            into.initial.extend_from_slice(&value.to_le_bytes()[..bytes]);
        }
        if depth == 0 {
            break;
        }
    }
    match into.initial.len() as u64 <= into.bytes {
        true => Ok(()),
        false => Err(cursor.wrong(format!("`{}` has more values than room", into.name))),
    }
}

fn value(cursor: &mut Cursor<'_>, element: Type) -> Result<u64, ParseError> {
    let negative = cursor.take("-");
    let token = cursor.peek().filter(|token| token.kind == TokenKind::Number);
    let value = token.and_then(|token| number(token.text));
    let value =
        value.ok_or_else(|| cursor.wrong("only numbers can be first values of variables"))?;
    cursor.next();
    let value = if negative { value.wrapping_neg() } else { value };
    Ok(value & element.mask())
}
