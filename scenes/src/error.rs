//! Errors of scenes: which file, where in it, and what to do.

use std::path::PathBuf;

/// Why a scene cannot be loaded or flattened.
#[derive(Debug, thiserror::Error)]
pub enum SceneError {
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// A file is larger than the limit.
    #[error(
        "`{file}` has {bytes} bytes, more than the limit of {limit}; split it into several files"
    )]
    FileTooLarge {
        /// Path within the scene's folder.
        file: String,
        /// Length of the file.
        bytes: u64,
        /// [`crate::Limits::file_bytes`].
        limit: u64,
    },
    /// The file is not glTF, or is cut short.
    #[error("`{file}` is not a glTF 2.0 file: {problem}")]
    Container {
        /// Path within the scene's folder.
        file: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The JSON cannot be read.
    #[error("`{file}` holds JSON that is not glTF 2.0: {problem}")]
    Json {
        /// Path within the scene's folder.
        file: String,
        /// Reason, line and column, and what to do.
        problem: String,
    },
    /// A part of the file contradicts glTF 2.0 or a limit.
    #[error("`{file}`: {path}: {problem}")]
    Invalid {
        /// Path within the scene's folder.
        file: String,
        /// Place in the JSON, such as `meshes[3].primitives[0].attributes.POSITION`.
        path: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The file requires extensions that Tessera does not support.
    #[error("`{file}`: extensionsRequired: {} not supported; {hint}", names.join(", "))]
    Extension {
        /// Path within the scene's folder.
        file: String,
        /// Names of the extensions.
        names: Vec<String>,
        /// What to do.
        hint: String,
    },
    /// A URI leaves the scene's folder, or does not name a file.
    #[error("`{file}`: {path}: URI {uri:?} {problem}")]
    Uri {
        /// Path within the scene's folder of the file that names it.
        file: String,
        /// Place in the JSON.
        path: String,
        /// The URI (shortened).
        uri: String,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// An image cannot be decoded, or exceeds the limits.
    #[error("`{file}`: {path}: {problem}")]
    Image {
        /// Path within the scene's folder.
        file: String,
        /// Place in the JSON; empty for an environment file.
        path: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The chosen camera does not exist or makes no picture.
    #[error("camera: {problem}")]
    Camera {
        /// What is wrong and what to do.
        problem: String,
    },
    /// The chosen material variant does not exist.
    #[error("`{file}`: variant: {problem}")]
    Variant {
        /// Path within the scene's folder.
        file: String,
        /// Description of the fault, and the existing variants.
        problem: String,
    },
    /// An option of the caller makes no picture.
    #[error("{problem}")]
    Option {
        /// What is wrong and what to do.
        problem: String,
    },
    /// The scene needs more memory than it may use.
    #[error(
        "`{file}`: {path}: with it, the scene takes {needed} bytes of memory, more than the limit \
            of {limit}; simplify it, or raise --scene-memory"
    )]
    Memory {
        /// Path within the scene's folder.
        file: String,
        /// Place in the JSON, or part of the scene.
        path: String,
        /// Bytes with this part.
        needed: u64,
        /// [`crate::Limits::memory_bytes`].
        limit: u64,
    },
    /// The flattened scene exceeds a limit.
    #[error("`{file}`: the scene has {count} {what}, more than the limit of {limit}; simplify it")]
    TooLarge {
        /// Path within the scene's folder.
        file: String,
        /// Kind of the items that are too many.
        what: &'static str,
        /// Number of the items.
        count: u64,
        /// The limit.
        limit: u64,
    },
}

impl SceneError {
    /// Returns the file that the error is about, if there is one.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Read { path, .. } => path.to_str(),
            Self::Camera { .. } | Self::Option { .. } => None,
            Self::FileTooLarge { file, .. }
            | Self::Container { file, .. }
            | Self::Json { file, .. }
            | Self::Invalid { file, .. }
            | Self::Extension { file, .. }
            | Self::Uri { file, .. }
            | Self::Image { file, .. }
            | Self::Variant { file, .. }
            | Self::Memory { file, .. }
            | Self::TooLarge { file, .. } => Some(file),
        }
    }
}
