//! The part of the C++ standard library that users' kernels may include: NVRTC brings none. Written
//! for Tessera (`source/compute/std`).

/// The text of a file of `source/compute/std`.
macro_rules! text {
    ($file:literal) => {
        include_str!(concat!("../../source/compute/std/", $file))
    };
}

/// Names by which kernels include the headers, and their texts.
pub const STANDARD_HEADERS: &[(&str, &str)] = &[
    ("algorithm", text!("algorithm.h")),
    ("assert.h", text!("assert.h")),
    ("cassert", text!("assert.h")),
    ("cfloat", text!("float.h")),
    ("climits", text!("limits.h")),
    ("cmath", text!("math.h")),
    ("cstddef", text!("stddef.h")),
    ("cstdint", text!("stdint.h")),
    ("cstdio", text!("stdio.h")),
    ("cstdlib", text!("stdlib.h")),
    ("cstring", text!("string.h")),
    ("float.h", text!("float.h")),
    ("limits", text!("numeric_limits.h")),
    ("limits.h", text!("limits.h")),
    ("math.h", text!("math.h")),
    ("stddef.h", text!("stddef.h")),
    ("stdint.h", text!("stdint.h")),
    ("stdio.h", text!("stdio.h")),
    ("stdlib.h", text!("stdlib.h")),
    ("string.h", text!("string.h")),
    ("type_traits", text!("type_traits.h")),
    ("utility", text!("utility.h")),
];
