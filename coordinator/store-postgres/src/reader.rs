//! Reading of everything that a store has, damaged or not.

use crate::connection::Link;
use crate::group::{open_part, records_of};
use crate::leader::Leader;
use crate::link_error::LinkError;
use std::time::Duration;
use tessera_coordinator::store::envelope::open_value;
use tessera_coordinator::store::keys::name_of;
use tessera_coordinator::store::{Sequence, Survey};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Time for one question. A row can have many MiB.
const TIME: Duration = Duration::from_secs(50);
/// Rows of the journal that are read at once.
const ROWS_AT_ONCE: i64 = 256;

const JOURNAL: &str = "SELECT first_seq, n, bytes FROM tessera.journal WHERE first_seq > $1 \
    ORDER BY first_seq LIMIT $2";
const PARTS: &str = "SELECT at, part FROM tessera.snapshot ORDER BY at, part";
const PART: &str = "SELECT seq, parts, bytes FROM tessera.snapshot WHERE at = $1 AND part = $2";
const VALUES: &str = "SELECT key, bytes FROM tessera.value WHERE key > $1 ORDER BY key LIMIT $2";

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
async fn read_snapshot(link: &Link, survey: &mut Survey) -> Result<(), LinkError> {
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

async fn read_values(link: &Link, survey: &mut Survey) -> Result<(), LinkError> {
    let mut after: Vec<u8> = Vec::new();
    loop {
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&after, Type::BYTEA), (&ROWS_AT_ONCE, Type::INT8)];
        let rows = link.rows(VALUES, &parameters, TIME).await?;
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
