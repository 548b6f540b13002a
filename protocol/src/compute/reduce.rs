//! Reductions: the values of a chunk become one partial result per channel, and the partial results
//! become the result. The grouping of the values does not change the result. Sums of floats are
//! exact until one rounding at the end, sums of integers wrap at 64 bits, and extremes follow a
//! total order.

use super::{Element, ExactSum, half_to_f64};
use serde::{Deserialize, Serialize};

/// How all values of a channel become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// The sum: f64 for floats, i64 or u64 (wrapping) for integers.
    Sum,
    /// The least value. -0 is below +0. If one of the values is NaN, the result is NaN.
    Min,
    /// The greatest value, by the same rules.
    Max,
}

impl Reduction {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// Returns the element type of the result.
    pub fn result(self, element: Element) -> Element {
        if self == Self::Sum { element.of_sum() } else { element }
    }

    /// Returns the size of one channel's partial result on the wire, in bytes.
    pub fn partial_bytes(self, element: Element) -> usize {
        if self == Self::Sum && element.is_float() { ExactSum::BYTES } else { 8 }
    }
}

impl std::str::FromStr for Reduction {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known =
            [Self::Sum, Self::Min, Self::Max].into_iter().find(|known| known.name() == text);
        known.ok_or_else(|| format!("`{text}` is not a reduction: sum, min or max"))
    }
}

/// The bytes are not partial results of this reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a partial of a reduction is damaged")]
pub struct PartialError;

/// The partial result of one channel.
#[derive(Clone, Debug)]
enum State {
    Sum(Box<ExactSum>),
    Wrapping(u64),
    /// Bits of the least or greatest value so far.
    Extreme(Option<u64>),
}

/// A reduction in progress, with all its channels.
#[derive(Clone, Debug)]
pub struct Partial {
    reduction: Reduction,
    element: Element,
    channels: Vec<State>,
}

impl Partial {
    /// Creates a reduction of no values.
    pub fn new(reduction: Reduction, element: Element, channels: u8) -> Self {
        let state = match (reduction, element.is_float()) {
            (Reduction::Sum, true) => State::Sum(Box::default()),
            (Reduction::Sum, false) => State::Wrapping(0),
            (Reduction::Min | Reduction::Max, _) => State::Extreme(None),
        };
        Self { reduction, element, channels: vec![state; usize::from(channels)] }
    }

    /// Adds values: index by index, and channel by channel within an index. An incomplete index at
    /// the end is ignored.
    pub fn add_values(&mut self, values: &[u8]) {
        let (reduction, element, size) = (self.reduction, self.element, self.element.bytes());
        for index in values.chunks_exact(size * self.channels.len().max(1)) {
            for (state, value) in self.channels.iter_mut().zip(index.chunks_exact(size)) {
                let bits = bits_of(value);
                match state {
                    State::Sum(sum) => sum.add(real(element, bits)),
                    State::Wrapping(sum) => *sum = sum.wrapping_add(extended(element, bits)),
                    State::Extreme(best) => *best = Some(better(reduction, element, *best, bits)),
                }
            }
        }
    }

    /// Adds a partial result that [`Self::to_bytes`] encoded. An error leaves this one unchanged.
    pub fn merge(&mut self, bytes: &[u8]) -> Result<(), PartialError> {
        let size = self.reduction.partial_bytes(self.element);
        if bytes.len() != size * self.channels.len() {
            return Err(PartialError);
        }
        let (reduction, element) = (self.reduction, self.element);
        let mut channels = self.channels.clone();
        for (state, bytes) in channels.iter_mut().zip(bytes.chunks_exact(size)) {
            match state {
                State::Sum(sum) => sum.merge(&ExactSum::from_bytes(bytes).ok_or(PartialError)?),
                State::Wrapping(sum) => *sum = sum.wrapping_add(bits_of(bytes)),
                State::Extreme(best) => {
                    *best = Some(better(reduction, element, *best, bits_of(bytes)))
                }
            }
        }
        self.channels = channels;
        Ok(())
    }

    /// Encodes the partial results, channel by channel. An extreme of no values is encoded as 0,
    /// but chunks of a job always have values.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for state in &self.channels {
            match state {
                State::Sum(sum) => bytes.extend_from_slice(&sum.to_bytes()),
                State::Wrapping(sum) => bytes.extend_from_slice(&sum.to_le_bytes()),
                State::Extreme(best) => bytes.extend_from_slice(&best.unwrap_or(0).to_le_bytes()),
            }
        }
        bytes
    }

    /// Returns the result: a value of type [`Reduction::result`] for each channel, little endian.
    pub fn finish(&self) -> Vec<u8> {
        let size = self.reduction.result(self.element).bytes();
        let mut bytes = Vec::with_capacity(size * self.channels.len());
        for state in &self.channels {
            let bits = match state {
                State::Sum(sum) => sum.round().to_bits(),
                State::Wrapping(sum) => *sum,
                State::Extreme(best) => best.unwrap_or(0),
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
        }
        bytes
    }
}

/// Converts at most 8 little-endian bytes to a number.
fn bits_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// Extends an integer to 64 bits, modulo 2^64.
fn extended(element: Element, bits: u64) -> u64 {
    let unused = 64 - 8 * element.bytes().min(8) as u32;
    if element.is_signed() { (((bits << unused) as i64) >> unused) as u64 } else { bits }
}

