//! Lines of jobs, for their owners and operators, and of nodes, for operators.

use super::askers::{Entered, Kind};
use super::caller::Caller;
use super::context::{Context, blocking};
use super::roles;
use crate::driver::{Event, Question};
use crate::logs::{Follow, Whose};
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::logs::{LogPage, LogQuery, LogTarget};
use tessera_protocol::status::NodeSummary;
use tessera_protocol::{JobId, NodeId};

/// How often a job whose lines are followed is looked at, whether it has ended.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks after a job's end, in which its last lines may come.
const LAST_LOOKS: u32 = 3;
/// Looks after which a page without lines says that the stream lives: a reader that is gone is
/// noticed when something is sent to it.
const SILENT_LOOKS: u32 = 20;

/// Lines as they come.
pub struct LogFollow {
    context: Arc<Context>,
    follow: Follow,
    /// Job whose end ends it.
    job: Option<JobId>,
    looks_after_end: u32,
    /// Number of the newest line that was told.
    next: u64,
    _entered: Entered,
}

impl std::fmt::Debug for LogFollow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFollow").field("job", &self.job).finish_non_exhaustive()
    }
}

impl LogFollow {
    /// Begins.
    pub(super) async fn begin(
        context: &Arc<Context>,
        caller: &Caller,
        query: LogQuery,
    ) -> Result<Self, RequestError> {
        let entered = context.askers.enter(&caller.owner(), Kind::Watcher)?;
        let whose = whose(context, caller, &query).await?;
        let job = match whose {
            Whose::Job { job, .. } => Some(job),
            Whose::Node(_) => None,
        };
        let follow = Follow::new(context.logs.clone(), whose, query);
        let (context, looks_after_end) = (context.clone(), 0);
        Ok(Self { context, follow, job, looks_after_end, next: 0, _entered: entered })
    }

    /// Returns the first lines, which may be none, and then further ones as they come; None some
    /// seconds after the job's end, or if the coordinator stops. A page without lines comes now and
    /// then.
    pub async fn next(&mut self) -> Option<LogPage> {
        for _ in 0..SILENT_LOOKS {
            tokio::select! {
                page = self.follow.next() => {
                    let page = page?;
                    self.next = page.next;
                    return Some(page);
                }
                () = tokio::time::sleep(LOOK_EVERY) => self.look().await?,
            }
        }
        Some(LogPage { lines: Vec::new(), next: self.next, more: false })
    }

    /// Looks whether the job has ended; None if it has, for long enough.
    async fn look(&mut self) -> Option<()> {
        let Some(job) = self.job else { return Some(()) };
        let summary = self.context.send(|reply| Event::Summary { job, reply }).await.ok()??;
        if summary.state.is_final() {
            self.looks_after_end += 1;
        }
        (self.looks_after_end <= LAST_LOOKS).then_some(())
    }
}

/// Returns a page of lines.
pub(super) async fn page(
    context: &Context,
    caller: &Caller,
    query: LogQuery,
) -> Result<Response, RequestError> {
    let whose = whose(context, caller, &query).await?;
    let logs = context.logs.clone();
    let page = blocking(move || logs.page(whose, &query)).await?;
    Ok(Response::Logs(Box::new(page)))
}

/// Returns whose lines are asked for, if the caller may see them.
async fn whose(
    context: &Context,
    caller: &Caller,
    query: &LogQuery,
) -> Result<Whose, RequestError> {
    query.check().map_err(RequestError::Invalid)?;
    match &query.target {
        LogTarget::Job(job) => {
            let caller = roles::owner(caller);
            match context.question(Question::Owned { job: *job, caller }).await? {
                Response::Job(detail) => {
                    Ok(Whose::Job { job: *job, owner: detail.summary.owner_id })
                }
                Response::Error(error) => Err(error),
                _ => Err(super::context::unavailable("the coordinator does not know its own jobs")),
            }
        }
        LogTarget::Node(text) => node(context, text).await.map(Whose::Node),
    }
}

/// Finds a node by its id or name, also one that is gone.
async fn node(context: &Context, text: &str) -> Result<NodeId, RequestError> {
    if let Ok(node) = text.parse() {
        return Ok(node);
    }
    let Response::Nodes(rows) = context.question(Question::Nodes).await? else {
        return Err(super::context::unavailable("the coordinator does not know its own nodes"));
    };
    let named = |row: &&NodeSummary| row.name == text;
    let found: Vec<NodeId> = rows.iter().filter(named).map(|row| row.node).collect();
    let shown = tessera_protocol::names::printable(text);
    match found.as_slice() {
        [node] => Ok(*node),
        [] => Err(RequestError::NotFound(format!("there is no node `{shown}`"))),
        several => Err(RequestError::SeveralNodes(format!(
            "{} nodes have the name `{shown}`; give the id of one",
            several.len()
        ))),
    }
}
