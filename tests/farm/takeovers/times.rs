//! How long after the end of a former leader's term the next one leases, by the database's clock.

use super::stand::{Leader, Stand};
use std::time::Duration;

/// A leader leases within this time, in seconds, where the machine has time for it.
const MOST_SECS: f64 = 10.0;
/// Above so much load a core, the machine is what is slow.
const LOAD_A_CORE: f64 = 4.0;

/// All times that were measured, in seconds.
#[derive(Debug, Default)]
pub(crate) struct Times {
    all: Vec<f64>,
    /// Those of moments when the machine had more to do than it can.
    loaded: usize,
    /// Takeovers whose former term's end nobody saw.
    unseen: usize,
}

/// The end of a term that is over, and what coordinators had said until then.
pub(crate) struct Ended {
    until: Option<String>,
    said: Vec<usize>,
}

impl Ended {
    /// Looks at the term of a leader that can renew it no more.
    pub(crate) fn of(stand: &Stand, leader: &Leader) -> Self {
        let sql = format!("SELECT expires_at FROM tessera.leader WHERE epoch = {}", leader.epoch);
        let until = Some(stand.postgres.sql(&sql)).filter(|until| !until.is_empty());
        let said = (0..stand.places.len()).map(|place| stand.said(place).len()).collect();
        Self { until, said }
    }
}

/// When the first unit was leased, as a log says it.
fn first_lease(said: &str) -> Option<&str> {
    let mut lines = said.lines();
    let line = lines.find(|line| line.contains("a unit has moved") && line.contains("to=Leased"));
    line?.split_whitespace().next()
}

impl Times {
    /// Waits until the next leader leases, and notes when that was.
    pub(crate) fn measure(&mut self, stand: &Stand, ended: &Ended, next: &Leader) {
        let from = ended.said[next.place];
        let mut at = None;
        for _ in 0..2400 {
            at = first_lease(&stand.said(next.place)[from..]).map(str::to_owned);
            // One that ended at once leases nothing; the next fault looks at the one after it.
            if at.is_some() || stand.leader().is_none_or(|leader| leader.epoch != next.epoch) {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let (Some(at), Some(until)) = (at, &ended.until) else {
            self.unseen += 1;
            return;
        };
        let sql = format!("SELECT extract(epoch FROM timestamptz '{at}' - timestamptz '{until}')");
        let secs: f64 = stand.postgres.sql(&sql).parse().expect("seconds");
        let load = load_a_core();
        println!("  it leases {secs:.2} s after the former term's end; load a core {load:.1}");
        self.all.push(secs);
        match load > LOAD_A_CORE {
            true => self.loaded += 1,
            false => assert!(secs <= MOST_SECS, "{secs:.2} s\n{}", stand.logs()),
        }
    }

    /// Prints the distribution.
    pub(crate) fn print(&mut self) {
        self.all.sort_by(f64::total_cmp);
        let count = self.all.len();
        let Some(max) = self.all.last() else { return };
        let at = |share: f64| self.all[((count as f64 * share).ceil() as usize).max(1) - 1];
        println!(
            "first lease after the former term's end, {count} takeovers: median {:.2} s, p99 \
             {:.2} s, max {max:.2} s; {} of them on a loaded machine, {} more not seen",
            at(0.5),
            at(0.99),
            self.loaded,
            self.unseen
        );
    }
}

/// Processes that want a core, for each core, over the last minute.
fn load_a_core() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    load / std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}
