//! Time limits of connections. Owns no clock.

use std::time::Duration;

/// Time limits of a connection. The defaults are the farm's; tests use shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A connection on which nothing arrives for this long is lost. The shorter value of both sides
    /// counts.
    pub idle: Duration,
    /// Time between two signs of life on a quiet connection, a fifth of `idle`. On a line that
    /// loses every fifth datagram each way, five of them in a row fail once in thousands of times.
    pub keep_alive: Duration,
    /// Longest wait for an answer while dialling.
    pub dial: Duration,
    /// Longest wait for the first byte, the hello, the first message of a stream, and the next
    /// bytes of a blob.
    pub answer: Duration,
    /// Round trip up to which a blob is sent on one stream. For each further such time another
    /// stream is used; see [`crate::blob`].
    pub stream_round_trip: Duration,
}

impl Default for Timing {
    /// Returns idle 2.5 s, keep-alive every 0.5 s, dialling 10 s, answers within 10 s, and another
    /// stream for each 50 ms of round trip.
    fn default() -> Self {
        Self {
            idle: Duration::from_millis(2500),
            keep_alive: Duration::from_millis(500),
            dial: Duration::from_secs(10),
            answer: Duration::from_secs(10),
            stream_round_trip: Duration::from_millis(50),
        }
    }
}
