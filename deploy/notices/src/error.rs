//! Why there are no notices.

/// Why there are no notices.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoticesError {
    #[error("cargo does not run")]
    Cargo(#[source] std::io::Error),
    #[error("cargo metadata failed: {0}")]
    Metadata(String),
    #[error("cargo metadata cannot be read: {0}")]
    Shape(&'static str),
    #[error("cannot read the sources of {name}")]
    Source {
        name: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{name} {version} ({licence}) brings no licence text, and none is known for it here")]
    NoText { name: String, version: String, licence: String },
    #[error("cannot write {path}")]
    Write {
        path: String,
        #[source]
        source: std::io::Error,
    },
}
