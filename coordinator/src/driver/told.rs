//! The lines of the log about what the core decides, by its records. What a connection does is
//! logged where it is served.

use crate::farm_log::FarmLog;
use tessera_core::journal::{EndedAttempt, Ending, Gone};
use tessera_core::{Core, Record};
use tessera_protocol::ids::NodeId;
use tessera_protocol::{FrameNumber, JobId};

/// Writes what records of the core mean for people.
pub(super) fn tell(log: &FarmLog, core: &Core, record: &Record) {
    tell_of_suspects(record);
    tell_of_jobs(log, core, record);
    tell_of_nodes(log, core, record);
}

/// Whether a line about a job may be written: its owner is the cause.
fn allows(log: &FarmLog, core: &Core, job: JobId) -> bool {
    let owner = core.owner_of(job).map_or(0, |owner| owner.id());
    log.allows(&format!("user #{owner}"))
}

fn tell_of_jobs(log: &FarmLog, core: &Core, record: &Record) {
    match record {
        Record::JobAccepted { job, spec, owner, owner_id, .. } if allows(log, core, *job) => {
            let (name, priority) = (spec.name.as_str(), spec.priority);
            let frames = spec.kind.frames().len();
            tracing::info!(%job, name, owner, owner_id, priority, frames, "job accepted");
        }
        Record::JobEnded { job, state, note, .. } if allows(log, core, *job) => {
            tracing::info!(%job, ?state, note, "job ended");
        }
        Record::JobChanged { job, change, by, .. } if allows(log, core, *job) => {
            let to = change.words();
            tracing::info!(%job, by, to, "job changed");
        }
        Record::JobRetried { job, by, .. } if allows(log, core, *job) => {
            tracing::info!(%job, by, "job retried");
        }
        Record::JobPaused { job, by, .. } if allows(log, core, *job) => {
            tracing::info!(%job, by, "job paused");
        }
        Record::JobResumed { job } if allows(log, core, *job) => {
            tracing::info!(%job, "job resumed");
        }
        Record::FrameFailed { job, frame, reason } if allows(log, core, *job) => {
            tracing::info!(%job, %frame, reason, "frame failed");
        }
        Record::FinishingClosed { job, frame, reason, .. } if allows(log, core, *job) => {
            tracing::warn!(%job, %frame, reason, "nodes could not finish the frame: the \
                coordinator does");
        }
        Record::ResultsLost { job, frame, units, reason, .. } if allows(log, core, *job) => {
            let (count, first) = (units.len(), units.first().map_or(0, |unit| unit.0));
            tracing::warn!(%job, %frame, count, first, reason, "bytes of results are lost: their \
                units are made again");
        }
        _ => {}
    }
}

fn tell_of_nodes(log: &FarmLog, core: &Core, record: &Record) {
    let allows = |node: &NodeId| log.allows(&format!("node {node}"));
    match record {
        Record::AttemptsEnded { node, name, attempts, .. } => {
            tell_of_attempts(log, (*node, name), attempts);
        }
        Record::NodeGone { node, how, why, .. } if allows(node) => {
            let name = core.node_name(*node);
            match how {
                Gone::Left => tracing::info!(%node, name, why, "node left"),
                Gone::Lost => tracing::info!(%node, name, why, "node lost"),
                Gone::Removed => tracing::info!(%node, name, why, "node taken off the list"),
            }
        }
        Record::NodeReplaced { old, new, .. } if allows(new) => {
            let name = core.node_name(*new);
            tracing::info!(node = %new, name, %old, "node replaced an older one of its name");
        }
        Record::NodesForgotten { nodes } => {
            let count = nodes.len();
            tracing::info!(count, "absent nodes forgotten: more than are kept were gone");
        }
        Record::NodeDrained { node, drained: true, leave, by, .. } if allows(node) => {
            tracing::info!(%node, name = core.node_name(*node), by, leave, "node drained");
        }
        Record::NodeDrained { node, by, .. } if allows(node) => {
            tracing::info!(%node, name = core.node_name(*node), by, "node undrained");
        }
        Record::NodeReleased { node } if allows(node) => {
            tracing::info!(%node, name = core.node_name(*node), "node trusted again");
        }
        _ => {}
    }
}

/// A line for each failed attempt, and one for all leases that ended with their node or their time.
fn tell_of_attempts(log: &FarmLog, (node, name): (NodeId, &str), attempts: &[EndedAttempt]) {
    let cause = format!("node {node}");
    let (mut lost, mut expired) = (0, 0);
    for EndedAttempt { lease, ending } in attempts {
        let reason = match ending {
            Ending::Failed(reason)
            | Ending::TimedOut(reason)
            | Ending::Unprepared(reason)
            | Ending::Limited(reason)
            | Ending::Repeated(reason)
            | Ending::Idle(reason) => reason.as_str(),
            Ending::Lost => {
                lost += 1;
                continue;
            }
            Ending::Expired => {
                expired += 1;
                continue;
            }
        };
        if log.allows(&cause) {
            let (job, frame): (JobId, FrameNumber) = (lease.unit.job, lease.unit.frame);
            let unit = lease.unit.unit.0;
            tracing::info!(%job, %frame, unit, %node, name, reason, "attempt failed");
        }
    }
    if lost + expired > 0 && log.allows(&cause) {
        tracing::info!(%node, name, lost, expired, "leases ended without a result");
    }
}

/// Logs every suspicion against a node, and every wrong result of a user's kernel.
fn tell_of_suspects(record: &Record) {
    if let Record::NodeBarred { job, node, name, reason, .. } = record {
        tracing::warn!(%job, %node, name, reason, "node gave a wrong result of a user's kernel");
    }
    if let Record::NodeSuspected { node, name, reason, guilty, .. } = record {
        let end = "`tessera undrain` ends it, once the node is in order";
        match guilty {
            true => {
                tracing::error!(%node, name, reason, end, "node gave a wrong result, and is \
                    quarantined")
            }
            false => {
                tracing::error!(%node, name, reason, end, "node is in doubt: all its results are \
                    checked")
            }
        }
    }
}
