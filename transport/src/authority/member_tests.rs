//! Tests of members: each rule, and seeds of kills, lost answers, thieves and replaced machines.

use super::*;
use tessera_protocol::limits::REASON_MAX;

const SETTLE: u64 = 2;

fn ada() -> MemberRecord {
    let peer = PeerIdentity::new(Role::Artist, "ada", None).unwrap();
    let mut ada = MemberRecord::new(7, &peer, 100);
    assert_eq!(ada.give(1000), 1);
    ada
}

fn show(member: &mut MemberRecord, serial: u64, at: u64) -> Shown {
    member.show(serial, (at, SETTLE), "10.0.0.1:4000")
}

#[test]
fn a_newer_certificate_replaces_the_older_when_shown() {
    let mut ada = ada();
    assert_eq!(show(&mut ada, 1, 100), Shown::First);
    assert_eq!(ada.give(2000), 2);
    // The answer with it was lost: the old one counts, and may be renewed again.
    assert_eq!(show(&mut ada, 1, 200), Shown::Counts);
    assert_eq!(ada.renewal_refusal(1), None);
    assert_eq!(ada.give(3000), 3);
    assert_eq!(show(&mut ada, 3, 300), Shown::First);
    // A command that has read the old one a moment ago is no thief; it just renews nothing.
    assert_eq!(show(&mut ada, 1, 301), Shown::Counts);
    assert!(ada.renewal_refusal(1).unwrap().contains("in use already"));
    assert_eq!(show(&mut ada, 1, 302), Shown::Conflict);
}

#[test]
fn an_older_certificate_ends_both_until_decided() {
    for (keep, counts, out) in [(Keep::Newer, 2, 1), (Keep::Older, 1, 2)] {
        let mut ada = ada();
        show(&mut ada, 1, 100);
        ada.give(2000);
        show(&mut ada, 2, 200);
        assert_eq!(show(&mut ada, 1, 300), Shown::Conflict);
        for serial in [1, 2] {
            let refused = show(&mut ada, serial, 301);
            let Shown::Refused(text) = refused else { panic!("{refused:?}") };
            assert!(text.contains("two copies") && text.contains("members keep ada"), "{text}");
            assert!(text.len() <= REASON_MAX, "{}", text.len());
            assert_eq!(ada.renewal_refusal(serial), ada.refusal(serial));
        }
        assert!(ada.keep(keep) && !ada.keep(keep));
        assert_eq!(show(&mut ada, counts, 400), Shown::Counts);
        assert!(matches!(show(&mut ada, out, 401), Shown::Refused(_)));
        assert_eq!(ada.conflict, None, "what was decided is no new alarm");
        // The kept one renews, and its successor counts.
        assert_eq!(ada.renewal_refusal(counts), None);
        let next = ada.give(3000);
        assert_eq!(show(&mut ada, next, 500), Shown::First);
        assert_eq!(show(&mut ada, next, 501), Shown::Counts);
    }
}

#[test]
fn a_replaced_or_removed_holder_no_longer_counts() {
    let mut ada = ada();
    show(&mut ada, 1, 100);
    let peer = PeerIdentity::new(Role::Operator, "ada", None).unwrap();
    ada.replace(&peer, 200);
    assert_eq!((ada.give(2000), ada.role, ada.number), (2, Role::Operator, 7));
    assert!(matches!(show(&mut ada, 1, 200), Shown::Refused(text) if text.contains("--replace")));
    assert_eq!(show(&mut ada, 2, 200), Shown::First);
    ada.removed_at = Some(300);
    assert!(matches!(show(&mut ada, 2, 300), Shown::Refused(text) if text.contains("taken away")));
}

#[test]
fn reserved_names_are_reserved_in_every_spelling() {
    assert!(is_reserved("admin") && is_reserved("Admin") && is_reserved("ALL"));
    assert!(!is_reserved("ada") && !is_reserved("root"));
}

/// Random numbers of a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// One copy of an identity: the certificate on its disk, and that of its live connection.
#[derive(Clone, Copy, Debug)]
struct Holder {
    disk: u64,
    live: Option<u64>,
}

/// A coordinator that loses what it has not synced when it is killed, and one member with copies.
struct Farm {
    member: MemberRecord,
    /// What the store has.
    durable: MemberRecord,
    now: u64,
    random: Random,
}

impl Farm {
    fn new(seed: u64) -> Self {
        let mut member = ada();
        show(&mut member, 1, 100);
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Self { durable: member.clone(), member, now: 1000, random }
    }

    fn give(&mut self) -> u64 {
        let serial = self.member.give(self.now + 40);
        // A certificate leaves the coordinator only when its record is durable.
        self.durable = self.member.clone();
        serial
    }

