//! Congestion control: quinn's Cubic with a lower bound for its window. Owns no timer and no figure
//! of the path.
//!
//! Cubic takes every lost datagram for a full queue. On a line that always loses a fifth of them,
//! its window falls to two datagrams and stays there. That gives 6 KB per second at 400 ms, and a
//! tile takes longer to send than to render. With a lower bound of 48 KiB the same line carries 100
//! KB per second. The bound is three initial windows of TCP (RFC 6928) for each connection, which
//! fills no queue that matters.

use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use quinn_proto::RttEstimator;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

/// Bytes that may always be in flight.
const FLOOR_BYTES: u64 = 48 << 10;

/// Creates the controllers.
#[derive(Debug)]
pub(crate) struct FlooredCubic;

impl ControllerFactory for FlooredCubic {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Floored(Arc::new(CubicConfig::default()).build(now, current_mtu)))
    }
}

/// A controller whose window has the lower bound.
struct Floored(Box<dyn Controller>);

impl Controller for Floored {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.0.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.0.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        self.0.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        lost_bytes: u64,
    ) {
        self.0.on_congestion_event(now, sent, persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.0.window().max(FLOOR_BYTES)
    }

    fn metrics(&self) -> ControllerMetrics {
        self.0.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self(self.0.clone_box()))
    }

    fn initial_window(&self) -> u64 {
        self.0.initial_window().max(FLOOR_BYTES)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn endless_losses_leave_the_window_at_its_floor() {
        let start = Instant::now();
        let mut controller = Arc::new(FlooredCubic).build(start, 1200);
        for second in 1..40 {
            let now = start + Duration::from_secs(second);
            controller.on_congestion_event(now, now, second % 5 == 0, 1200);
        }
        assert_eq!(controller.window(), FLOOR_BYTES);
        assert_eq!(controller.clone_box().window(), FLOOR_BYTES);
    }
}
