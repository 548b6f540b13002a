//! Every kind of fault that the simulator knows, how often it happens, and how often it was met.

pub(crate) mod planted;
pub(crate) mod spontaneous;

use std::fmt::Write;

macro_rules! faults {
    ($($name:ident $permille:literal $text:literal,)*) => {
        /// A kind of fault. With a chance above 0 it is rolled for at each opportunity; with 0 it
        /// follows from others.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Fault { $($name,)* }

        impl Fault {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// How often, of a thousand opportunities, in a run of medium severity.
            pub(crate) fn permille(self) -> u32 {
                match self { $(Self::$name => $permille,)* }
            }

            /// What happens.
            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

faults! {
    // Nodes: an opportunity every tenth of a second or so.
    NodeCrash 70 "a node's process ends at once",
    NodeReturn 0 "a node comes back as a new process",
    OutboxKept 0 "results of a former process are offered again",
    NodeDrains 15 "a node leaves by its own wish",
    Upgrade 30 "a node comes back with another fingerprint",
    ForeignFingerprint 0 "a node with a foreign fingerprint joins",
    CapacityChange 40 "a node asks for another number of units",
    ProcessStall 30 "a node's process stands still",
    DeviceStall 30 "a node's devices stand still, its heart beats",
    NodeSlow 20 "a node becomes many times slower",
    NodePreempted 12 "a spot machine is taken away, with short notice",
    NodeLeaves 150 "a node at work has to be gone at once, and hands in what its units have",
    ClockSkew 60 "a node's clock runs fast or slow",
    BadNode 0 "every attempt fails on a node",
    IdleNode 25 "a node's heart beats, and it begins nothing",
    CannotPrepare 0 "a node says of every scene that it cannot be prepared",
    SmallNode 0 "a job exceeds a limit of a node",
    PowerCut 2 "all nodes and the coordinator end at once",
    // The network.
    LinkCut 90 "a connection is lost",
    Partition 4 "many nodes are cut off at once, and cannot dial",
    LastNode 12 "all nodes but one are cut off, and everything fails on that one",
    DeafUp 25 "a connection loses all that the node sends",
    DeafDown 25 "a connection loses all that the coordinator sends",
    LinkSlow 25 "a node's messages take seconds",
    BeatRepeated 25 "a heartbeat arrives twice",
    QuickReturn 0 "a node is back before its loss is noticed",
    GraceKept 0 "a node is back within its grace, with its leases",
    GraceOver 0 "a node is seen lost, its grace over",
    BeatLost 40 "a heartbeat is lost",
    BeatLate 40 "a heartbeat is overtaken by later messages",
    ResultSlow 15 "a result takes longer than a lease",
    ResultRepeated 20 "a result is sent twice",
    Together 150 "a result waits on its stream for others",
    SharedStream 0 "several results of a stream are handled as one",
    ControlRepeated 20 "a control message is sent twice",
    // Attempts.
    FailScene 4 "an attempt fails: scene",
    FailLimit 3 "an attempt exceeds a limit of its node",
    FailAsset 8 "an attempt fails: asset",
    PoisonUnit 12 "a unit takes down every worker process for a while",
    FilesGone 12 "files of a job cannot be had for a while",
    FailDevice 14 "an attempt fails: device",
    FailMemory 8 "an attempt finds its device's memory taken by others",
    FailWorker 8 "an attempt fails: the device's worker process dies",
    FailTimeout 5 "an attempt fails: the watchdog ends it",
    MemoryTooSmall 0 "an attempt needs more memory than its device has",
    ShortageCleared 0 "a unit that ran out of memory is committed by a larger device",
    JobRefused 0 "a job is refused, because it fits no device known",
    JobFitsNowhere 0 "a job ends, because it fits no device known",
    JobWaitsForMemory 0 "a job is seen waiting for a larger device",
    DeviceQuarantine 60 "a device is quarantined",
    DeviceTested 0 "a device is tested, and ready again",
    DevicesAllOut 0 "a node is seen unfit, all its devices quarantined",
    ResultDamaged 10 "a result arrives damaged",
    WrongShape 8 "a result has the wrong shape",
    LeaseExpired 0 "a lease expires",
    LeaseLost 0 "a lease is lost with its node",
    TimedOut 0 "an attempt times out",
    FrameFailed 0 "a frame fails",
    NodeUnfit 0 "a node is seen unfit, after its failures",
    // Lies: an opportunity with each heartbeat of a liar.
    StaleEpoch 120 "lie: a result of an old epoch",
    UnissuedEpoch 120 "lie: a result of an epoch never issued",
    ForeignLease 120 "lie: a result of a unit leased to another node",
    BorrowedEpoch 120 "lie: a result with the epoch of another unit",
    BorrowedInJoin 300 "lie: a join that names units with epochs of others",
    UnknownUnit 80 "lie: a result of a unit that does not exist",
    UnknownJob 80 "lie: a result of a job that does not exist",
    FalseBeat 120 "lie: a heartbeat that names leases of others",
    FalseFailure 100 "lie: a failure of another node's lease",
    FalseReturn 100 "lie: another node's lease is given back",
    FalseDamage 80 "lie: a damaged result of another node's lease",
    FalseJoin 300 "lie: a join that names leases of others",
    WrongSums 400 "lie: a result with a flipped bit",
    SteadyWrong 0 "lie: a result of a user's kernel with a bit that is always flipped",
    // Verification.
    UnitChecked 0 "a committed unit is rendered again by another node",
    CheckWaived 0 "a check is given up, for want of another node",
    UnitTakenBack 0 "units are taken back, because their node lied",
    ForgerFound 0 "a node that gives wrong results is found",
    // The coordinator.
    CrashIdle 0 "the coordinator ends with nothing to write",
    CrashUnsynced 0 "the coordinator ends before a step is synced",
    CrashSpooled 0 "the coordinator ends between results and records",
    CrashHalfSynced 0 "the coordinator ends within the records of a sync",
    CrashUntold 0 "the coordinator ends after a sync, before its actions",
    CrashHalfTold 2 "the coordinator ends within the actions of a step",
    CrashAgain 120 "the coordinator ends again right after its start",
    CoordinatorCrash 16 "the coordinator ends at any moment",
    CrashInSync 10 "the coordinator ends while it writes",
    LongOutage 150 "the coordinator is away for longer than leases last",
    SlowDisk 6 "a sync takes seconds",
    DiskFull 2 "the disk is full, and everything waits for room",
    TornRecord 0 "a crash leaves a part of a record",
    BitFlip 150 "a start reads a record with a flipped bit",
    SnapshotLost 0 "a snapshot is lost in a crash",
    Snapshot 12 "a snapshot takes the place of records",
    Batch 150 "several inputs share a step",
    LongBatch 40 "the inputs of seconds share a step, with a result of a unit that has two leases",
    ClockStep 15 "the coordinator's clock is set",
    LateLoss 500 "a session that was closed is reported lost",
    // Resolves.
    ResolveRetry 150 "a frame cannot be written now",
    ResolveFatal 25 "a frame can never be written",
    ResolveMiscount 40 "a frame is written in too few formats",
    ResolveRepeated 60 "a resolve is answered twice",
    // Clients: an opportunity with each job or answer.
    SubmitRepeated 150 "a submit is repeated",
    SubmitConflict 80 "a job's id is submitted with another spec",
    SubmitForeign 60 "a job's id is submitted by another user",
    ReplyLost 80 "an answer is lost",
    ClientVanishes 60 "a client submits and is never heard of again",
    Question 500 "a client asks how things are",
    CancelOwn 120 "a job is cancelled",
    CancelForeign 60 "a job is cancelled by somebody who may not",
    CancelUnknown 40 "a job that does not exist is cancelled",
    CancelAll 30 "all jobs of a user are cancelled",
    CancelAllForeign 30 "all jobs of a user are cancelled by somebody who may not",
    CancelRepeated 500 "a cancel is repeated",
    PauseOwn 150 "a job is paused, and goes on later",
    RetryOwn 450 "failed frames of a job are to be rendered again",
    RetryForeign 30 "a job is retried by somebody who may not",
    ChangeOwn 250 "a job is changed: its name, its priority, the nodes that work on it",
    ChangeRaised 60 "a user raises a job above the default, and may not",
    ChangeForeign 40 "a job is changed by somebody who may not",
    SubmitRaised 60 "a job is submitted above the default by somebody who may not",
    OperatorRaises 100 "an operator raises a job above the default",
    PauseForeign 40 "a job is paused by somebody who may not",
    PauseRepeated 300 "a pause is repeated",
    OperatorDrain 20 "an operator drains a node",
    BudgetSet 25 "an admin sets prices and a budget",
    BudgetRaised 0 "an admin takes budgets away",
    Audit 40 "an operator asks for an audit",
    // Nodes that come and go.
    DrainToLeave 300 "a drained node is told to leave as well",
    OperatorRemove 25 "an operator takes a node off the list",
    NodeReinstalled 60 "a machine comes back with another identity and its old name",
    NodeCloned 20 "a copy of a node dials while the node lives",
    NodeLeft 0 "the coordinator hears that a node leaves",
    // Finishing.
    ResultsLost 60 "bytes of a frame that nodes finish are lost",
    ResolveLost 120 "the resolver finds bytes of results lost",
    PoisonPiece 800 "a piece of a frame takes down every worker process for a while",
    // Several coordinators, and their database.
    LeaderKilled 8 "the coordinator that leads ends at once",
    StandbyKilled 8 "a coordinator that stands by ends at once",
    LeaderStopped 8 "the coordinator that leads stands still, and goes on",
    LeaderSleeps 4 "the coordinator that leads stands still, and its clock as well",
    NoDatabase 6 "the coordinator that leads cannot reach the database",
    NoNodes 5 "nodes and clients cannot reach the coordinator that leads",
    NoBoth 4 "the coordinator that leads is cut off from everything",
    DatabaseAway 5 "the database is away",
    DatabaseFailsOver 8 "a standby of the database takes over",
    EndLost 0 "a standby of the database lacks the newest commits",
    StatementSlow 12 "a statement takes seconds",
    StatementLost 8 "a statement is lost on its way",
    StatementLate 6 "a statement happens after it was given up",
    AnswerLost 12 "a statement happens, and its answer is lost",
    StopsInCommit 2 "a leader stands still past its term while the database takes its commit",
    Takeover 0 "a coordinator takes the lead",
    // The bucket with the results of frames in work.
    BucketAway 8 "the bucket is away",
    NoBucket 60 "a node cannot reach the bucket",
    ObjectLost 15 "the bucket loses an object",
    ObjectChanged 15 "a bit of an object flips in the bucket",
    PutSlow 20 "a put takes seconds, or longer than a lease",
    PutUnanswered 20 "a put happens, and its answer is lost",
    ForgetSlow 200 "objects of a frame that is over are deleted seconds later",
}

/// How often each kind was met.
#[derive(Clone, Debug)]
pub(crate) struct Tally(Vec<u64>);

impl Default for Tally {
    fn default() -> Self {
        Self(vec![0; Fault::ALL.len()])
    }
}

impl Tally {
    pub(crate) fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, count)| *sum += count);
    }

    /// Kinds that were never met.
    pub(crate) fn missing(&self) -> Vec<Fault> {
        Fault::ALL.iter().copied().filter(|fault| self.0[*fault as usize] == 0).collect()
    }

    /// A line for each kind.
    pub(crate) fn table(&self) -> String {
        let mut table = String::new();
        for fault in Fault::ALL {
            let count = self.0[*fault as usize];
            writeln!(table, "{count:>12}  {:<18} {}", format!("{fault:?}"), fault.text())
                .expect("a string takes all");
        }
        table
    }
}
