//! Options that select jobs, for listings and for changes of many jobs.

use super::time::parse_ttl;
use clap::Args;
use tessera_protocol::selection::JobSelection;
use tessera_protocol::status::JobState;

/// Which jobs.
#[derive(Clone, Debug, Args)]
pub struct SelectionArgs {
    /// Jobs, each by its id, the beginning of one (four or more characters), or its name
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Only jobs of this user: the name, or # and the number of the identity
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub owner: Option<String>,
    /// Only jobs in these states, separated by commas: queued, running, paused, done, failed,
    /// cancelled; open for the first three, ended for the others
    #[arg(
        long,
        value_name = "STATE",
        value_delimiter = ',',
        value_parser = parse_state,
        help_heading = "Selection"
    )]
    pub state: Vec<States>,
    /// Only jobs that ended at least so long ago or, while they are open, were submitted so long
    /// ago: 90s, 30m, 24h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_ttl, help_heading = "Selection")]
    pub older_than: Option<u64>,
    /// Only jobs whose whole name fits: * is any text, ? one character
    #[arg(long, value_name = "GLOB", help_heading = "Selection")]
    pub name: Option<String>,
    /// Only jobs of this batch: those that one template submitted
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub batch: Option<String>,
    /// At most so many jobs: the newest
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Selection"
    )]
    pub limit: Option<u32>,
    /// All jobs
    #[arg(
        long,
        conflicts_with_all = ["jobs", "owner", "state", "older_than", "name", "batch"],
        help_heading = "Selection"
    )]
    pub all: bool,
}

impl SelectionArgs {
    /// The selection that the options make.
    pub fn selection(&self) -> JobSelection {
        let given = |state: &JobState| self.state.iter().any(|states| states.0.contains(state));
        JobSelection {
            jobs: self.jobs.clone(),
            owner: self.owner.clone(),
            states: JobState::ALL.into_iter().filter(given).collect(),
            older_than_secs: self.older_than,
            name: self.name.clone(),
            batch: self.batch.clone(),
            limit: self.limit,
        }
    }
}

/// States that one word means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct States(Vec<JobState>);

fn parse_state(text: &str) -> Result<States, String> {
    let is_meant = |state: &JobState| match text {
        "open" => !state.is_final(),
        "ended" => state.is_final(),
        text => state.name() == text,
    };
    let states: Vec<JobState> = JobState::ALL.into_iter().filter(is_meant).collect();
    match states.is_empty() {
        true => Err("write queued, running, paused, done, failed, cancelled, open or ended".into()),
        false => Ok(States(states)),
    }
}
