//! Situations that runs must meet now and then: a run that never gets into them proves nothing
//! about them. Faults are counted in `faults`; these are what the farm made of them.

pub(crate) mod noted;
mod waits;

use std::fmt::Write;

macro_rules! situations {
    ($($name:ident $text:literal,)*) => {
        /// A situation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Situation { $($name,)* }

        impl Situation {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// What it is, after "sometimes".
            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

/// Notes that a situation was met, where it was: a seed set that never meets it fails by its name.
macro_rules! sometimes {
    ($world:expr, $name:ident) => {
        $world.met.note($crate::situations::Situation::$name, true)
    };
    ($world:expr, $name:ident, $condition:expr) => {
        $world.met.note($crate::situations::Situation::$name, $condition)
    };
}
pub(crate) use sometimes;

situations! {
    OfferRefused "a node offers results to the bucket, and none is wanted",
    ResultRefused "a result comes too late, and is refused",
    AcknowledgedAgain "a commit is acknowledged that was acknowledged before",
    CommitAfterRestart "a result of a lease from before a restart is committed",
    CommitAfterEnd "a result is committed whose lease had ended",
    LeaseTakenBack "a lease from before a restart is taken up again",
    ThirdLease "a unit is leased a third time",
    ManyInAStep "three results are committed in one step",
    RetryElsewhere "a unit that failed on a node is committed by another",
    SessionReplaced "a node opens a session before its last one is seen lost",
    NobodyHere "jobs are open, and no node is here",
    OneHere "jobs are open, and one node is here",
    EverybodyHere "jobs are open, and every node is here",
    EverybodyBusy "more units are open than all nodes together want",
    ManyOpen "a thousand units are open",
    IdleFarm "nodes are idle, and the only open units are leased",
    ResolveAfterRestart "a frame whose units were all in is resolved after a restart",
    RestartFromSnapshot "a start reads a snapshot and records after it",
    RestartOfLongJournal "a start reads five hundred records",
    RestartAfterAck "the coordinator ends within a second of an acknowledgement",
    CancelUnderWay "a job is cancelled while units of it are leased",
    CancelTooLate "a cancel finds its job ended",
    AllCancelled "two jobs of a user are cancelled at once",
    ShareReached "a user has as many open jobs as one may have, and another is refused",
    ForgottenLater "a node hears of a job's end only when it comes back",
    RevokedLate "a node learns from its heartbeat's answer that a lease is void",
    FrameFailsOthersGoOn "a frame fails, and others of its job are finished",
    FedFrame "a frame that reads the one before is leased",
    SawFrameEarly "a client sees a finished frame of a job that goes on",
    SawAcrossRestart "a client sees a job before a restart and after it",
    LeaseOfACheck "a unit that is committed is leased again, to be checked",
    CopyGiven "an idle node is given a copy of a unit",
    CheckCopied "an idle node is given a copy of a check",
    CopyWon "a copy's result is first",
    CopyLost "the result of the lease before a copy is first",
    CopyOfCheckStopped "a check is over, and its other lease is stopped",
    LeftAlone "a node with one of a unit's two leases is lost, and the other goes on",
    BothResults "both results of a unit arrive in one step",
    StalledTakenBack "a unit is taken back from a node that beats and does not get on",
    IdleTakenBack "a unit is taken back from a node that beats and begins nothing",
    UnpreparedElsewhere "a unit whose scene a node cannot prepare is committed by another",
    LimitElsewhere "a unit that exceeds a limit of a node is committed by another",
    FailedAgain "a unit fails on the same node twice in a row, while another may have it",
    SaidByTwo "a job ends, because two nodes cannot prepare it",
    SaidTwice "a job ends, because the only node that may have it cannot prepare it",
    GivenUp "a job ends, because every node is too small for it for too long",
    WaitsForLimits "a job says that every node is too small for it",
    CommitAfterShortage "a unit that lacked what is not its own is committed",
    ShortageTooLong "a unit lacks what is not its own for so long that it fails",
    ShortageTold "a job is seen waiting for what is not its own",
    GarbageSwept "a blob that no job names is removed",
    LastNodeFails "an attempt fails on the last node that takes work",
    LongQueue "twenty steps wait for one sync",
    PartKept "samples of a node that leaves are committed",
    PartAfterRestart "a part of a lease from before a restart is committed",
    RestElsewhere "a node commits the rest of a unit of which another has done a part",
    RestAfterRestart "the rest of a unit is leased that got its parts before a restart",
    PartChecked "a part of a unit is leased to be checked",
    PendingTold "a client's answer waits for a sync",
    WaitsForNodes "a job says that no node is connected",
    WaitsForPool "a job says that no node of its pool is connected",
    WaitsForCheck "a job says that its results wait for another node",
    WaitsForBuild "a job says that no node has its fingerprint",
    WaitsForOutOfWork "a job says that all its nodes are out of work",
    RetriedEnded "failed frames of a job that had ended are opened again",
    RetriedCancelled "a cancelled job is opened again",
    RetriedUnderWay "failed frames of a job that goes on are opened again",
    RetryNothing "a retry finds no failed frame",
    RetryFinished "a frame that had failed is finished after a retry",
    RetryLate "a result of a lease from before a retry is refused for that",
    PauseUnderWay "a job is paused while units of it are leased",
    PausedEnds "a job that is paused ends, because its last frame was complete",
    PausedRestart "the coordinator starts again, and a job is paused",
    ResumedLeased "a job that was paused goes on, and is leased",
    RoundOpened "another round of a frame is for some of its tiles",
    RoundsEnded "no tile of a frame needs another round",
    RoundInTime "another round of a frame fits into its time",
    TimeOver "no other round of a frame fits into its time",
    MeasureAfterRestart "a round whose units were all in is measured after a restart",
    KernelUnsteady "a job ends, because a node contradicts itself about its kernel",
    ThreeDiffer "a job ends, because three nodes have three results of its kernel",
    BarredFromJob "a node is wrong about a user's kernel, and gets no more of that job",
    SecondRun "a node runs a chunk again of which another result is known",
    OwnSecondRun "a node without another beside it runs its own chunk again",
    NotCompared "a job is done whose kernel is meant to give other results each time",
    LeftRestart "the coordinator starts again, and a node has left",
    LostRestart "the coordinator starts again, and a node is lost",
    DrainedRestart "the coordinator starts again, and a node is drained",
    NotBack "a node that was here before a restart is lost after it",
    UndrainedAbsent "the drain of an absent node ends",
    DrainedIdle "a drained node is connected and idle",
    NodeRemoved "an absent node is taken off the list",
    NodeReplaced "a node replaces an absent one of its name",
    SeveralOfAName "a node is named while its older self has not been seen gone yet",
    NodesForgotten "more absent nodes are gone than are kept",
    RoomMade "a node gives back what it has not begun, for a job of which nothing is leased",
    RoomTooLate "a node is to make room for a job, and has begun all that it holds",
    WaitsBehind "a job says behind whom it waits",
    ChangedUnderWay "a job is changed while units of it are leased",
    ChangedRestart "the coordinator starts again, and a job was changed",
    FinishingBegun "nodes begin to finish a frame",
    FinishedByNodes "a frame that nodes have finished is done",
    BandsAssembled "a frame that nodes have finished in several bands is done",
    FinishersGone "the coordinator finishes a frame, because no node can any more",
    FinishersFailed "the coordinator finishes a frame, because a piece of it failed too often",
    FinishingVoid "what nodes made of a frame is void, because its samples are taken back",
    PieceTakenBack "a piece of a frame is taken back, and its samples stay",
    PieceChecked "a piece of a frame is leased again, to be checked",
    PieceCopied "an idle node is given a copy of a piece of a frame",
    FinishingRestart "the coordinator starts again, and nodes were finishing a frame",
    FinishingPaused "a job is paused while nodes finish one of its frames",
    StoppedInTime "no node works on a job as long after its pause or cancel as messages take at \
        most",
    LedAgain "a coordinator takes the lead again that led last, and has the results",
    SpoolsVoid "a coordinator leads that lacks results of before: they are rendered again",
    TwoBelieve "a coordinator takes the lead, and the one before has not noticed",
    GoesOnAfterTerm "a coordinator that led goes on, and another one leads",
    GoesOnInTerm "a coordinator that leads goes on within its term",
    FormerLeaderFound "a node or a client finds a coordinator that leads no more",
    StaleAsked "a coordinator that leads no more, and does not know, is asked",
    ToldLate "one that stood still tells of a commit, and another one leads",
    TermOver "a leader ends, because its term was not renewed",
    LeadTaken "a leader ends, because another one leads",
    CommitFenced "a commit of a former leader is refused",
    CommitTwice "a commit is sent again that has happened, and is refused",
    HappenedUnanswered "a commit without an answer is found in the leader's row",
    EndLostUnled "the database loses its end, and no coordinator leads",
    LostEndFound "a leader finds that the database has lost its end",
    LostEndRepaired "a database that has lost its end has it again",
    LostEndNamed "a lost end is not to be had again, and is named",
    PutForNode "a coordinator puts results for a node that cannot",
    PutInVain "a node finds the bucket away, and sends the bytes",
    PutAgain "an object is put that is there",
    PutNotCommitted "a coordinator ends, and results were put that it has not committed",
    StoredOnDisk "the bucket is away, and results go to a coordinator's disk",
    ReadFromBoth "a frame is finished from results in the bucket and on the disk",
    ReadFromBucket "a frame is finished from results in the bucket alone",
    StoredWrong "a reader finds a result wrong: it is rendered again, and its node doubted",
    ResolvedWrong "the resolver finds a result of the bucket wrong",
    BucketUnread "a reader finds the bucket away",
    TakeoverFromBucket "a coordinator takes the lead, and finds all results in the bucket",
    AfterWaits "a job waits for another, and says so",
    AfterSuccess "a job goes on, because another has succeeded",
    AfterAnyEnd "a job goes on after one that has failed or was cancelled, whose end it waited for",
    AfterFrame "a frame is leased that waited for a frame of a job that goes on",
    AfterFailed "a job ends, because one that it waits for has failed",
    AfterCancelled "a job ends, because one that it waits for was cancelled",
    AfterChain "a job ends with one that has ended with another",
    AfterWaitRestart "the coordinator starts again, and a job waits for another",
    AfterEndRestart "the coordinator starts again, and a job has waited for another",
    AfterPaused "a job that waits for another is paused",
    AfterRetried "a job that ended with another is opened again, and waits again",
    AfterRetriedInVain "a retry is refused, because the job would wait in vain",
    AfterRefused "a job is refused, because one that it names has ended otherwise",
    AfterUnknown "a job is refused, because one that it names is not there",
    BudgetWaits "a job waits, because a budget is used up",
    BudgetRefuses "a job is refused, because a budget is used up",
    BudgetRestart "the coordinator starts again, and there is a budget",
    StorageCounted "the space of finished frames is counted",
    InputFound "a kernel is leased that reads frames of another job",
    BeginsLater "a job says that it begins later",
    BeginsRestart "the coordinator starts again, and a job begins later",
    BegunAtItsTime "a unit is leased of a job that was told when to begin",
    SpentAfterEnd "device time is counted for a job that has ended",
    ObjectSwept "an object is deleted that was put and never committed",
}

/// Situations that few runs meet, and how many of a thousand do: counted in the seeds 2,079,100,000
/// to 2,079,101,999. They need one fault within a moment of another, or a farm without what most
/// farms have.
const RARE: [(Situation, u64); 15] = [
    (Situation::SaidByTwo, 4),
    (Situation::ToldLate, 4),
    (Situation::AfterRetriedInVain, 7),
    (Situation::RetriedUnderWay, 7),
    (Situation::SaidTwice, 8),
    (Situation::GivenUp, 8),
    (Situation::RetryFinished, 10),
    (Situation::LostEndRepaired, 10),
    (Situation::LostEndFound, 11),
    (Situation::FinishersFailed, 11),
    (Situation::PausedEnds, 12),
    (Situation::OwnSecondRun, 12),
    (Situation::AfterRetried, 13),
    (Situation::WaitsForLimits, 15),
    (Situation::EndLostUnled, 16),
];
/// A rare situation is due in runs that should meet it so often: the chance that all of them miss
/// it is one of twenty thousand.
const DUE_FROM: u64 = 10;

/// How often each situation was met, and in how many runs.
#[derive(Clone, Debug)]
pub(crate) struct Met(Vec<(u64, u64)>);

impl Default for Met {
    fn default() -> Self {
        Self(vec![(0, 0); Situation::ALL.len()])
    }
}

impl Met {
    /// Notes that this run met a situation, or did not.
    pub(crate) fn note(&mut self, situation: Situation, met: bool) {
        let (count, runs) = &mut self.0[situation as usize];
        *count += u64::from(met);
        *runs = (*count).min(1);
    }

    /// Adds what a run met.
    pub(crate) fn add(&mut self, run: &Self) {
        for (sum, of_run) in self.0.iter_mut().zip(&run.0) {
            *sum = (sum.0 + of_run.0, sum.1 + of_run.1);
        }
    }

    /// Situations that so many runs never met. Rare ones are named only if there were runs enough.
    pub(crate) fn missing(&self, runs: u64) -> Vec<Situation> {
        let is_due = |situation: &Situation| {
            let rare = RARE.iter().find(|(rare, _)| rare == situation);
            rare.is_none_or(|(_, of_thousand)| runs * of_thousand >= DUE_FROM * 1000)
        };
        let all = Situation::ALL.iter().copied().filter(is_due);
        all.filter(|situation| self.0[*situation as usize].0 == 0).collect()
    }

    /// A line for each: how often it was met, and in how many runs.
    pub(crate) fn table(&self) -> String {
        let mut table = String::new();
        for situation in Situation::ALL {
            let (count, runs) = self.0[*situation as usize];
            writeln!(
                table,
                "{count:>12} {runs:>9}  {:<20} sometimes {}",
                format!("{situation:?}"),
                situation.text()
            )
            .expect("a string takes all");
        }
        table
    }
}
