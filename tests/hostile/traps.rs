//! What a trap is: a scene file, what lies beside it, and what must come of it.

/// What must come of a trap, where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// An error or a scene.
    Either,
    /// An error that holds this text.
    Refused(&'static str),
    /// A scene.
    Scene,
}

/// A file made to do harm.
#[derive(Clone, Debug)]
pub(crate) struct Trap {
    pub(crate) name: String,
    /// Name of the main file: its extension decides nothing.
    pub(crate) main: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// Files beside it.
    pub(crate) beside: Vec<(&'static str, Vec<u8>)>,
    /// Light at infinity: a file of `beside`.
    pub(crate) env: Option<&'static str>,
    pub(crate) expected: Expected,
}

impl Trap {
    pub(crate) fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let (name, bytes) = (name.into(), bytes.into());
        Self {
            name,
            main: "scene.gltf",
            bytes,
            beside: Vec::new(),
            env: None,
            expected: Expected::Either,
        }
    }

    pub(crate) fn refused(self, text: &'static str) -> Self {
        Self { expected: Expected::Refused(text), ..self }
    }

    pub(crate) fn good(self) -> Self {
        Self { expected: Expected::Scene, ..self }
    }
}
