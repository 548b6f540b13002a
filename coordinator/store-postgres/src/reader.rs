//! Reading of everything that a store has, damaged or not.

use crate::address::StoreAddress;
use crate::connection::Link;
use crate::group::{open_part, records_of};
use crate::leader::Leader;
use crate::link_error::LinkError;
use std::time::Duration;
use tessera_coordinator::store::envelope::open_value;
use tessera_coordinator::store::keys::{AUDIT_ENTRY, audit_entry_key, audit_entry_of, name_of};
use tessera_coordinator::store::{AuditEntry, Loaded, Sequence, StoreError, Survey};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// Time for one question. A row can have many MiB.
const TIME: Duration = Duration::from_secs(50);
/// Rows of the journal that are read at once.
const ROWS_AT_ONCE: i64 = 256;

const JOURNAL: &str = "SELECT first_seq, n, bytes FROM tessera.journal WHERE first_seq > $1 \
    ORDER BY first_seq LIMIT $2";
const PARTS: &str = "SELECT at, part FROM tessera.snapshot ORDER BY at, part";
const PART: &str = "SELECT seq, parts, bytes FROM tessera.snapshot WHERE at = $1 AND part = $2";
const VALUES: &str = "SELECT key, bytes FROM tessera.value WHERE key > $1 AND key < $2 \
    ORDER BY key LIMIT $3";
/// Entries of the audit log that are read at once by a check.
const ENTRIES_AT_ONCE: usize = 2000;

/// Reads every value. Whoever asks knows that nobody writes.
pub(crate) async fn survey(link: &Link) -> Result<(Leader, Survey), LinkError> {
    let leader = Leader::look(link).await?;
    let mut survey = Survey::default();
    read_snapshot(link, &mut survey).await?;
    read_journal(link, &mut survey).await?;
    read_values(link, &mut survey).await?;
    survey.settle();
    let snapshot = survey.loaded.snapshot.as_ref().map_or(0, |(sequence, _)| *sequence);
    let last = survey.loaded.records.last().map_or(snapshot, |(sequence, _)| *sequence);
    if i64::try_from(last).ok() != Some(leader.head) && survey.damaged.is_empty() {
        let problem = format!("it ends at record {last}, and its head says {}", leader.head);
        survey.lost_end = Some(problem);
    }
    Ok((leader, survey))
}

/// Returns what a survey found, if nothing in it is damaged or missing.
pub(crate) fn whole(address: &StoreAddress, survey: Survey) -> Result<Loaded, StoreError> {
    let damaged = survey.damaged.first().cloned();
    let missing = || survey.missing_names().next().map(|what| (what, "it is missing".into()));
    let end = || survey.lost_end.clone().map(|problem| ("the journal".into(), problem));
    match damaged.or_else(missing).or_else(end) {
        Some((what, problem)) => {
            Err(StoreError::DamagedElsewhere { store: address.to_string(), what, problem })
        }
        None => Ok(survey.loaded),
    }
}

