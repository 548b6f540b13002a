//! Chance that is the same in every run, and damage by it.

/// A deterministic stream of numbers (xorshift).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Bytes with a few of them changed, or cut, or with a piece repeated.
pub(crate) fn damaged(good: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..1 + dice.below(6) {
        let at = dice.below(bytes.len());
        match dice.below(6) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at] = 0xff,
            2 => bytes[at] ^= 1 << dice.below(8),
            3 => {
                let end = (at + dice.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => bytes[at] = 0,
            _ => bytes[at] = dice.next() as u8,
        }
    }
    bytes
}
