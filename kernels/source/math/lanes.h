// Numbers in lanes: eight at once, as hosts shade eight paths at once. Operations of arithmetic.h,
// lane by lane; hosts only. Everything is in an unnamed namespace or inlined, so that no build for
// one instruction set can be given the code of another.
#pragma once

#include "math/vector.h"

#define TESSERA_MEMBER_FN inline __attribute__((always_inline))

namespace {

struct LaneMask {
    Int8 bits;  // all or none of a lane's
};

struct LaneInts {
    Int8 value;
    LaneInts() = default;
    TESSERA_MEMBER_FN LaneInts(Int8 lanes) : value(lanes) {}
    TESSERA_MEMBER_FN LaneInts(i32 all) : value(all - Int8{}) {}
};

struct LaneWords {
    Word8 value;
    LaneWords() = default;
    TESSERA_MEMBER_FN LaneWords(Word8 lanes) : value(lanes) {}
    TESSERA_MEMBER_FN LaneWords(u32 all) : value(all - Word8{}) {}
};

struct Lanes {
    Float8 value;
    Lanes() = default;
    TESSERA_MEMBER_FN Lanes(Float8 lanes) : value(lanes) {}
    TESSERA_MEMBER_FN Lanes(float all) : value(Float8{all, all, all, all, all, all, all, all}) {}
};

}  // namespace

template <>
struct Kinds<Lanes> {
    typedef LaneWords Word;
    typedef LaneInts Int;
    typedef LaneMask Mask;
};

