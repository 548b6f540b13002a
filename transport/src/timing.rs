//! How long a peer may be silent. Owns no clock.

use std::time::Duration;

/// Limits of time of a connection. The defaults are the farm's; tests take shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A connection on which nothing arrives for so long is lost. Also how long dialling waits for an answer.
    pub idle: Duration,
    /// A quiet connection says that it lives so often; well below a third of `idle`, so that two losses in a row do no harm.
    pub keep_alive: Duration,
    /// The first byte, the hello, the first message of a stream, and the next bytes of a blob must come within this.
    pub answer: Duration,
}

impl Default for Timing {
    /// Idle 10 s, keep-alive every 3 s, answers within 10 s.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(10),
            keep_alive: Duration::from_secs(3),
            answer: Duration::from_secs(10),
        }
    }
}
