//! The store of a leader. A commit is one statement that compares and moves (epoch, head). If its
//! answer is lost, the leader's row is read to learn what happened.

use crate::address::StoreAddress;
use crate::connection::{Link, Parameters};
use crate::follower;
use crate::group::Group;
use crate::leader::{Leader, Name, Term};
use crate::link_error::LinkError;
use crate::reader::{self, whole};
use crate::recent::{Place, Recent};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tessera_coordinator::store::{AuditEntry, Changes, Followed, Loaded, Store, StoreError};
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
    head: i64,
    commits: i64,
    /// What the database has taken last from this process.
    recent: Recent,
    link: Option<Link>,
    /// Why this process leads no more, once it does not.
    ended: Option<String>,
}

impl PostgresStore {
    /// Goes on as the leader that `leader` describes. `asked`: before the lead was taken;
    /// `continues`: nobody else led since this data folder's coordinator did.
    pub(crate) fn lead(
        (address, name): (Arc<StoreAddress>, Arc<Name>),
        runtime: Runtime,
        link: Link,
        (leader, asked, continues): (Leader, Instant, bool),
    ) -> Self {
        let guard = runtime.enter();
        let standing = (leader.epoch, leader.commits);
        let term = Term::keep(address.clone(), standing, (asked, name));
        drop(guard);
        let Leader { head, commits, .. } = leader;
        let inner = Inner {
            address: address.clone(),
            term,
            head,
            commits,
            recent: Recent::default(),
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
        let mut inner = match self.inner.lock() {
            Ok(inner) => inner,
            Err(poisoned) => poisoned.into_inner(),
        };
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
            let place = (inner.term.epoch, inner.head, inner.commits);
            let read = async |link: &Link| follower::load_after(link, at, place).await;
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

/// What a commit's statement did.
enum Outcome {
    Done,
    /// Nothing. It can be sent again.
    Nothing,
    /// Nothing, because the database is where it was before earlier commits.
    Behind(Place),
    /// Nothing, and this process is not the leader; why.
    NotLeader(String),
}

impl Inner {
    fn check(&mut self) -> Result<(), StoreError> {
        if self.ended.is_none() {
            self.ended = self.term.check().err();
        }
        match &self.ended {
            Some(why) => Err(self.not_leader(why)),
            None => Ok(()),
        }
    }

    fn not_leader(&self, why: &str) -> StoreError {
        StoreError::NotLeader { store: self.address.to_string(), why: why.to_owned() }
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
                    self.ended = Some(why);
                    self.check()?;
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
        let group = Group::of(changes, self.head).map_err(|problem| StoreError::Service {
            store: self.address.to_string(),
            problem,
            hint: None,
            source: None,
        })?;
        let began = Instant::now();
        loop {
            match self.try_commit(&group).await? {
                Outcome::Done => break,
                Outcome::Nothing => self.check()?,
                Outcome::Behind(place) => self.send_again(place).await?,
                Outcome::NotLeader(why) => self.end(why)?,
            }
        }
        let (took, bytes) = (began.elapsed(), group.bytes());
        let before = (self.head, self.commits);
        (self.head, self.commits) = (group.head, self.commits + 1);
        self.recent.keep(before, group);
        self.term.has_committed(self.commits);
        if took >= SLOW {
            let secs = took.as_secs_f64();
            tracing::warn!(secs, bytes, "the database was slow to take a commit");
        }
        Ok(())
    }

    /// Ends this process's lead.
    fn end(&mut self, why: String) -> Result<(), StoreError> {
        self.ended = Some(why);
        self.check()
    }

    /// Brings a database up to the newest commit again that a renewal of the term found behind.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        let link = self.take_link().await?;
        match Leader::look(&link).await {
            Ok(leader) => {
                self.link = Some(link);
                match self.standing(&leader) {
                    Outcome::Behind(place) => self.send_again(place).await,
                    Outcome::NotLeader(why) => self.end(why),
                    Outcome::Nothing | Outcome::Done => Ok(()),
                }
            }
            // The next look, in a second, learns more.
            Err(LinkError::Unknown(_)) => Ok(()),
            Err(error) => Err(self.failed("it cannot be read", error)),
        }
    }

    /// Sends the commits again that a database at this place has lost. Where that fails, the caller
    /// looks where the database stands now.
    async fn send_again(&mut self, place: Place) -> Result<(), StoreError> {
        self.check()?;
        let lost = self.recent.since(place).unwrap_or_default();
        tracing::error!(
            commits = lost.len(),
            "the database has lost its end, as after a takeover by an asynchronous standby: it \
             gets those commits again"
        );
        for (before, group) in lost {
            let link = self.take_link().await?;
            let sent = tokio::select! {
                sent = send(&link, &group, self.term.epoch, before) => sent,
                why = self.term.ended() => return self.end(why),
            };
            match sent {
                Ok(true) => self.link = Some(link),
                Ok(false) => {
                    self.link = Some(link);
                    return Ok(());
                }
                Err(LinkError::Unknown(why)) => {
                    tracing::warn!(why, "a commit that is sent again had no answer");
                    tokio::time::sleep(PAUSE).await;
                    return Ok(());
                }
                Err(error) => return Err(self.failed("a commit was refused", error)),
            }
        }
        tracing::info!("the database has all commits again");
        Ok(())
    }

    /// Sends the statement, and learns what it did.
    async fn try_commit(&mut self, group: &Group) -> Result<Outcome, StoreError> {
        let link = self.take_link().await?;
        let sent = tokio::select! {
            sent = send(&link, group, self.term.epoch, (self.head, self.commits)) => sent,
            why = self.term.ended() => return Ok(Outcome::NotLeader(why)),
        };
        match sent {
            Ok(true) => {
                self.link = Some(link);
                Ok(Outcome::Done)
            }
            Ok(false) => {
                self.link = Some(link);
                self.read_back(group).await
            }
            Err(LinkError::Unknown(why)) => {
                tracing::warn!(why, "a commit had no answer; reading back whether it happened");
                drop(link);
                tokio::time::sleep(PAUSE).await;
                self.read_back(group).await
            }
            Err(error) => Err(self.failed("a commit was refused", error)),
        }
    }

    /// Learns from the leader's row whether a commit happened.
    async fn read_back(&mut self, group: &Group) -> Result<Outcome, StoreError> {
        loop {
            let link = self.take_link().await?;
            let found = tokio::select! {
                found = self.look_for(&link, group) => found,
                why = self.term.ended() => return Ok(Outcome::NotLeader(why)),
            };
            match found {
                Ok(outcome) => {
                    self.link = Some(link);
                    return Ok(outcome);
                }
                Err(LinkError::Unknown(why)) => {
                    tracing::warn!(why, "the store cannot be read; trying again");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(self.failed("it cannot be read", error)),
            }
        }
    }

    /// Looks whether a commit happened; if so, waits until it is durable.
    async fn look_for(&self, link: &Link, group: &Group) -> Result<Outcome, LinkError> {
        let outcome = self.outcome(group, &Leader::look(link).await?);
        let is_settled =
            !matches!(outcome, Outcome::Done) || Leader::settle(link, self.term.epoch).await?;
        match is_settled {
            true => Ok(outcome),
            false => Ok(self.outcome(group, &Leader::look(link).await?)),
        }
    }

    fn outcome(&self, group: &Group, leader: &Leader) -> Outcome {
        if leader.epoch != self.term.epoch {
            return Outcome::NotLeader(leader.instead_of(self.term.epoch));
        }
        match (leader.head, leader.commits) == (group.head, self.commits + 1) {
            true => Outcome::Done,
            false => self.standing(leader),
        }
    }

    /// Where the database stands, if the present commit has not happened.
    fn standing(&self, leader: &Leader) -> Outcome {
        if leader.epoch != self.term.epoch {
            return Outcome::NotLeader(leader.instead_of(self.term.epoch));
        }
        let found = (leader.head, leader.commits);
        if found == (self.head, self.commits) {
            return match leader.left > 0.0 {
                true => Outcome::Nothing,
                false => Outcome::NotLeader(leader.instead_of(self.term.epoch)),
            };
        }
        if self.recent.since(found).is_some() {
            return Outcome::Behind(found);
        }
        Outcome::NotLeader(format!(
            "the database is at commit {}, record {}, and took commit {}, record {} before: it has \
             lost its end, as after a takeover by an asynchronous standby",
            leader.commits, leader.head, self.commits, self.head
        ))
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
    (head, commits): (i64, i64),
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
