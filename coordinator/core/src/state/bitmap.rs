//! A set of unit indices of one frame, a bit each, and how many there are.

use serde::{Deserialize, Serialize};

/// A set of bits below a length that the owner knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    ones: u32,
}

impl Bitmap {
    pub(crate) fn new(bits: u32) -> Self {
        Self { words: vec![0; bits.div_ceil(64) as usize], ones: 0 }
    }

    pub(crate) fn get(&self, bit: u32) -> bool {
        self.words.get(bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Sets a bit; false if it was set already or is out of range.
    pub(crate) fn set(&mut self, bit: u32) -> bool {
        match self.words.get_mut(bit as usize / 64) {
            Some(word) if *word >> (bit % 64) & 1 == 0 => {
                *word |= 1 << (bit % 64);
                self.ones += 1;
                true
            }
            _ => false,
        }
    }

    /// Clears a bit; false if it was not set.
    pub(crate) fn clear(&mut self, bit: u32) -> bool {
        match self.words.get_mut(bit as usize / 64) {
            Some(word) if *word >> (bit % 64) & 1 == 1 => {
                *word &= !(1 << (bit % 64));
                self.ones -= 1;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn ones(&self) -> u32 {
        self.ones
    }

    /// Returns the number of bits that are set below a bit.
    pub(crate) fn ones_below(&self, bit: u32) -> u32 {
        let above = (bit..self.words.len() as u32 * 64).filter(|bit| self.get(*bit));
        self.ones - above.count() as u32
    }

    /// Whether the count matches the bits, there are words for exactly `bits` of them, and no bit
    /// beyond is set.
    pub(crate) fn is_sound(&self, bits: u32) -> bool {
        let counted: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        let tail_clear = match (bits % 64, self.words.last()) {
            (0, _) | (_, None) => true,
            (used, Some(last)) => last >> used == 0,
        };
        counted == self.ones && self.words.len() == bits.div_ceil(64) as usize && tail_clear
    }

    /// Returns the first clear bit at or after `from`, below `bits`.
    pub(crate) fn first_clear(&self, from: u32, bits: u32) -> Option<u32> {
        let mut bit = from;
        while bit < bits {
            let word = !self.words.get(bit as usize / 64).copied().unwrap_or(0) >> (bit % 64);
            if word != 0 {
                return Some(bit + word.trailing_zeros()).filter(|bit| *bit < bits);
            }
            bit = (bit / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_set_once() {
        let mut bitmap = Bitmap::new(70);
        assert!(bitmap.set(69) && !bitmap.set(69) && !bitmap.set(128));
        assert!(bitmap.get(69) && !bitmap.get(68) && !bitmap.get(1000));
        assert_eq!(bitmap.ones(), 1);
        assert!(!bitmap.clear(68) && !bitmap.clear(128) && bitmap.clear(69) && !bitmap.clear(69));
        assert_eq!((bitmap.ones(), bitmap.get(69)), (0, false));
        assert!(bitmap.set(3) && bitmap.set(66));
        assert_eq!(
            [0, 3, 4, 66, 67, 70, 200].map(|bit| bitmap.ones_below(bit)),
            [0, 0, 1, 1, 2, 2, 2]
        );
        assert!(bitmap.clear(3) && bitmap.clear(66));
        assert!(bitmap.set(69));
        assert!(bitmap.is_sound(70) && !bitmap.is_sound(69) && !bitmap.is_sound(200));
    }

    #[test]
    fn the_first_clear_bit_is_found_across_words() {
        let mut bitmap = Bitmap::new(130);
        assert_eq!(bitmap.first_clear(0, 130), Some(0));
        (0..129).for_each(|bit| assert!(bitmap.set(bit)));
        assert_eq!(bitmap.first_clear(0, 130), Some(129));
        assert_eq!(bitmap.first_clear(129, 130), Some(129));
        bitmap.set(129);
        assert_eq!(bitmap.first_clear(0, 130), None);
        assert_eq!(Bitmap::new(64).first_clear(64, 64), None);
    }
}
