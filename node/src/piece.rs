//! A finishing unit with everything that it reads. Owns no thread; devices do the work.

use std::sync::Arc;
use tessera_finishing::{FinishError, Inputs, Running, make_piece};
use tessera_protocol::JobKind;
use tessera_protocol::node::Finish;

/// A finishing unit, ready for any device.
#[derive(Debug)]
pub struct PreparedPiece {
    /// Job of the frame, which is a render job.
    pub job: Arc<JobKind>,
    /// What to make.
    pub finish: Finish,
    /// What it is made from.
    pub inputs: Inputs,
}

impl PreparedPiece {
    /// Makes the piece on the threads of the caller's pool. Ends early with
    /// [`FinishError::Stopped`] if it is stopped.
    pub fn make(&self, running: &Running<'_>) -> Result<Vec<u8>, FinishError> {
        let JobKind::Render(spec) = &*self.job else {
            return Err(FinishError::Piece("its job renders no frames".into()));
        };
        make_piece(spec, &self.finish, &self.inputs, running)
    }
}
