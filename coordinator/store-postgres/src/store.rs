//! The store of a leader. A commit is one statement that compares and moves (epoch, head). What is
//! asked of the database, and what its answers mean, is decided by [`rules`](crate::rules).

use crate::address::StoreAddress;
use crate::connection::{Link, Parameters};
use crate::follower;
use crate::group::Group;
use crate::leader::{Leader, Name, Term};
use crate::link_error::LinkError;
use crate::reader::{self, whole};
use crate::rules::{Answer, Ask, Lead, Place, Sent, Stop};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tessera_coordinator::store::{
    Acknowledged, AuditEntry, Changes, Followed, LeadCheck, Loaded, Store, StoreError,
};
use tokio::runtime::Runtime;
use tokio_postgres::types::Type;

/// Time for a commit, for each MiB of it on top a second, and at most.
const COMMIT_TIME: Duration = Duration::from_secs(30);
const COMMIT_TIME_MAX: Duration = Duration::from_secs(240);
/// A commit that takes longer is told.
const SLOW: Duration = Duration::from_secs(2);
/// Pause before a connection is made again.
const PAUSE: Duration = Duration::from_millis(100);

const MOVE: &str = "WITH l AS (UPDATE tessera.leader SET head = $4, commits = commits + 1 \
    WHERE id = 1 AND epoch = $1 AND head = $2 AND commits = $3 AND expires_at > now() \
    RETURNING 1)";
const RECORDS: &str = ", j AS (INSERT INTO tessera.journal (first_seq, n, epoch, bytes) \
    SELECT $5, $6, $1, $7 FROM l)";
const WRITE: &str = ", w AS (INSERT INTO tessera.value (key, bytes) \
    SELECT u.key, u.bytes FROM l, unnest($8, $9) AS u(key, bytes) \
    ON CONFLICT (key) DO UPDATE SET bytes = EXCLUDED.bytes)";
const REMOVE: &str = ", r AS (DELETE FROM tessera.value v USING l WHERE v.key = ANY($10))";
const SNAPSHOT: &str = ", s AS (INSERT INTO tessera.snapshot (at, part, parts, seq, bytes) \
    SELECT $3 + 1, u.place - 1, cardinality($12), $11, u.bytes \
    FROM l, unnest($12) WITH ORDINALITY AS u(bytes, place)), \
    o AS (DELETE FROM tessera.snapshot p USING l WHERE p.at <= $3), \
    c AS (DELETE FROM tessera.journal g USING l WHERE g.first_seq + g.n - 1 <= \
    (SELECT coalesce(max(p.seq), 0) FROM tessera.snapshot p))";

/// A store that this process leads. Its background work runs on a thread of its own.
pub(crate) struct PostgresStore {
    address: Arc<StoreAddress>,
    /// Ended in `drop`.
    runtime: Option<Runtime>,
    inner: Mutex<Inner>,
    continues: bool,
}

struct Inner {
    address: Arc<StoreAddress>,
    term: Term,
    /// The lead before this one.
    before: i64,
    lead: Lead<Group>,
    acknowledged: Acknowledged,
    link: Option<Link>,
    /// Why this process leads no more, once it does not.
    ended: Option<String>,
}

impl PostgresStore {
    /// Goes on as the leader that `leader` describes, after the lead `before`. `asked`: before the
    /// lead was taken; `continues`: nobody else led since this data folder's coordinator did;
    /// `acknowledged`: the folder's note of what the database has taken.
    pub(crate) fn lead(
        (address, name): (Arc<StoreAddress>, Arc<Name>),
        runtime: Runtime,
        link: Link,
        ((before, leader), asked, continues, acknowledged): (
            (i64, Leader),
            Duration,
            bool,
            Acknowledged,
        ),
    ) -> Self {
        let guard = runtime.enter();
        let standing = (leader.epoch, leader.commits);
        let term = Term::keep(address.clone(), standing, (asked, name));
        drop(guard);
        let lead = Lead::new(leader.epoch, leader.row().place);
        let inner = Inner {
            address: address.clone(),
            term,
            before,
            lead,
            acknowledged,
            link: Some(link),
            ended: None,
        };
        Self { address, runtime: Some(runtime), inner: Mutex::new(inner), continues }
    }

    /// Runs something on the store's own threads, and waits for it.
    fn block<T>(
        &self,
        work: impl AsyncFnOnce(&mut Inner) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.runtime {
            Some(runtime) => runtime.block_on(work(&mut inner)),
            None => Err(StoreError::Stopped),
        }
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PostgresStore({})", self.address)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped where nothing may block.
            runtime.shutdown_background();
        }
    }
}

