//! Sets of frame numbers: `5`, `1-100`, `1-100x2`, and lists of these with commas.

use crate::ids::FrameNumber;
use crate::limits::{FRAME_NUMBER_MAX, JOB_FRAMES_MAX};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Range with a step: `first`, `first + step` and so on up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u32,
    last: u32,
    step: u32,
    /// Number of frames in the ranges before this one, so that a frame is found by halving.
    before: u32,
}

impl Span {
    fn new(first: u32, last: u32, step: u32) -> Self {
        Self { first, last, step, before: 0 }
    }

    fn len(self) -> u32 {
        (self.last - self.first) / self.step + 1
    }
}

/// Frame numbers in ascending order, each once; at most [`JOB_FRAMES_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameSet {
    spans: Vec<Span>,
}

/// Why a text is not a frame set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameSetError {
    /// The text is not a number or a range.
    #[error(
        "`{0}` is not a frame or a range of frames; write `5`, `1-100`, `1-100x2`, or a list of \
            them by commas"
    )]
    Form(String),
    /// A range ends before it begins.
    #[error("frame range `{0}` ends before it begins")]
    Backwards(String),
    /// A number is larger than [`FRAME_NUMBER_MAX`].
    #[error("frame number in `{0}` is beyond {FRAME_NUMBER_MAX}")]
    Number(String),
    /// The set has more than [`JOB_FRAMES_MAX`] frames.
    #[error("{0} frames are more than one job may have ({JOB_FRAMES_MAX})")]
    TooMany(u64),
}

impl FrameSet {
    /// Creates a set of one frame.
    pub fn one(frame: FrameNumber) -> Self {
        Self { spans: vec![Span::new(frame.0, frame.0, 1)] }
    }

    /// Creates a set of ascending ranges that have at most [`JOB_FRAMES_MAX`] frames.
    fn of_spans(mut spans: Vec<Span>) -> Self {
        let mut before = 0;
        for span in &mut spans {
            span.before = before;
            before += span.len();
        }
        spans.shrink_to_fit();
        Self { spans }
    }

    /// Creates a set from frames in any order. Repeated frames count once.
    pub fn from_frames(
        frames: impl IntoIterator<Item = FrameNumber>,
    ) -> Result<Self, FrameSetError> {
        let mut numbers: Vec<u32> = frames.into_iter().map(|frame| frame.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() > JOB_FRAMES_MAX as usize {
            return Err(FrameSetError::TooMany(numbers.len() as u64));
        }
        let mut spans: Vec<Span> = Vec::new();
        for number in numbers {
            match spans.last_mut() {
                Some(span) if span.first == span.last && spans_step_ok(span, number) => {
                    span.step = number - span.last;
                    span.last = number;
                }
                Some(span) if span.first != span.last && number - span.last == span.step => {
                    span.last = number
                }
                _ => spans.push(Span::new(number, number, 1)),
            }
        }
        Ok(Self::of_spans(spans))
    }

    /// Returns the number of frames.
    pub fn len(&self) -> u32 {
        self.spans.last().map_or(0, |span| span.before + span.len())
    }

    /// Returns the bytes of memory that the set takes beside its own size.
    pub fn heap_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
    }

    /// Returns whether the set has no frame.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the frames in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = FrameNumber> + '_ {
        self.spans
            .iter()
            .flat_map(|span| (span.first..=span.last).step_by(span.step as usize))
            .map(FrameNumber)
    }

    /// Returns the frame at a position, counted from 0.
    pub fn get(&self, position: u32) -> Option<FrameNumber> {
        let place = self.spans.partition_point(|span| span.before <= position).checked_sub(1)?;
        let span = self.spans[place];
        let within = position - span.before;
        (within < span.len()).then(|| FrameNumber(span.first + within * span.step))
    }

    /// Returns the position of a frame, counted from 0.
    pub fn position(&self, frame: FrameNumber) -> Option<u32> {
        let place = self.spans.partition_point(|span| span.first <= frame.0).checked_sub(1)?;
        let span = self.spans[place];
        let after = frame.0 - span.first;
        let has = frame.0 <= span.last && after.is_multiple_of(span.step);
        has.then(|| span.before + after / span.step)
    }
}

/// Returns whether a single number can begin a range with the next one. Only neighbours can: `1,5`
/// stays two numbers, `1,2` becomes a range.
fn spans_step_ok(span: &Span, number: u32) -> bool {
    number - span.last == 1
}

impl FromStr for FrameSet {
    type Err = FrameSetError;

