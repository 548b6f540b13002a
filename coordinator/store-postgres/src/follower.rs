//! Following the leader's journal without writing anything. What was read is believed only while it
//! is shown that the journal goes on from there: within one term by its sequence, and from one term
//! to another by the newest group that was read.

use crate::address::StoreAddress;
use crate::connection::Link;
use crate::group::records_of;
use crate::leader::Leader;
use crate::link_error::LinkError;
use crate::reader::{read_snapshot, read_values, whole};
use std::sync::Arc;
use std::time::Duration;
use tessera_coordinator::store::{
    Follow, Followable, Followed, Leading, Loaded, Look, Sequence, StoreError, Survey,
};
use tokio::runtime::Runtime;
use tokio_postgres::types::Type;

/// Time for one question. A row can have many MiB.
const TIME: Duration = Duration::from_secs(50);
/// Rows of the journal that are read at once.
const ROWS_AT_ONCE: i64 = 256;
/// How often a load is tried where the leader writes a snapshot meanwhile.
const TRIES: usize = 5;

const FROM: &str = "SELECT first_seq, n, bytes, sha256(bytes) FROM tessera.journal \
    WHERE first_seq >= $1 ORDER BY first_seq LIMIT $2";
const NEWEST_SNAPSHOT: &str = "SELECT coalesce(max(at), 0)::bigint FROM tessera.snapshot";
/// Shows whether tokens, members or files have changed. Their envelopes have checksums of them.
const VALUES: &str = "SELECT count(*)::text || ':' || \
    coalesce(sum(('x' || substr(md5(key || bytes), 1, 12))::bit(48)::bigint), 0)::text \
    FROM tessera.value WHERE (key >= 't'::bytea AND key < 'u'::bytea) \
    OR (key >= 'i'::bytea AND key < 'j'::bytea) OR (key >= 'f'::bytea AND key < 'g'::bytea)";

/// A store that another coordinator leads, read by a thread of its own.
pub(crate) struct PostgresFollower {
    address: Arc<StoreAddress>,
    /// Ended in `drop`.
    runtime: Option<Runtime>,
    link: Option<Link>,
}

impl Drop for PostgresFollower {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped where nothing may block.
            runtime.shutdown_background();
        }
    }
}

impl PostgresFollower {
    /// Reads by a connection that is open.
    pub(crate) fn new(address: Arc<StoreAddress>, runtime: Runtime, link: Link) -> Self {
        Self { address, runtime: Some(runtime), link: Some(link) }
    }

    /// Reads something by the open connection, or a new one. After an error the next call makes a
    /// new one.
    fn read<T>(
        &mut self,
        read: impl AsyncFnOnce(&Link) -> Result<T, LinkError>,
    ) -> Result<T, StoreError> {
        let Some(runtime) = &self.runtime else { return Err(StoreError::Stopped) };
        let (address, open) = (self.address.clone(), self.link.take());
        let (link, read) = runtime
            .block_on(async {
                let link = match open {
                    Some(link) => link,
                    None => Link::open(&address).await?,
                };
                let read = read(&link).await?;
                Ok((link, read))
            })
            .map_err(|error: LinkError| {
                let (store, hint) = (self.address.to_string(), error.hint());
                let problem = "it cannot be read".into();
                StoreError::Service { store, problem, hint, source: Some(Box::new(error)) }
            })?;
        self.link = Some(link);
        Ok(read)
    }
}

impl Follow for PostgresFollower {
    fn load(&mut self) -> Result<(Loaded, Followed), StoreError> {
        for _ in 0..TRIES {
            let (survey, at) = self.read(async |link| load(link).await)?;
            // A leader that writes a snapshot meanwhile takes away what it replaces.
            if survey.missing.is_empty() && survey.damaged.is_empty() && survey.lost_end.is_none() {
                return Ok((survey.loaded, at));
            }
        }
        let (survey, at) = self.read(async |link| load(link).await)?;
        whole(&self.address, survey).map(|loaded| (loaded, at))
    }

    fn look(&mut self, at: &Followed) -> Result<Look, StoreError> {
        self.read(async |link| look(link, at).await)
    }
}

/// Reads everything, while another one may write.
async fn load(link: &Link) -> Result<(Survey, Followed), LinkError> {
    let leader = Leader::look(link).await?;
    let mut at = Followed {
        term: (leader.epoch, leader.key.clone()),
        commits: leader.commits,
        snapshot: newest_snapshot(link).await?,
        values: values(link).await?,
        ..Followed::default()
    };
    let mut survey = Survey::default();
    read_snapshot(link, &mut survey).await?;
    if newest_snapshot(link).await? != at.snapshot {
        survey.lost_end = Some("its snapshot was replaced meanwhile".into());
    }
    at.head = survey.loaded.snapshot.as_ref().map_or(0, |(sequence, _)| *sequence);
    let mut first = 0;
    while let Some(rows) = groups(link, first, &mut survey.damaged).await? {
        for group in rows {
            first = group.first + 1;
            at.note(&group);
            survey.loaded.records.extend(group.records);
        }
    }
    read_values(link, &mut survey).await?;
    survey.settle();
    if i64::try_from(at.head).is_ok_and(|head| head < leader.head) {
        let problem = format!("it ends at record {}, and its head says {}", at.head, leader.head);
        survey.lost_end = Some(problem);
    }
    Ok((survey, at))
}

