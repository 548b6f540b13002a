//! Leadership: one coordinator at a time, for a term by the database's clock. Here the term is
//! counted from before the attempt and by a clock that only grows, in sleep too, so it ends here
//! first.

use crate::address::StoreAddress;
use crate::clock::uptime;
use crate::connection::{Link, Parameters};
use crate::link_error::LinkError;
use crate::rules::{Row as RuledRow, Standing, Stop, is_behind, next_epoch, renew_every};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tessera_coordinator::store::Witness;
use tokio::sync::watch;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// Pause after an attempt that had no answer.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How often a leader that waits for the end of its term looks at the clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time for a question about the leader.
const ASK_TIME: Duration = Duration::from_secs(10);

/// Reads the leader's row. The time left is by the database's clock.
const LOOK: &str = "SELECT farm, epoch, head, commits, owner, \
    extract(epoch FROM expires_at - now())::float8, http, key FROM tessera.leader WHERE id = 1";
/// Takes the lead if nobody has it.
const TAKE: &str = "WITH t AS (UPDATE tessera.leader SET epoch = $3, owner = $1, \
    expires_at = now() + $2 * interval '1 second', http = $5, key = $6 \
    WHERE id = 1 AND epoch = $4 AND expires_at <= now() \
    RETURNING farm, epoch, head, commits, owner, http, key), \
    l AS (INSERT INTO tessera.lead (epoch, before, commits, owner) \
    SELECT epoch, $4, commits, owner FROM t) \
    SELECT farm, epoch, head, commits, owner, $2, http, key FROM t";
/// Reads how many commits there were when the lead began that followed this one, or that took its
/// place because it was lost.
const BEGAN: &str = "SELECT min(commits) FROM tessera.lead \
    WHERE before = $1 OR (before = $2 AND epoch <> $1)";
const RENEW: &str = "UPDATE tessera.leader SET expires_at = now() + $2 * interval '1 second', \
    http = $3 WHERE id = 1 AND epoch = $1 AND expires_at > now() RETURNING commits";
const GIVE_BACK: &str =
    "UPDATE tessera.leader SET expires_at = now() WHERE id = 1 AND epoch = $1 RETURNING 1";
/// Changes nothing. Its answer comes once everything before it is as durable as a commit is.
const SETTLE: &str =
    "UPDATE tessera.leader SET owner = owner WHERE id = 1 AND epoch = $1 RETURNING 1";
/// Makes the row of a new store, once.
const BEGIN: &str = "INSERT INTO tessera.leader (id, farm, epoch, head, commits, owner, \
    expires_at) VALUES (1, $1, 0, 0, 0, 'nobody', now()) ON CONFLICT DO NOTHING RETURNING 1";

/// The leader's row at a moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leader {
    /// Id of the farm's state.
    pub(crate) farm: Uuid,
    /// Number of the lead.
    pub(crate) epoch: i64,
    /// Sequence of the newest record, or of the snapshot if there is none after it.
    pub(crate) head: i64,
    /// Number of commits.
    pub(crate) commits: i64,
    /// Who leads, in words.
    pub(crate) owner: String,
    /// Seconds until the term ends, by the database's clock; negative after that.
    pub(crate) left: f64,
    /// Where it serves HTTP; empty if it does not.
    pub(crate) http: String,
    /// Secret of its term.
    pub(crate) key: Vec<u8>,
}

/// How a leader introduces itself.
#[derive(Debug)]
pub(crate) struct Name {
    /// Who it is, in words.
    pub(crate) owner: String,
    /// Where it serves HTTP; empty if it does not.
    http: watch::Sender<String>,
}

impl Name {
    /// Nothing is served yet.
    pub(crate) fn new(owner: String) -> Arc<Self> {
        Arc::new(Self { owner, http: watch::Sender::new(String::new()) })
    }

    /// Notes where HTTP is served.
    pub(crate) fn serves_http_at(&self, url: &str) {
        self.http.send_replace(url.to_owned());
    }
}

