//! `node`: runs a node until it is told to leave.

use super::enrol::read_token;
use crate::args::devices::DeviceArgs;
use crate::args::node::NodeArgs;
use crate::config;
use crate::error::{CliError, Status};
use crate::idle_exit::{IdleExit, Reason};
use crate::log::Telling;
use crate::notices::{Heard, Notices};
use crate::service::{Manager, is_alive};
use crate::signals::Stops;
use crate::table::counted;
use crate::work_hours::{self, Local, WorkHours};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tessera_node::{Config, Ended, Node, NodeError, NodeStatus, RunningNode};
use tessera_protocol::job::is_label;
use tessera_protocol::limits::NAME_MAX;
use tessera_transport::EnrolError;

/// How long the service manager waits for a session before it hears that the node runs without one.
const JOIN_WAIT: Duration = Duration::from_secs(30);

/// `tessera node`.
pub(crate) async fn run(args: NodeArgs, telling: Telling) -> Result<Status, CliError> {
    let mut manager = Manager::find();
    let mut stops = Stops::listen()?;
    let config = Config { log: telling.node, tracer: telling.tracer, ..node_config(&args)? };
    loop {
        if let Some(hours) = &args.hours
            && rest(hours, &mut manager, &mut stops).await == Rest::Stopped
        {
            tracing::info!("stopped outside its hours");
            return Ok(Status::Done);
        }
        manager.status("opening devices".into());
        let node = Node::start(config.clone())?;
        tracing::info!(node = %node.id(), coordinator = args.coordinator, "node started");
        let now = Instant::now();
        let max_idle = args.max_idle.map(Duration::from_secs);
        let supervision = Supervision {
            node,
            manager: &mut manager,
            idle_exit: IdleExit::new(args.once, max_idle, now),
            coordinator: &args.coordinator,
            started: now,
            seen: NodeStatus::default(),
        };
        let (ended, leaves) = work(&args, supervision, &mut stops).await?;
        let status = conclude(ended, leaves)?;
        if !matches!(leaves, Leaves::Hours) {
            return Ok(status);
        }
    }
}

/// How a rest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// The hours have begun.
    Over,
    /// The node was told to stop.
    Stopped,
}

/// Waits for the hours, with no connection and no device open.
async fn rest(hours: &WorkHours, manager: &mut Manager, stops: &mut Stops) -> Rest {
    let mut is_told = false;
    while !hours.hold(Local::now()) {
        if !std::mem::replace(&mut is_told, true) {
            tracing::info!(%hours, "rests until its hours begin");
        }
        manager.ready();
        manager.status(format!("rests; it works {hours}"));
        manager.alive();
        tokio::select! {
            () = tokio::time::sleep(manager.interval()) => {}
            () = stops.next() => return Rest::Stopped,
        }
    }
    Rest::Over
}

/// Runs a node until it has left; also why it did.
async fn work(
    args: &NodeArgs,
    mut supervision: Supervision<'_>,
    stops: &mut Stops,
) -> Result<(Ended, Leaves), CliError> {
    let mut looks = tokio::time::interval(supervision.manager.interval());
    let mut leaves = Leaves::No;
    let mut notices = Notices::of(args.spot);
    let hand_in = args.hand_in_after.map(Duration::from_secs);
    loop {
        tokio::select! {
            ended = supervision.node.join() => return Ok((ended.map_err(told)?, leaves)),
            () = stops.next() => match leaves {
                Leaves::No | Leaves::ByItself(_) | Leaves::Hours => {
                    tracing::info!("draining: what is in work will be finished and delivered; a \
                        second signal hands it back and ends the node at once");
                    supervision.leave("draining", "it was told to stop (SIGTERM or SIGINT)");
                    leaves = Leaves::Asked;
                    hand_in.into_iter().for_each(|time| notices.hand_in_after(time));
                }
                Leaves::Asked => supervision.node.stop_now(),
            },
            heard = notices.next() => supervision.hear(&heard, &mut leaves),
            _ = looks.tick() => {
                let reason = supervision.look(Instant::now());
                let Leaves::No = leaves else { continue };
                if let Some(reason) = reason {
                    tracing::info!(?reason, "leaving: no work");
                    supervision.leave("leaving: no work", why_idle(reason));
                    leaves = Leaves::ByItself(reason);
                } else if let Some(hours) = &args.hours && !hours.hold(Local::now()) {
                    tracing::info!(%hours, "leaving: its hours are over");
                    let why = format!("{}: it works {hours}", work_hours::OVER);
                    // For the service manager it goes on.
                    supervision.manager.status("leaving: its hours are over".into());
                    supervision.node.leave(&why);
                    leaves = Leaves::Hours;
                    hand_in.into_iter().for_each(|time| notices.hand_in_after(time));
                }
            }
        }
    }
}

/// What the coordinator is told of a node that leaves by itself.
fn why_idle(reason: Reason) -> &'static str {
    match reason {
        Reason::RanOut => "no more work (--once)",
        Reason::Idle | Reason::NeverJoined => "no work (--max-idle)",
    }
}

/// Whether the node is leaving, and why.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    No,
    ByItself(Reason),
    /// Its hours are over; it comes again.
    Hours,
    Asked,
}

/// A running node with what supervises it: the service manager and the rules for leaving.
struct Supervision<'a> {
    node: RunningNode,
    manager: &'a mut Manager,
    idle_exit: IdleExit,
    coordinator: &'a str,
    started: Instant,
    seen: NodeStatus,
}

