//! Following a leader: what is new is read once, and what cannot be shown to go on is read anew.

use crate::support::{Farm, member, place_at, record, records, token};
use std::time::{Duration, Instant};
use tessera_coordinator::folder::DataFolder;
use tessera_coordinator::store::{Changes, Follow, Followable, Followed, Look, Sequence, Store};
use tessera_support::postgres::Postgres;

/// Somebody who follows, with a folder that could lead.
struct Standby {
    farm: Farm,
    follower: Box<dyn Follow>,
}

impl Standby {
    fn of(postgres: &Postgres) -> Self {
        let farm = Farm::new(place_at(&postgres.address(), "two"));
        let folder = DataFolder::open(farm.root.path()).unwrap();
        let follower = farm.place.follow(&folder).unwrap().expect("it stands by");
        Self { farm, follower }
    }

    /// Waits for the lead, and takes it.
    fn lead(&self) -> Box<dyn Store> {
        self.farm.open()
    }
}

/// A leader whose farm has files, so that any folder can lead it.
fn leader(postgres: &Postgres) -> (Farm, Box<dyn Store>) {
    let farm = Farm::on(postgres);
    let mut store = farm.open();
    let files = [("authority".to_owned(), vec![1])].into();
    store.commit(&Changes { files, ..records(1..=5) }).unwrap();
    (farm, store)
}

/// The records that a look found, and where it is then.
fn after(look: Look) -> (Vec<Sequence>, Followed) {
    match look.journal {
        Followable::After(records, at) => {
            assert!(records.iter().all(|(number, bytes)| *bytes == record(*number).1));
            (records.into_iter().map(|(number, _)| number).collect(), at)
        }
        Followable::Elsewhere => panic!("it does not go on"),
    }
}

fn is_elsewhere(look: &Look) -> bool {
    matches!(look.journal, Followable::Elsewhere)
}

fn with_snapshot(numbers: std::ops::RangeInclusive<u64>) -> Changes {
    Changes { snapshot: Some((*numbers.end(), vec![7; 99])), ..records(numbers) }
}

