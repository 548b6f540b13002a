//! Integers and floats: every instruction of `data/features.cu` against Rust's own.

use crate::{Rig, numbers, parameters};
use tessera_ptx::Settings;

const COUNT: usize = 4096;

/// The words that a pair of integers gives, in the kernel's order.
fn integers(a: u32, b: u32) -> Vec<u32> {
    let mut words = narrow(a, b);
    words.extend(wide(a, b));
    words.extend([a.abs_diff(b).wrapping_add(5), (a as i32).abs_diff(b as i32).wrapping_add(5)]);
    words.push(match a % 9 {
        0 => b.wrapping_mul(3),
        1 => b ^ 5,
        2 => b.wrapping_add(77),
        3 => b.count_ones(),
        4 => b >> 3,
        5 => !b,
        _ => 0,
    });
    words.push(if a < b { a.wrapping_add(1) } else { b.wrapping_sub(1) });
    words.push((((i64::from(a as i32) >> (b & 31)) << 57) >> 57) as u32);
    words.push((b & !(0x1FF << 5)) | ((a & 0x1FF) << 5));
    words
}

/// Of 32 bits and fewer.
fn narrow(a: u32, b: u32) -> Vec<u32> {
    let (sa, sb) = (a as i32, b as i32);
    let bytes: Vec<u8> = a.to_le_bytes().into_iter().chain(b.to_le_bytes()).collect();
    // `__byte_perm` looks at three bits of each choice.
    let permuted =
        (0..4).map(|at| u32::from(bytes[((a ^ b) >> (4 * at)) as usize & 7]) << (8 * at));
    let both = (u64::from(b) << 32) | u64::from(a);
    let divides = b != 0 && b != u32::MAX;
    vec![
        a.wrapping_add(b),
        a.wrapping_sub(b),
        a.wrapping_mul(b),
        ((u64::from(a) * u64::from(b)) >> 32) as u32,
        ((i64::from(sa) * i64::from(sb)) >> 32) as u32,
        a.checked_div(b).unwrap_or(7),
        a.checked_rem(b).unwrap_or(7),
        if divides { (sa / sb) as u32 } else { 7 },
        if divides { (sa % sb) as u32 } else { 7 },
        a << (b & 31),
        a >> (b & 31),
        (sa >> (b & 31)) as u32,
        a.reverse_bits(),
        a.count_ones(),
        a.leading_zeros(),
        if a == 0 { 0 } else { a.trailing_zeros() + 1 },
        ((both << (b & 31)) >> 32) as u32,
        (both >> (a & 31)) as u32,
        permuted.sum(),
        a.min(b),
        a.max(b),
        sa.min(sb) as u32,
        sa.max(sb) as u32,
        sa.wrapping_abs() as u32,
        a.wrapping_neg(),
        !a,
        (i32::from(a as u8) + i32::from(b as i8)) as u32,
        (i32::from(a as u16).wrapping_mul(i32::from(b as i16))) as u32,
    ]
}

/// Of 64 and 128 bits.
fn wide(a: u32, b: u32) -> Vec<u32> {
    let wide = (u64::from(a) << 32) | u64::from(b);
    let swide = wide as i64;
    let high = |value: u128| (value >> 64) as u32;
    let signed_product = i128::from(swide) * i128::from(swide.wrapping_sub(1));
    let long = u128::from(wide)
        .wrapping_mul(u128::from(wide))
        .wrapping_add(u128::from(b) << 64)
        .wrapping_sub(u128::from(a));
    vec![
        (wide % 1_000_003) as u32,
        (swide / 12345) as u32,
        (wide.wrapping_mul(wide) >> 32) as u32,
        high(u128::from(wide) * u128::from(wide.wrapping_add(1))),
        high(signed_product as u128),
        wide.leading_zeros(),
        wide.count_ones(),
        (swide >> (b & 63)) as u32,
        (wide << (a & 63) >> 32) as u32,
        wide.reverse_bits() as u32,
        if swide < 0 { 3 } else { 4 },
        i32::from((a >> 3) as i16) as u32,
        (long >> 96) as u32,
        (long >> 64) as u32,
    ]
}

#[test]
fn integer_instructions_are_exact() {
    let mut rig = Rig::new(Settings::default());
    let inputs = numbers(2 * COUNT);
    let (from, to) = (rig.words(&inputs), rig.words(&vec![0; 48 * COUNT]));
    rig.run("integers", [COUNT as u32 / 64, 1, 1], [64, 1, 1], &parameters(&[(from, 8), (to, 8)]))
        .expect("it runs");
    for (pair, got) in inputs.chunks(2).zip(rig.read(to, 48 * COUNT).chunks(48)) {
        let want = integers(pair[0], pair[1]);
        let wrong = got.iter().zip(&want).position(|(got, want)| got != want);
        assert_eq!(wrong, None, "word of {pair:x?}: {got:x?}, not {want:x?}");
    }
}

