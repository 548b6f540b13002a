//! In lanes and alone: the kernels' functions over eight numbers at once bring what they bring over
//! one, bit for bit.

use tessera_kernels::host::available_isas;
use tessera_kernels::test_hooks::{LANE_WORDS_IN, lanes};

/// Zeros, subnormal numbers, infinities, the largest, what is no number, and halves that rounding
/// has to decide.
const CORNERS: [u32; 16] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0x4b00_0001,
    0x4e80_0000,
    0xce80_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
];

/// A word that is any, of the size of pictures' numbers, or a corner, by what `dice` says.
fn word(dice: &mut u32) -> u32 {
    *dice = dice.wrapping_mul(0x915f_77f5).wrapping_add(0x6d2b_79f5);
    let bits = (*dice ^ *dice >> 15).wrapping_mul(0x846c_a68b);
    match *dice >> 29 {
        0 => CORNERS[(bits >> 28) as usize],
        1..=3 => (bits & 0x80ff_ffff) | (0x3f00_0000 + (bits >> 5 & 0x0300_0000)),
        _ => bits,
    }
}

/// Two results that are no number are the same: nothing of them reaches a film.
fn same(a: u32, b: u32) -> bool {
    a == b || f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan()
}

#[test]
fn eight_lanes_give_the_results_of_single_ones() {
    for isa in available_isas() {
        let (mut dice, mut varied) = (1, std::collections::BTreeSet::new());
        for round in 0..20_000 {
            let mut words = [[0; LANE_WORDS_IN]; 8];
            words.iter_mut().flatten().for_each(|w| *w = word(&mut dice));
            let (alone, together) = lanes(isa, &words);
            for lane in 0..8 {
                for (at, (&a, &b)) in alone[lane].iter().zip(&together[lane]).enumerate() {
                    assert!(
                        same(a, b),
                        "{isa:?}, round {round}, result {at}: {a:08x} {b:08x} of {:08x?}",
                        words[lane]
                    );
                    if a != alone[0][at] {
                        varied.insert(at);
                    }
                }
            }
        }
        assert!(varied.len() >= 50, "{} results of a lane differ from another's", varied.len());
    }
}
