//! Chooses the host build of the kernels for this processor.

use std::fmt;
use std::str::FromStr;

/// An instruction set that the kernels are built for. All give the same bits, and differ only in
/// speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// The base of the target (processors other than x86-64).
    Base,
    /// x86-64-v2: SSE4.2. Without fused multiply-add in hardware it is several times slower.
    V2,
    /// x86-64-v3: AVX2 and FMA.
    V3,
}

impl Isa {
    const ALL: [Isa; 3] = [Isa::Base, Isa::V2, Isa::V3];

    /// Returns the name, as an option spells it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Base => "base",
            Isa::V2 => "x86-64-v2",
            Isa::V3 => "x86-64-v3",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn is_available(self) -> bool {
        let v2 = || is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("popcnt");
        let v3 = || {
            is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("movbe")
                && is_x86_feature_detected!("f16c")
        };
        match self {
            Isa::Base => false,
            Isa::V2 => v2(),
            Isa::V3 => v2() && v3(),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_available(self) -> bool {
        self == Isa::Base
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The name is not one of our instruction sets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown instruction set `{0}`: use base, x86-64-v2 or x86-64-v3")]
pub struct UnknownIsa(String);

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Self, UnknownIsa> {
        Isa::ALL
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| UnknownIsa(name.to_owned()))
    }
}

/// Returns the builds that this processor can run, slowest first. Empty on an x86-64 processor
/// older than x86-64-v2.
pub fn available_isas() -> Vec<Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available()).collect()
}

/// Returns the fastest build that this processor can run. If there is none, it is [`Isa::Base`],
/// which rendering then refuses.
pub fn best_isa() -> Isa {
    available_isas().last().copied().unwrap_or(Isa::Base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for isa in Isa::ALL {
            assert_eq!(isa.to_string().parse(), Ok(isa));
        }
        assert!("x86-64-v9".parse::<Isa>().is_err());
    }

    #[test]
    fn the_best_is_available() {
        assert!(available_isas().contains(&best_isa()));
    }
}
