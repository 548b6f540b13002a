//! Why a scene was not imported: a fault of the scene, or what it did to the importer process.

use std::time::Duration;
use tessera_protocol::names::printable;
use tessera_protocol::node::{Failure, LimitReached, NodeLimit};
use tessera_transport::error::chain;

/// Why there is no scene.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Something is wrong with the scene or with the request.
    #[error("{problem}")]
    Scene {
        /// Description and place of the fault.
        problem: String,
        /// Whether a file is missing.
        absent: bool,
    },
    /// The scene needs more memory than it may use, as the importer found before it took it.
    #[error("{problem}")]
    MemoryAt {
        /// Description, place and size.
        problem: String,
    },
    /// The scene needs more memory than it may use.
    #[error(
        "preparing the scene takes more than {} MiB of memory; simplify it, or raise \
            --scene-memory",
        limit_bytes >> 20
    )]
    Memory {
        /// Limit of memory in bytes.
        limit_bytes: u64,
    },
    /// The scene takes more time than it may.
    #[error(
        "{what} took longer than {} s; simplify the scene, or raise --scene-time",
        limit.as_secs_f64()
    )]
    Time {
        /// Step that took too long: loading or flattening.
        what: &'static str,
        /// Limit of the step's duration.
        limit: Duration,
    },
    /// The process crashed on the scene, which is a fault of the importer.
    #[error(
        "the scene importer ended on this scene ({how}); its files are damaged, or made to do that"
    )]
    Crashed {
        /// How it ended, and its last messages.
        how: String,
    },
    /// Something else ended the process: the system, if memory is short, or a person.
    #[error(
        "the scene importer was killed from outside, perhaps because this machine is short of \
            memory"
    )]
    Killed,
    /// The process sent an invalid message.
    #[error("the scene importer sent an invalid message: {0}")]
    Nonsense(String),
    /// The process has ended at an earlier frame.
    #[error("the scene importer has ended")]
    Gone,
    /// The process cannot be confined, and is not used unless it is.
    #[error("the scene importer cannot be confined, as --sandbox requires: {0}")]
    Unconfined(String),
    /// The system has no file in memory for the arrays of a frame.
    #[error("cannot make a file in memory for the scene's arrays")]
    File(#[source] std::io::Error),
    /// The system could not start a process.
    #[error("cannot start the scene importer")]
    Start(#[source] std::io::Error),
}

impl ImportError {
    /// Returns whether the process has ended. The scene must then be loaded again before another
    /// request.
    pub fn is_end(&self) -> bool {
        !matches!(self, Self::Scene { .. } | Self::MemoryAt { .. })
    }

    /// Returns whether the process ended by itself or by others, whatever it was asked for.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self, Self::Killed | Self::Gone | Self::Crashed { .. })
    }

    /// Converts the error for the coordinator. What this node has too little of is its own limit,
    /// and a fault that every node would find is the scene's.
    pub(crate) fn into_failure(self) -> Failure {
        let text = cut(&chain(&self));
        let limit = |limit, reason| Failure::Limit(LimitReached { limit, reason });
        match self {
            Self::Memory { .. } | Self::MemoryAt { .. } => limit(NodeLimit::SceneMemory, text),
            Self::Time { .. } => limit(NodeLimit::SceneTime, text),
            Self::Killed => limit(NodeLimit::Memory, text),
            Self::Gone => Failure::Worker(text),
            Self::Start(_) | Self::File(_) | Self::Unconfined(_) => Failure::Device(text),
            _ => Failure::Scene(text),
        }
    }
}

/// Longest text of a failure in bytes. Names and numbers of a file can be as long as the file.
const TEXT_BYTES_MAX: usize = 4096;

/// Shortens a text for a message, on one line. Control characters of a file must not reach a
/// terminal, so they are shown by number.
pub(crate) fn cut(text: &str) -> String {
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at > TEXT_BYTES_MAX);
    let text = printable(&text[..end.unwrap_or(text.len())]);
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
        assert!(scene(ImportError::Crashed { how: "signal: 11".into() }));
        assert!(scene(ImportError::Scene { problem: "no camera".into(), absent: false }));
        assert!(!scene(ImportError::Killed) && !scene(ImportError::Gone));
    }

    #[test]
    fn what_a_node_has_too_little_of_is_its_own_limit() {
        let limit = |error: ImportError| match error.into_failure() {
            Failure::Limit(LimitReached { limit, reason }) => (limit, reason),
            other => panic!("{other:?}"),
        };
        let (kind, reason) = limit(ImportError::Memory { limit_bytes: 64 << 20 });
        assert_eq!(kind, NodeLimit::SceneMemory);
        assert!(reason.contains("64 MiB") && reason.contains("--scene-memory"), "{reason}");
        let at = ImportError::MemoryAt { problem: "meshes[3]: more than the limit".into() };
        assert_eq!(limit(at), (NodeLimit::SceneMemory, "meshes[3]: more than the limit".into()));
        let late = ImportError::Time { what: "loading", limit: Duration::from_secs(3) };
        let (kind, reason) = limit(late);
        assert_eq!(kind, NodeLimit::SceneTime);
        assert!(reason.contains("3 s") && reason.contains("--scene-time"), "{reason}");
        assert_eq!(limit(ImportError::Killed).0, NodeLimit::Memory);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("a\u{1b}[31mshort\none"), "a\\u{1b}[31mshort one");
        let long = cut(&"é".repeat(9000));
        assert!(long.len() <= TEXT_BYTES_MAX + 4 && long.ends_with('…'), "{}", long.len());
    }
}
