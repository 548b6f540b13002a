//! What a client of a farm is told, put into a history that knows what was promised. Everything
//! told is kept, so that it can be told again to a farm that lost its power or was killed: what was
//! acknowledged until then must hold.

use serde_json::Value;
use tessera_history::{History, JobSeen, Seen};
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId};
use tessera_support::farm::Farm;

/// A client that remembers.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    history: History,
    /// Everything, with the newest record that was acknowledged when it was told.
    told: Vec<(u64, Seen)>,
}

impl Witness {
    fn saw(&mut self, acknowledged: u64, asked: tessera_history::Asked, seen: Seen) {
        if let Err(broken) = self.history.saw(asked, &seen) {
            panic!("{broken}\ntold: {seen:?}");
        }
        self.told.push((acknowledged, seen));
    }

    /// A submit was accepted.
    pub(crate) fn accepted(&mut self, job: &str, acknowledged: u64) {
        let asked = self.history.ask();
        self.saw(acknowledged, asked, Seen::Accepted(id(job)));
    }

    /// Asks the farm for everything, and checks it against what was told before. `acknowledged` is
    /// asked after each answer.
    pub(crate) fn look(&mut self, farm: &Farm, acknowledged: impl Fn() -> u64) {
        let ask = |arguments: &[&str]| farm.text(arguments);
        for row in self.list(ask, &acknowledged) {
            self.detail(ask, row["job"].as_str().expect("an id"), &acknowledged);
        }
    }

    /// Asks which jobs there are; their rows.
    pub(crate) fn list(
        &mut self,
        ask: impl Fn(&[&str]) -> String,
        acknowledged: impl Fn() -> u64,
    ) -> Vec<Value> {
        let asked = self.history.ask();
        let listed: Value = serde_json::from_str(&ask(&["jobs", "--json"])).expect("JSON");
        let rows = listed.as_array().expect("a list").clone();
        let jobs = rows.iter().map(|row| id(row["job"].as_str().expect("an id"))).collect();
        self.saw(acknowledged(), asked, Seen::Listed(jobs));
        rows
    }

    /// Asks for a job and its frames.
    pub(crate) fn detail(
        &mut self,
        ask: impl Fn(&[&str]) -> String,
        job: &str,
        acknowledged: impl Fn() -> u64,
    ) {
        let asked = self.history.ask();
        let detail: Value =
            serde_json::from_str(&ask(&["job", job, "--frames", "--json"])).expect("JSON");
        let acknowledged = acknowledged();
        self.saw(acknowledged, asked, Seen::Job(job_seen(&detail["summary"])));
        for frame in detail["frames"].as_array().expect("frames") {
            self.saw(acknowledged, asked, frame_seen(id(job), frame));
        }
    }

    /// What had been told when this record was the newest that was acknowledged: none of it may be
    /// lost.
    pub(crate) fn up_to(&self, acknowledged: u64) -> Witness {
        let mut earlier = Witness::default();
        for (at, seen) in self.told.iter().filter(|(at, _)| *at <= acknowledged) {
            let asked = earlier.history.ask();
            earlier.saw(*at, asked, seen.clone());
        }
        earlier
    }

    /// Jobs that are known.
    pub(crate) fn jobs(&self) -> Vec<String> {
        self.history.accepted().map(|job| job.to_string()).collect()
    }

    /// Answers so far.
    pub(crate) fn answers(&self) -> usize {
        self.told.len()
    }
}

fn id(text: &str) -> JobId {
    text.parse().expect("a job's id")
}

fn job_seen(summary: &Value) -> JobSeen {
    let number = |name: &str| summary[name].as_u64().expect("a number");
    JobSeen {
        job: id(summary["job"].as_str().expect("an id")),
        state: serde_json::from_value(summary["state"].clone()).expect("a state"),
        units: number("units"),
        units_committed: number("units_committed"),
        frames: number("frames") as u32,
        frames_done: number("frames_done") as u32,
    }
}

fn frame_seen(job: JobId, frame: &Value) -> Seen {
    let number = FrameNumber(frame["frame"].as_u64().expect("a number") as u32);
    match frame["state"].get("done") {
        // All files as one hash.
        Some(files) => {
            Seen::Finished { job, frame: number, hash: BlobHash::of(files.to_string().as_bytes()) }
        }
        None => Seen::Unfinished { job, frame: number },
    }
}
