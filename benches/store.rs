//! Durable commits: how long a group of records takes until it is on the disk, in sled, in a
//! PostgreSQL of this machine, and in one with a synchronous standby beside it, in turn.
//!
//!     cargo bench --bench store [-- SECONDS]
#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]

use std::time::{Duration, Instant};
use tessera_coordinator::folder::DataFolder;
use tessera_coordinator::store::{Changes, Purpose, SledPlace, Store, StorePlace};
use tessera_store_postgres::{PostgresPlace, StoreAddress};
use tessera_support::postgres::Postgres;

/// Sizes of the groups, in records.
const GROUPS: [u64; 3] = [1, 64, 1024];
/// Rounds in which the stores take turns.
const ROUNDS: u32 = 3;
/// Bytes of a record. A unit's commit has about as many.
const RECORD_BYTES: usize = 110;

/// A store with what was measured of it.
struct Candidate {
    name: &'static str,
    store: Box<dyn Store>,
    next: u64,
    /// Times of the commits in the present size, in microseconds.
    times: Vec<u64>,
    busy: Duration,
}

impl Candidate {
    fn new(name: &'static str, place: &dyn StorePlace, folder: &DataFolder) -> Self {
        let store = place.open(folder, Purpose::Run).expect("the store opens");
        Self { name, store, next: 1, times: Vec::new(), busy: Duration::ZERO }
    }

    fn commit(&mut self, count: u64) {
        let record = |sequence: u64| (sequence, sequence.to_le_bytes().repeat(RECORD_BYTES / 8));
        let records = (self.next..self.next + count).map(record).collect();
        let changes = Changes { records, ..Changes::default() };
        let begun = Instant::now();
        self.store.commit(&changes).expect("a commit");
        let took = begun.elapsed();
        self.next += count;
        self.busy += took;
        self.times.push(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Prints what was measured, and forgets it. Old records go as after a snapshot.
    fn report(&mut self, count: u64) {
        self.times.sort_unstable();
        let at = |share: usize| self.times[(self.times.len() - 1) * share / 100] as f64 / 1e3;
        let rate = self.times.len() as f64 / self.busy.as_secs_f64();
        println!(
            "{:11} groups of {count:5}: {rate:8.0} commits/s, {:9.0} records/s, p50 {:6.2} ms, p99 \
             {:6.2} ms",
            self.name,
            rate * count as f64,
            at(50),
            at(99),
        );
        (self.times, self.busy) = (Vec::new(), Duration::ZERO);
        let snapshot = Some((self.next - 1, vec![0; 1000]));
        self.store.commit(&Changes { snapshot, ..Changes::default() }).expect("a snapshot");
    }
}

fn main() {
    let secs = std::env::args().skip(1).find_map(|argument| argument.parse::<f64>().ok());
    let turn = Duration::from_secs_f64(secs.unwrap_or(6.0) / f64::from(ROUNDS));
    let roots = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let folders = [0, 1, 2].map(|index| DataFolder::open(roots[index].path()).expect("a folder"));
    let mut candidates = vec![Candidate::new("sled", &SledPlace, &folders[0])];
    let what = "the part of the bench that is on PostgreSQL";
    let databases = [Postgres::start(what), Postgres::start(what)];
    let standby = databases[1].as_ref().map(|primary| {
        let standby = primary.standby(primary.port());
        primary.wait_for_standbys();
        standby
    });
    for (index, database) in databases.iter().enumerate() {
        let Some(database) = database else { continue };
        let address = format!("{}?term=600", database.address());
        let address = StoreAddress::parse(&address).expect("an address");
        let place = PostgresPlace::new(address, "the bench".into(), false);
        let name = ["PostgreSQL", "and standby"][index];
        candidates.push(Candidate::new(name, &place, &folders[index + 1]));
    }
    for count in GROUPS {
        for _ in 0..ROUNDS {
            for candidate in &mut candidates {
                let until = Instant::now() + turn;
                while Instant::now() < until {
                    candidate.commit(count);
                }
            }
        }
        candidates.iter_mut().for_each(|candidate| candidate.report(count));
    }
    // It follows the primary until the end.
    drop(standby);
}
