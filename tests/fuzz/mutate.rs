//! Changes to bytes: small ones, lengths that lie, pieces of other inputs. Deterministic from its
//! seed.

/// Longest input that is made.
const BYTES_MAX: usize = 64 << 10;
/// Numbers at which decoders break: bounds of types, and how bincode begins longer ones.
const NUMBERS: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xfa,
    0xfb,
    0xfc,
    0xfd,
    0xff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 63,
    u64::MAX,
];

/// A source of mutations.
pub(crate) struct Mutator {
    state: u64,
}

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        // Never zero, where xorshift stands still.
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// Makes `out` a changed one of the inputs.
    pub(crate) fn mutate(&mut self, inputs: &[Vec<u8>], out: &mut Vec<u8>) {
        out.clear();
        let chosen = self.below(inputs.len());
        out.extend_from_slice(&inputs[chosen]);
        for _ in 0..1 + self.below(4) {
            self.change(inputs, out);
        }
        out.truncate(BYTES_MAX);
    }

    fn change(&mut self, inputs: &[Vec<u8>], out: &mut Vec<u8>) {
        let at = self.below(out.len() + 1);
        match self.below(9) {
            0 if at < out.len() => out[at] ^= 1 << self.below(8),
            1 if at < out.len() => out[at] = self.next() as u8,
            2 if at < out.len() => {
                out[at] = out[at].wrapping_add(1).wrapping_sub(2 * u8::from(at.is_multiple_of(2)))
            }
            3 => out.truncate(at),
            4 => {
                let end = (at + self.below(32)).min(out.len());
                drop(out.drain(at..end));
            }
            5 => {
                let end = (at + self.below(64)).min(out.len());
                let piece = out[at..end].to_vec();
                let to = self.below(out.len() + 1);
                drop(out.splice(to..to, piece));
            }
            6 => self.put_number(at, out),
            7 => {
                let other = &inputs[self.below(inputs.len())];
                let from = self.below(other.len() + 1);
                let end = (from + self.below(128)).min(other.len());
                let over = if self.below(2) == 0 { at } else { (at + end - from).min(out.len()) };
                drop(out.splice(at..over, other[from..end].iter().copied()));
            }
            _ => {
                let byte = self.next() as u8;
                let count = 1 << self.below(5);
                drop(out.splice(at..at, std::iter::repeat_n(byte, count)));
            }
        }
    }

    fn put_number(&mut self, at: usize, out: &mut Vec<u8>) {
        let number = NUMBERS[self.below(NUMBERS.len())];
        let bytes = number.to_le_bytes();
        let text = number.to_string();
        let put = match self.below(5) {
            0 => text.as_bytes(),
            width => &bytes[..1 << (width - 1)],
        };
        let end = if self.below(2) == 0 { at } else { (at + put.len()).min(out.len()) };
        drop(out.splice(at..end, put.iter().copied()));
    }
}
