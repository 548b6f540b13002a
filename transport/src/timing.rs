//! Time limits of connections. Owns no clock.

use std::time::Duration;

/// Limits of time of a connection. The defaults are the farm's; tests take shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A connection on which nothing arrives for so long is lost; the shorter one of both ends
    /// counts.
    pub idle: Duration,
    /// A quiet connection says that it lives so often. A fifth of `idle`: a line that loses every
    /// fifth datagram each way fails five such questions in a row, and the answers, once in
    /// thousands of times.
    pub keep_alive: Duration,
    /// Dialling waits for an answer this long.
    pub dial: Duration,
    /// The first byte, the hello, the first message of a stream, and the next bytes of a blob must
    /// come within this.
    pub answer: Duration,
}

impl Default for Timing {
    /// Idle 2.5 s, keep-alive every 0.5 s, dialling 10 s, answers within 10 s.
    fn default() -> Self {
        Self {
            idle: Duration::from_millis(2500),
            keep_alive: Duration::from_millis(500),
            dial: Duration::from_secs(10),
            answer: Duration::from_secs(10),
        }
    }
}
