//! Sets of system calls, with conditions on their arguments, and their filters for the kernel.
//! Knows no list: `refused.rs`, `needed.rs` and `importer.rs` have them.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;

/// Number and name of a call.
pub(super) type Named = (libc::c_long, &'static str);

/// Numbers and names of calls, by their constants in `libc`.
macro_rules! calls {
    ($($name:ident)*) => {{
        use libc::*;
        &[$(($name, stringify!($name))),*]
    }};
}
pub(super) use calls;

/// Bit in a call's number for the 32-bit variant of x86-64, whose calls do the same under other
/// numbers.
#[cfg(target_arch = "x86_64")]
const X32_BIT: i64 = 0x4000_0000;

/// A condition on an argument of a call, of which the kernel reads 32 bits: its position, and what
/// it is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    Is(u8, u32),
    Not(u8, u32),
    /// Position, mask, and the value of the masked bits.
    Bits(u8, u32, u32),
    /// A pointer, of which all 64 bits are compared.
    Null(u8),
}

impl Test {
    fn holds(self, arguments: &[u64; 6]) -> bool {
        let argument = |at: u8| arguments.get(usize::from(at)).map_or(0, |value| *value as u32);
        match self {
            Self::Is(at, value) => argument(at) == value,
            Self::Not(at, value) => argument(at) != value,
            Self::Bits(at, mask, value) => argument(at) & mask == value,
            Self::Null(at) => arguments.get(usize::from(at)) == Some(&0),
        }
    }

    fn condition(self) -> Result<SeccompCondition, seccompiler::BackendError> {
        let (at, operator, value) = match self {
            Self::Null(at) => {
                return SeccompCondition::new(at, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0);
            }
            Self::Is(at, value) => (at, SeccompCmpOp::Eq, value),
            Self::Not(at, value) => (at, SeccompCmpOp::Ne, value),
            Self::Bits(at, mask, value) => (at, SeccompCmpOp::MaskedEq(mask.into()), value),
        };
        SeccompCondition::new(at, SeccompCmpArgLen::Dword, operator, value.into())
    }
}

/// A set of calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls(BTreeMap<i64, Call>);

/// A call of a set.
#[derive(Clone, Debug)]
struct Call {
    name: &'static str,
    /// The call is in the set if all tests of one of these lists hold; if there are none, always.
    cases: Vec<Vec<Test>>,
}

impl Calls {
    /// Adds calls, whatever their arguments.
    pub(super) fn all(mut self, calls: &[Named]) -> Self {
        for (number, name) in calls {
            self.0.insert(*number, Call { name: plain(name), cases: Vec::new() });
        }
        self
    }

    /// Adds calls where all tests of one of these lists hold.
    pub(super) fn when(mut self, calls: &[Named], cases: &[&[Test]]) -> Self {
        let cases: Vec<Vec<Test>> = cases.iter().map(|case| case.to_vec()).collect();
        for (number, name) in calls {
            self.0.insert(*number, Call { name: plain(name), cases: cases.clone() });
        }
        self
    }

    /// Adds the variants of x86-64 with 32-bit addresses, for a set of calls that are refused.
    pub(super) fn with_variants(mut self) -> Self {
        #[cfg(target_arch = "x86_64")]
        for (number, call) in self.0.clone() {
            self.0.insert(number | X32_BIT, call);
        }
        self
    }

    /// Returns whether a call is in the set. Allocates nothing.
    pub(super) fn has(&self, number: i64, arguments: &[u64; 6]) -> bool {
        self.0.get(&number).is_some_and(|call| {
            call.cases.is_empty()
                || call.cases.iter().any(|case| case.iter().all(|test| test.holds(arguments)))
        })
    }

    /// Returns the name of a call of the set, whatever its arguments.
    pub(super) fn name(&self, number: i64) -> Option<&'static str> {
        self.0.get(&number).map(|call| call.name)
    }

    /// Returns the filter that treats calls of this set so, and others otherwise.
    pub(super) fn filter(
        &self,
        so: SeccompAction,
        otherwise: SeccompAction,
    ) -> Result<BpfProgram, seccompiler::Error> {
        let mut rules = BTreeMap::new();
        for (number, call) in &self.0 {
            let mut cases = Vec::new();
            for case in &call.cases {
                let conditions: Result<Vec<_>, _> =
                    case.iter().map(|test| test.condition()).collect();
                cases.push(SeccompRule::new(conditions?)?);
            }
            rules.insert(*number, cases);
        }
        let machine = std::env::consts::ARCH.try_into()?;
        Ok(SeccompFilter::new(rules, otherwise, so, machine)?.try_into()?)
    }
}

/// Returns the name of a call by that of its constant.
fn plain(name: &'static str) -> &'static str {
    name.strip_prefix("SYS_").unwrap_or(name)
}
