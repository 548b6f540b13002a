//! Tables of jobs, with ids that are as short as they can be. Asks nobody.

use crate::table::{printable, span, table};
use std::time::{SystemTime, UNIX_EPOCH};
use tessera_protocol::JobId;
use tessera_protocol::ids::SHORT_ID;
use tessera_protocol::status::JobName;

/// Returns each id's beginning: long enough to differ from the others, and [`SHORT_ID`] characters
/// at least.
pub(crate) fn shortened(jobs: &[JobId]) -> Vec<String> {
    let texts: Vec<String> = jobs.iter().map(ToString::to_string).collect();
    let mut sorted: Vec<&String> = texts.iter().collect();
    sorted.sort();
    sorted.dedup();
    let common = |one: &str, other: &str| {
        one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
    };
    let shorten = |text: &String| {
        let at = sorted.partition_point(|other| *other < text);
        let before = at.checked_sub(1).and_then(|before| sorted.get(before));
        let others = before.into_iter().chain(sorted.get(at + 1));
        let length = others.map(|other| common(text, other) + 1).max().unwrap_or(0);
        text[..length.max(SHORT_ID).min(text.len())].to_owned()
    };
    texts.iter().map(shorten).collect()
}

/// Returns jobs as a table for people.
pub(crate) fn table_of(jobs: &[JobName]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let ids: Vec<JobId> = jobs.iter().map(|job| job.job).collect();
    let rows = jobs.iter().zip(shortened(&ids)).map(|(job, id)| {
        let owner = printable(&format!("{} #{}", job.owner, job.owner_id));
        let age = span(now.saturating_sub(job.submitted_at));
        vec![id, job.state.name().to_owned(), printable(&job.name), owner, age]
    });
    table(&["JOB", "STATE", "NAME", "OWNER", "AGE"], &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(texts: &[&str]) -> Vec<JobId> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn ids_are_shortened_until_they_differ() {
        let jobs = ids(&[
            "8f14e45f-ceea-467f-a0e2-d41d8cd98f00",
            "8f14e45f-ce0a-467f-a0e2-d41d8cd98f00",
            "c4ca4238-a0b9-4382-8dcc-509a6f75849b",
            "8f14e45f-ceea-467f-a0e2-d41d8cd98f00",
        ]);
        let expected = ["8f14e45f-cee", "8f14e45f-ce0", "c4ca4238", "8f14e45f-cee"];
        assert_eq!(shortened(&jobs), expected);
        assert_eq!(shortened(&[]), [""; 0]);
    }

    #[test]
    fn new_ids_differ_in_their_short_form() {
        let jobs: Vec<JobId> = (0..100).map(|_| JobId::new()).collect();
        assert!(shortened(&jobs).iter().all(|id| id.len() == SHORT_ID), "{jobs:?}");
    }
}
