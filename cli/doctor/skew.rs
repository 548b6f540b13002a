//! Measures how far this machine's clock is from the coordinator's, over an open connection.

use super::Finding;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tessera_protocol::stream::{ClockReading, StreamKind};
use tessera_transport::error::chain;
use tessera_transport::frame::open_both;
use tessera_transport::{FrameError, Link};

/// Beyond this, times that nodes and coordinator write down do not fit together.
const APART_WANTED: Duration = Duration::from_secs(5);
/// Beyond this, a certificate may count as run out, or as not valid yet: their start is put a day
/// back, and a node's lasts a day.
const APART_MAX: Duration = Duration::from_secs(12 * 3600);

/// Asks the coordinator for its time.
pub(super) async fn look(link: &Link) -> Finding {
    match ask(link).await {
        Ok((apart, ahead, doubt)) => judge(apart, ahead, doubt),
        Err(error) => Finding::warn(
            "clock skew",
            format!("the coordinator does not tell its time: {}", chain(&error)),
            "an older coordinator cannot; run the same build everywhere",
        ),
    }
}

/// How far apart the clocks are, whether ours is ahead, and how uncertain that is.
async fn ask(link: &Link) -> Result<(Duration, bool, Duration), FrameError> {
    let asked = Instant::now();
    let (mut sender, mut receiver) = open_both(&link.connection, StreamKind::Clock).await?;
    sender.finish();
    let reading: ClockReading = receiver.expect(link.timing.answer).await?;
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // It was read somewhere in the middle of the way there and back.
    let doubt = asked.elapsed() / 2;
    let ours = ours.saturating_sub(doubt);
    let theirs = Duration::from_millis(reading.unix_millis);
    Ok((ours.abs_diff(theirs), ours > theirs, doubt))
}

fn judge(apart: Duration, ahead: bool, doubt: Duration) -> Finding {
    let direction = if ahead { "ahead of" } else { "behind" };
    let (secs, doubt_millis) = (apart.as_secs_f64(), doubt.as_secs_f64() * 1e3 + 1.0);
    let text = format!("{secs:.3} s {direction} the coordinator's, to within {doubt_millis:.0} ms");
    let hint = "keep both clocks by a time service: `timedatectl set-ntp true` here and there";
    match apart.saturating_sub(doubt) {
        apart if apart > APART_MAX => Finding::fail("clock skew", text, hint),
        apart if apart > APART_WANTED => Finding::warn("clock skew", text, hint),
        _ => Finding::ok("clock skew", text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn clock_skew_is_judged_beyond_its_uncertainty() {
        let verdict = |secs, doubt| {
            judge(Duration::from_secs(secs), true, Duration::from_secs(doubt)).verdict
        };
        use Verdict::{Fail, Ok, Warn};
        assert_eq!(
            [verdict(0, 0), verdict(6, 0), verdict(6, 2), verdict(50_000, 0)],
            [Ok, Warn, Ok, Fail]
        );
        let text = judge(Duration::from_millis(1500), false, Duration::from_millis(4)).text;
        assert_eq!(text, "1.500 s behind the coordinator's, to within 5 ms");
    }
}
