//! The coordinator's machine and its processes: hands messages and requests to the core as inputs.
//! What comes of them is in `steps`.

pub(crate) mod blobs;
pub(crate) mod bucket;
pub(crate) mod crash;
pub(crate) mod disk;
pub(crate) mod places;
pub(crate) mod reading;
mod resolver;
mod steps;
mod together;

use crate::checks::leases::{Seen, Watch};
use crate::checks::violation::{Checked, violated};
use crate::client::Ask;
use crate::client::questions::Answers;
use crate::coordinator::bucket::{Kept, Sent, in_object};
use crate::coordinator::places::{Extents, Values};
use crate::faults::Fault;
use crate::leaders::leading::Leading;
use crate::world::World;
use crate::world::events::{Event, LinkId, Parcel};
use std::collections::{BTreeMap, VecDeque};
use tessera_coordinator::spool::{FrameObject, SpoolKey};
use tessera_core::{Action, Core, Input, Moment, Record, RequestId, SessionId, SnapshotPart};
use tessera_protocol::ids::Lease;
use tessera_protocol::node::NodeToCoordinator;

/// The coordinator's clock when a run begins: an evening in 2023, milliseconds.
pub(crate) const CLOCK_START: u64 = 1_700_000_000_000;

/// The coordinator's machine.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    /// Counts the processes.
    pub(crate) incarnation: u64,
    pub(crate) process: Option<Process>,
    /// Which of several machines it is.
    pub(crate) machine: usize,
    /// Where the clock was set to, milliseconds beside the true time.
    pub(crate) clock_offset: i64,
}

/// One process of the coordinator.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) core: Core,
    pub(crate) watch: Watch,
    pub(crate) sessions: BTreeMap<SessionId, LinkId>,
    pub(crate) next_session: u64,
    asks: BTreeMap<RequestId, Ask>,
    next_request: u64,
    /// Results that wait for the core's word.
    pub(crate) arrived: BTreeMap<(SessionId, Lease), VecDeque<Sent>>,
    /// Results of streams that are not whole yet.
    together: BTreeMap<SessionId, Vec<Parcel>>,
    pub(crate) seen: Seen,
    /// A step is going to be taken, with what came of several inputs.
    pub(crate) step_planned: bool,
    /// Steps that are not durable yet, the first `syncing` of them being written.
    pub(crate) pending: VecDeque<Pending>,
    pub(crate) syncing: usize,
    /// What the core is going to be woken for.
    pub(crate) wakeup: Option<Moment>,
    /// Where the state is in a database.
    pub(crate) leading: Option<Leading>,
    /// Where results lie, with a bucket: what is being committed included.
    pub(crate) known: Extents,
    /// It puts nothing into the bucket until then.
    pub(crate) rests_until: u64,
}

/// A step on its way to the disk.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) results: Vec<Kept>,
    pub(crate) records: Vec<Record>,
    pub(crate) actions: Vec<Action>,
    /// For clients who asked how things are.
    pub(crate) answers: Vec<Answers>,
    pub(crate) snapshot: Option<Vec<SnapshotPart>>,
    /// Frames whose results are not needed any more.
    pub(crate) finished: Vec<SpoolKey>,
    /// The objects of these.
    pub(crate) leaving: Vec<FrameObject>,
    /// What changes of where results lie.
    pub(crate) places: Values,
}

impl Process {
    pub(crate) fn new(core: Core, watch: Watch) -> Self {
        Self {
            core,
            watch,
            sessions: BTreeMap::new(),
            next_session: 1,
            asks: BTreeMap::new(),
            next_request: 1,
            arrived: BTreeMap::new(),
            together: BTreeMap::new(),
            seen: Seen::default(),
            step_planned: false,
            pending: VecDeque::new(),
            syncing: 0,
            wakeup: None,
            leading: None,
            known: Extents::new(),
            rests_until: 0,
        }
    }
}

impl Process {
    /// Something that the core has decided is not durable yet.
    pub(crate) fn is_behind(&self) -> bool {
        self.step_planned || !self.pending.is_empty() || !self.together.is_empty()
    }

    /// Results were put that it has not committed.
    fn has_put(&self) -> bool {
        let mut results = self.pending.iter().flat_map(|pending| &pending.results);
        results.any(|kept| kept.sent.stored.is_some())
            || self.leading.as_ref().is_some_and(Leading::has_put)
    }
}

impl World {
    pub(crate) fn clock(&self) -> Moment {
        Moment((CLOCK_START + self.now).saturating_add_signed(self.shell.clock_offset))
    }

