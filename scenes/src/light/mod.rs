//! Lights: the file's own, triangles that emit, and the environment. Does not choose among them;
//! see the layout's light tree.

pub(crate) mod emitter;
pub(crate) mod environment;
pub(crate) mod punctual;
pub(crate) mod units_hint;