impl Leader {
    fn of(row: &Row) -> Result<Self, LinkError> {
        let farm: String = row.get(0);
        let farm = Uuid::parse_str(&farm)
            .map_err(|_| LinkError::Setup("the leader's row has no id of a farm".into()))?;
        Ok(Self {
            farm,
            epoch: row.get(1),
            head: row.get(2),
            commits: row.get(3),
            owner: row.get(4),
            left: row.get(5),
            http: row.get(6),
            key: row.get(7),
        })
    }

    /// The row, as far as the rules look at it.
    pub(crate) fn row(&self) -> RuledRow {
        RuledRow {
            epoch: self.epoch,
            place: (self.head, self.commits),
            lasts: self.left > 0.0,
            owner: self.owner.clone(),
        }
    }

    /// Reads the row.
    pub(crate) async fn look(link: &Link) -> Result<Self, LinkError> {
        let rows = link.rows(LOOK, &[], ASK_TIME).await?;
        match rows.first() {
            Some(row) => Self::of(row),
            None => Err(LinkError::Setup("the leader's row is missing".into())),
        }
    }

    /// Waits until what was read is as durable as a commit: one whose connection ended while it
    /// waited for a synchronous standby can be seen before the standby has it. False if another
    /// one leads.
    pub(crate) async fn settle(link: &Link, epoch: i64) -> Result<bool, LinkError> {
        let rows = link.rows(SETTLE, &[(&epoch, Type::INT8)], ASK_TIME).await?;
        Ok(!rows.is_empty())
    }

    /// Makes the row of a new store, if there is none.
    pub(crate) async fn begin(link: &Link) -> Result<(), LinkError> {
        let farm = Uuid::new_v4().to_string();
        link.rows(BEGIN, &[(&farm, Type::TEXT)], ASK_TIME).await.map(drop)
    }

    /// Takes the lead, if nobody has it and this one was the last to have it.
    pub(crate) async fn take(
        link: &Link,
        name: &Name,
        term: Duration,
        before: i64,
    ) -> Result<Option<Self>, LinkError> {
        let (term, epoch) = (term.as_secs_f64(), next_epoch(before, Uuid::new_v4().as_u128()));
        let http = name.http.borrow().clone();
        let key = [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat();
        let parameters: &Parameters<'_> = &[
            (&name.owner, Type::TEXT),
            (&term, Type::FLOAT8),
            (&epoch, Type::INT8),
            (&before, Type::INT8),
            (&http, Type::TEXT),
            (&key, Type::BYTEA),
        ];
        let rows = link.rows(TAKE, parameters, ASK_TIME).await?;
        rows.first().map(Self::of).transpose()
    }

    /// Returns how many commits there were when the lead began that followed this one, or took its
    /// place; None if the database knows of none.
    pub(crate) async fn began_after(link: &Link, led: Witness) -> Result<Option<i64>, LinkError> {
        let parameters: &Parameters<'_> = &[(&led.epoch, Type::INT8), (&led.before, Type::INT8)];
        let rows = link.rows(BEGAN, parameters, ASK_TIME).await?;
        Ok(rows.first().and_then(|row| row.get(0)))
    }
}

/// What renewals compare.
#[derive(Debug)]
struct Commits {
    /// How many the database has taken.
    taken: AtomicI64,
    /// The last renewal found fewer than the database had taken before it.
    is_behind: AtomicBool,
}

