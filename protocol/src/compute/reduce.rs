//! Reductions: the values of a chunk become one partial result per channel, and the partial results
//! become the result; with keys, one for each key. The grouping of the values does not change the
//! result. Sums of floats and means are exact until one rounding of the sum at the end, sums of
//! integers wrap at 64 bits, and extremes follow a total order.

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
    /// The sum over the number of values, f64: the exact sum, rounded, divided and rounded again.
    Mean,
    /// The index of the least value, i64: the lowest of those that are equal, and the lowest NaN if
    /// there is one.
    Argmin,
    /// The index of the greatest value, by the same rules.
    Argmax,
    /// With keys: how many indices have each of them, i64.
    Count,
}

impl Reduction {
    /// Every reduction, in the order of the help.
    pub const ALL: [Self; 7] =
        [Self::Sum, Self::Mean, Self::Min, Self::Max, Self::Argmin, Self::Argmax, Self::Count];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Mean => "mean",
            Self::Argmin => "argmin",
            Self::Argmax => "argmax",
            Self::Count => "count",
        }
    }

    /// Returns the element type of the result.
    pub fn result(self, element: Element) -> Element {
        match self {
            Self::Sum => element.of_sum(),
            Self::Min | Self::Max => element,
            Self::Mean => Element::F64,
            Self::Argmin | Self::Argmax | Self::Count => Element::I64,
        }
    }

    /// Returns the size of one partial result on the wire, in bytes.
    fn partial_bytes(self, element: Element) -> usize {
        match self {
            Self::Sum if element.is_float() => ExactSum::BYTES,
            Self::Sum | Self::Min | Self::Max | Self::Count => 8,
            Self::Mean => ExactSum::BYTES + 8,
            Self::Argmin | Self::Argmax => 16,
        }
    }

    fn is_of_least(self) -> bool {
        matches!(self, Self::Min | Self::Argmin)
    }
}

impl std::str::FromStr for Reduction {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|known| known.name() == text);
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|known| known.name()).collect();
            format!("`{text}` is not a reduction: {}", names.join(", "))
        })
    }
}

/// What is reduced, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reducing {
    /// The reduction.
    pub reduction: Reduction,
    /// Type of the values, real numbers.
    pub element: Element,
    /// Values that a kernel writes at each index. With keys the first of them is the index's key.
    pub channels: u8,
    /// Number of keys: 0 to this number, exclusively. An index with any other key is left out. 0
    /// reduces all indices to one result.
    pub keys: u32,
}

impl Reducing {
    /// Returns the number of results for a key.
    pub fn values(&self) -> usize {
        match (self.reduction, self.keys) {
            (Reduction::Count, _) => 1,
            (_, 0) => usize::from(self.channels),
            _ => usize::from(self.channels).saturating_sub(1),
        }
    }

    /// Returns the size of all partial results on the wire, in bytes.
    pub fn partial_bytes(&self) -> u64 {
        let results = self.values() as u64 * u64::from(self.keys.max(1));
        results * self.reduction.partial_bytes(self.element) as u64
    }

    /// Returns the shape of the result: keys, then results for a key, each only if not one alone.
    pub fn shape(&self) -> Vec<u64> {
        let keys = (self.keys > 0).then_some(u64::from(self.keys));
        let values = (self.values() != 1).then_some(self.values() as u64);
        keys.into_iter().chain(values).collect()
    }
}

/// The bytes are not partial results of this reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a partial of a reduction is damaged")]
pub struct PartialError;

/// No index: that of no value at all.
const NOWHERE: u64 = u64::MAX;

/// A partial result.
#[derive(Clone, Debug)]
enum State {
    Sum(Box<ExactSum>),
    Wrapping(u64),
    /// Bits of the least or greatest value so far; of no value what every other one is better than.
    Extreme(u64),
    Mean {
        sum: Box<ExactSum>,
        count: u64,
    },
    /// Bits of the least or greatest value so far, and its index.
    Place {
        bits: u64,
        index: u64,
    },
}

/// A reduction in progress, with all its partial results.
#[derive(Clone, Debug)]
pub struct Partial {
    what: Reducing,
    /// Key by key, and channel by channel within a key.
    states: Vec<State>,
}

impl Partial {
    /// Creates a reduction of no values.
    pub fn new(what: Reducing) -> Self {
        let state = match what.reduction {
            Reduction::Sum if what.element.is_float() => State::Sum(Box::default()),
            Reduction::Sum | Reduction::Count => State::Wrapping(0),
            Reduction::Min | Reduction::Max => State::Extreme(worst(what)),
            Reduction::Mean => State::Mean { sum: Box::default(), count: 0 },
            Reduction::Argmin | Reduction::Argmax => {
                State::Place { bits: worst(what), index: NOWHERE }
            }
        };
        Self { what, states: vec![state; what.values() * what.keys.max(1) as usize] }
    }