/// A group of records as it was read.
struct Group {
    first: i64,
    hash: [u8; 32],
    records: Vec<(Sequence, Vec<u8>)>,
}

/// Notes how far the journal was read.
trait Note {
    fn note(&mut self, group: &Group);
}

impl Note for Followed {
    fn note(&mut self, group: &Group) {
        if let Some((last, _)) = group.records.last() {
            self.head = self.head.max(*last);
            self.group = Some((group.first.cast_unsigned(), group.hash));
        }
    }
}

/// Reads groups from a sequence on; None at the end. Damaged ones are named.
async fn groups(
    link: &Link,
    first: i64,
    damaged: &mut Vec<(String, String)>,
) -> Result<Option<Vec<Group>>, LinkError> {
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&first, Type::INT8), (&ROWS_AT_ONCE, Type::INT8)];
    let rows = link.rows(FROM, &parameters, TIME).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut groups = Vec::with_capacity(rows.len());
    for row in &rows {
        let (first, count): (i64, i32) = (row.get(0), row.get(1));
        let hash: &[u8] = row.get(3);
        let hash = hash.try_into().unwrap_or_default();
        let records = records_of(first, count, row.get(2)).unwrap_or_else(|problem| {
            let last = first + i64::from(count) - 1;
            damaged.push((format!("records {first} to {last} of the journal"), problem));
            Vec::new()
        });
        groups.push(Group { first, hash, records });
    }
    Ok(Some(groups))
}

async fn newest_snapshot(link: &Link) -> Result<i64, LinkError> {
    let rows = link.rows(NEWEST_SNAPSHOT, &[], TIME).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

async fn values(link: &Link) -> Result<String, LinkError> {
    let rows = link.rows(VALUES, &[], TIME).await?;
    Ok(rows.first().map_or_else(String::new, |row| row.get(0)))
}

/// Looks who leads and what is new.
async fn look(link: &Link, at: &Followed) -> Result<Look, LinkError> {
    let Leader { epoch, head, commits, owner, left, http, key, .. } = Leader::look(link).await?;
    let leader = Leading { owner, http, key: key.clone(), left };
    let mut now = Followed { term: (epoch, key), commits, ..at.clone() };
    if now.term == at.term && now.commits == at.commits {
        let journal = Followable::After(Vec::new(), now);
        return Ok(Look { leader, journal, values: None });
    }
    now.values = values(link).await?;
    let mut changed = None;
    if now.values != at.values {
        let mut survey = Survey::default();
        read_values(link, &mut survey).await?;
        changed = Some(survey.loaded);
    }
    let is_same_term = now.term == at.term;
    // A database that has lost its end is behind, or has another term of the same number.
    let goes_back = now.commits < at.commits
        || now.term.0 < at.term.0
        || (now.term.0 == at.term.0 && !is_same_term);
    let tail = match goes_back {
        true => None,
        false => tail(link, (at, &mut now), (is_same_term, head)).await?,
    };
    let journal = match tail {
        Some(records) => Followable::After(records, now),
        None => Followable::Elsewhere,
    };
    Ok(Look { leader, journal, values: changed })
}

/// Reads the records after a place, to the head at least. None if the journal does not go on from
/// there. In another term than that of the place, its newest group must be there as it was.
async fn tail(
    link: &Link,
    (at, now): (&Followed, &mut Followed),
    (is_same_term, head): (bool, i64),
) -> Result<Option<Vec<(Sequence, Vec<u8>)>>, LinkError> {
    let mut damaged = Vec::new();
    let mut records: Vec<(Sequence, Vec<u8>)> = Vec::new();
    let after = i64::try_from(at.head).unwrap_or(i64::MAX);
    let known = at.group.filter(|_| !is_same_term);
    let mut is_shown = is_same_term;
    if !is_same_term && known.is_none() {
        // All that was read is the snapshot, or nothing at all.
        is_shown = newest_snapshot(link).await? == at.snapshot;
    }
    let mut first = known.map_or(after + 1, |(first, _)| first.cast_signed());
    while let Some(groups) = groups(link, first, &mut damaged).await? {
        for group in groups {
            first = group.first + 1;
            if known == Some((group.first.cast_unsigned(), group.hash)) {
                is_shown = true;
                continue;
            }
            if !is_shown || group.first != now.head.cast_signed() + 1 || !damaged.is_empty() {
                return Ok(None);
            }
            now.note(&group);
            records.extend(group.records);
        }
    }
    let is_whole = now.head.cast_signed() >= head && damaged.is_empty() && is_shown;
    Ok(is_whole.then_some(records))
}

/// Reads what is after a place, for one who leads after this epoch, from this head and number of
/// commits on. None if the journal does not go on from there.
pub(crate) async fn load_after(
    link: &Link,
    at: &Followed,
    (before, head, commits): (i64, i64, i64),
) -> Result<Option<Survey>, LinkError> {
    // Nobody else may have led since, and nothing may be lost.
    if before != at.term.0 || commits < at.commits {
        return Ok(None);
    }
    let mut now = at.clone();
    let Some(records) = tail(link, (at, &mut now), (false, head)).await? else { return Ok(None) };
    if now.head.cast_signed() != head {
        return Ok(None);
    }
    let mut survey = Survey::default();
    survey.loaded.records = records;
    read_values(link, &mut survey).await?;
    Ok(Some(survey))
}
