//! What a caller has to do with a piece while it is made: it can stop it, and help with it.

use crate::FinishError;
use crate::denoise::Passes;
use std::sync::atomic::{AtomicBool, Ordering};

/// A caller's hold on a piece that is being made. The default never stops it, and all is computed
/// on the caller's threads.
#[derive(Clone, Copy, Default)]
pub struct Running<'a> {
    /// Once it is true, the piece ends early with [`FinishError::Stopped`].
    pub stop: Option<&'a AtomicBool>,
    /// What computes passes of the denoiser.
    pub passes: Option<&'a dyn Passes>,
}

impl Running<'_> {
    pub(crate) fn check(&self) -> Result<(), FinishError> {
        let is_stopped = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        if is_stopped { Err(FinishError::Stopped) } else { Ok(()) }
    }
}
