//! Huffman codes of coefficients, and the bits of a file.

use super::tables::{CHROMA_AC, CHROMA_DC, HuffmanTable, LUMA_AC, LUMA_DC};

/// Bits of the picture, in bytes. A byte 0xff is followed by 0, so that it begins no marker.
#[derive(Debug, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte, from the highest on.
    rest: u32,
    count: u32,
}

impl Bits {
    /// Appends the lowest bits of a value, at most 16.
    fn put(&mut self, value: u32, count: u32) {
        self.rest = self.rest << count | value & ((1 << count) - 1);
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.rest >> self.count) as u8;
            self.bytes.push(byte);
            if byte == 0xff {
                self.bytes.push(0);
            }
        }
        self.rest &= (1 << self.count) - 1;
    }

    /// Fills the last byte with ones.
    pub(super) fn end(&mut self) {
        if self.count > 0 {
            self.put(0xff, 8 - self.count);
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the whole bytes, which have been written.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Codes by symbol: bits and their number.
type Code = [(u16, u8); 256];

/// Codes of luma or of chroma.
pub(super) struct Codes {
    means: Code,
    others: Code,
}

/// Sixteen zeros in a row.
const ZEROS: usize = 0xf0;
/// Nothing but zeros up to the end of the block.
const END: usize = 0;

impl Codes {
    pub(super) fn luma() -> Self {
        Self { means: codes(&LUMA_DC), others: codes(&LUMA_AC) }
    }

    pub(super) fn chroma() -> Self {
        Self { means: codes(&CHROMA_DC), others: codes(&CHROMA_AC) }
    }

    /// Appends a block. `mean` is the last block's mean, and becomes this one's.
    pub(super) fn put(&self, bits: &mut Bits, block: &[i32; 64], mean: &mut i32) {
        let difference = block[0] - *mean;
        *mean = block[0];
        put_value(bits, &self.means, 0, difference);
        let mut zeros = 0;
        for value in &block[1..] {
            if *value == 0 {
                zeros += 1;
                continue;
            }
            while zeros >= 16 {
                put_code(bits, self.others[ZEROS]);
                zeros -= 16;
            }
            put_value(bits, &self.others, zeros, *value);
            zeros = 0;
        }
        if zeros > 0 {
            put_code(bits, self.others[END]);
        }
    }
}

fn put_code(bits: &mut Bits, (code, length): (u16, u8)) {
    bits.put(code.into(), length.into());
}

/// Appends the zeros before a value and its number of bits as one symbol, and then its bits.
/// Negative values are one less, so that their first bit is 0.
fn put_value(bits: &mut Bits, codes: &Code, zeros: usize, value: i32) {
    let size = 32 - value.unsigned_abs().leading_zeros();
    put_code(bits, codes[zeros << 4 | size as usize]);
    let value = if value < 0 { value - 1 } else { value };
    bits.put(value as u32, size);
}

/// Returns the code of each symbol: ascending, and shorter ones first.
fn codes(table: &HuffmanTable) -> Code {
    let mut codes = [(0, 0); 256];
    let mut symbols = table.symbols.iter();
    let mut code = 0u16;
    for (length, count) in (1u8..).zip(table.counts) {
        for symbol in symbols.by_ref().take(count.into()) {
            codes[usize::from(*symbol)] = (code, length);
            code += 1;
        }
        code <<= 1;
    }
    codes
}