#[test]
fn a_follower_reads_what_is_new_once() {
    let Some(postgres) = Postgres::start("a_follower_reads_what_is_new_once") else { return };
    let (farm, mut leads) = leader(&postgres);
    let mut standby = Standby::of(&postgres);
    let (loaded, at) = standby.follower.load().unwrap();
    assert_eq!((loaded.records.len(), at.head), (5, 5));
    let (new, at) = after(standby.follower.look(&at).unwrap());
    assert!(new.is_empty(), "{new:?}");
    leads.commit(&records(6..=7)).unwrap();
    leads.commit(&records(8..=400)).unwrap();
    let look = standby.follower.look(&at).unwrap();
    assert!(look.values.is_none() && look.leader.left > 0.0 && look.leader.key.len() == 32);
    let (new, at) = after(look);
    assert_eq!(new, (6..=400).collect::<Vec<_>>());
    // A value of which nobody who follows knows, and some that they do.
    leads.commit(&Changes { audit_head: Some(vec![1]), ..Changes::default() }).unwrap();
    let look = standby.follower.look(&at).unwrap();
    assert!(look.values.is_none());
    let (_, at) = after(look);
    let tokens = [([1; 32], Some(token(1)))].into();
    let members = [(3, Some(member(3)))].into();
    leads.commit(&Changes { tokens, members, ..Changes::default() }).unwrap();
    let look = standby.follower.look(&at).unwrap();
    let values = look.values.as_ref().expect("they have changed");
    assert_eq!((values.tokens.len(), values.members.len(), values.files.len()), (1, 1, 1));
    let (_, at) = after(look);
    farm.place.serves_http_at("https://one.example");
    let deadline = Instant::now() + Duration::from_secs(60);
    while standby.follower.look(&at).unwrap().leader.http != "https://one.example" {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    leads.close().unwrap();
}

#[test]
fn a_snapshot_takes_nothing_from_one_who_follows() {
    let what = "a_snapshot_takes_nothing_from_one_who_follows";
    let Some(postgres) = Postgres::start(what) else { return };
    let (_farm, mut leads) = leader(&postgres);
    let mut standby = Standby::of(&postgres);
    let (_, at) = standby.follower.load().unwrap();
    leads.commit(&records(6..=9)).unwrap();
    leads.commit(&with_snapshot(10..=11)).unwrap();
    leads.commit(&records(12..=13)).unwrap();
    let (new, at) = after(standby.follower.look(&at).unwrap());
    assert_eq!(new, (6..=13).collect::<Vec<_>>());
    // The second one does, for who has not looked since before the first.
    leads.commit(&with_snapshot(14..=15)).unwrap();
    let before = Followed { head: 5, ..at.clone() };
    assert!(is_elsewhere(&standby.follower.look(&before).unwrap()));
    assert_eq!(after(standby.follower.look(&at).unwrap()).0, [14, 15]);
    let (loaded, at) = standby.follower.load().unwrap();
    assert_eq!(loaded.snapshot.map(|(sequence, _)| sequence), Some(15));
    assert!(loaded.records.is_empty() && at.head == 15);
    leads.close().unwrap();
}

#[test]
fn a_takeover_reads_the_tail_alone() {
    let Some(postgres) = Postgres::start("a_takeover_reads_the_tail_alone") else { return };
    let (_farm, mut leads) = leader(&postgres);
    let mut standby = Standby::of(&postgres);
    let (_, at) = standby.follower.load().unwrap();
    leads.commit(&records(6..=8)).unwrap();
    leads.close().unwrap();
    let mut now = standby.lead();
    let loaded = now.load_after(&at).unwrap().expect("it goes on");
    assert_eq!(loaded.records, (6..=8).map(record).collect::<Vec<_>>());
    assert_eq!((loaded.snapshot, loaded.files.len()), (None, 1));
    // Where something is in doubt, everything is read.
    let changed = Followed { group: at.group.map(|(first, _)| (first, [0; 32])), ..at.clone() };
    let doubtful = [
        changed,
        Followed { head: 4, ..at.clone() },
        Followed { commits: at.commits + 9, ..at.clone() },
        Followed { term: (at.term.0 - 1, at.term.1.clone()), ..at.clone() },
        Followed { group: None, snapshot: 3, ..at.clone() },
    ];
    for at in doubtful {
        assert!(now.load_after(&at).unwrap().is_none(), "{at:?}");
    }
    assert_eq!(now.load().unwrap().records.len(), 8);
    now.close().unwrap();
}

#[test]
fn a_database_that_lost_its_end_is_read_anew() {
    let Some(postgres) = Postgres::start("a_database_that_lost_its_end_is_read_anew") else {
        return;
    };
    let (_farm, mut leads) = leader(&postgres);
    let mut standby = Standby::of(&postgres);
    leads.commit(&records(6..=8)).unwrap();
    let (_, at) = standby.follower.load().unwrap();
    leads.close().unwrap();
    let before = "UPDATE tessera.leader SET head = 5, commits = commits - 1";
    postgres.sql(before);
    postgres.sql("DELETE FROM tessera.journal WHERE first_seq = 6");
    assert!(is_elsewhere(&standby.follower.look(&at).unwrap()));
    let (loaded, again) = standby.follower.load().unwrap();
    assert_eq!((loaded.records.len(), again.head), (5, 5));
    // The same number of commits, and another record at the same place, in another term.
    let mut other = standby.lead();
    other.commit(&Changes { records: vec![(6, vec![9])], ..Changes::default() }).unwrap();
    other.commit(&records(7..=8)).unwrap();
    assert!(is_elsewhere(&standby.follower.look(&at).unwrap()));
    other.close().unwrap();
}

#[test]
fn a_follower_outlives_its_database() {
    let Some(mut postgres) = Postgres::start("a_follower_outlives_its_database") else { return };
    let (_farm, mut leads) = leader(&postgres);
    leads.close().unwrap();
    let mut standby = Standby::of(&postgres);
    let (_, at) = standby.follower.load().unwrap();
    postgres.kill();
    assert!(standby.follower.look(&at).is_err());
    postgres.crash_and_restart();
    assert!(after(standby.follower.look(&at).unwrap()).0.is_empty());
}
