//! Limits the messages and bytes per second of a peer over all its connections. A faster peer is
//! read more slowly, and QUIC's flow control makes it wait. Nothing is dropped. Stores no list of
//! peers.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Most that a peer can send per second. After a pause, twice as much can come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Streams opened, and messages.
    pub messages: u32,
    /// Bytes of messages, results and blobs.
    pub bytes: u64,
}

/// Account of a peer, shared by its connections.
#[derive(Debug)]
pub struct Meter {
    messages: Bucket,
    bytes: Bucket,
}

impl Meter {
    /// Creates the account of a peer that has sent nothing yet.
    pub fn new(rates: Rates) -> Self {
        Self {
            messages: Bucket::new(f64::from(rates.messages)),
            bytes: Bucket::new(rates.bytes as f64),
        }
    }

    /// Counts one message or one stream.
    pub fn count_message(&self) {
        self.messages.spend(1.0);
    }

    /// Counts bytes.
    pub fn count_bytes(&self, bytes: usize) {
        self.bytes.spend(bytes as f64);
    }

    /// Waits until the peer can send again. Cancel-safe.
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

/// The remaining amount. It grows by `rate` per second up to twice that. It can become negative,
/// since the size of a message is known only afterwards.
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

    /// Returns the time until the amount is not negative.
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

    /// Returns the seconds from now until the peer can send.
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
