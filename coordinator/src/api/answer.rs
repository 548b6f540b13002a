//! The path of a request: deny-list, role, audit log, and then the function that answers it.

use super::backup::BackupPieces;
use super::caller::Caller;
use super::context::{Context, unavailable, unlogged};
use super::follow::Follow;
use super::live::Live;
use super::logs::{self, LogFollow};
use super::roles;
use super::watch::Watch;
use super::{
    audit, audit_entries, backup, costs, identities, jobs, members, nodes, presets, selected,
    shares, targets, tokens, watch,
};
use crate::access::Cause;
use crate::access::members::Enrolled;
use crate::changes::Changes;
use crate::driver::{Event, Question};
use std::sync::Arc;
use tessera_core::Census;
use tessera_protocol::JobId;
use tessera_protocol::client::{
    AuditReport, EnrolReply, EnrolRequest, Request, RequestError, Response,
};
use tessera_protocol::limits::{FRAME_PAGE_MAX, NAME_MAX, REASON_MAX};
use tessera_telemetry::Tracer;
use tessera_transport::PeerIdentity;
use tessera_transport::close::cut;
use tessera_transport::validity::now_secs;

/// The requests of a running coordinator. Clones are cheap. After the coordinator's end every
/// answer is an error.
#[derive(Clone)]
pub struct Api {
    pub(super) context: Arc<Context>,
}

/// The outcome of a request.
#[derive(Debug)]
pub enum Answer {
    /// One answer, or the reason why there is none.
    Once(Response),
    /// Progress of a job until it has ended.
    Watch(Box<Watch>),
    /// News of all jobs, without end.
    Follow(Box<Follow>),
    /// Live tiles until their frame or job has ended.
    Live(Box<Live>),
    /// Lines as they come.
    Logs(Box<LogFollow>),
    /// A backup, in pieces.
    Backup(BackupPieces),
}

impl Answer {
    /// Returns the next response; None at the end. While a job is watched, it waits for progress.
    pub async fn next(&mut self) -> Option<Response> {
        match self {
            Self::Once(response) => {
                let response = std::mem::replace(response, Response::Done);
                *self = Self::Backup(BackupPieces::empty());
                Some(response)
            }
            Self::Watch(watch) => {
                watch.next().await.map(|progress| Response::Progress(Box::new(progress)))
            }
            Self::Follow(follow) => follow.next().await.map(|news| Response::News(Box::new(news))),
            Self::Live(live) => {
                let tile = live.next().await?;
                Some(Response::Live(Box::new((*tile).clone())))
            }
            Self::Logs(follow) => {
                let page = follow.next().await?;
                Some(Response::Logs(Box::new(page)))
            }
            Self::Backup(pieces) => pieces.next().await.map(|piece| match piece {
                Ok(bytes) => Response::Backup(bytes),
                Err(error) => Response::Error(bounded(error)),
            }),
        }
    }
}

impl Api {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// Returns what takes spans.
    pub fn tracer(&self) -> &Tracer {
        &self.context.tracer
    }

    /// Answers a request. Before the answer, its change is durable and in the audit log.
    pub async fn answer(&self, caller: &Caller, request: Request) -> Answer {
        let answered = async {
            if let Err(refusal) = self.check(caller, &request) {
                self.refused(caller, &request, &refusal).await;
                return Err(refusal);
            }
            let _entered = self.context.askers.request(&caller.owner()).await?;
            self.logged(caller, request).await
        };
        answered.await.unwrap_or_else(|error| Answer::Once(Response::Error(bounded(error))))
    }

    /// Answers a peer that has a token and asks for a certificate. `from` is the peer's address,
    /// for the audit log.
    pub async fn enrol(
        &self,
        request: &EnrolRequest,
        from: &str,
    ) -> Result<EnrolReply, RequestError> {
        let context = &self.context;
        let (authority, now) = (context.access.authority(), context.clock.now().secs());
        let admits = |peer: &PeerIdentity| context.access.admits(peer);
        let lists = (&*authority, &*context.access.members);
        match context.ledger.enrol(lists, request, now, admits).await {
            Ok(Enrolled { peer, serial, reply, what }) => {
                // A replaced holder is out from now on.
                context.access.sweep(now_secs());
                let about = format!("{peer}, certificate {serial}, from {from}");
                let entry = context.access.tell(peer.to_string(), what, about);
                entry.await.map_err(|error| unlogged(&error))?;
                tracing::info!(from, %peer, what, "enrolled");
                Ok(reply)
            }
            Err(reason) => {
                tracing::warn!(from, reason, "enrolment refused");
                let name = cut(&request.name, NAME_MAX);
                let about = format!("as {name:?}: {reason}");
                context.access.tell_refusal(cause_of(from), "enrolment refused", about).await;
                Ok(EnrolReply::Refused(cut(&reason, REASON_MAX).to_owned()))
            }
        }
    }