impl Store for PostgresStore {
    fn load(&self) -> Result<Loaded, StoreError> {
        self.block(async |inner| {
            let (_, survey) = inner.read_by(async |link| reader::survey(link).await).await?;
            whole(&inner.address, survey)
        })
    }

    fn load_after(&self, at: &Followed) -> Result<Option<Loaded>, StoreError> {
        self.block(async |inner| {
            let (head, commits) = inner.lead.place();
            let lead = (inner.before, head, commits);
            let read = async |link: &Link| follower::load_after(link, at, lead).await;
            match inner.read_by(read).await? {
                Some(survey) => whole(&inner.address, survey).map(Some),
                None => Ok(None),
            }
        })
    }

    fn continues(&self) -> bool {
        self.continues
    }

    fn audit_after(&self, after: u64, most: usize) -> Result<Option<Vec<AuditEntry>>, StoreError> {
        self.block(async |inner| {
            let read = inner.read_by(async |link| reader::audit_after(link, after, most).await);
            read.await?.map(Some).map_err(|damaged| inner.damaged(damaged))
        })
    }

    fn tidy(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        self.block(async |inner| inner.commit(changes).await)
    }

    fn leading(&self) -> Option<LeadCheck> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (checked, address) = (inner.term.checked(), inner.address.clone());
        let check = move || checked().map_err(|why| not_leader(&address, why.to_string()));
        Some(LeadCheck::new(check))
    }

    fn check(&self) -> Result<(), StoreError> {
        self.block(async |inner| {
            inner.check()?;
            match inner.term.is_behind() {
                true => inner.catch_up().await,
                false => Ok(()),
            }
        })
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.block(async |inner| {
            inner.check()?;
            if let Err(error) = inner.give_back().await {
                tracing::warn!(%error, "the lead was not given back; the next one waits for it");
            }
            inner.ended = Some("it has stopped".into());
            Ok(())
        })
    }
}

fn not_leader(address: &StoreAddress, why: String) -> StoreError {
    StoreError::NotLeader { store: address.to_string(), why }
}

impl Inner {
    fn check(&mut self) -> Result<(), StoreError> {
        if self.ended.is_none() {
            self.ended = self.term.check().err().map(|why| why.to_string());
        }
        match &self.ended {
            Some(why) => Err(self.not_leader(why)),
            None => Ok(()),
        }
    }

    fn not_leader(&self, why: &str) -> StoreError {
        not_leader(&self.address, why.to_owned())
    }

    fn failed(&self, problem: &str, error: LinkError) -> StoreError {
        let (store, hint) = (self.address.to_string(), error.hint());
        StoreError::Service { store, problem: problem.into(), hint, source: Some(Box::new(error)) }
    }

    fn damaged(&self, (what, problem): (String, String)) -> StoreError {
        StoreError::DamagedElsewhere { store: self.address.to_string(), what, problem }
    }

    /// Reads something. Tries again while the term lasts.
    async fn read_by<T>(
        &mut self,
        read: impl AsyncFn(&Link) -> Result<T, LinkError>,
    ) -> Result<T, StoreError> {
        loop {
            self.check()?;
            let link = match self.take_link().await {
                Ok(link) => link,
                Err(error) => return Err(error),
            };
            match read(&link).await {
                Ok(read) => {
                    self.link = Some(link);
                    return Ok(read);
                }
                Err(LinkError::Unknown(why)) => {
                    tracing::warn!(why, "the store cannot be read; trying again");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(self.failed("it cannot be read", error)),
            }
        }
    }

    /// Takes the open connection, or makes one. Tries while the term lasts.
    async fn take_link(&mut self) -> Result<Link, StoreError> {
        if let Some(link) = self.link.take() {
            return Ok(link);
        }
        loop {
            let opened = tokio::select! {
                opened = Link::open(&self.address) => opened,
                why = self.term.ended() => {
                    self.end(&why)?;
                    continue;
                }
            };
            match opened {
                Ok(link) => return Ok(link),
                Err(LinkError::Unknown(why)) => {
                    tracing::warn!(why, "the database cannot be reached; trying again");
                    tokio::time::sleep(PAUSE).await;
                    self.check()?;
                }
                Err(error) => return Err(self.failed("no connection can be made", error)),
            }
        }
    }

    async fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        self.check()?;
        let group =
            Group::of(changes, self.lead.place().0).map_err(|problem| StoreError::Service {
                store: self.address.to_string(),
                problem,
                hint: None,
                source: None,
            })?;
        let (began, bytes) = (Instant::now(), group.bytes());
        self.lead.begin(group);
        self.ask_all().await?;
        let took = began.elapsed();
        self.term.has_committed(self.lead.place().1);
        self.acknowledged.note(self.lead.place().1);
        if took >= SLOW {
            let secs = took.as_secs_f64();
            tracing::warn!(secs, bytes, "the database was slow to take a commit");
        }
        Ok(())
    }

