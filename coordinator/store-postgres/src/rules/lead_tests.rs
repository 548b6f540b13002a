//! Commits of a leader: answers that are lost, ends that are, and leads that are over.

use super::*;

#[derive(Debug)]
struct Group(i64);

impl Sent for Group {
    fn head(&self) -> i64 {
        self.0
    }

    fn bytes(&self) -> usize {
        100
    }
}

fn row(place: Place) -> Answer {
    Answer::Row(Row { epoch: 7, place, lasts: true, owner: "me".into() })
}

/// What is asked, in a form that can be compared.
fn asked(lead: &Lead<Group>) -> String {
    match lead.ask() {
        None => "nothing".into(),
        Some(Ask::Send(before, group)) => format!("{} after {before:?}", group.0),
        Some(Ask::Look) => "look".into(),
        Some(Ask::Settle) => "settle".into(),
    }
}

/// A leader that has made commits of ten records each.
fn leading(commits: i64) -> Lead<Group> {
    let mut lead = Lead::keeping(7, (0, 0), Recent::with_most(300));
    for commit in 1..=commits {
        lead.begin(Group(commit * 10));
        lead.answer(Answer::Taken).unwrap();
    }
    lead
}

#[test]
fn a_commit_without_an_answer_is_looked_for() {
    let mut lead = leading(2);
    lead.begin(Group(30));
    assert_eq!(asked(&lead), "30 after (20, 2)");
    lead.answer(Answer::Unknown).unwrap();
    assert_eq!(asked(&lead), "look");
    lead.answer(Answer::Unknown).unwrap();
    assert_eq!(asked(&lead), "look");
    // It has not happened: again.
    lead.answer(row((20, 2))).unwrap();
    assert_eq!(asked(&lead), "30 after (20, 2)");
    // The first one happened late.
    lead.answer(Answer::Refused).unwrap();
    lead.answer(row((30, 3))).unwrap();
    assert_eq!(asked(&lead), "settle");
    lead.answer(Answer::Unknown).unwrap();
    lead.answer(row((30, 3))).unwrap();
    lead.answer(Answer::Settled(true)).unwrap();
    assert_eq!((asked(&lead), lead.place()), ("nothing".into(), (30, 3)));
}

#[test]
fn a_lost_end_is_sent_again_before_anything_else() {
    let mut lead = leading(4);
    lead.begin(Group(50));
    lead.answer(Answer::Refused).unwrap();
    lead.answer(row((20, 2))).unwrap();
    assert_eq!((asked(&lead), lead.lost()), ("30 after (20, 2)".into(), 2));
    lead.answer(Answer::Taken).unwrap();
    assert_eq!(asked(&lead), "40 after (30, 3)");
    lead.answer(Answer::Unknown).unwrap();
    lead.answer(row((40, 4))).unwrap();
    assert_eq!(asked(&lead), "50 after (40, 4)");
    lead.answer(Answer::Taken).unwrap();
    lead.look();
    lead.answer(row((40, 4))).unwrap();
    assert_eq!(asked(&lead), "50 after (40, 4)");
    lead.answer(Answer::Taken).unwrap();
    assert_eq!((asked(&lead), lead.place()), ("nothing".into(), (50, 5)));
}

#[test]
fn a_leader_stops_where_it_leads_no_more() {
    let other = Row { epoch: 8, place: (20, 2), lasts: true, owner: "other".into() };
    let stop = Stop::OtherLeads { owner: "other".into(), epoch: 8 };
    let over = Row { epoch: 7, lasts: false, ..other.clone() };
    let lost = Row { epoch: 7, place: (10, 1), ..other.clone() };
    let foreign = Row { epoch: 7, place: (21, 2), ..other.clone() };
    let ended = |place| Stop::LostEnd { found: place, had: (60, 6) };
    for (commits, row, stop) in [
        (2, other, stop),
        (2, over, Stop::TermOver),
        // Three commits are kept.
        (6, lost, ended((10, 1))),
        (6, foreign, ended((21, 2))),
    ] {
        let mut lead = leading(commits);
        lead.begin(Group(1000));
        lead.answer(Answer::Refused).unwrap();
        assert_eq!(lead.answer(Answer::Row(row)), Err(stop));
    }
}

#[test]
fn a_commit_that_happened_counts_after_its_term() {
    let mut lead = leading(1);
    lead.begin(Group(20));
    lead.answer(Answer::Unknown).unwrap();
    let row = Row { epoch: 7, place: (20, 2), lasts: false, owner: "me".into() };
    lead.answer(Answer::Row(row)).unwrap();
    assert_eq!(asked(&lead), "settle");
}