    /// Returns a subscription to changes. The coordinator never waits for a subscriber.
    pub fn changes(&self) -> Changes {
        self.context.changes.clone()
    }

    /// Returns the farm's counts from the driver; None if the driver has ended.
    pub async fn census(&self) -> Option<Census> {
        self.context.send(Event::Census).await.ok()
    }

    pub(crate) async fn audit(&self) -> Result<AuditReport, RequestError> {
        audit::audit(&self.context).await
    }

    pub(super) fn check(&self, caller: &Caller, request: &Request) -> Result<(), RequestError> {
        let admitted = self.context.access.admits(caller.identity());
        admitted.map_err(RequestError::NotAllowed)?;
        let (needed, _) = roles::rule(request);
        roles::check(caller, needed)
    }

    /// Enters that a request was refused because of the caller's role, or because it is denied.
    async fn refused(&self, caller: &Caller, request: &Request, refusal: &RequestError) {
        let (what, about) = audit_entries::name_of(request);
        let about = match about.is_empty() {
            true => format!("{what}: {refusal}"),
            false => format!("{what}, {about}: {refusal}"),
        };
        let who = caller.to_string();
        self.context.access.tell_refusal(Cause::Failure(&who), "refused", about).await;
    }

    /// Makes a change, but only after the audit log has its entry.
    async fn logged(&self, caller: &Caller, request: Request) -> Result<Answer, RequestError> {
        let Some((what, about)) = audit_entries::entry_of(&request) else {
            return self.begin(caller, request).await;
        };
        let access = &self.context.access;
        let who = caller.to_string();
        // Whoever fails on and on has one entry for what was done, and none for what was not.
        let failing = access.is_failing(&who);
        if !failing {
            let entry = access.tell_within(Cause::Action(&who), what, about.clone());
            entry.await.map_err(|error| unlogged(&error))?;
        }
        let answer = self.begin(caller, request).await;
        match &answer {
            Ok(Answer::Once(Response::Error(error))) | Err(error) => {
                let about = format!("{what}, {about}: {error}");
                access.tell_refusal(Cause::Failure(&who), "not done", about).await;
            }
            Ok(Answer::Once(Response::Changed(changed)))
                if changed.jobs.is_empty()
                    && let Some(refusal) = changed.refusals.first() =>
            {
                let about = format!("{what}, {about}: {}", refusal.why);
                access.tell_refusal(Cause::Failure(&who), "not done", about).await;
            }
            Ok(_) if failing => {
                let about = format!("{about}, entered after it was done");
                access.tell_refusal(Cause::Action(&who), what, about).await;
            }
            Ok(_) => {}
        }
        answer
    }

    async fn begin(&self, caller: &Caller, request: Request) -> Result<Answer, RequestError> {
        match request {
            Request::Watch(job) => {
                let watch = watch::Watch::begin(self.context.clone(), job, &caller.owner()).await?;
                Ok(Answer::Watch(Box::new(watch)))
            }
            Request::WatchAll { since } => {
                let owner = caller.owner();
                let follow = Follow::begin(self.context.clone(), since, Some(&owner)).await?;
                Ok(Answer::Follow(Box::new(follow)))
            }
            Request::Live(what) => {
                let live = Live::begin(&self.context, caller, what).await?;
                Ok(Answer::Live(Box::new(live)))
            }
            Request::FollowLogs(query) => {
                let follow = LogFollow::begin(&self.context, caller, *query).await?;
                Ok(Answer::Logs(Box::new(follow)))
            }
            Request::Backup => backup::begin(&self.context, caller).await.map(Answer::Backup),
            request => self.answer_once(caller, request).await.map(Answer::Once),
        }
    }