    /// Adds the values of indices from `first` on: index by index, and channel by channel within an
    /// index. An incomplete index at the end is ignored.
    pub fn add_values(&mut self, first: u64, values: &[u8]) {
        let (what, size) = (self.what, self.what.element.bytes());
        let of_index = size * usize::from(what.channels).max(1);
        for (index, values) in (first..).zip(values.chunks_exact(of_index)) {
            let (key, values) = match what.keys {
                0 => (0, values),
                keys => match key(what.element, bits_of(&values[..size])) {
                    Some(key) if key < u64::from(keys) => (key as usize, &values[size..]),
                    _ => continue,
                },
            };
            let states = &mut self.states[key * what.values()..][..what.values()];
            if what.reduction == Reduction::Count {
                states[0].count_one();
                continue;
            }
            for (state, value) in states.iter_mut().zip(values.chunks_exact(size)) {
                state.add(what, index, bits_of(value));
            }
        }
    }

    /// Adds partial results that [`Self::to_bytes`] encoded. An error leaves this one unchanged.
    pub fn merge(&mut self, bytes: &[u8]) -> Result<(), PartialError> {
        if bytes.len() as u64 != self.what.partial_bytes() {
            return Err(PartialError);
        }
        let size = self.what.reduction.partial_bytes(self.what.element);
        let others: Option<Vec<State>> = self
            .states
            .iter()
            .zip(bytes.chunks_exact(size))
            .map(|(state, bytes)| state.decoded(bytes))
            .collect();
        for (state, other) in self.states.iter_mut().zip(others.ok_or(PartialError)?) {
            state.join(self.what, &other);
        }
        Ok(())
    }

    /// Encodes the partial results, key by key, and channel by channel within a key.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.what.partial_bytes() as usize);
        for state in &self.states {
            match state {
                State::Sum(sum) => bytes.extend_from_slice(&sum.to_bytes()),
                State::Wrapping(bits) | State::Extreme(bits) => {
                    bytes.extend_from_slice(&bits.to_le_bytes());
                }
                State::Mean { sum, count } => {
                    bytes.extend_from_slice(&sum.to_bytes());
                    bytes.extend_from_slice(&count.to_le_bytes());
                }
                State::Place { bits, index } => {
                    bytes.extend_from_slice(&bits.to_le_bytes());
                    bytes.extend_from_slice(&index.to_le_bytes());
                }
            }
        }
        bytes
    }

    /// Returns the result: values of type [`Reduction::result`], little endian. A key without an
    /// index has the sum 0, the mean NaN, the place -1, and as an extreme infinity or the end of
    /// the type's range.
    pub fn finish(&self) -> Vec<u8> {
        let size = self.what.reduction.result(self.what.element).bytes();
        let mut bytes = Vec::with_capacity(size * self.states.len());
        for state in &self.states {
            let bits = match state {
                State::Sum(sum) => sum.round().to_bits(),
                State::Wrapping(bits) | State::Extreme(bits) => *bits,
                State::Mean { count: 0, .. } => f64::NAN.to_bits(),
                State::Mean { sum, count } => (sum.round() / *count as f64).to_bits(),
                State::Place { index, .. } => *index,
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
        }
        bytes
    }
}

impl State {
    fn count_one(&mut self) {
        if let Self::Wrapping(count) = self {
            *count = count.wrapping_add(1);
        }
    }

    fn add(&mut self, what: Reducing, index: u64, bits: u64) {
        let element = what.element;
        match self {
            Self::Sum(sum) => sum.add(real(element, bits)),
            Self::Wrapping(sum) => *sum = sum.wrapping_add(extended(element, bits)),
            Self::Mean { sum, count } => {
                *count += 1;
                if element.is_float() {
                    sum.add(real(element, bits));
                } else {
                    add_whole(sum, element, bits);
                }
            }
            Self::Extreme(_) | Self::Place { .. } => {
                let bits = if is_nan(element, bits) { nan(element) } else { bits };
                match self {
                    Self::Extreme(_) => self.join(what, &Self::Extreme(bits)),
                    _ => self.join(what, &Self::Place { bits, index }),
                }
            }
        }
    }