    /// Ends this process's lead.
    fn end(&mut self, why: &Stop) -> Result<(), StoreError> {
        self.ended = Some(why.to_string());
        self.check()
    }

    /// Brings a database up to the newest commit again that a renewal of the term found behind.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        self.lead.look();
        self.ask_all().await
    }

    /// Asks the database what the rules want to know, until they know it.
    async fn ask_all(&mut self) -> Result<(), StoreError> {
        let mut told = false;
        while let Some(ask) = self.lead.ask() {
            self.check()?;
            let lost = self.lead.lost();
            if lost > 0 && !told {
                tracing::error!(
                    commits = lost,
                    "the database has lost its end, as after a takeover by an asynchronous \
                     standby: it gets those commits again"
                );
                told = true;
            }
            let answer = self.ask(&ask).await?;
            if let Err(why) = self.lead.answer(answer) {
                self.end(&why)?;
            }
        }
        if told {
            tracing::info!("the database has all commits again");
        }
        Ok(())
    }

    /// Asks the database one thing.
    async fn ask(&mut self, ask: &Ask<Group>) -> Result<Answer, StoreError> {
        let link = self.take_link().await?;
        let epoch = self.lead.epoch();
        let asked = async {
            Ok(match ask {
                Ask::Send(place, group) => match send(&link, group, epoch, *place).await? {
                    true => Answer::Taken,
                    false => Answer::Refused,
                },
                Ask::Look => Answer::Row(Leader::look(&link).await?.row()),
                Ask::Settle => Answer::Settled(Leader::settle(&link, epoch).await?),
            })
        };
        let answered = tokio::select! {
            answered = asked => answered,
            why = self.term.ended() => {
                self.end(&why)?;
                return Ok(Answer::Unknown);
            }
        };
        match (answered, ask) {
            (Ok(answer), _) => {
                self.link = Some(link);
                Ok(answer)
            }
            (Err(LinkError::Unknown(why)), _) => {
                match ask {
                    Ask::Send(..) => tracing::warn!(
                        why,
                        "a commit had no answer; reading back whether it happened"
                    ),
                    _ => tracing::warn!(why, "the store cannot be read; trying again"),
                }
                drop(link);
                tokio::time::sleep(PAUSE).await;
                Ok(Answer::Unknown)
            }
            (Err(error), Ask::Send(..)) => Err(self.failed("a commit was refused", error)),
            (Err(error), _) => Err(self.failed("it cannot be read", error)),
        }
    }

    async fn give_back(&mut self) -> Result<(), LinkError> {
        match self.link.take() {
            Some(link) => self.term.give_back(&link).await,
            None => self.term.give_back(&Link::open(&self.address).await?).await,
        }
    }
}

/// Sends a commit. Returns whether it was taken.
async fn send(
    link: &Link,
    group: &Group,
    epoch: i64,
    (head, commits): Place,
) -> Result<bool, LinkError> {
    let mut statement = MOVE.to_owned();
    for (part, wanted) in [
        (RECORDS, group.count > 0),
        (WRITE, !group.keys.is_empty()),
        (REMOVE, !group.removed.is_empty()),
        (SNAPSHOT, !group.parts.is_empty()),
    ] {
        if wanted {
            statement += part;
        }
    }
    statement += " SELECT 1 FROM l";
    let parameters: &Parameters<'_> = &[
        (&epoch, Type::INT8),
        (&head, Type::INT8),
        (&commits, Type::INT8),
        (&group.head, Type::INT8),
        (&group.first, Type::INT8),
        (&group.count, Type::INT4),
        (&group.records, Type::BYTEA),
        (&group.keys, Type::BYTEA_ARRAY),
        (&group.values, Type::BYTEA_ARRAY),
        (&group.removed, Type::BYTEA_ARRAY),
        (&group.snapshot_at, Type::INT8),
        (&group.parts, Type::BYTEA_ARRAY),
    ];
    let mib = u32::try_from(group.bytes() >> 20).unwrap_or(u32::MAX);
    let time = COMMIT_TIME.saturating_add(Duration::from_secs(1).saturating_mul(mib));
    let time = time.min(COMMIT_TIME_MAX);
    Ok(!link.rows(&statement, parameters, time).await?.is_empty())
}
