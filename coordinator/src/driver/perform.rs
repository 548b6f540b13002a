//! Performs the core's actions once their step is durable.

use super::{After, Driver, Present, Question};
use crate::finish_inputs::InputsOrder;
use crate::lost_spools;
use crate::resolve::order::{ResolveOrder, Wanted};
use crate::spool::SpoolKey;
use crate::store::Commit;
use tessera_core::{Action, Core, SessionId};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::explain::Subject;
use tessera_protocol::job::JobKind;
use tessera_protocol::{FrameNumber, JobId, Lease};
use tokio::sync::oneshot;

impl Driver {
    pub(super) fn perform(&mut self, after: After) {
        match after {
            // The client may be gone.
            After::Answer(reply, _, response) => drop(reply.send(*response)),
            After::Tell(tell) => tell(),
            // A session that is gone needs no answer.
            After::Inputs(session, lease, reply) => drop(reply.send(self.inputs(session, lease))),
            After::Action(action) => self.perform_action(action),
        }
    }

    fn perform_action(&mut self, action: Action) {
        match action {
            // `store_step` has already handled these.
            Action::KeepResult { .. } | Action::DropResult { .. } => return,
            Action::Send { session, message } => {
                if let Some(handle) = self.sessions.get(&session) {
                    self.admit_lines(handle, &message);
                    handle.send(message);
                }
            }
            Action::CloseSession { session, reason } => {
                if let Some(handle) = self.sessions.remove(&session) {
                    handle.close(reason);
                }
            }
            Action::Reply { request, response } => {
                if let Some(reply) = self.replies.remove(&request) {
                    drop(reply.send(response));
                }
            }
            Action::ResolveFrame { job, frame } => self.order(Wanted::Files, job, frame),
            Action::MeasureFrame { job, frame } => self.order(Wanted::Noise, job, frame),
            Action::FrameFinished { job, frame } => {
                self.around.publisher.frame_finished(job, frame);
                self.around.live.end_frame(job, frame);
                self.forget_spools(vec![SpoolKey { job, frame }]);
            }
            Action::FrameFailed { job, frame } => {
                self.around.live.end_frame(job, frame);
                self.forget_spools(vec![SpoolKey { job, frame }]);
            }
            Action::Fault { what } => {
                tracing::error!(what, "fault of the core; please report it with this log");
                return;
            }
            Action::JobEnded { job } => {
                self.around.live.end_job(job);
                self.forget_spools(self.around.writer.spools_of(job));
            }
        }
        self.around.publisher.changed();
    }

    /// Returns what a finishing unit reads, if the session's node holds its lease.
    fn inputs(&self, session: SessionId, lease: Lease) -> Option<InputsOrder> {
        let finish = self.core.finish_of(session, lease)?;
        let (job, frame) = (lease.unit.job, lease.unit.frame);
        let key = SpoolKey { job, frame };
        let JobKind::Render(spec) = self.core.job(job)?.spec.kind else { return None };
        let rounds = self.core.frame_rounds(job, frame);
        Some(InputsOrder {
            key,
            extent: self.around.writer.spool_extent(key)?,
            spec,
            finish,
            rounds,
        })
    }

    fn order(&self, wanted: Wanted, job: JobId, frame: FrameNumber) {
        let Some(detail) = self.core.job(job) else { return };
        let kind = detail.spec.kind;
        let extent = self.around.writer.spool_extent(SpoolKey { job, frame }).unwrap_or_default();
        let (fingerprint, rounds) = (detail.fingerprint, self.core.frame_rounds(job, frame));
        let wanted = match wanted {
            Wanted::Files if self.core.is_finished_by_nodes(job, frame) => Wanted::Joined,
            wanted => wanted,
        };
        let by = self.core.joiners(job, frame);
        let order = ResolveOrder { wanted, job, frame, kind, fingerprint, rounds, extent, by };
        // If the resolver has ended, the coordinator is stopping. After a restart the core asks
        // again.
        drop(self.around.resolver.send(order));
    }

    /// Deletes spools, without waiting for it. If a crash prevents it, the next start deletes them.
    fn forget_spools(&self, keys: Vec<SpoolKey>) {
        let known = |key: &SpoolKey| self.around.writer.spool_extent(*key).is_some();
        let finished: Vec<SpoolKey> = keys.into_iter().filter(known).collect();
        if !finished.is_empty() {
            let (mut commit, _) = Commit::new();
            commit.finished = finished;
            drop(self.queue.send(commit));
        }
    }

    /// Deletes the spools that a crash prevented from being deleted.
    pub(super) fn forget_ended_spools(&self) {
        let ended = |key: &SpoolKey| lost_spools::is_over(&self.core, *key);
        self.forget_spools(self.around.writer.spools().into_iter().filter(ended).collect());
    }