    fn join(&mut self, what: Reducing, other: &Self) {
        match (self, other) {
            (Self::Sum(sum), Self::Sum(other)) => sum.merge(other),
            (Self::Wrapping(sum), Self::Wrapping(other)) => *sum = sum.wrapping_add(*other),
            (Self::Mean { sum, count }, Self::Mean { sum: other, count: more }) => {
                sum.merge(other);
                *count = count.wrapping_add(*more);
            }
            (Self::Extreme(best), Self::Extreme(bits)) if is_better(what, *bits, *best) => {
                *best = *bits;
            }
            (Self::Place { bits: best, index: place }, Self::Place { bits, index })
                if is_better(what, *bits, *best)
                    || (*index < *place && !is_better(what, *best, *bits)) =>
            {
                (*best, *place) = (*bits, *index);
            }
            // What is worse changes nothing; a reduction has states of one kind.
            _ => {}
        }
    }

    /// Reads a partial result of the same kind.
    fn decoded(&self, bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| bits_of(&bytes[at..at + 8]);
        Some(match self {
            Self::Sum(_) => Self::Sum(Box::new(ExactSum::from_bytes(bytes)?)),
            Self::Wrapping(_) => Self::Wrapping(word(0)),
            Self::Extreme(_) => Self::Extreme(word(0)),
            Self::Mean { .. } => Self::Mean {
                sum: Box::new(ExactSum::from_bytes(&bytes[..ExactSum::BYTES])?),
                count: word(ExactSum::BYTES),
            },
            Self::Place { .. } => Self::Place { bits: word(0), index: word(8) },
        })
    }
}

/// Adds an integer in two parts that an f64 holds.
fn add_whole(sum: &mut ExactSum, element: Element, bits: u64) {
    let bits = extended(element, bits);
    let high = if element.is_signed() {
        f64::from((bits as i64 >> 32) as i32)
    } else {
        f64::from((bits >> 32) as u32)
    };
    sum.add(high * 4_294_967_296.0);
    sum.add(f64::from(bits as u32));
}

/// Returns the key that a value stands for; None where it is not a whole number >= 0.
fn key(element: Element, bits: u64) -> Option<u64> {
    if element.is_float() {
        let value = real(element, bits);
        return (value >= 0.0 && value.fract() == 0.0 && value < 4_294_967_296.0)
            .then_some(value as u64);
    }
    let bits = extended(element, bits);
    (!element.is_signed() || bits as i64 >= 0).then_some(bits)
}