/// The GPU's one NaN for results of arithmetic; signs and moves keep payloads.
fn result(value: f32) -> u32 {
    if value.is_nan() { 0x7FFF_FFFF } else { value.to_bits() }
}

fn floats(bits: [u32; 3]) -> Vec<u32> {
    let [a, b, c] = bits.map(f32::from_bits);
    let is_less = |a: f32, b: f32| a.partial_cmp(&b) == Some(std::cmp::Ordering::Less);
    let or = |a: f32, b: f32, least: bool| match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => f32::from_bits(if least {
            a.to_bits() | b.to_bits()
        } else {
            a.to_bits() & b.to_bits()
        }),
        _ => {
            if is_less(a, b) == least {
                a
            } else {
                b
            }
        }
    };
    let long = |value: f32| if value.is_nan() { i64::MIN } else { value as i64 };
    let unsigned_long = |value: f32| if value.is_nan() { 1 << 63 } else { value as u64 };
    let compares = u32::from(a < b)
        | u32::from(a <= b) << 1
        | u32::from(a > b) << 2
        | u32::from(a >= b) << 3
        | u32::from(a == b) << 4
        | u32::from(a != b) << 5
        | u32::from(!is_less(a, b)) << 6
        | (1 - u32::from(a >= b)) << 7;
    vec![
        result(a + b),
        result(a - b),
        result(a * b),
        result(a / b),
        result(a.mul_add(b, c)),
        result(a.sqrt()),
        result(1.0 / a),
        result(or(a, b, true)),
        result(or(a, b, false)),
        bits[0] & 0x7FFF_FFFF,
        bits[0] ^ 0x8000_0000,
        result(a.floor()),
        result(a.ceil()),
        result(a.trunc()),
        result(a.round_ties_even()),
        a as i32 as u32,
        a as u32,
        a.round_ties_even() as i32 as u32,
        long(a) as u32,
        (unsigned_long(a) >> 32) as u32,
        (bits[0] as i32 as f32).to_bits(),
        (bits[1] as f32).to_bits(),
        ((i64::from(bits[2] as i32) << 20) as f32).to_bits(),
        compares,
        if a < b { bits[2] } else { bits[0] },
        result(if a > 0.0 { a.min(1.0) } else { 0.0 }),
        u32::from(a.is_nan()) | u32::from(b.is_infinite()) << 1,
        (bits[0] & 0x7FFF_FFFF) | (bits[1] & 0x8000_0000),
    ]
}

#[test]
fn float_instructions_are_exact() {
    let mut rig = Rig::new(Settings::default());
    let inputs = numbers(3 * COUNT);
    let (from, to) = (rig.words(&inputs), rig.words(&vec![0; 32 * COUNT]));
    rig.run("floats", [COUNT as u32 / 64, 1, 1], [64, 1, 1], &parameters(&[(from, 8), (to, 8)]))
        .expect("it runs");
    for (triple, got) in inputs.chunks(3).zip(rig.read(to, 32 * COUNT).chunks(32)) {
        let want = floats([triple[0], triple[1], triple[2]]);
        let wrong = got.iter().zip(&want).position(|(got, want)| got != want);
        assert_eq!(wrong, None, "word of {triple:x?}: {got:x?}, not {want:x?}");
    }
}

#[test]
fn doubles_run_where_they_are_allowed() {
    let mut rig = Rig::new(Settings { doubles: true, ..Settings::default() });
    let values = [2.5f64, -3.25];
    let words: Vec<u32> = values
        .iter()
        .flat_map(|value| [value.to_bits() as u32, (value.to_bits() >> 32) as u32])
        .collect();
    let (from, to) = (rig.words(&words), rig.words(&[0; 16]));
    rig.run("doubles", [1, 1, 1], [1, 1, 1], &parameters(&[(from, 8), (to, 8)])).expect("it runs");
    let got: Vec<f64> = rig
        .read(to, 16)
        .chunks(2)
        .map(|w| f64::from_bits(u64::from(w[1]) << 32 | u64::from(w[0])))
        .collect();
    let [a, b] = values;
    assert_eq!(got, [a + b, a * b, a / b, a.mul_add(b, 1.5), a.sqrt(), 2.5, 2.0, b]);
}

#[test]
fn approximations_run_where_they_are_allowed() {
    let mut rig = Rig::new(Settings { approximate: true, ..Settings::default() });
    let to = rig.words(&[0; 5]);
    let x = 1.25f32;
    rig.run(
        "approximate",
        [1, 1, 1],
        [1, 1, 1],
        &parameters(&[(to, 8), (u64::from(x.to_bits()), 4)]),
    )
    .expect("it runs");
    let got: Vec<f32> = rig.read(to, 5).into_iter().map(f32::from_bits).collect();
    let want = [x.sin(), 1.0 / x.sqrt(), x.exp(), x.ln(), x.powf(1.7)];
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 1e-6, "{got} for {want}");
    }
}
