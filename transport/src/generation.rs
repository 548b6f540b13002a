//! The farm's generation: a number that grows at each start of the coordinator and with each
//! restored backup. The coordinator's certificate names it, so every peer sees it. A peer that has
//! seen a larger one knows that two coordinators of one farm run, and that this is the older one.
//!
//! A start adds one. A restore, and a take-over that an operator asks for, set it to the seconds of
//! the wall clock, which is more than any number of starts. So the coordinator that was restored or
//! taken over last has the largest one.

use crate::authority::certificate::GENERATION_PREFIX;
use crate::authority::token::AuthorityPin;
use crate::files::{self, Access};
use crate::identity::renew::shown;
use crate::validity::now_secs;
use quinn::Connection;
use rustls::pki_types::CertificateDer;
use std::io;
use std::path::{Path, PathBuf};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Longest file that is read, in bytes: two numbers.
const FILE_BYTES_MAX: u64 = 256;

/// What is wrong with a coordinator's generation.
#[derive(Debug, thiserror::Error)]
pub enum GenerationError {
    /// The coordinator is older than another one of the same farm.
    #[error(
        "this coordinator is of generation {found} of the farm, and generation {seen} was seen \
         before: two coordinators of one farm run, such as one that a backup was restored for; \
         stop the one that is not wanted, or start this one with --take-over to give the other up"
    )]
    Older {
        /// Generation of the coordinator.
        found: u64,
        /// Largest generation that was seen.
        seen: u64,
    },
    /// The generation is fine, and cannot be noted.
    #[error("the farm's generation cannot be noted in `{}`", path.display())]
    Note {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
}

/// Returns the generation of the coordinator at the other end; None if it names none.
pub fn of(connection: &Connection) -> Option<u64> {
    shown(connection).first().and_then(of_certificate)
}

fn of_certificate(certificate: &CertificateDer<'_>) -> Option<u64> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let unit = certificate.subject().iter_organizational_unit().next()?;
    unit.as_str().ok()?.strip_prefix(GENERATION_PREFIX)?.parse().ok()
}

/// Raises the generation in a file, durably, and returns the new one. With `take_over` it becomes
/// larger than that of every coordinator that was only started.
pub fn raise(file: &Path, take_over: bool) -> io::Result<u64> {
    let mut generation = read(file)?.last().copied().unwrap_or(0).saturating_add(1);
    if take_over {
        generation = generation.max(now_secs());
    }
    files::write_atomically(file, format!("{generation}\n").as_bytes(), Access::Secret)?;
    Ok(generation)
}

/// Checks the generation of a coordinator against the largest one in a file, and notes it there if
/// it is larger. A farm of another authority begins anew. An unreadable file counts as absent.
pub fn check(file: &Path, farm: AuthorityPin, found: u64) -> Result<(), GenerationError> {
    let farm = u64::from_le_bytes(farm.0[..8].try_into().unwrap_or_default());
    let seen = match read(file).unwrap_or_default()[..] {
        [of, seen] if of == farm => seen,
        _ => 0,
    };
    if found < seen {
        return Err(GenerationError::Older { found, seen });
    }
    if found > seen {
        let text = format!("{farm} {found}\n");
        files::write_atomically(file, text.as_bytes(), Access::Secret)
            .map_err(|source| GenerationError::Note { path: file.to_owned(), source })?;
    }
    Ok(())
}

/// Reads the numbers of a file; none if it does not exist or has something else.
fn read(file: &Path) -> io::Result<Vec<u64>> {
    let bytes = match files::read_bounded(file, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
    Ok(numbers.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    // promise: P8
    #[test]
    fn an_older_coordinator_of_the_same_farm_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (coordinator, node) = (folder.path().join("c"), folder.path().join("n"));
        let (ours, other) = (AuthorityPin([1; 32]), AuthorityPin([2; 32]));
        let is_older = |farm, generation| match check(&node, farm, generation) {
            Ok(()) => false,
            Err(GenerationError::Older { .. }) => true,
            Err(error) => panic!("{error}"),
        };
        for start in 1..=3 {
            assert_eq!(raise(&coordinator, false).unwrap(), start);
            assert!(!is_older(ours, start) && !is_older(ours, start), "also the same one again");
        }
        let restored = folder.path().join("restored");
        let newest = raise(&restored, true).unwrap();
        assert!(newest > 1_700_000_000 && !is_older(ours, newest));
        let error = check(&node, ours, raise(&coordinator, false).unwrap()).unwrap_err();
        assert!(error.to_string().contains("generation 4 of the farm"), "{error}");
        // The older one takes over; another start of the restored one is older then.
        std::fs::write(&coordinator, format!("{}", newest + 10)).unwrap();
        assert!(!is_older(ours, raise(&coordinator, true).unwrap()));
        assert!(is_older(ours, raise(&restored, false).unwrap()));
        // A node that joins another farm has seen nothing of that one.
        assert!(!is_older(other, 1));
    }

    #[test]
    fn the_certificate_names_the_generation() {
        let authority = crate::Authority::generate().unwrap().with_generation(77);
        let (chain, _) = authority.issue_server().unwrap();
        assert_eq!(of_certificate(&chain[0]), Some(77));
        assert_eq!(of_certificate(&chain[1]), None);
    }

    #[test]
    fn a_damaged_generation_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("generation");
        std::fs::write(&file, "seven\n").unwrap();
        assert_eq!(raise(&file, false).unwrap(), 1);
        std::fs::write(&file, [0xff; 9]).unwrap();
        check(&file, AuthorityPin([1; 32]), 5).unwrap();
        assert!(check(&file, AuthorityPin([1; 32]), 4).is_err());
    }
}
