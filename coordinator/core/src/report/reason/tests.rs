//! `docs/explain.md` has the words of one value of each reason. A new reason does not compile until
//! it has a place here.

use super::Text;
use super::failure::{self, Ended};
use super::frame::Stage;
use super::node::Standing;
use super::wait::{Out, Wait};
use crate::journal::Ending;
use crate::results::failure_class::Class;
use crate::schedule::memory::MemoryLack;
use crate::time::Moment;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tessera_protocol::cost::{Amount, AtLimit, Budget, Period, Whose};
use tessera_protocol::explain::Ahead;
use tessera_protocol::ids::{Fingerprint, FrameNumber, JobId};
use tessera_protocol::node::NodeLimit;
use uuid::Uuid;

const JOB: JobId = JobId(Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0000));
const HEAD: &str = "# Why something waits

For users and operators. `tessera explain JOB[/FRAME]` and `tessera explain NODE` say why a job, a
frame or a node stands as it does, what would help, who is before it, and when it should begin and
end. The pages and `GET /api/v1/jobs/{job}/explain`, `/jobs/{job}/frames/{frame}/explain` and
`/nodes/{node}/explain` say the same words. Of other owners' jobs they say what every user may see
in the list of jobs: the owner, how many units are in work, and the name of one job.

**Time left** is what a job has still to do, over the speed of the nodes that work on it, while
other jobs have their shares. Nothing is said before the first results, about a job that waits for
something else than its turn, about rounds (`--noise`, `--time`) before a frame is done, about a
film that is denoised by nodes before a frame is done, and beside a job of which nothing is known.
What makes it right ([0057](decisions/0057-time-left.md)): an eighth of the first frame's units,
spread over the picture, are rendered first, so that a cheap sky at the top does not promise a cheap
ground; and the results of nodes that are little known are counted twice, as they are rendered
twice.

All reasons, with made-up names and numbers. A test compares them with the code, and prints the page
as it should be (`cargo test --release -p tessera-core reason`).
";

fn number_of_wait(wait: &Wait) -> usize {
    match wait {
        Wait::Paused { .. } => 0,
        Wait::Disk { .. } => 1,
        Wait::Shortage { .. } => 2,
        Wait::Start { .. } => 3,
        Wait::Nodes => 4,
        Wait::Pool { .. } => 5,
        Wait::Driver { .. } => 6,
        Wait::Compiler => 7,
        Wait::Device => 8,
        Wait::Build { .. } => 9,
        Wait::Unable { .. } => 10,
        Wait::Limits { .. } => 11,
        Wait::OutOfWork { .. } => 12,
        Wait::Barred { .. } => 13,
        Wait::Memory(_) => 14,
        Wait::Check { .. } => 15,
        Wait::Feed { .. } => 16,
        Wait::Backoff { .. } => 17,
        Wait::Turn { .. } => 18,
        Wait::After { .. } => 19,
        Wait::Budget { .. } => 20,
        Wait::NotBefore { .. } => 21,
    }
}

