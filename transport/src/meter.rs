//! Limits the messages and bytes per second of a peer over all its connections. A faster peer is
//! read more slowly, and QUIC's flow control makes it wait; nothing is dropped. Keeps no list of
//! peers.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What a peer may send in a second; twice as much may come at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Streams opened and messages.
    pub messages: u32,
    /// Bytes of messages, results and blobs.
    pub bytes: u64,
}

/// A peer's account. Shared by its connections.
#[derive(Debug)]
pub struct Meter {
    messages: Bucket,
    bytes: Bucket,
}

impl Meter {
    /// A peer that has sent nothing yet.
    pub fn new(rates: Rates) -> Self {
        Self {
            messages: Bucket::new(f64::from(rates.messages)),
            bytes: Bucket::new(rates.bytes as f64),
        }
    }

    /// One more message, or stream.
    pub fn count_message(&self) {
        self.messages.spend(1.0);
    }

    /// More bytes.
    pub fn count_bytes(&self, bytes: usize) {
        self.bytes.spend(bytes as f64);
    }

    /// Waits until the peer may send again. May be dropped and called again.
    pub async fn wait(&self) {
        loop {
            let debt = self.messages.debt().max(self.bytes.debt());
            if debt.is_zero() {
                return;
            }
            tokio::time::sleep(debt).await;
        }
    }
}

/// What may be spent: grows by `rate` a second up to twice that. May be overdrawn, since what came
/// is known only afterwards.
#[derive(Debug)]
struct Bucket {
    rate: f64,
    state: Mutex<(f64, Instant)>,
}

impl Bucket {
    fn new(rate: f64) -> Self {
        let rate = rate.max(1.0);
        Self { rate, state: Mutex::new((2.0 * rate, Instant::now())) }
    }

    fn spend(&self, amount: f64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.fill(&mut state);
        state.0 -= amount;
    }

    /// Time until nothing is owed.
    fn debt(&self) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.fill(&mut state);
        Duration::try_from_secs_f64((-state.0 / self.rate).max(0.0)).unwrap_or_default()
    }

    fn fill(&self, state: &mut (f64, Instant)) {
        let now = Instant::now();
        let gained = now.duration_since(state.1).as_secs_f64() * self.rate;
        *state = ((state.0 + gained).min(2.0 * self.rate), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds from now until the peer may send.
    fn owed(meter: &Meter) -> f64 {
        meter.messages.debt().max(meter.bytes.debt()).as_secs_f64()
    }

    #[test]
    fn a_burst_passes_and_further_traffic_is_delayed() {
        let meter = Meter::new(Rates { messages: 100, bytes: 1000 });
        (0..199).for_each(|_| meter.count_message());
        assert_eq!(owed(&meter), 0.0);
        (0..101).for_each(|_| meter.count_message());
        assert!((0.5..=1.0).contains(&owed(&meter)), "{}", owed(&meter));
        meter.count_bytes(7000);
        assert!((4.0..=5.0).contains(&owed(&meter)), "{}", owed(&meter));
    }

    #[tokio::test]
    async fn a_delayed_peer_has_no_debt_afterwards() {
        let meter = Meter::new(Rates { messages: 1, bytes: 1 << 20 });
        meter.count_bytes((2 << 20) + (1 << 16));
        let begun = Instant::now();
        meter.wait().await;
        assert!(begun.elapsed() >= Duration::from_millis(30));
        assert_eq!(owed(&meter), 0.0);
    }
}
