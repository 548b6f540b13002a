//! Calls of functions that a driver brings: `vprintf` and `__assertfail`. Their texts are kept for
//! whoever launched.

use crate::Cause;
use crate::memory::{Memory, SHARED_WINDOW, STACK_WINDOW, get, offset, window};
use std::collections::VecDeque;

/// Bytes of `printf` that are kept, as in CUDA's buffer by default. Newer text takes the place of
/// the oldest.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Bytes of a text in device memory at most; the rest is cut.
const TEXT_BYTES_MAX: u64 = 4096;
/// Width and precision of one number at most.
const WIDTH_MAX: usize = 512;

/// What the threads of launches said.
#[derive(Default)]
pub(crate) struct Output {
    printed: VecDeque<Vec<u8>>,
    bytes: usize,
    pub(crate) assertion: Option<String>,
}

impl Output {
    pub(super) fn print(&mut self, text: Vec<u8>) {
        self.bytes += text.len();
        self.printed.push_back(text);
        while self.bytes > OUTPUT_BYTES_MAX
            && let Some(oldest) = self.printed.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }

    /// Takes the text of all `printf` so far.
    pub(crate) fn take_printed(&mut self) -> Vec<u8> {
        self.bytes = 0;
        std::mem::take(&mut self.printed).into_iter().flatten().collect()
    }
}

/// Device memory as a thread sees it.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) memory: &'a Memory,
    pub(super) shared: &'a [u8],
    pub(super) stack: &'a [u8],
}

impl View<'_> {
    fn read(&self, address: u64, bytes: usize) -> Result<u64, Cause> {
        let inside = |owned: &[u8]| {
            let start = usize::try_from(offset(address)).ok()?;
            Some(get(owned.get(start..start.checked_add(bytes)?)?))
        };
        let found = match window(address) {
            STACK_WINDOW => inside(self.stack),
            SHARED_WINDOW => inside(self.shared),
            _ => self.memory.slice(address, bytes).map(get),
        };
        found.ok_or(Cause::OutOfBounds { address, bytes: bytes as u32 })
    }

    /// A text up to its zero.
    fn text(&self, address: u64) -> Result<Vec<u8>, Cause> {
        let mut text = Vec::new();
        for at in 0..TEXT_BYTES_MAX {
            match self.read(address.wrapping_add(at), 1)? as u8 {
                0 => break,
                byte => text.push(byte),
            }
        }
        Ok(text)
    }
}

/// `vprintf(format, arguments)`: gives the text and the number of arguments.
pub(super) fn printed(
    view: View<'_>,
    (format, arguments): (u64, u64),
) -> Result<(Vec<u8>, u32), Cause> {
    let format = view.text(format)?;
    let mut list = List { view, at: arguments, count: 0 };
    let text = formatted(&format, &mut list)?;
    Ok((text, list.count))
}

/// `__assertfail(message, file, line, function, size of a character)`: gives the text of CUDA's
/// driver.
pub(super) fn failed_assertion(
    view: View<'_>,
    (message, file, line, function): (u64, u64, u32, u64),
    ([x, y, z], [i, j, k]): ([u32; 3], [u32; 3]),
) -> String {
    let text = |address| {
        let text = view.text(address).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    };
    format!(
        "{}:{line}: {}: block: [{x},{y},{z}], thread: [{i},{j},{k}] Assertion `{}` failed.",
        text(file),
        text(function),
        text(message)
    )
}

/// The arguments of a `printf`, packed as in a structure.
struct List<'a> {
    view: View<'a>,
    at: u64,
    count: u32,
}

impl List<'_> {
    fn next(&mut self, bytes: usize) -> Result<u64, Cause> {
        let at = self.at.next_multiple_of(bytes as u64);
        self.at = at + bytes as u64;
        self.count += 1;
        self.view.read(at, bytes)
    }
}

/// One `%` of a format.
#[derive(Default)]
struct Conversion {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    wide: bool,
}

fn formatted(format: &[u8], list: &mut List<'_>) -> Result<Vec<u8>, Cause> {
    let mut text = Vec::new();
    let mut rest = format.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let mut how = Conversion::default();
        while let Some(flag) = rest.next_if(|byte| b"-0+ #".contains(byte)) {
            match flag {
                b'-' => how.left = true,
                b'0' => how.zero = true,
                b'+' => how.plus = true,
                b' ' => how.space = true,
                _ => how.alternate = true,
            }
        }
        how.width = number(&mut rest, list)?.unwrap_or(0);
        if rest.next_if_eq(&b'.').is_some() {
            how.precision = Some(number(&mut rest, list)?.unwrap_or(0));
        }
        while let Some(size) = rest.next_if(|byte| b"hlLjzt".contains(byte)) {
            how.wide |= size != b'h';
        }
        match rest.next() {
            Some(conversion) => text.extend(converted(conversion, &how, list)?),
            None => text.push(b'%'),
        }
    }
    Ok(text)
}