    async fn answer_once(
        &self,
        caller: &Caller,
        request: Request,
    ) -> Result<Response, RequestError> {
        let context = &*self.context;
        match request {
            Request::MissingBlobs(blobs) => jobs::missing_blobs(context, blobs).await,
            Request::Jobs(query) => selected::list(context, caller, query).await,
            Request::Job(job) => context.question(Question::Job(job)).await,
            Request::Frames { job, from } => frames(context, job, from).await,
            Request::KernelText(job) => jobs::kernel_text(context, roles::owner(caller), job).await,
            Request::Nodes => nodes::nodes(context).await,
            Request::Logs(query) => logs::page(context, caller, *query).await,
            Request::Explain(subject) => nodes::explain(context, subject).await,
            Request::Members { from } => Ok(members::list(context, from)),
            Request::KeepMember { member, keep } => {
                members::keep(context, caller, &member, keep).await
            }
            Request::RemoveMember { member } => members::remove(context, caller, &member).await,
            Request::Submit { job, spec } => {
                jobs::submit(context, roles::owner(caller), job, *spec).await
            }
            Request::EditJob { job, edit } => {
                jobs::edit(context, roles::owner(caller), job, *edit).await
            }
            Request::Drain { node, drain, leave } => {
                nodes::drain(context, caller, (node, drain, leave)).await
            }
            Request::RemoveNode { node } => nodes::remove(context, caller, node).await,
            Request::CreateToken(scope) => identities::create_token(context, caller, scope).await,
            Request::CreateApiToken(scope) => {
                tokens::create_api_token(context, caller, scope).await
            }
            Request::WebLink => tokens::link(context, caller),
            Request::Tokens { from } => Ok(tokens::tokens(context, caller, from).await),
            Request::RevokeToken { id } => tokens::revoke(context, caller, &id).await,
            Request::Deny { identity, reason } => {
                identities::deny(context, caller, &identity, Some(reason)).await
            }
            Request::Allow { identity } => identities::deny(context, caller, &identity, None).await,
            Request::Log { last } => identities::log(context, last).await,
            Request::Authority => Ok(identities::authority(&context.access.authority())),
            Request::RotateAuthority { overlap_secs } => {
                identities::rotate(context, caller, overlap_secs).await
            }
            Request::Denied => Ok(Response::Denied(context.access.denied())),
            Request::Audit => audit::audit(context).await.map(Response::Audit),
            Request::Usage => shares::usage(context, caller).await,
            Request::Costs { .. } | Request::CostRules | Request::SetCostRules(_) => {
                costs::answer(context, caller, request).await
            }
            Request::Presets | Request::Preset { .. } | Request::SetPreset { .. } => {
                presets::answer(context, caller, request).await
            }
            Request::ChangeJobs(change) => selected::change(context, caller, *change).await,
            Request::Sweep { owner, dry_run } => {
                shares::sweep(context, caller, &owner, dry_run).await
            }
            Request::TestTarget { target } => targets::test(context, &target).await,
            Request::Watch(_)
            | Request::WatchAll { .. }
            | Request::Live(_)
            | Request::FollowLogs(_)
            | Request::Backup => {
                Err(unavailable("watching and backups are answered in several parts"))
            }
        }
    }
}

/// Returns a page of a job's frames.
async fn frames(context: &Context, job: JobId, from: u32) -> Result<Response, RequestError> {
    let most = FRAME_PAGE_MAX as u32;
    context.question(Question::Frames { job, from, most }).await
}

/// Returns the cause for an address without its port, which is another one at each dial.
fn cause_of(from: &str) -> Cause<'_> {
    Cause::Stranger(from.rsplit_once(':').map_or(from, |(host, _)| host))
}

/// Shortens the error's text so that it fits into a message.
fn bounded(error: RequestError) -> RequestError {
    let cut = |text: String| cut(&text, REASON_MAX).to_owned();
    match error {
        RequestError::NotFound(text) => RequestError::NotFound(cut(text)),
        RequestError::NotAllowed(text) => RequestError::NotAllowed(cut(text)),
        RequestError::Invalid(text) => RequestError::Invalid(cut(text)),
        RequestError::Unavailable(text) => RequestError::Unavailable(cut(text)),
        RequestError::SeveralNodes(text) => RequestError::SeveralNodes(cut(text)),
        // The core has bounded it.
        error @ RequestError::Ambiguous { .. } => error,
    }
}
