//! Virtual time: what is to happen, and when. Events of one moment happen in the order in which
//! they were planned.

use crate::client::Ask;
use crate::client::questions::Answers;
use crate::leaders::database::{Said, Statement};
use crate::model::film::Film;
use std::collections::BTreeMap;
use tessera_coordinator::spool::{FrameObject, ResultObject};
use tessera_core::{Moment, SessionId, TileSet};
use tessera_protocol::client::Response;
use tessera_protocol::ids::{Fingerprint, FrameNumber, JobId, Lease};
use tessera_protocol::node::{CoordinatorToNode, Heartbeat, Join, NodeToCoordinator};

/// A connection, by its number.
pub(crate) type LinkId = u64;

/// What a node sends.
#[derive(Clone, Debug)]
pub(crate) enum Parcel {
    Join(Box<Join>, Fingerprint),
    Control(NodeToCoordinator),
    Beat(Heartbeat),
    Result(Lease, Film),
    /// Word of results that are in an object.
    Stored(Vec<(Lease, Film)>, ResultObject),
    /// A result whose bytes do not have its hash.
    Damaged(Lease),
}

/// Something that happens.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A message reaches the coordinator.
    Up(LinkId, Parcel),
    /// A message reaches a node.
    Down(LinkId, CoordinatorToNode),
    /// The coordinator finds a connection gone.
    CoordinatorNotices(LinkId),
    /// A node finds a connection gone.
    NodeNotices(LinkId),
    /// A process of a node begins.
    NodeStarts(usize),
    /// What follows is for one process of a node (its number) and void for others.
    Node(usize, u64, NodeEvent),
    /// A node goes on after standing still.
    NodeWakes(usize),
    /// What the coordinator (of this incarnation) has still to make of its inputs.
    TakeStep(u64),
    /// A stream of results to this incarnation, of a connection and its session, is whole.
    Together(u64, LinkId, SessionId),
    /// A sync of this incarnation is done.
    Synced(u64),
    /// This incarnation asked to be woken at this time of its clock.
    Tick(u64, Moment),
    /// A session of this incarnation that the core closed is reported lost.
    LateLoss(u64, SessionId),
    /// This incarnation's resolver answers.
    Resolved(u64, JobId, FrameNumber),
    /// It has measured a round.
    Measured(u64, JobId, FrameNumber, (u32, TileSet)),
    /// A node finds that a result which this lease's unit reads is not what it was.
    FoundWrong(u64, Lease),
    /// This incarnation deletes objects.
    Forget(u64, Vec<FrameObject>),
    /// This incarnation ends.
    Crash(u64),
    /// The coordinator starts.
    Restart,
    /// A process of a coordinator begins, and stands by.
    MachineStarts(usize),
    /// This process of a coordinator (its number), which stands by, asks for the lead.
    StandBy(usize, u64),
    /// A coordinator goes on after standing still.
    MachineWakes(usize),
    /// A statement reaches the database.
    Statement(Box<Statement>),
    /// A process of a coordinator hears of a statement, by its number.
    Said((usize, u64), u64, Box<Said>),
    /// This incarnation asks the database again.
    AskAgain(u64),
    /// This incarnation renews its term.
    Renew(u64),
    /// This incarnation looks at its term.
    CheckTerm(u64),
    /// A client asks.
    Ask(Ask),
    /// A job whose files are uploaded (its position in the plan) is submitted.
    Submit(usize),
    /// Nobody may work any more on a job whose pause or end was told: by then every message has
    /// arrived.
    Stopped(crate::checks::stopped_jobs::Halt),
    /// The coordinator looks for blobs that no job names.
    Sweep,
    /// A client is answered.
    Answer(Ask, Response),
    /// A client asks how its job is (its position in the plan), and has asked so many times before.
    Question(usize, u32),
    /// A client sees how things were.
    Answers(Box<Answers>),
    /// Something may go wrong.
    RollFaults,
    /// Nothing goes wrong any more.
    Heal,
    /// Is everything over?
    Look,
}

/// Something that happens to a process of a node.
#[derive(Clone, Debug)]
pub(crate) enum NodeEvent {
    Dial,
    Beat,
    /// A device has ended a run.
    Rendered(u64),
    /// A result is on the node's disk.
    Stored(Lease),
    /// Results are put into the bucket, for a session of this connection.
    Put(LinkId, Vec<Lease>),
    /// Nothing was heard of a put: they are put again.
    PutAgain(LinkId, Vec<Lease>),
    DeviceOn(u32),
    /// Its machine is going to be taken away, or it must have left soon.
    Cut,
    /// Its machine is taken away.
    Preempted,
}

/// Everything to come.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
}

impl EventQueue {
    pub(crate) fn plan(&mut self, at: u64, event: Event) {
        self.queue.insert((at, self.sequence), event);
        self.sequence += 1;
    }

    pub(crate) fn next(&mut self) -> Option<(u64, Event)> {
        self.queue.pop_first().map(|((at, _), event)| (at, event))
    }
}