async fn read_journal(link: &Link, survey: &mut Survey) -> Result<(), LinkError> {
    let mut after: i64 = 0;
    loop {
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&after, Type::INT8), (&ROWS_AT_ONCE, Type::INT8)];
        let rows = link.rows(JOURNAL, &parameters, TIME).await?;
        for row in &rows {
            after = row.get(0);
            take_group(survey, after, row);
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

/// Adds the records of a row.
fn take_group(survey: &mut Survey, first: i64, row: &Row) {
    let count: i32 = row.get(1);
    survey.values += 1;
    match records_of(first, count, row.get(2)) {
        Ok(records) => survey.loaded.records.extend(records),
        Err(problem) => {
            let last = first + i64::from(count) - 1;
            survey.damaged.push((format!("records {first} to {last} of the journal"), problem));
        }
    }
}

/// Reads the newest snapshot. A commit removes those before it.
pub(crate) async fn read_snapshot(link: &Link, survey: &mut Survey) -> Result<(), LinkError> {
    let places = link.rows(PARTS, &[], TIME).await?;
    let Some(newest) = places.iter().map(|row| row.get::<_, i64>(0)).max() else { return Ok(()) };
    let (mut bytes, mut about, mut found) = (Vec::new(), None, 0);
    for row in places.iter().filter(|row| row.get::<_, i64>(0) == newest) {
        let part: i32 = row.get(1);
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&newest, Type::INT8), (&part, Type::INT4)];
        let rows = link.rows(PART, &parameters, TIME).await?;
        let Some(row) = rows.first() else { continue };
        let (sequence, parts): (i64, i32) = (row.get(0), row.get(1));
        found += 1;
        about = Some((sequence, parts));
        match open_part(sequence, part, parts, row.get(2)) {
            Ok(opened) => bytes.extend(opened),
            Err(problem) => {
                survey.damaged.push((format!("part {part} of the snapshot"), problem));
            }
        }
    }
    survey.values += 1;
    let Some((sequence, parts)) = about else { return Ok(()) };
    if found != parts {
        survey.damaged.push(("the snapshot".into(), format!("{found} of {parts} parts are there")));
    }
    survey.loaded.snapshot = Some((Sequence::try_from(sequence).unwrap_or(0), bytes));
    Ok(())
}

/// Reads all values but the entries of the audit log, which can be a million.
pub(crate) async fn read_values(link: &Link, survey: &mut Survey) -> Result<(), LinkError> {
    read_values_between(link, survey, (&[], &[AUDIT_ENTRY])).await?;
    read_values_between(link, survey, (&[AUDIT_ENTRY + 1], &[u8::MAX])).await
}

async fn read_values_between(
    link: &Link,
    survey: &mut Survey,
    (after, end): (&[u8], &[u8]),
) -> Result<(), LinkError> {
    let mut after = after.to_vec();
    loop {
        let rows = rows_between(link, (&after, end), ROWS_AT_ONCE).await?;
        for row in &rows {
            let key: &[u8] = row.get(0);
            survey.values += 1;
            let value = open_value(key, row.get(1));
            if let Err(problem) = value.and_then(|value| survey.loaded.take(key, value)) {
                survey.damaged.push((name_of(key), problem));
            }
        }
        match rows.last() {
            Some(row) => after = row.get(0),
            None => return Ok(()),
        }
    }
}

async fn rows_between(
    link: &Link,
    (after, end): (&[u8], &[u8]),
    most: i64,
) -> Result<Vec<Row>, LinkError> {
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&after, Type::BYTEA), (&end, Type::BYTEA), (&most, Type::INT8)];
    link.rows(VALUES, &parameters, TIME).await
}

/// Reads entries of the audit log that follow an entry, in order. A damaged one is an error.
pub(crate) async fn audit_after(
    link: &Link,
    after: u64,
    most: usize,
) -> Result<Result<Vec<AuditEntry>, (String, String)>, LinkError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = rows_between(link, (&audit_entry_key(after), &[AUDIT_ENTRY + 1]), most).await?;
    Ok(rows.iter().map(opened).collect())
}

/// Opens an entry of the audit log. The error has its name and its damage.
fn opened(row: &Row) -> Result<AuditEntry, (String, String)> {
    let key: &[u8] = row.get(0);
    let number = audit_entry_of(key).ok_or_else(|| "it is no number".to_owned());
    let opened = number.and_then(|number| Ok((number, open_value(key, row.get(1))?)));
    opened.map_err(|problem| (name_of(key), problem))
}

/// Checks the audit log's chain.
pub(crate) async fn survey_audit(link: &Link, survey: &mut Survey) -> Result<(), LinkError> {
    let mut after = 0;
    loop {
        match audit_after(link, after, ENTRIES_AT_ONCE).await? {
            Ok(entries) if entries.is_empty() => return Ok(()),
            Ok(entries) => {
                for (number, bytes) in &entries {
                    survey.audit.take(*number, bytes);
                    after = *number;
                }
            }
            Err(damaged) => {
                survey.damaged.push(damaged);
                return Ok(());
            }
        }
    }
}
