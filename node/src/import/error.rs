//! Why a scene was not imported: its own fault, or what it did to the process that read it.

use std::time::Duration;
use tessera_protocol::node::Failure;

/// Why there is no scene.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Something is wrong with the scene or with what was asked of it.
    #[error("{problem}")]
    Scene {
        /// What, and where.
        problem: String,
        /// A file is not there.
        absent: bool,
    },
    /// It takes more memory than it may.
    #[error(
        "preparing the scene takes more than {} MiB of memory; simplify it, or raise \
            --scene-memory",
        limit_bytes >> 20
    )]
    Memory {
        /// The limit.
        limit_bytes: u64,
    },
    /// It takes more time than it may.
    #[error(
        "{what} took longer than {} s; simplify the scene, or raise --scene-time",
        limit.as_secs_f64()
    )]
    Time {
        /// Loading or flattening.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The process ended on it: a fault of the importer that the scene has found.
    #[error(
        "the scene importer ended on this scene ({how}); its files are damaged, or made to do that"
    )]
    Crashed {
        /// Its end, and its last words.
        how: String,
    },
    /// Somebody else ended the process: the system, where memory is short, or a person.
    #[error(
        "the scene importer was killed from outside, perhaps because this machine is short of \
            memory"
    )]
    Killed,
    /// What it said makes no sense.
    #[error("the scene importer makes no sense: {0}")]
    Nonsense(String),
    /// It ended at an earlier frame.
    #[error("the scene importer has ended")]
    Gone,
    /// The system does not start one.
    #[error("cannot start the scene importer")]
    Start(#[source] std::io::Error),
}

impl ImportError {
    /// The process is no more: the scene has to be loaded again before anything else is asked of
    /// it.
    pub fn is_end(&self) -> bool {
        !matches!(self, Self::Scene { .. })
    }

    /// What a node tells of it. What the scene does anywhere is the scene's failure, so that no
    /// node is blamed for it.
    pub(crate) fn into_failure(self) -> Failure {
        let text = cut(&crate::scene::chain(&self));
        match self {
            Self::Killed | Self::Gone => Failure::Worker(text),
            Self::Start(_) => Failure::Device(text),
            _ => Failure::Scene(text),
        }
    }
}

/// Longest text of a failure, bytes: names and numbers of a file can be as long as it.
const TEXT_BYTES_MAX: usize = 4096;

/// As much of a text as a message should carry, on one line: control characters of a file are
/// nothing for a terminal.
pub(crate) fn cut(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().find(|(at, _)| *at >= TEXT_BYTES_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_every_node_has_are_the_scenes_own() {
        let scene = |error: ImportError| matches!(error.into_failure(), Failure::Scene(_));
        assert!(scene(ImportError::Memory { limit_bytes: 1 << 30 }));
        assert!(scene(ImportError::Time { what: "loading", limit: Duration::from_secs(3) }));
        assert!(scene(ImportError::Crashed { how: "signal: 11".into() }));
        assert!(!scene(ImportError::Killed) && !scene(ImportError::Gone));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("a\u{1b}[31mshort\none"), "a [31mshort one");
        let long = cut(&"é".repeat(9000));
        assert!(long.len() <= TEXT_BYTES_MAX + 4 && long.ends_with('…'), "{}", long.len());
    }
}