    /// A node's message, as an input.
    pub(crate) fn on_parcel(&mut self, id: LinkId, parcel: Parcel) -> Checked {
        if let Parcel::Join(join, fingerprint) = parcel {
            if self.refuses(id) {
                return Ok(());
            }
            let Some(process) = &mut self.shell.process else { return Ok(()) };
            let session = SessionId(process.next_session);
            process.next_session += 1;
            process.sessions.insert(session, id);
            if let Some(link) = self.links.links.get_mut(&id) {
                link.session = Some(session);
            }
            return self.input(Input::NodeJoined {
                session,
                join,
                fingerprint,
                build: "sim".to_owned(),
            });
        }
        let Some(session) = self.links.links.get(&id).and_then(|link| link.session) else {
            return violated("something has overtaken its join");
        };
        let input = match parcel {
            Parcel::Join(..) => return Ok(()),
            Parcel::Beat(heartbeat) => Input::Heartbeat { session, heartbeat },
            Parcel::Result(..) | Parcel::Damaged(_) => {
                return self.on_result((id, session), parcel);
            }
            Parcel::Stored(results, object) => {
                let results = in_object(object, results).collect();
                return self.on_stored_results((id, session), results);
            }
            Parcel::Control(message) => match message {
                NodeToCoordinator::Join(_) => return violated("a join is no control message here"),
                NodeToCoordinator::Capacity { units } => Input::Capacity { session, units },
                NodeToCoordinator::Scene { scene, held } => {
                    Input::SceneHeld { session, scene, held }
                }
                NodeToCoordinator::Failed { lease, failure } => {
                    Input::UnitFailed { session, lease, failure }
                }
                NodeToCoordinator::Returned { leases } => Input::Returned { session, leases },
                NodeToCoordinator::Devices(devices) => Input::DevicesChanged { session, devices },
                NodeToCoordinator::KernelText { .. } => {
                    return violated("nodes of the simulation print nothing");
                }
                NodeToCoordinator::Draining => Input::NodeDraining { session },
            },
        };
        self.input(input)
    }

    pub(crate) fn on_session_lost(&mut self, session: SessionId) -> Checked {
        if let Some(process) = &mut self.shell.process {
            process.sessions.remove(&session);
        }
        self.input(Input::SessionLost { session })
    }

    pub(crate) fn on_node_left(&mut self, session: SessionId) -> Checked {
        if let Some(process) = &mut self.shell.process {
            process.sessions.remove(&session);
        }
        self.tally.count(Fault::NodeLeft);
        self.input(Input::NodeLeft { session, why: "simulated".to_owned() })
    }

    /// The core is woken by the last wakeup that was planned, and by none of those before it.
    pub(crate) fn on_tick(&mut self, wakeup: Moment) -> Checked {
        let planned = self
            .shell
            .process
            .as_mut()
            .and_then(|process| process.wakeup.take_if(|at| *at == wakeup));
        if planned.is_some() { self.input(Input::Tick) } else { Ok(()) }
    }

    /// A client's request, as an input.
    pub(crate) fn ask_core(&mut self, ask: Ask, input: impl FnOnce(RequestId) -> Input) -> Checked {
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let request = RequestId(process.next_request);
        process.next_request += 1;
        process.asks.insert(request, ask);
        self.input(input(request))
    }

    /// Hands an input to the core, and takes the step at once or with others.
    pub(crate) fn input(&mut self, input: Input) -> Checked {
        self.inputs(vec![input])
    }

    /// Hands inputs to the core as one, and takes the step at once or with others.
    fn inputs(&mut self, inputs: Vec<Input>) -> Checked {
        let now = self.clock();
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let mut copied = false;
        let mut passed = Vec::new();
        for input in inputs {
            let input = match &mut self.planted {
                Some(planted) => planted.disguise(input, &self.ledger.believed),
                None => input,
            };
            process.watch.on_input(&input, &mut process.seen, now.0);
            copied |= match &input {
                Input::ResultArrived { result, .. } => {
                    process.core.leases_of(result.lease.unit).count() > 1
                }
                _ => false,
            };
            match &mut self.planted {
                Some(planted) => {
                    passed.extend(planted.on_input(input, process, &mut self.random));
                }
                None => passed.push(input),
            }
        }
        if let Some(ghost) =
            self.planted.as_mut().and_then(|planted| planted.on_start(self.shell.incarnation))
        {
            process.core.handle(ghost, now);
        }
        if !passed.is_empty() {
            process.core.handle_all(passed, now);
        }
        if process.step_planned {
            return Ok(());
        }
        let long = copied && self.chance(Fault::LongBatch);
        if !long && !self.chance(Fault::Batch) {
            return self.take_step();
        }
        let delay = if long { self.random.between(500, 4_000) } else { self.random.between(1, 20) };
        self.after(delay, Event::TakeStep(self.shell.incarnation));
        if let Some(process) = &mut self.shell.process {
            process.step_planned = true;
        }
        Ok(())
    }

    /// Wakes the core when it asks for it, or a little later.
    pub(crate) fn plan_tick(&mut self) {
        let (clock, incarnation) = (self.clock(), self.shell.incarnation);
        let late = self.random.between(0, 30);
        let Some(process) = &mut self.shell.process else { return };
        let Some(wakeup) = process.core.next_wakeup() else { return };
        if process.wakeup.is_none_or(|planned| wakeup < planned) {
            process.wakeup = Some(wakeup);
            self.after(wakeup.0.saturating_sub(clock.0) + late, Event::Tick(incarnation, wakeup));
        }
    }
}