/// A term that is renewed in the background until this value is dropped.
pub(crate) struct Term {
    pub(crate) epoch: i64,
    standing: watch::Receiver<Standing>,
    commits: Arc<Commits>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Term {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Term {
    /// Goes on with a term that was taken. `asked`: before the attempt.
    pub(crate) fn keep(
        address: Arc<StoreAddress>,
        (epoch, commits): (i64, i64),
        (asked, name): (Duration, Arc<Name>),
    ) -> Self {
        let (told, standing) = watch::channel(Standing::counted(asked, address.term));
        let (taken, is_behind) = (AtomicI64::new(commits), AtomicBool::new(false));
        let commits = Arc::new(Commits { taken, is_behind });
        let task = tokio::spawn(renew(address, (epoch, name), (told, commits.clone())));
        Self { epoch, standing, commits, task }
    }

    /// Notes that the database has taken so many commits.
    pub(crate) fn has_committed(&self, commits: i64) {
        self.commits.taken.store(commits, Ordering::SeqCst);
    }

    /// Whether the last renewal found fewer commits than the database had taken before it.
    pub(crate) fn is_behind(&self) -> bool {
        self.commits.is_behind.load(Ordering::SeqCst)
    }

    /// Fails if the term has ended; says why.
    pub(crate) fn check(&self) -> Result<(), Stop> {
        self.standing.borrow().check(uptime())
    }

    /// Returns what does as [`Self::check`], for other threads.
    pub(crate) fn checked(&self) -> impl Fn() -> Result<(), Stop> + Send + Sync + 'static {
        let standing = self.standing.clone();
        move || standing.borrow().check(uptime())
    }

    /// Waits until the term has ended; says why.
    pub(crate) async fn ended(&self) -> Stop {
        let mut standing = self.standing.clone();
        loop {
            let end = match &*standing.borrow_and_update() {
                Standing::Until(end) => *end,
                Standing::Lost(why) => return why.clone(),
            };
            tokio::select! {
                changed = standing.changed() => if changed.is_err() { return Stop::TermOver },
                // Timers stand still while the machine sleeps.
                () = tokio::time::sleep(end.saturating_sub(uptime()).min(LOOK_EVERY)) => {
                    if let Err(why) = self.check() {
                        return why;
                    }
                }
            }
        }
    }

    /// Gives the lead back, so that another one need not wait.
    pub(crate) async fn give_back(&self, link: &Link) -> Result<(), LinkError> {
        link.rows(GIVE_BACK, &[(&self.epoch, Type::INT8)], ASK_TIME).await.map(drop)
    }
}

/// Renews a term until it is lost or has ended.
async fn renew(
    address: Arc<StoreAddress>,
    (epoch, name): (i64, Arc<Name>),
    (told, commits): (watch::Sender<Standing>, Arc<Commits>),
) {
    let every = renew_every(address.term);
    let term = address.term.as_secs_f64();
    let mut link = None;
    let mut next = tokio::time::Instant::now() + every;
    let mut http = name.http.subscribe();
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            // Others learn at once where this one serves HTTP. The sender is in `name`.
            _ = http.changed() => {}
        }
        let (asked, taken) = (uptime(), commits.taken.load(Ordering::SeqCst));
        let url = http.borrow_and_update().clone();
        let renewing = renew_once(&address, &mut link, epoch, (term, &url));
        match tokio::time::timeout(every, renewing).await {
            Ok(Ok(Renewed::Has(found))) => {
                commits.is_behind.store(is_behind(found, taken), Ordering::SeqCst);
                told.send_replace(Standing::counted(asked, address.term));
                next = tokio::time::Instant::now() + every;
            }
            Ok(Ok(Renewed::Lost(leader))) => {
                told.send_replace(Standing::Lost(leader.row().instead_of(epoch)));
                return;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the term as the leader cannot be renewed; trying again");
                link = None;
                next = tokio::time::Instant::now() + RETRY_PAUSE;
            }
            Err(_) => {
                tracing::warn!("the database does not renew the term as the leader; trying again");
                link = None;
                next = tokio::time::Instant::now();
            }
        }
    }
}

/// What an attempt to renew a term has found.
enum Renewed {
    /// The term goes on; the database has so many commits.
    Has(i64),
    /// It does not; the leader as it is now.
    Lost(Leader),
}

/// Renews a term once.
async fn renew_once(
    address: &StoreAddress,
    link: &mut Option<Link>,
    epoch: i64,
    (term, http): (f64, &str),
) -> Result<Renewed, LinkError> {
    let open = match link.take() {
        Some(link) => link,
        None => Link::open(address).await?,
    };
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
        [(&epoch, Type::INT8), (&term, Type::FLOAT8), (&http, Type::TEXT)];
    let renewed = open.rows(RENEW, &parameters, ASK_TIME).await?;
    let renewed = match renewed.first() {
        Some(row) => Renewed::Has(row.get(0)),
        None => Renewed::Lost(Leader::look(&open).await?),
    };
    *link = Some(open);
    Ok(renewed)
}