/// Returns the value of a float.
fn real(element: Element, bits: u64) -> f64 {
    match element {
        Element::F16 => half_to_f64(bits as u16),
        Element::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

fn is_nan(element: Element, bits: u64) -> bool {
    element.is_float() && real(element, bits).is_nan()
}

/// Maps a value to a number so that the numbers have the order of the values. Floats have IEEE's
/// total order.
fn order(element: Element, bits: u64) -> u64 {
    let sign = 1u64 << (element.bytes().min(8) * 8 - 1);
    match element.is_float() {
        true if bits & sign != 0 => !bits & (sign | (sign - 1)),
        true => bits | sign,
        false if element.is_signed() => bits ^ sign,
        false => bits,
    }
}

fn better(reduction: Reduction, element: Element, best: Option<u64>, bits: u64) -> u64 {
    // All NaNs become one NaN, so that the payload does not depend on the order of the values.
    let nan = match element {
        Element::F16 => 0x7e00,
        Element::F32 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    };
    let bits = if is_nan(element, bits) { nan } else { bits };
    let Some(best) = best else { return bits };
    if is_nan(element, best) || is_nan(element, bits) {
        return nan;
    }
    let (old, new) = (order(element, best), order(element, bits));
    let wins = if reduction == Reduction::Min { new < old } else { new > old };
    if wins { bits } else { best }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(reduction: Reduction, element: Element, channels: u8, parts: &[&[u8]]) -> Vec<u8> {
        let mut total = Partial::new(reduction, element, channels);
        for part in parts {
            let mut partial = Partial::new(reduction, element, channels);
            partial.add_values(part);
            total.merge(&partial.to_bytes()).unwrap();
        }
        total.finish()
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn integers(values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn channels_are_reduced_apart() {
        let (a, b) = (floats(&[1.0, -2.0, 3.0, 4.0]), floats(&[0.5, 9.0]));
        let sum = reduced(Reduction::Sum, Element::F32, 2, &[&a, &b]);
        assert_eq!(sum, [4.5f64.to_le_bytes(), 11f64.to_le_bytes()].concat());
        assert_eq!(reduced(Reduction::Min, Element::F32, 2, &[&a, &b]), floats(&[0.5, -2.0]));
        assert_eq!(reduced(Reduction::Max, Element::F32, 2, &[&b, &a]), floats(&[3.0, 9.0]));
    }

    #[test]
    fn integers_have_room_and_their_sign() {
        let values = integers(&[i32::MAX, i32::MAX, -5, i32::MIN]);
        let sum = i64::from(i32::MAX) * 2 - 5 + i64::from(i32::MIN);
        assert_eq!(reduced(Reduction::Sum, Element::I32, 1, &[&values]), sum.to_le_bytes());
        assert_eq!(reduced(Reduction::Min, Element::I32, 1, &[&values]), i32::MIN.to_le_bytes());
        assert_eq!(reduced(Reduction::Max, Element::U32, 1, &[&values]), (-5i32).to_le_bytes());
        let unsigned = (1u64 << 32) - 5 + (1 << 31) + 2 * (i32::MAX as u64);
        assert_eq!(reduced(Reduction::Sum, Element::U32, 1, &[&values]), unsigned.to_le_bytes());
    }

    #[test]
    fn small_types_are_reduced_as_large_ones() {
        let bytes = [250u8, 3, 127, 128];
        let reduced = |reduction, element| reduced(reduction, element, 1, &[&bytes]);
        assert_eq!(reduced(Reduction::Sum, Element::U8), 508u64.to_le_bytes());
        assert_eq!(reduced(Reduction::Sum, Element::I8), (-4i64).to_le_bytes());
        assert_eq!(reduced(Reduction::Min, Element::I8), [128]);
        assert_eq!(reduced(Reduction::Max, Element::I8), [127]);
        assert_eq!(reduced(Reduction::Min, Element::U8), [3]);
        assert_eq!(reduced(Reduction::Max, Element::U8), [250]);
        assert_eq!(reduced(Reduction::Max, Element::I16), 1018i16.to_le_bytes());
        let halves: Vec<u8> =
            [0x3c00u16, 0xc000, 0x0001].iter().flat_map(|h| h.to_le_bytes()).collect();
        let total = |reduction| super::tests::reduced(reduction, Element::F16, 1, &[&halves]);
        assert_eq!(total(Reduction::Sum), (2f64.powi(-24) - 1.0).to_le_bytes());
        assert_eq!(total(Reduction::Min), 0xc000u16.to_le_bytes());
        assert_eq!(total(Reduction::Max), 0x3c00u16.to_le_bytes());
    }

    #[test]
    fn zeros_have_an_order_and_nan_wins() {
        let zeros = [floats(&[0.0]), floats(&[-0.0])];
        for (a, b) in [(0, 1), (1, 0)] {
            let parts = [&zeros[a][..], &zeros[b][..]];
            assert_eq!(reduced(Reduction::Min, Element::F32, 1, &parts), floats(&[-0.0]));
            assert_eq!(reduced(Reduction::Max, Element::F32, 1, &parts), floats(&[0.0]));
        }
        let nan = f32::from_bits(0xffc1_2345);
        let parts = [&floats(&[1.0])[..], &floats(&[nan, f32::INFINITY])[..]];
        for reduction in [Reduction::Min, Reduction::Max] {
            assert_eq!(reduced(reduction, Element::F32, 1, &parts), 0x7fc0_0000u32.to_le_bytes());
        }
    }

    #[test]
    fn foreign_partials_are_refused() {
        let mut total = Partial::new(Reduction::Sum, Element::F64, 2);
        assert_eq!(total.merge(&[0; 8]), Err(PartialError));
        assert_eq!(total.merge(&[0xff; 2 * ExactSum::BYTES]), Err(PartialError));
        assert_eq!(total.finish(), [0; 16]);
    }
}