impl Supervision<'_> {
    /// Does what news about the end of the machine asks for.
    fn hear(&mut self, heard: &Heard, leaves: &mut Leaves) {
        match heard {
            Heard::Notice(notice) => {
                tracing::warn!(notice = notice.what, "draining: this machine is taken back");
                let why = format!("its machine is taken back: {}", notice.what);
                self.leave("draining: this machine is taken back", &why);
                *leaves = Leaves::Asked;
            }
            Heard::HandIn => {
                tracing::warn!(
                    "units end at the next sample, and what they have is handed in: \
                    time is nearly up"
                );
                self.node.hand_in();
            }
            Heard::Over => {
                tracing::warn!("what is not delivered is handed back: time is up");
                self.node.stop_now();
            }
        }
    }

    /// Reports the state of the node to the service manager; returns a reason to leave, if any.
    fn look(&mut self, now: Instant) -> Option<Reason> {
        let status = self.node.status();
        if status.connected || now.saturating_duration_since(self.started) >= JOIN_WAIT {
            self.manager.ready();
        }
        self.manager.status(self.line(&status));
        let watchdog = self.manager.watchdog();
        if watchdog.is_some_and(|limit| is_alive(self.node.vitals(), now, limit)) {
            self.manager.alive();
        }
        let before = std::mem::replace(&mut self.seen, status);
        self.idle_exit.look(&before, &self.seen, now)
    }

    fn line(&self, status: &NodeStatus) -> String {
        let state = match status {
            NodeStatus { draining: true, .. } => "draining: ".to_owned(),
            NodeStatus { drained: true, .. } => "drained by an operator: ".to_owned(),
            NodeStatus { connected: true, .. } => String::new(),
            _ => format!("dialling {}: ", self.coordinator),
        };
        let devices = counted(self.node.devices().len() as u64, "device");
        let held = counted(status.held as u64, "unit");
        format!("{state}{devices}, {held} held, {} committed", status.committed)
    }

    /// Leaves: `line` is for the service manager, and `why` for the coordinator.
    fn leave(&mut self, line: &str, why: &str) {
        self.manager.stopping(line);
        self.node.leave(why);
    }
}

/// The hint of a refused enrolment names the role that a node needs.
fn told(error: NodeError) -> CliError {
    match error {
        NodeError::Enrol(EnrolError::Refused(_)) => CliError::new(Status::NotAllowed, error)
            .hint("an admin or operator makes tokens: `tessera token create --role node`"),
        error => error.into(),
    }
}

fn conclude(ended: Ended, leaves: Leaves) -> Result<Status, CliError> {
    if let Leaves::ByItself(Reason::NeverJoined) = leaves {
        return Err(CliError::new(
            Status::Unreachable,
            "the coordinator was not reached before --max-idle was over",
        )
        .hint("`tessera doctor --coordinator HOST:PORT` says what is in the way"));
    }
    match ended {
        Ended::Drained { unacknowledged: 0 } => tracing::info!("drained"),
        Ended::Drained { unacknowledged } => {
            tracing::warn!(
                unacknowledged,
                "drained; some results are not acknowledged and are delivered at the next start"
            );
        }
        Ended::Stopped => {
            tracing::info!(
                "stopped at once; units are handed back, finished results are delivered at the \
                    next start"
            );
        }
    }
    Ok(Status::Done)
}

fn node_config(args: &NodeArgs) -> Result<Config, CliError> {
    let data = data_folder(args.data.as_ref())?;
    let name = args.name.clone().unwrap_or_else(host_name);
    let mut config = with_devices(Config::new(&args.coordinator, data, name), &args.devices);
    config.name_is_fixed = args.name.is_some();
    let token = args.token_file.as_deref().map(read_token).transpose()?;
    // A package installs an empty file for the token.
    config.token = token.filter(|token| !token.is_empty());
    if let Some(pool) = args.pool.as_deref().filter(|pool| !is_label(pool)) {
        let message = format!(
            "--pool {pool:?} is not 1 to {NAME_MAX} letters, digits and `.`, `_`, `-`, `@`"
        );
        return Err(CliError::new(Status::Usage, message));
    }
    config.pool = args.pool.clone();
    config.cache_bytes = args.cache.saturating_mul(1 << 20);
    config.import = args.import.limits();
    config.sandbox = args.sandbox;
    Ok(config)
}

/// The node's folder: this one, or the user's.
pub(crate) fn data_folder(given: Option<&PathBuf>) -> Result<PathBuf, CliError> {
    let usual = || config::data_folder().map(|folder| folder.join("node"));
    given.cloned().or_else(usual).ok_or_else(|| {
        CliError::new(Status::Usage, "this user has no home folder")
            .hint("say where the node's folder is: --data DIR")
    })
}

/// A node's settings with these devices.
pub(crate) fn with_devices(mut config: Config, devices: &DeviceArgs) -> Config {
    config.devices = devices.device.clone();
    config.threads = devices.threads.map(|threads| threads as usize);
    config.isa = devices.isa;
    if let Some(secs) = devices.watchdog {
        config.watchdog.floor = Duration::from_secs(secs);
    }
    config.xid_table = std::env::var_os("TESSERA_XID_TABLE").map(PathBuf::from);
    config
}

/// The host's name as far as a node may have it, or `node`.
fn host_name() -> String {
    let system = rustix::system::uname();
    let name: String = system
        .nodename()
        .to_string_lossy()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@'))
        .take(tessera_protocol::limits::NAME_MAX)
        .collect();
    if name.is_empty() { "node".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_node_is_told_the_role_of_its_token() {
        let reason = "a node needs an id, and only a node has one".to_owned();
        let error = told(NodeError::Enrol(EnrolError::Refused(reason)));
        assert_eq!(error.status(), Status::NotAllowed);
        let text = error.to_string();
        assert!(text.contains("a node needs an id") && text.contains("--role node"), "{text}");
    }
}