/// A width or a precision, in the format or, for `*`, among the arguments.
fn number(
    rest: &mut std::iter::Peekable<impl Iterator<Item = u8>>,
    list: &mut List<'_>,
) -> Result<Option<usize>, Cause> {
    if rest.next_if_eq(&b'*').is_some() {
        let given = list.next(4)? as u32 as i32;
        return Ok(Some((given.max(0) as usize).min(WIDTH_MAX)));
    }
    let mut found = None;
    while let Some(digit) = rest.next_if(u8::is_ascii_digit) {
        let value = found.unwrap_or(0) * 10 + usize::from(digit - b'0');
        found = Some(value.min(WIDTH_MAX));
    }
    Ok(found)
}

fn converted(conversion: u8, how: &Conversion, list: &mut List<'_>) -> Result<Vec<u8>, Cause> {
    let bytes = if how.wide { 8 } else { 4 };
    let whole = |digits: String| {
        let least = how.precision.unwrap_or(1);
        format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())))
    };
    let (sign, body) = match conversion {
        b'%' => return Ok(vec![b'%']),
        b'd' | b'i' => {
            let raw = list.next(bytes)?;
            let value = if how.wide { raw as i64 } else { i64::from(raw as u32 as i32) };
            (how.sign(value < 0), whole(value.unsigned_abs().to_string()))
        }
        b'u' => ("", whole(list.next(bytes)?.to_string())),
        b'o' => ("", whole(format!("{:o}", list.next(bytes)?))),
        b'x' if how.alternate => ("0x", whole(format!("{:x}", list.next(bytes)?))),
        b'x' => ("", whole(format!("{:x}", list.next(bytes)?))),
        b'X' if how.alternate => ("0X", whole(format!("{:X}", list.next(bytes)?))),
        b'X' => ("", whole(format!("{:X}", list.next(bytes)?))),
        b'p' => ("0x", format!("{:x}", list.next(8)?)),
        b'c' => return Ok(how.padded("", vec![list.next(4)? as u8], false)),
        b's' => {
            let address = list.next(8)?;
            let mut text = list.view.text(address)?;
            text.truncate(how.precision.unwrap_or(usize::MAX));
            return Ok(how.padded("", text, false));
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => {
            let value = f64::from_bits(list.next(8)?);
            let body = real(conversion, value.abs(), how);
            let sign = how.sign(value.is_sign_negative() && !value.is_nan());
            return Ok(how.padded(sign, body.into_bytes(), value.is_finite()));
        }
        other => return Ok(vec![b'%', other]),
    };
    Ok(how.padded(sign, body.into_bytes(), how.precision.is_none()))
}

impl Conversion {
    fn sign(&self, is_negative: bool) -> &'static str {
        match (is_negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    fn padded(&self, sign: &str, body: Vec<u8>, zeros: bool) -> Vec<u8> {
        let missing = self.width.saturating_sub(sign.len() + body.len());
        let mut text = Vec::new();
        let fill = |text: &mut Vec<u8>, with: u8| text.extend(std::iter::repeat_n(with, missing));
        let zeros = zeros && self.zero && !self.left;
        if !zeros && !self.left {
            fill(&mut text, b' ');
        }
        text.extend(sign.as_bytes());
        if zeros {
            fill(&mut text, b'0');
        }
        text.extend(body);
        if self.left {
            fill(&mut text, b' ');
        }
        text
    }
}

/// A float that is not negative.
fn real(conversion: u8, value: f64, how: &Conversion) -> String {
    let upper = conversion.is_ascii_uppercase();
    let cased = |text: String| if upper { text.to_ascii_uppercase() } else { text };
    if !value.is_finite() {
        return cased(if value.is_nan() { "nan".into() } else { "inf".into() });
    }
    let digits = how.precision.unwrap_or(6);
    match conversion.to_ascii_lowercase() {
        b'f' => format!("{value:.digits$}"),
        b'e' => cased(scientific(value, digits)),
        _ => cased(general(value, digits.max(1), how.alternate)),
    }
}

/// `1.500000e+00`
fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// The shorter of both forms, without zeros at its end.
fn general(value: f64, digits: usize, keep_zeros: bool) -> String {
    let science = scientific(value, digits - 1);
    let (mantissa, exponent) = science.split_once('e').unwrap_or((&science, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    let short = |text: &str| match text.contains('.') && !keep_zeros {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if power < -4 || power >= digits as i32 {
        return format!("{}e{exponent}", short(mantissa));
    }
    let places = (digits as i32 - 1 - power).max(0) as usize;
    short(&format!("{value:.places$}"))
}