    /// Keeps the text of a unit, if it is of a node that works on the job.
    pub(super) fn on_kernel_text(&mut self, session: SessionId, lease: Lease, text: &str) {
        let job = lease.unit.job;
        let Some(summary) = self.core.job_summary(job) else { return };
        if self.core.works_on(session, job) {
            self.kernel_texts.add(summary.owner_id, lease.unit, text);
        }
        let core = &self.core;
        self.kernel_texts.retain(|job| core.has_job(job));
    }

    pub(super) fn answer(&mut self, question: Question, reply: oneshot::Sender<Response>) {
        let unknown =
            |job: JobId| Response::Error(RequestError::NotFound(format!("there is no job {job}")));
        let response = match question {
            Question::Jobs { ref selection, page } => {
                let now = self.around.clock.now();
                let listed = self.core.jobs_page(selection, page, now);
                listed.map_or_else(Response::Error, Response::Jobs)
            }
            Question::Job(job) => self
                .core
                .job(job)
                .map_or_else(|| unknown(job), |detail| Response::Job(Box::new(detail))),
            Question::Frames { job, from, most } => self
                .core
                .frames_up_to(job, from, most)
                .map_or_else(|| unknown(job), Response::Frames),
            Question::Frame { job, .. } if !self.core.has_job(job) => unknown(job),
            Question::Frame { job, frame } => {
                Response::Frames(self.core.frame(job, frame).into_iter().collect())
            }
            Question::KernelText { job, ref caller } => match self.core.owned(job, caller) {
                Ok(()) => Response::KernelText(self.kernel_texts.of(job)),
                Err(error) => Response::Error(error),
            },
            Question::Owned { job, ref caller } => {
                match (self.core.owned(job, caller), self.core.job(job)) {
                    (Ok(()), Some(detail)) => Response::Job(Box::new(detail)),
                    (Ok(()), None) => unknown(job),
                    (Err(error), _) => Response::Error(error),
                }
            }
            Question::Nodes => Response::Nodes(self.core.nodes(self.around.clock.now())),
            Question::Costs { ref month } => {
                let report = self.core.costs(month.as_deref(), self.around.clock.now());
                report.map_or_else(Response::Error, |report| Response::Costs(Box::new(report)))
            }
            Question::CostRules => Response::CostRules(Box::new(self.core.cost_rules().clone())),
            Question::Presets => Response::Presets(self.core.presets()),
            Question::Preset(ref name) => preset(&self.core, name),
            Question::Explain(ref subject) => {
                self.core.explain(subject).map_or_else(Response::Error, |explanation| {
                    Response::Explained(Box::new(explanation))
                })
            }
        };
        let about = match question {
            Question::Job(job)
            | Question::Owned { job, .. }
            | Question::Frames { job, .. }
            | Question::Frame { job, .. } => Some(job),
            // It has no fact that a crash would undo.
            Question::KernelText { .. } => None,
            Question::Explain(Subject::Job(job) | Subject::Frame { job, .. }) => Some(job),
            Question::Explain(Subject::Node(_)) => None,
            Question::Jobs { .. }
            | Question::Nodes
            | Question::Costs { .. }
            | Question::CostRules
            | Question::Presets
            | Question::Preset(_) => None,
        };
        self.after_pending(After::Answer(reply, about, Box::new(response)));
    }

    /// Sends answers while the disk is full, so that clients learn why nothing continues. They are
    /// sent without the facts that a crash would undo. Requests and watchers still wait, because
    /// their answers must stay true.
    pub(super) fn release_answers(&mut self) {
        let mut not_durable = super::not_durable::NotDurable::default();
        for pending in &mut self.pending {
            not_durable.extend(&pending.not_durable);
            let (answers, rest) = std::mem::take(&mut pending.after)
                .into_iter()
                .partition(|after| matches!(after, After::Answer(..)));
            pending.after = rest;
            for answer in answers {
                if let After::Answer(reply, about, response) = answer {
                    drop(reply.send(not_durable.taken_from(about, *response)));
                }
            }
        }
    }

    /// Returns the farm as it is now, without its jobs, for monitoring.
    pub(super) fn present(&self) -> Present {
        let (nodes_doubted, nodes_guilty) = self.core.suspects();
        Present {
            nodes: self.core.nodes(self.around.clock.now()),
            units_leased: self.core.census().units as u64,
            nodes_doubted,
            nodes_guilty,
            counted: self.counted.clone(),
            records: self.sequence,
            steps_waiting: self.pending.len() as u64,
        }
    }

    /// Returns the finished frames of a job, in order.
    pub(super) fn frames_done(&self, job: JobId) -> Vec<FrameNumber> {
        self.core.frames_done(job)
    }
}

/// Answers a question for a preset.
pub(super) fn preset(core: &Core, name: &str) -> Response {
    match core.preset(name) {
        Some(preset) => Response::Preset(Box::new(preset)),
        None => Response::Error(RequestError::NotFound(format!("there is no preset {name:?}"))),
    }
}