/// Returns the value that every other one is better than.
fn worst(what: Reducing) -> u64 {
    let element = what.element;
    let all = u64::MAX >> (64 - 8 * element.bytes().min(8));
    let sign = all ^ (all >> 1);
    let (least, greatest) = match element {
        Element::F16 => (0xfc00, 0x7c00),
        Element::F32 => {
            (u64::from(f32::NEG_INFINITY.to_bits()), u64::from(f32::INFINITY.to_bits()))
        }
        Element::F64 => (f64::NEG_INFINITY.to_bits(), f64::INFINITY.to_bits()),
        _ if element.is_signed() => (sign, all >> 1),
        Element::Bool => (0, 1),
        _ => (0, all),
    };
    if what.reduction.is_of_least() { greatest } else { least }
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

/// The one NaN that stands for all of them, so that the payload does not depend on the order of the
/// values.
fn nan(element: Element) -> u64 {
    match element {
        Element::F16 => 0x7e00,
        Element::F32 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    }
}

/// Whether a value is a better extreme than the best so far. NaN is better than all others.
fn is_better(what: Reducing, bits: u64, best: u64) -> bool {
    let element = what.element;
    if is_nan(element, best) || is_nan(element, bits) {
        return !is_nan(element, best);
    }
    let (old, new) = (order(element, best), order(element, bits));
    if what.reduction.is_of_least() { new < old } else { new > old }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(reduction: Reduction, element: Element, channels: u8, parts: &[&[u8]]) -> Vec<u8> {
        keyed(Reducing { reduction, element, channels, keys: 0 }, parts)
    }

    fn keyed(what: Reducing, parts: &[&[u8]]) -> Vec<u8> {
        let mut total = Partial::new(what);
        let mut first = 0;
        for part in parts {
            let mut partial = Partial::new(what);
            partial.add_values(first, part);
            first += (part.len() / what.element.bytes() / usize::from(what.channels)) as u64;
            let bytes = partial.to_bytes();
            assert_eq!(bytes.len() as u64, what.partial_bytes());
            total.merge(&bytes).unwrap();
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
        let mut total = Partial::new(Reducing {
            reduction: Reduction::Sum,
            element: Element::F64,
            channels: 2,
            keys: 0,
        });
        assert_eq!(total.merge(&[0; 8]), Err(PartialError));
        assert_eq!(total.merge(&[0xff; 2 * ExactSum::BYTES]), Err(PartialError));
        assert_eq!(total.finish(), [0; 16]);
    }

    #[test]
    fn means_are_exact_sums_over_their_count() {
        let large = [floats(&[1e30, 1.0]), floats(&[-1e30, 1.0])];
        let parts = [&large[0][..], &large[1][..]];
        let mean = reduced(Reduction::Mean, Element::F32, 1, &parts);
        assert_eq!(mean, 0.5f64.to_le_bytes());
        let values = integers(&[i32::MIN, -1, 3]);
        let mean = reduced(Reduction::Mean, Element::I32, 1, &[&values]);
        assert_eq!(mean, ((f64::from(i32::MIN) + 2.0) / 3.0).to_le_bytes());
        let whole: Vec<u8> = [u64::MAX, 1].iter().flat_map(|value| value.to_le_bytes()).collect();
        let mean = reduced(Reduction::Mean, Element::U64, 1, &[&whole]);
        assert_eq!(mean, 2f64.powi(63).to_le_bytes());
        let mean = reduced(Reduction::Mean, Element::I64, 1, &[&whole]);
        assert_eq!(mean, 0f64.to_le_bytes());
    }

    #[test]
    fn places_are_the_lowest_whatever_the_order() {
        let parts = [floats(&[2.0, 1.0, 5.0]), floats(&[1.0, 5.0, 0.5, 0.5])];
        let place = |reduction, parts: &[&[u8]]| reduced(reduction, Element::F32, 1, parts);
        let both = [&parts[0][..], &parts[1][..]];
        assert_eq!(place(Reduction::Argmin, &both), 5i64.to_le_bytes());
        assert_eq!(place(Reduction::Argmax, &both), 2i64.to_le_bytes());
        let with_nan = floats(&[1.0, f32::NAN, -1.0, f32::from_bits(0xffc0_0001)]);
        assert_eq!(place(Reduction::Argmin, &[&with_nan]), 1i64.to_le_bytes());

        // The last chunk is merged first.
        let what =
            Reducing { reduction: Reduction::Argmax, element: Element::F32, channels: 1, keys: 0 };
        let (mut total, mut late, mut early) =
            (Partial::new(what), Partial::new(what), Partial::new(what));
        late.add_values(100, &parts[0]);
        early.add_values(7, &parts[0]);
        total.merge(&late.to_bytes()).unwrap();
        total.merge(&early.to_bytes()).unwrap();
        assert_eq!(total.finish(), 9i64.to_le_bytes());
    }

    #[test]
    fn keys_have_results_of_their_own() {
        let what =
            |reduction, element, channels| Reducing { reduction, element, channels, keys: 3 };
        let bins = integers(&[2, 0, 2, -1, 3, 2]);
        let counts = keyed(what(Reduction::Count, Element::I32, 1), &[&bins[..8], &bins[8..]]);
        let expected: Vec<u8> = [1i64, 0, 3].iter().flat_map(|count| count.to_le_bytes()).collect();
        assert_eq!(counts, expected);

        // Key and value of each index; 0.5 and NaN are no keys.
        let pairs = floats(&[2.0, 1.5, 0.0, -4.0, 2.0, 0.25, 0.5, 9.0, f32::NAN, 9.0, 3.0, 9.0]);
        let of = |reduction| keyed(what(reduction, Element::F32, 2), &[&pairs]);
        let doubles = |values: [f64; 3]| -> Vec<u8> {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        assert_eq!(of(Reduction::Sum), doubles([-4.0, 0.0, 1.75]));
        let mean = of(Reduction::Mean);
        assert_eq!(
            (&mean[..8], &mean[16..]),
            (&doubles([-4.0; 3])[..8], &doubles([0.875; 3])[..8])
        );
        assert!(f64::from_le_bytes(mean[8..16].try_into().unwrap()).is_nan());
        assert_eq!(of(Reduction::Min), floats(&[-4.0, f32::INFINITY, 0.25]));
        assert_eq!(of(Reduction::Max), floats(&[-4.0, f32::NEG_INFINITY, 1.5]));
        let places: Vec<u8> = [1i64, -1, 2].iter().flat_map(|place| place.to_le_bytes()).collect();
        assert_eq!(of(Reduction::Argmin), places);
        assert_eq!(what(Reduction::Min, Element::F32, 2).shape(), [3]);
        assert_eq!(what(Reduction::Min, Element::F32, 3).shape(), [3, 2]);
    }
}
