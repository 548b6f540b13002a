//! Whether workers and importers are confined, and how far this kernel can do it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Environment variable with this setting for processes that have no option for it.
const VARIABLE: &str = "TESSERA_SANDBOX";
/// Newest version of Landlock of which this build uses everything.
const LANDLOCK_WANTED: i64 = 6;
/// Flag with which the kernel tells its version of Landlock.
const LANDLOCK_VERSION: libc::c_ulong = 1;

/// Whether workers and importers are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sandbox {
    /// They are not: debuggers and profilers come in.
    Off,
    /// They are, as far as the kernel can do it.
    #[default]
    On,
    /// They are, and nothing runs where the kernel has no seccomp or no Landlock.
    Require,
}

/// The text is no such setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a setting of the sandbox; write `on`, `require` or `off`")]
pub struct SandboxError(String);

/// Why nothing can be confined here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unconfined {
    /// The kernel filters no system calls.
    #[error("this kernel filters no system calls (seccomp)")]
    NoSeccomp,
    /// The kernel confines no files.
    #[error(
        "this kernel confines no files: it is older than Linux 5.13, or Landlock is not among its \
            security modules (`cat /sys/kernel/security/lsm`)"
    )]
    NoLandlock,
}

impl Sandbox {
    /// Returns the setting of this process's environment.
    pub fn of_environment() -> Self {
        Self::of_value(std::env::var(VARIABLE).ok().as_deref())
    }

    /// A text that is no setting counts as the strictest one.
    fn of_value(value: Option<&str>) -> Self {
        match value {
            None | Some("") => Self::default(),
            Some(value) => value.parse().unwrap_or(Self::Require),
        }
    }

    /// Returns whether processes confine themselves.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Checks that this kernel can do what the setting requires. Returns what it cannot do beyond
    /// that, in a sentence; None if it can do everything.
    ///
    /// # Errors
    /// Something that is required is missing.
    pub fn check(self) -> Result<Option<String>, Unconfined> {
        if self == Self::Off {
            return Ok(Some("workers and importers are not confined".into()));
        }
        let found = confines(landlock_version(), super::policy::is_available());
        match (self, found) {
            (Self::Require, Err(missing)) => Err(missing),
            (_, found) => Ok(found.unwrap_or_else(|missing| Some(missing.to_string()))),
        }
    }
}

/// Returns what a kernel of this version of Landlock, with or without seccomp, cannot confine.
fn confines(landlock: i64, seccomp: bool) -> Result<Option<String>, Unconfined> {
    let lacks = match landlock {
        _ if !seccomp => return Err(Unconfined::NoSeccomp),
        ..1 => return Err(Unconfined::NoLandlock),
        1 | 2 => "shortening of files is not confined",
        3..LANDLOCK_WANTED => "signals are refused by seccomp alone",
        _ => return Ok(None),
    };
    Ok(Some(format!("Landlock {landlock} of {LANDLOCK_WANTED}: {lacks}; Linux 6.12 has it")))
}

/// Returns the version of Landlock of this kernel; 0 or less if it has none.
fn landlock_version() -> i64 {
    // SAFETY: with this flag the call reads no memory.
    unsafe {
        let none = std::ptr::null::<libc::c_void>();
        libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, LANDLOCK_VERSION)
    }
}

impl FromStr for Sandbox {
    type Err = SandboxError;
    fn from_str(text: &str) -> Result<Self, SandboxError> {
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "require" => Ok(Self::Require),
            _ => Err(SandboxError(text.to_owned())),
        }
    }
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Require => "require",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_seccomp_or_landlock_is_named() {
        assert_eq!(confines(7, false), Err(Unconfined::NoSeccomp));
        assert_eq!(confines(0, true), Err(Unconfined::NoLandlock));
        assert_eq!(confines(-1, true), Err(Unconfined::NoLandlock));
        assert_eq!(confines(7, true), Ok(None));
        let told = confines(5, true).unwrap().unwrap();
        assert!(told.starts_with("Landlock 5 of 6: signals"), "{told}");
        assert!(confines(2, true).unwrap().unwrap().contains("shortening"));
    }

    #[test]
    fn a_setting_is_one_of_three_words() {
        for setting in [Sandbox::Off, Sandbox::On, Sandbox::Require] {
            assert_eq!(setting.to_string().parse(), Ok(setting));
        }
        assert!("yes".parse::<Sandbox>().unwrap_err().to_string().contains("`require`"));
        assert!(Sandbox::On.is_on() && !Sandbox::Off.is_on());
        let values = [None, Some(""), Some("off"), Some("OFF")].map(Sandbox::of_value);
        assert_eq!(values, [Sandbox::On, Sandbox::On, Sandbox::Off, Sandbox::Require]);
    }
}
