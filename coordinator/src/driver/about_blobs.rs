//! Questions about blobs: which of them jobs name or have, and who may read one.

use super::{After, BlobQuestion, Driver};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_protocol::BlobHash;

/// How long the files that open jobs name are not counted again, at least.
const NAMED_FOR: Duration = Duration::from_millis(200);
/// The same in times that a count takes, so that counting takes at most a fiftieth of the driver's
/// time.
const NAMED_FOR_COUNTS: u32 = 50;

impl Driver {
    pub(super) fn on_blob_question(&mut self, question: BlobQuestion) {
        match question {
            BlobQuestion::Named(reply) => {
                // Wait until the end of an ended job is durable. A crash before that opens the job
                // again, and it needs its blobs.
                let named = self.core.named_blobs();
                if self.core.has_lost_files() {
                    return;
                }
                self.after_pending(After::Tell(Box::new(move || drop(reply.send(named)))));
            }
            BlobQuestion::NamedFiles(reply) => drop(reply.send(self.named_files())),
            BlobQuestion::Known { without, reply } => {
                let known = self.core.known_blobs(without.as_ref());
                if !self.core.has_lost_files() {
                    drop(reply.send(known));
                }
            }
            BlobQuestion::FrameFiles { of, reply } => {
                drop(reply.send(self.core.frame_files_of(&of)))
            }
            BlobQuestion::MayRead { hash, of, caller, reply } => {
                // A caller that is gone needs no answer.
                let _ = reply.send(self.core.may_read(hash, of, &caller));
            }
        }
    }

    /// Returns the files that open jobs name, as they were a moment ago at most: who is at the
    /// limit must not make the driver count again for every upload.
    fn named_files(&mut self) -> Arc<BTreeSet<BlobHash>> {
        let now = Instant::now();
        if let Some((_, named)) = self.named_files.as_ref().filter(|(until, _)| now < *until) {
            return named.clone();
        }
        let named = Arc::new(self.core.named_files());
        let fresh = NAMED_FOR.max(now.elapsed().saturating_mul(NAMED_FOR_COUNTS));
        self.named_files = Some((now + fresh, named.clone()));
        named
    }
}
