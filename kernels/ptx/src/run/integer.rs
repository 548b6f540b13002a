//! Integer functions that take more than an operator.

/// The number in the low `width` bits, signed.
#[inline(always)]
pub(super) fn signed(value: u64, width: u8) -> i64 {
    let shift = 64 - u32::from(width);
    ((value << shift) as i64) >> shift
}

/// One in the low `width` bits; all for 64 and more.
#[inline(always)]
pub(super) fn mask(width: u8) -> u64 {
    u64::MAX >> (64 - u32::from(width.clamp(1, 64)))
}

#[inline(always)]
pub(super) fn shift_left(value: u64, by: u64, width: u8) -> u64 {
    if by >= u64::from(width) { 0 } else { value << by }
}

#[inline(always)]
pub(super) fn shift_right(value: u64, by: u64, width: u8) -> u64 {
    if by >= u64::from(width) { 0 } else { value >> by }
}

#[inline(always)]
pub(super) fn shift_right_signed(value: u64, by: u64, width: u8) -> u64 {
    (signed(value, width) >> by.min(u64::from(width) - 1)) as u64
}

/// High half of a product.
pub(super) fn mul_high(a: u64, b: u64, width: u8) -> u64 {
    ((u128::from(a) * u128::from(b)) >> width) as u64
}

/// High half of a signed product.
pub(super) fn mul_high_signed(a: u64, b: u64, width: u8) -> u64 {
    ((i128::from(signed(a, width)) * i128::from(signed(b, width))) >> width) as u64
}

/// Place of the highest bit that differs from the sign, or how far it is from the top; all ones
/// where there is none.
pub(super) fn find(value: u64, width: u8, from_top: bool) -> u64 {
    match value {
        0 => 0xFFFF_FFFF,
        value => {
            let place = 63 - u64::from(value.leading_zeros());
            if from_top { u64::from(width) - 1 - place } else { place }
        }
    }
}

/// `bfe.u`: bits from `start`, `length` of them.
pub(super) fn field(value: u64, start: u64, length: u64, width: u8) -> u64 {
    let (start, length) = (start & 0xFF, length & 0xFF);
    let shifted = shift_right(value, start, width);
    if length >= 64 { shifted } else { shifted & ((1 << length) - 1) }
}

/// `bfe.s`: the field's top bit is its sign; bits above the value are copies of its sign.
pub(super) fn field_signed(value: u64, start: u64, length: u64, width: u8) -> u64 {
    let (start, length) = (start & 0xFF, length & 0xFF);
    if length == 0 {
        return 0;
    }
    let shifted = signed(value, width) >> start.min(63);
    let kept = 64 - length.min(64) as u32;
    ((shifted << kept) >> kept) as u64
}

/// `bfi`: the low bits of `a` over those of `b` from `start`.
pub(super) fn field_insert(a: u64, b: u64, start: u64, length: u64, width: u8) -> u64 {
    let (start, length) = (start & 0xFF, length & 0xFF);
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let place = shift_left(ones, start, width);
    (b & !place) | (shift_left(a, start, width) & place)
}

/// `prmt.b32`: each result byte is one of eight, or copies of its sign.
pub(super) fn permute(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (a & 0xFFFF_FFFF) | (b << 32);
    (0..4).fold(0, |result, at| {
        let choice = (selector >> (4 * at)) & 0xF;
        let byte = (bytes >> (8 * (choice & 7))) & 0xFF;
        let byte = if choice & 8 == 0 {
            byte
        } else if byte & 0x80 != 0 {
            0xFF
        } else {
            0
        };
        result | (byte << (8 * at))
    })
}

/// `shf`: 32 bits out of the 64 of `b`:`a`.
pub(super) fn funnel(a: u64, b: u64, by: u64, left: bool, clamp: bool) -> u64 {
    let both = (b << 32) | (a & 0xFFFF_FFFF);
    let by = if clamp { (by & 0xFFFF_FFFF).min(32) } else { by & 31 };
    let result = if left { both >> (32 - by) } else { both >> by };
    result & 0xFFFF_FFFF
}

/// `lop3`: bit by bit what the table says of three bits.
pub(super) fn logic(a: u64, b: u64, c: u64, table: u8) -> u64 {
    (0..8u32).filter(|row| (table >> row) & 1 == 1).fold(0, |result, row| {
        let pick = |value: u64, bit: u32| if (row >> bit) & 1 == 1 { value } else { !value };
        result | (pick(a, 2) & pick(b, 1) & pick(c, 0))
    }) & 0xFFFF_FFFF
}

/// Quotient as a GPU gives it: all ones for a division by zero.
pub(super) fn divide(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(u64::MAX)
}

/// Remainder as a GPU gives it: the dividend for a division by zero.
pub(super) fn remainder(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_bytes_follow_the_manual() {
        assert_eq!(permute(0x8001_02FF, 0x1122_3344, 0xFB64), 0x00FF_2244);
        assert_eq!(
            (field(0xABCD, 4, 8, 32), field(0xABCD, 40, 8, 32), field(0xABCD, 0, 0, 32)),
            (0xBC, 0, 0)
        );
        assert_eq!(field_signed(0xF0, 4, 4, 32) & 0xFFFF_FFFF, 0xFFFF_FFFF);
        assert_eq!(field_insert(0xF, 0, 30, 4, 32) & 0xFFFF_FFFF, 0xC000_0000);
        assert_eq!(
            (find(0, 32, false), find(0x100, 32, false), find(0x100, 32, true)),
            (0xFFFF_FFFF, 8, 23)
        );
        assert_eq!((funnel(1, 2, 33, true, false), funnel(1, 2, 33, true, true)), (4, 1));
        assert_eq!(logic(0b1100, 0b1010, 0b0110, 0x96), 0b0000);
        assert_eq!((divide(5, 0), remainder(5, 0)), (u64::MAX, 5));
    }
}