fn waits() -> Vec<Wait> {
    let text = str::to_owned;
    let frame = FrameNumber(7);
    let outs = [
        Out::Draining,
        Out::Drained,
        Out::Quarantined,
        Out::NoDevice(text("it has no device")),
        Out::Other,
    ];
    let budget = Budget {
        whose: Whose::Group(text("light")),
        amount: Amount(500_000_000),
        period: Period::Month,
        at_limit: AtLimit::Pause,
        warn_percent: 80,
    };
    let out = |out| Wait::OutOfWork { pool: None, nodes: vec![(text("rack-1"), out)] };
    let mut all = vec![
        Wait::Paused { by: text("ada"), job: JOB },
        Wait::Disk { frame, reason: text("no space left on device") },
        Wait::Shortage {
            reason: text("`a.gltf` cannot be fetched"),
            unit: text("u00012 of f0007"),
            node: text("rack-1"),
            units: 3,
            fails_in: 480,
        },
        Wait::Start { secs: 2 },
        Wait::Nodes,
        Wait::Pool { pool: text("gpu"), job: JOB },
        Wait::Driver { needs: text("PTX 9.0"), have: text("`rack-1` takes PTX 8.7 on 8.6") },
        Wait::Compiler,
        Wait::Device,
        Wait::Build { pinned: text("0102"), have: text("0304"), pool: None },
        Wait::Unable { compute: false, said: text("`rack-1`: stamp: not known") },
        Wait::Unable { compute: true, said: text("`rack-1`: the driver refuses it") },
        Wait::Limits { said: text("`rack-1` by its scene memory: 9 GiB"), fails_in: 500 },
        Wait::Barred { pool: Some(text("gpu")), said: text("`rack-1` keeps failing it") },
        Wait::Memory(MemoryLack {
            need: 3 << 30,
            room: 1 << 30,
            node: text("rack-1"),
            device: text("NVIDIA T"),
        }),
        Wait::Check { results: 2 },
        Wait::Feed { frame },
        Wait::After { on: vec![text("job `film` (12 of 40 frames, running)")], job: JOB },
        Wait::Backoff { secs: 4, job: JOB },
        Wait::NotBefore { at: Moment(1_795_289_400_000), secs: 7200, job: JOB },
        Wait::Budget { budget, currency: text("EUR") },
        Wait::Turn {
            ahead: vec![Ahead { owner: text("`bob`"), units: 12, job: text("film") }],
            more: 0,
            job: JOB,
        },
    ];
    all.extend(outs.map(out));
    all
}

fn number_of_standing(standing: &Standing) -> usize {
    match standing {
        Standing::Unseen => 0,
        Standing::Away => 1,
        Standing::Left { .. } => 2,
        Standing::Lost { .. } => 3,
        Standing::Removed { .. } => 4,
        Standing::Leaving => 5,
        Standing::Drained { .. } => 6,
        Standing::Unfit { .. } => 7,
        Standing::NoDevice => 8,
        Standing::Testing { .. } => 9,
        Standing::Devices { .. } => 10,
        Standing::Wrong { .. } => 11,
        Standing::WrongAlone { .. } => 12,
        Standing::Doubted { .. } => 13,
        Standing::Unable { .. } => 14,
        Standing::Limited { .. } => 15,
        Standing::Failing { .. } => 16,
        Standing::OtherBuild { .. } => 17,
        Standing::Unconfined { .. } => 18,
        Standing::AtWork { .. } => 19,
        Standing::JobAtWork { .. } => 20,
        Standing::Full { .. } => 21,
        Standing::NoJob { .. } => 22,
    }
}

fn standings() -> Vec<Standing> {
    let text = str::to_owned;
    let (reason, name) = (text("unit u00012 differs"), text("rack-1"));
    let (said, failed) = (text("more than 64 MiB"), text("the scene cannot be prepared"));
    vec![
        Standing::Unseen,
        Standing::Away,
        Standing::Left { why: text("told to end") },
        Standing::Lost { why: text("it did not come back") },
        Standing::Removed { why: text("removed by `ada`") },
        Standing::Leaving,
        Standing::Drained { by: text("ada"), name: name.clone(), here: true },
        Standing::Drained { by: text("ada"), name: name.clone(), here: false },
        Standing::Unfit {
            why: text("8 attempts of 1 jobs failed here in a row"),
            secs: 60,
            name: name.clone(),
        },
        Standing::NoDevice,
        Standing::Testing { said: text("cuda:0 is being tested") },
        Standing::Devices { said: text("cuda:0 is quarantined: wrong results; reset it") },
        Standing::Wrong { reason: reason.clone(), name: name.clone() },
        Standing::WrongAlone { reason: reason.clone(), name: name.clone() },
        Standing::Doubted { reason, name: name.clone() },
        Standing::Unable { jobs: 1, job: JOB, reason: text("stamp: not known") },
        Standing::Limited { jobs: 1, job: JOB, limit: NodeLimit::SceneMemory, reason: said },
        Standing::Failing { jobs: 1, job: JOB, reason: failed, name },
        Standing::OtherBuild { fingerprint: Fingerprint([7; 32]), jobs: 2 },
        Standing::Unconfined { said: text("no filter of system calls") },
        Standing::AtWork { units: 4, jobs: 1 },
        Standing::JobAtWork { units: 4, nodes: 2, most: None },
        Standing::JobAtWork { units: 4, nodes: 2, most: Some(2) },
        Standing::Full { units: 0 },
        Standing::NoJob { open: 0 },
        Standing::NoJob { open: 3 },
    ]
}

