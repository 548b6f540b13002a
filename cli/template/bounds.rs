//! What a template may have at most.

/// Bytes of a template at most.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most steps of a template.
pub(crate) const STEPS_MAX: usize = 64;
/// Most parameters of a template.
pub(crate) const PARAMETERS_MAX: usize = 256;
/// Most values of a list.
pub(crate) const VALUES_MAX: usize = 4096;
/// Most jobs that a template makes.
pub(crate) const JOBS_MAX: usize = 4096;
/// Most bytes of a text, before and after its parameters are filled in.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 10;
/// Most characters of a template's name: those of its steps and values follow.
pub(crate) const NAME_CHARS_MAX: usize = 64;
/// Most bytes of the options of all jobs together.
pub(crate) const OPTIONS_BYTES_MAX: usize = 64 << 20;