// Here too, where templates find them by the types of their arguments.
namespace {

TESSERA_SMALL_FN LaneMask mask_of(Int8 bits) {
    LaneMask mask;
    mask.bits = bits;
    return mask;
}
TESSERA_SMALL_FN LaneMask operator&&(LaneMask a, LaneMask b) { return mask_of(a.bits & b.bits); }
TESSERA_SMALL_FN LaneMask operator||(LaneMask a, LaneMask b) { return mask_of(a.bits | b.bits); }
TESSERA_SMALL_FN LaneMask operator!(LaneMask a) { return mask_of(~a.bits); }
TESSERA_SMALL_FN bool any(LaneMask mask) { return any8(mask.bits); }

TESSERA_SMALL_FN LaneInts operator+(LaneInts a, LaneInts b) { return a.value + b.value; }
TESSERA_SMALL_FN LaneInts operator-(LaneInts a, LaneInts b) { return a.value - b.value; }
TESSERA_SMALL_FN LaneInts operator&(LaneInts a, LaneInts b) { return a.value & b.value; }
TESSERA_SMALL_FN LaneMask operator!=(LaneInts a, LaneInts b) { return mask_of(a.value != b.value); }
TESSERA_SMALL_FN LaneMask operator<(LaneInts a, LaneInts b) { return mask_of(a.value < b.value); }
TESSERA_SMALL_FN LaneMask operator>=(LaneInts a, LaneInts b) { return mask_of(a.value >= b.value); }

TESSERA_SMALL_FN LaneMask operator<=(LaneWords a, LaneWords b) {
    return mask_of(a.value <= b.value);
}
TESSERA_SMALL_FN LaneMask operator==(LaneWords a, LaneWords b) {
    return mask_of(a.value == b.value);
}
TESSERA_SMALL_FN LaneWords operator+(LaneWords a, LaneWords b) { return a.value + b.value; }
TESSERA_SMALL_FN LaneWords operator-(LaneWords a, LaneWords b) { return a.value - b.value; }
TESSERA_SMALL_FN LaneWords operator*(LaneWords a, LaneWords b) { return a.value * b.value; }
TESSERA_SMALL_FN LaneWords operator&(LaneWords a, LaneWords b) { return a.value & b.value; }
TESSERA_SMALL_FN LaneWords operator|(LaneWords a, LaneWords b) { return a.value | b.value; }
TESSERA_SMALL_FN LaneWords operator^(LaneWords a, LaneWords b) { return a.value ^ b.value; }
TESSERA_SMALL_FN LaneWords operator<<(LaneWords a, u32 by) { return a.value << by; }
TESSERA_SMALL_FN LaneWords operator>>(LaneWords a, u32 by) { return a.value >> by; }
TESSERA_SMALL_FN LaneWords& operator+=(LaneWords& a, LaneWords b) { return a = a + b; }
TESSERA_SMALL_FN LaneWords& operator*=(LaneWords& a, LaneWords b) { return a = a * b; }
TESSERA_SMALL_FN LaneWords& operator^=(LaneWords& a, LaneWords b) { return a = a ^ b; }

TESSERA_SMALL_FN Lanes operator+(Lanes a, Lanes b) { return a.value + b.value; }
TESSERA_SMALL_FN Lanes operator-(Lanes a, Lanes b) { return a.value - b.value; }
TESSERA_SMALL_FN Lanes operator-(Lanes a) { return -a.value; }
TESSERA_SMALL_FN Lanes operator*(Lanes a, Lanes b) { return a.value * b.value; }
TESSERA_SMALL_FN Lanes operator/(Lanes a, Lanes b) { return a.value / b.value; }
TESSERA_SMALL_FN Lanes& operator*=(Lanes& a, Lanes b) { return a = a * b; }
TESSERA_SMALL_FN LaneMask operator<(Lanes a, Lanes b) { return mask_of(a.value < b.value); }
TESSERA_SMALL_FN LaneMask operator>(Lanes a, Lanes b) { return mask_of(a.value > b.value); }
TESSERA_SMALL_FN LaneMask operator<=(Lanes a, Lanes b) { return mask_of(a.value <= b.value); }
TESSERA_SMALL_FN LaneMask operator>=(Lanes a, Lanes b) { return mask_of(a.value >= b.value); }
TESSERA_SMALL_FN LaneMask operator==(Lanes a, Lanes b) { return mask_of(a.value == b.value); }
TESSERA_SMALL_FN LaneMask operator!=(Lanes a, Lanes b) { return mask_of(a.value != b.value); }

TESSERA_SMALL_FN Lanes select(LaneMask mask, Lanes yes, Lanes no) {
    return mask.bits ? yes.value : no.value;
}
TESSERA_SMALL_FN LaneInts select(LaneMask mask, LaneInts yes, LaneInts no) {
    return mask.bits ? yes.value : no.value;
}
TESSERA_SMALL_FN LaneWords select_word(LaneMask mask, LaneWords yes, LaneWords no) {
    return (Word8)(mask.bits ? (Int8)yes.value : (Int8)no.value);
}
TESSERA_SMALL_FN Vector2<Lanes> select(LaneMask mask, Vector2<Lanes> yes, Vector2<Lanes> no) {
    return vec2(select(mask, yes.x, no.x), select(mask, yes.y, no.y));
}
TESSERA_SMALL_FN Vector3<Lanes> select(LaneMask mask, Vector3<Lanes> yes, Vector3<Lanes> no) {
    return vec3(select(mask, yes.x, no.x), select(mask, yes.y, no.y), select(mask, yes.z, no.z));
}

TESSERA_SMALL_FN Lanes float_from_bits(LaneWords bits) { return (Float8)bits.value; }
TESSERA_SMALL_FN LaneWords bits_from_float(Lanes value) { return (Word8)value.value; }
TESSERA_SMALL_FN Lanes float_from_int(LaneInts value) {
    return __builtin_convertvector(value.value, Float8);
}
TESSERA_SMALL_FN LaneInts int_from_bounded(Lanes value) {
    return __builtin_convertvector(value.value, Int8);
}
TESSERA_SMALL_FN LaneWords word_from_int(LaneInts value) { return (Word8)value.value; }
TESSERA_SMALL_FN LaneInts int_from_word(LaneWords value) { return (Int8)value.value; }
TESSERA_SMALL_FN Lanes fma_(Lanes a, Lanes b, Lanes c) { return fma8(a.value, b.value, c.value); }
TESSERA_SMALL_FN Lanes sqrt_(Lanes value) { return sqrt8(value.value); }
TESSERA_SMALL_FN Lanes min_(Lanes a, Lanes b) { return select(a < b, a, b); }
TESSERA_SMALL_FN Lanes max_(Lanes a, Lanes b) { return select(a > b, a, b); }
TESSERA_SMALL_FN LaneWords min_u32(LaneWords a, LaneWords b) {
    return (Word8)(a.value < b.value ? (Int8)a.value : (Int8)b.value);
}
TESSERA_SMALL_FN LaneInts floor_to_int(Lanes value) {
    const Lanes bounded = clamp_(value, -1073741824.0f, 1073741824.0f);
    const LaneInts truncated = int_from_bounded(bounded);
    // a lane that holds is -1
    return truncated + LaneInts((float_from_int(truncated) > bounded).bits);
}
TESSERA_SMALL_FN LaneWords reverse_bits(LaneWords value) {
    value = ((value >> 1) & 0x55555555u) | ((value & 0x55555555u) << 1);
    value = ((value >> 2) & 0x33333333u) | ((value & 0x33333333u) << 2);
    value = ((value >> 4) & 0x0f0f0f0fu) | ((value & 0x0f0f0f0fu) << 4);
    return swap_bytes8(value.value);
}
TESSERA_SMALL_FN Lanes look_up(const float* table, LaneWords index) {
    Float8 found;
    for (u32 k = 0; k < 8; k++) found[k] = table[index.value[k]];
    return found;
}
TESSERA_SMALL_FN Vector3<Lanes> look_up3(const float* table, LaneWords index) {
    Vector3<Lanes> found;
    for (u32 k = 0; k < 8; k++) {
        const float* at = table + 3 * (u64)index.value[k];
        found.x.value[k] = at[0];
        found.y.value[k] = at[1];
        found.z.value[k] = at[2];
    }
    return found;
}

}  // namespace