fn number_of_stage(stage: &Stage) -> usize {
    match stage {
        Stage::NotBegun { .. } => 0,
        Stage::AtWork { .. } => 1,
        Stage::Open { .. } => 2,
        Stage::InCheck { .. } => 3,
        Stage::Finishing { .. } => 4,
        Stage::Files => 5,
        Stage::Done { .. } => 6,
    }
}

fn stages() -> Vec<Stage> {
    let who = || "`rack-1` (3)".to_owned();
    vec![
        Stage::NotBegun { units: 240, before: 6 },
        Stage::AtWork { who: who(), left: 40 },
        Stage::Open { left: 40 },
        Stage::InCheck { results: 1 },
        Stage::Finishing { left: 5, who: who() },
        Stage::Files,
        Stage::Done { files: 1 },
    ]
}

/// Every number up to the greatest is there, and so many are.
fn whole(numbers: impl Iterator<Item = usize>, count: usize) {
    let numbers: BTreeSet<usize> = numbers.collect();
    assert_eq!(numbers, (0..count).collect(), "a reason has no sample");
}

fn table(page: &mut String, title: &str, rows: impl Iterator<Item = (String, Text)>) {
    // Writing to a string does not fail.
    let _ = writeln!(page, "\n## {title}\n\n| word | why | what helps |\n|---|---|---|");
    for (word, text) in rows {
        let id = JOB.to_string();
        let [why, help] = [text.why, text.help].map(|part| part.replace(&id, "JOB"));
        let _ = writeln!(page, "| `{word}` | {why} | {help} |");
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let rows = waits().into_iter().map(|wait| (wait.word().to_owned(), wait.text()));
    table(&mut page, "A job waits", rows);
    let ended = [Ended::FrameFailed, Ended::JobFailed, Ended::Cancelled];
    let noted = "(what was noted when it ended)";
    let rows = ended.map(|ended| (ended.word().to_owned(), ended.text(noted, JOB)));
    table(&mut page, "A job or frame has ended", rows.into_iter());
    let rows = stages().into_iter().map(|stage| (stage.word().to_owned(), stage.text()));
    table(&mut page, "A frame", rows);
    let rows = standings().into_iter().map(|one| (one.word().to_owned(), one.text()));
    table(&mut page, "A node", rows);
    let of_class = |class: Class| {
        let why = format!("f0007/u00012 on `rack-1`: {}: ...", class.rule().name);
        failure::noted(class).map(|(word, help)| (word.to_owned(), super::brief(why, help)))
    };
    table(&mut page, "An attempt failed", Class::all().filter_map(of_class));
    page
}

#[test]
fn the_page_lists_every_reason_with_its_words() {
    whole(waits().iter().map(number_of_wait), 22);
    whole(standings().iter().map(number_of_standing), 23);
    whole(stages().iter().map(number_of_stage), 7);
    let (written, page) = (include_str!("../../../../../docs/explain.md"), page());
    let differs = page.lines().zip(written.lines()).find(|(ours, written)| ours != written);
    assert_eq!(differs, None, "docs/explain.md differs; it should be:\n{page}");
    assert_eq!(written.len(), page.len(), "docs/explain.md is longer or shorter:\n{page}");
}

#[test]
fn a_class_is_found_by_the_words_of_an_attempt() {
    for class in Class::all() {
        let words = format!("{}: it broke: twice", class.rule().name);
        assert_eq!(Class::named_in(&words), Some(class), "{words}");
    }
    let endings = [
        Ending::Failed(String::new()),
        Ending::TimedOut(String::new()),
        Ending::Expired,
        Ending::Lost,
        Ending::Unprepared(String::new()),
        Ending::Limited(String::new()),
        Ending::Repeated(String::new()),
        Ending::Idle(String::new()),
    ];
    for class in Class::all() {
        let of_class = |ending: &&Ending| Class::of_ending(ending) == class && ending.has_failed();
        assert_eq!(failure::noted(class).is_some(), endings.iter().any(|ending| of_class(&ending)));
    }
    assert_eq!(Class::named_in("its result is not what the others have"), None);
}
