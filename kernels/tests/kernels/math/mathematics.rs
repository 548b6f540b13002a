//! Our own functions against f64 ones, over their whole range; the film's rounding and its refusal
//! of what is no number.

use tessera_kernels::host::RayCounts;
use tessera_kernels::test_hooks::{atan2, film_add, film_fixed, floor, sincos};
use tessera_layout::FILM_VALUE_MAX;

#[test]
fn sine_and_cosine_are_within_two_ulps_of_one() {
    let mut worst = 0.0f64;
    for step in 0..=2_000_000i32 {
        let turns = (step - 1_000_000) as f32 / 500_000.0;
        let angle = f64::from(turns) * std::f64::consts::TAU;
        let [sine, cosine] = sincos(turns);
        worst = worst
            .max((f64::from(sine) - angle.sin()).abs())
            .max((f64::from(cosine) - angle.cos()).abs());
    }
    assert!(worst < 1.2e-7, "{worst:e}");
}

#[test]
fn quarters_of_a_turn_are_exact() {
    for (turns, want) in
        [(0.0, [0.0, 1.0]), (0.25, [1.0, 0.0]), (0.5, [0.0, -1.0]), (-0.25, [-1.0, 0.0])]
    {
        assert_eq!(sincos(turns).map(|v| v + 0.0), want);
    }
}

#[test]
fn angles_are_right_all_around() {
    let mut worst = 0.0f64;
    for step in 0..1_000_000 {
        let angle = (f64::from(step) + 0.5) / 1_000_000.0 * std::f64::consts::TAU;
        let radius = 10f64.powi(step % 9 - 4);
        let (y, x) = ((radius * angle.sin()) as f32, (radius * angle.cos()) as f32);
        worst = worst.max((f64::from(atan2(y, x)) - f64::from(y).atan2(f64::from(x))).abs());
    }
    assert!(worst < 5e-7, "{worst:e}");
    assert_eq!(atan2(0.0, 0.0), 0.0);
}

#[test]
fn floor_takes_any_float() {
    for (value, want) in [(-0.5, -1), (0.5, 0), (-3.0, -3), (2.999, 2), (-1e-20, -1)] {
        assert_eq!(floor(value), want);
    }
    for wild in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e38, -3e38] {
        assert!(floor(wild).abs() <= 1 << 30);
    }
}

#[test]
fn the_film_rounds_to_the_nearest() {
    let mut bits = 1u32;
    for _ in 0..1_000_000 {
        bits = bits.wrapping_mul(0x915f_77f5).wrapping_add(0x6d2b_79f5);
        let value = f32::from_bits(bits);
        if value.is_finite() && value.abs() <= FILM_VALUE_MAX {
            let exact = f64::from(value) * 16_777_216.0;
            assert_eq!(film_fixed(value), exact.round() as i64, "{value:e}");
        }
    }
}

#[test]
fn a_sample_that_is_no_number_adds_nothing_and_is_counted() {
    let (mut film, mut counts) = ([0i64; 4], RayCounts::default());
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        film_add(&mut film, &[1.0, wrong, 1.0, 1.0], &mut counts);
    }
    assert_eq!((film, counts.non_finite, counts.clamped), ([0; 4], 3, 0));
    film_add(&mut film, &[1.0, 1e9, -1e9, 0.5], &mut counts);
    let most = i64::from(FILM_VALUE_MAX as i32) << 24;
    assert_eq!(film, [1 << 24, most, -most, 1 << 23]);
    assert_eq!((counts.non_finite, counts.clamped), (3, 1));
}
