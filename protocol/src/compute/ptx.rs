//! What PTX asks of a node, by its first two directives: `.version` of the driver, `.target` of the
//! device. Reads no further.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Most bytes of a PTX text that are read in search of its directives. Comments may precede them.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Devices that code for an architecture runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PtxReach {
    /// Devices of this compute capability and all newer ones, as for `sm_90`.
    Newer,
    /// Devices of this compute capability and newer ones of the same major number, as for
    /// `sm_100f`.
    Family,
    /// Devices of exactly this compute capability, as for `sm_90a`.
    Only,
}

/// What a PTX text needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtxNeeds {
    /// Version of PTX that the driver must take: major, minor.
    pub version: (u8, u8),
    /// Compute capability that the code is for: major, minor.
    pub capability: (u8, u8),
    /// Which other devices run it.
    pub reach: PtxReach,
}

impl PtxNeeds {
    /// Reads the directives at the beginning of a PTX text. None if they are not there, or not as
    /// PTX has them.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = Words(head(text));
        (words.next()? == ".version").then_some(())?;
        let (major, minor) = words.next()?.split_once('.')?;
        let version = (major.parse().ok()?, minor.parse().ok()?);
        (words.next()? == ".target").then_some(())?;
        let name = words.next()?;
        let number = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
        let (digits, reach) = match number.as_bytes().last()? {
            b'a' => (&number[..number.len() - 1], PtxReach::Only),
            b'f' => (&number[..number.len() - 1], PtxReach::Family),
            _ => (number, PtxReach::Newer),
        };
        let whole: u16 = digits.parse().ok()?;
        let capability = (u8::try_from(whole / 10).ok()?, (whole % 10) as u8);
        Some(Self { version, capability, reach })
    }

    /// Returns whether a driver that takes PTX up to `driver` can take it. (0, 0) stands for a
    /// driver whose limit is not known.
    pub fn suits_driver(&self, driver: (u8, u8)) -> bool {
        driver == (0, 0) || self.version <= driver
    }

    /// Returns whether a device of this compute capability can run it.
    pub fn suits_device(&self, capability: (u8, u8)) -> bool {
        match self.reach {
            PtxReach::Newer => capability >= self.capability,
            PtxReach::Family => capability.0 == self.capability.0 && capability >= self.capability,
            PtxReach::Only => capability == self.capability,
        }
    }
}

impl fmt::Display for PtxNeeds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((major, minor), (of, version)) = (self.capability, self.version);
        write!(out, "PTX {of}.{version} for compute capability {major}.{minor}")?;
        match self.reach {
            PtxReach::Newer => write!(out, " or newer"),
            PtxReach::Family => write!(out, " and its family"),
            PtxReach::Only => write!(out, " alone"),
        }
    }
}

/// Returns the newest version of PTX that a driver takes, by the version of CUDA that it offers
/// (1000 × major + 10 × minor); (0, 0) where that is not known. From the release notes of the PTX
/// ISA.
pub fn ptx_version_of_cuda(cuda: i32) -> (u8, u8) {
    let (major, minor) = (cuda / 1000, u8::try_from(cuda % 1000 / 10).unwrap_or(u8::MAX));
    match major {
        11 => (7, minor),
        12 if minor <= 5 => (8, minor),
        12 => (8, minor - 1),
        13 => (9, minor),
        _ => (0, 0),
    }
}

/// The beginning of a text, cut between two characters.
fn head(text: &str) -> &str {
    let mut end = text.len().min(HEAD_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Words of a PTX text: separated by white space, commas and comments.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let is_between = |letter: char| letter.is_whitespace() || letter == ',';
        loop {
            let rest = self.0.trim_start_matches(is_between);
            self.0 = match (rest.strip_prefix("//"), rest.strip_prefix("/*")) {
                (Some(comment), _) => comment.split_once('\n')?.1,
                (_, Some(comment)) => comment.split_once("*/")?.1,
                (None, None) => {
                    let ends = |letter: char| is_between(letter) || letter == '/';
                    let end = rest.find(ends).unwrap_or(rest.len());
                    let (word, after) = rest.split_at(end);
                    self.0 = after;
                    return (!word.is_empty()).then_some(word);
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(version: (u8, u8), capability: (u8, u8), reach: PtxReach) -> Option<PtxNeeds> {
        Some(PtxNeeds { version, capability, reach })
    }

    #[test]
    fn the_head_of_a_text_says_what_it_needs() {
        let nvcc = "//\n// Generated by NVIDIA NVVM Compiler\n//\n\n.version 9.2\n.target sm_90\n\
                    .address_size 64\n";
        assert_eq!(PtxNeeds::read(nvcc), needs((9, 2), (9, 0), PtxReach::Newer));
        let debug = "/* .version 1.0 */ .version 8.7 // eight\n.target sm_75, debug\n";
        assert_eq!(PtxNeeds::read(debug), needs((8, 7), (7, 5), PtxReach::Newer));
        let only = ".version 8.0\n.target sm_90a\n";
        assert_eq!(PtxNeeds::read(only), needs((8, 0), (9, 0), PtxReach::Only));
        let family = ".version 9.0\n.target sm_103f\n";
        assert_eq!(PtxNeeds::read(family), needs((9, 0), (10, 3), PtxReach::Family));
    }

    #[test]
    fn other_texts_say_nothing() {
        let long = format!("{}.version 8.0\n.target sm_75\n", " ".repeat(HEAD_BYTES_MAX));
        for text in [
            "",
            "//",
            "/*",
            ".version",
            ".version 8\n.target sm_75",
            ".version 8.0\n.target 75",
            ".version 8.0\n.target sm_",
            ".version 8.0\n.target sm_99999",
            ".version 999.0\n.target sm_75",
            ".target sm_75\n.version 8.0",
            ".version 8.0\n.target sm_é",
            "/.version 8.0",
            &long,
            &"é".repeat(HEAD_BYTES_MAX),
        ] {
            assert_eq!(PtxNeeds::read(text), None, "{:?}", &text[..text.len().min(40)]);
        }
    }

    #[test]
    fn drivers_and_devices_are_compared_by_number() {
        let needs = |reach| PtxNeeds { version: (8, 7), capability: (9, 0), reach };
        let (newer, family, only) =
            (needs(PtxReach::Newer), needs(PtxReach::Family), needs(PtxReach::Only));
        for (driver, suits) in [((8, 6), false), ((8, 7), true), ((9, 0), true), ((0, 0), true)] {
            assert_eq!(newer.suits_driver(driver), suits, "{driver:?}");
        }
        for (device, suits) in [
            ((8, 9), [false, false, false]),
            ((9, 0), [true, true, true]),
            ((9, 1), [true, true, false]),
            ((12, 0), [true, false, false]),
        ] {
            assert_eq!(
                [newer, family, only].map(|of| of.suits_device(device)),
                suits,
                "{device:?}"
            );
        }
    }

    #[test]
    fn a_driver_takes_the_ptx_of_its_cuda() {
        for (cuda, ptx) in [
            (11_080, (7, 8)),
            (12_050, (8, 5)),
            (12_060, (8, 5)),
            (12_080, (8, 7)),
            (13_000, (9, 0)),
            (15_000, (0, 0)),
            (-1, (0, 0)),
        ] {
            assert_eq!(ptx_version_of_cuda(cuda), ptx, "{cuda}");
        }
    }
}