    /// A copy dials, renews over its connection, or both; answers get lost.
    fn act(&mut self, holder: &mut Holder) -> Shown {
        self.now += self.random.below(8);
        let mut shown = Shown::Counts;
        let live = holder.live.filter(|serial| self.member.refusal(*serial).is_none());
        if live.is_none() || self.random.below(3) == 0 {
            shown = show(&mut self.member, holder.disk, self.now);
            holder.live = Some(holder.disk);
            if matches!(shown, Shown::Conflict | Shown::Refused(_)) {
                holder.live = None;
                return shown;
            }
        }
        if let Some(serial) = holder.live
            && self.random.below(2) == 0
            && self.member.renewal_refusal(serial).is_none()
        {
            let next = self.give();
            holder.live = Some(next);
            if self.random.below(4) != 0 {
                holder.disk = next;
            }
        }
        shown
    }

    /// The coordinator is killed now and then.
    fn kill_maybe(&mut self, holders: &mut [Holder]) {
        if self.random.below(20) == 0 {
            self.member = self.durable.clone();
            holders.iter_mut().for_each(|holder| holder.live = None);
        }
    }
}

/// How many seeds a test looks at: more at night.
fn seeds() -> u64 {
    std::env::var("TESSERA_MEMBER_SEEDS").map_or(300, |text| text.parse().expect("a number"))
}

#[test]
fn no_honest_member_is_shut_out_by_kills_and_lost_answers() {
    for seed in 1..=seeds() {
        let mut farm = Farm::new(seed);
        let mut honest = Holder { disk: 1, live: None };
        for step in 0..300 {
            let read = honest.disk;
            let shown = farm.act(&mut honest);
            assert!(matches!(shown, Shown::Counts | Shown::First), "{seed} {step}: {shown:?}");
            // Another command has read the identity before this one renewed it.
            let at = farm.now;
            let shown = show(&mut farm.member, honest.disk, at);
            assert!(matches!(shown, Shown::Counts | Shown::First), "{seed} {step}: {shown:?}");
            let late = show(&mut farm.member, read, at + SETTLE - 1);
            if farm.member.used_at == at {
                assert_eq!(late, Shown::Counts, "{seed} {step}");
            } else if read == honest.disk {
                assert!(matches!(late, Shown::Counts | Shown::First), "{seed} {step}: {late:?}");
            } else {
                // It was renewed in an earlier step; this would be a thief.
                farm.member.conflict = None;
            }
            farm.kill_maybe(std::slice::from_mut(&mut honest));
        }
    }
}

#[test]
fn every_thief_is_told_and_out_after_a_decision() {
    let mut conflicts_most = 0;
    for seed in 1..=seeds() {
        let mut farm = Farm::new(seed);
        let mut both = [Holder { disk: 1, live: None }; 2];
        let (mut conflicts, mut thief_told, mut quiet) = (0, false, 0);
        for step in 0..2000 {
            let theirs = farm.random.below(2) as usize;
            let shown = farm.act(&mut both[theirs]);
            match shown {
                Shown::Conflict => {
                    (conflicts, thief_told, quiet) = (conflicts + 1, true, 0);
                    let older = farm.member.conflict.as_ref().unwrap().older;
                    // The operator asks the honest member which certificate is on the disk.
                    let keep = if both[0].disk == older { Keep::Older } else { Keep::Newer };
                    assert!(farm.member.keep(keep));
                    farm.durable = farm.member.clone();
                    let honest = show(&mut farm.member, both[0].disk, farm.now);
                    assert!(
                        matches!(honest, Shown::Counts | Shown::First),
                        "{seed} {step}: {honest:?}"
                    );
                }
                Shown::Refused(_) => {
                    assert_eq!(theirs, 1, "{seed} {step}: the honest one is out: {shown:?}");
                    quiet += 1;
                }
                Shown::Counts | Shown::First => {}
            }
            farm.kill_maybe(&mut both);
        }
        assert!(thief_told, "{seed}: nobody noticed a copy in 2000 steps");
        assert!(quiet > 50, "{seed}: the thief is still in");
        conflicts_most = conflicts_most.max(conflicts);
    }
    assert!(conflicts_most <= 4, "{conflicts_most} alarms for one thief");
}

#[test]
fn a_replaced_copy_is_refused_and_raises_no_alarm() {
    for seed in 1..=seeds() {
        let mut farm = Farm::new(seed);
        let mut honest = Holder { disk: 1, live: None };
        let mut left_behind = Vec::new();
        for step in 0..300 {
            if farm.random.below(15) == 0 {
                // The machine was made anew; its old disk is somewhere.
                left_behind.push(Holder { live: None, ..honest });
                let peer = PeerIdentity::new(Role::Artist, "ada", None).unwrap();
                farm.member.replace(&peer, farm.now);
                honest = Holder { disk: farm.give(), live: None };
            }
            let shown = farm.act(&mut honest);
            assert!(matches!(shown, Shown::Counts | Shown::First), "{seed} {step}: {shown:?}");
            for copy in &mut left_behind {
                let shown = farm.act(copy);
                assert!(matches!(shown, Shown::Refused(_)), "{seed} {step}: {shown:?}");
            }
            farm.kill_maybe(std::slice::from_mut(&mut honest));
        }
    }
}