    fn from_str(text: &str) -> Result<Self, FrameSetError> {
        let mut spans = Vec::new();
        for part in text.split(',') {
            spans.push(parse_span(part.trim())?);
        }
        let total: u64 = spans.iter().map(|span: &Span| u64::from(span.len())).sum();
        if total > u64::from(JOB_FRAMES_MAX) {
            return Err(FrameSetError::TooMany(total));
        }
        let ascending = spans.windows(2).all(|pair| pair[0].last < pair[1].first);
        if ascending {
            return Ok(Self::of_spans(spans));
        }
        Self::from_frames(Self { spans }.iter())
    }
}

fn parse_span(part: &str) -> Result<Span, FrameSetError> {
    let form = || FrameSetError::Form(part.to_owned());
    let number = |text: &str| -> Result<u32, FrameSetError> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(form());
        }
        let value: u64 = text.parse().map_err(|_| FrameSetError::Number(part.to_owned()))?;
        if value > u64::from(FRAME_NUMBER_MAX) {
            return Err(FrameSetError::Number(part.to_owned()));
        }
        Ok(value as u32)
    };
    let Some((first, rest)) = part.split_once('-') else {
        let only = number(part)?;
        return Ok(Span::new(only, only, 1));
    };
    let (last, step) = rest.split_once('x').unwrap_or((rest, "1"));
    let (first, last, step) = (number(first)?, number(last)?, number(step)?);
    if step == 0 {
        return Err(form());
    }
    if last < first {
        return Err(FrameSetError::Backwards(part.to_owned()));
    }
    let last = last - (last - first) % step;
    // A range of one frame has step 1, so that it equals the same frame written as a number.
    Ok(Span::new(first, last, if last == first { 1 } else { step }))
}

impl fmt::Display for FrameSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, span) in self.spans.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match (span.first == span.last, span.step) {
                (true, _) => write!(f, "{comma}{}", span.first)?,
                (false, 1) => write!(f, "{comma}{}-{}", span.first, span.last)?,
                (false, step) => write!(f, "{comma}{}-{}x{step}", span.first, span.last)?,
            }
        }
        Ok(())
    }
}

// A set travels as its text, so that the same checks hold for files, messages and the command line.
impl Serialize for FrameSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FrameSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<u32> {
        let set: FrameSet = text.parse().unwrap();
        let all: Vec<u32> = set.iter().map(|frame| frame.0).collect();
        for (position, number) in all.iter().enumerate() {
            assert_eq!(set.get(position as u32), Some(FrameNumber(*number)));
            assert_eq!(set.position(FrameNumber(*number)), Some(position as u32));
        }
        assert_eq!(set.len() as usize, all.len());
        assert_eq!(
            set.to_string().parse::<FrameSet>().unwrap().iter().map(|f| f.0).collect::<Vec<_>>(),
            all
        );
        all
    }

    #[test]
    fn the_documented_forms_are_read() {
        assert_eq!(numbers("5"), [5]);
        assert_eq!(numbers("1-4"), [1, 2, 3, 4]);
        assert_eq!(numbers("1-10x3"), [1, 4, 7, 10]);
        assert_eq!(numbers("1-9x3"), [1, 4, 7]);
        assert_eq!(numbers("7, 1-3"), [1, 2, 3, 7]);
        assert_eq!(numbers("9-11x3"), [9]);
        assert_eq!("9-11x3".parse::<FrameSet>(), "9".parse());
        assert_eq!(numbers("1-6x2,2-6x2,3"), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn other_forms_are_named_in_the_error() {
        for bad in ["", "a", "1-", "-3", "1-5x0", "1-5x", "1,,2", "1.5", "+1"] {
            assert!(matches!(bad.parse::<FrameSet>(), Err(FrameSetError::Form(_))), "{bad}");
        }
        assert_eq!("9-3".parse::<FrameSet>(), Err(FrameSetError::Backwards("9-3".into())));
        assert!(matches!("1-99999999999".parse::<FrameSet>(), Err(FrameSetError::Number(_))));
        assert!(matches!("0-9999999".parse::<FrameSet>(), Err(FrameSetError::TooMany(_))));
    }

    #[test]
    fn frames_between_and_beyond_ranges_have_no_position() {
        let set: FrameSet = "1-9x4,20,30-31".parse().unwrap();
        let absent = [0, 2, 8, 10, 19, 21, 29, 32].map(FrameNumber);
        assert!(absent.iter().all(|frame| set.position(*frame).is_none()));
        assert_eq!((set.len(), set.get(6), set.get(u32::MAX)), (6, None, None));
        assert_eq!(FrameSet::default().get(0), None);
    }

    #[test]
    fn a_set_of_loose_frames_is_written_short() {
        let set = FrameSet::from_frames([3, 1, 2, 9, 2].map(FrameNumber)).unwrap();
        assert_eq!(set.to_string(), "1-3,9");
    }
}
