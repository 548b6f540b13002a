//! Options that select jobs, for listings and for changes of many jobs.

use super::farm::FarmArgs;
use super::time::parse_ttl;
use clap::{ArgGroup, Args};
use tessera_protocol::selection::{JobChange, JobSelection, JobsChange};
use tessera_protocol::status::JobState;

/// Which jobs.
#[derive(Clone, Debug, Args)]
pub struct SelectionArgs {
    /// Jobs, each by its id, the beginning of one (four or more characters), or its name
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Only jobs of this user: the name, or `#` and the number of the identity
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
    /// Only jobs whose whole name fits: `*` is any text, `?` one character
    #[arg(long, value_name = "GLOB", help_heading = "Selection")]
    pub name: Option<String>,
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
        conflicts_with_all = ["jobs", "owner", "state", "older_than", "name"],
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

/// Options of `jobs`.
#[derive(Debug, Args)]
#[command(after_help = "Without a selection all jobs are listed, the newest last. An id may be \
    shortened, as the table shows it; the same options select the same jobs for cancel, pause, \
    resume, retry and forget.")]
pub struct JobsArgs {
    /// Which jobs.
    #[command(flatten)]
    pub which: SelectionArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `pause`, `resume`, `retry` and `forget`, and of `cancel` with its reason.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("selected")
        .required(true)
        .multiple(true)
        .args(["jobs", "owner", "state", "older_than", "name", "all"]),
    after_help = "Names and options are met together, and all selected jobs are changed in one \
        step. Where no JOB is named, only jobs are selected to which the command applies, and for \
        artists only their own. A text that means several jobs changes none of them."
)]
pub struct ChangeArgs {
    /// Which jobs.
    #[command(flatten)]
    pub which: SelectionArgs,
    /// Only list the jobs that would be changed
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

impl ChangeArgs {
    /// The request that the options make.
    pub fn request(&self, change: JobChange) -> JobsChange {
        let selection = self.which.selection();
        JobsChange { change, selection, all: self.which.all, dry_run: self.dry_run }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Command};
    use clap::Parser;
    use tessera_protocol::selection::{JobChange, JobSelection};
    use tessera_protocol::status::JobState;

    fn parsed(words: &str) -> Result<Command, clap::error::ErrorKind> {
        let cli = Cli::try_parse_from(words.split(' '));
        cli.map(|cli| cli.command).map_err(|error| error.kind())
    }

    #[test]
    fn a_change_needs_a_selection() {
        use clap::error::ErrorKind::{ArgumentConflict, MissingRequiredArgument, ValueValidation};
        for verb in ["cancel", "pause", "resume", "retry", "forget"] {
            for (options, error) in [
                ("", MissingRequiredArgument),
                (" --limit 3", MissingRequiredArgument),
                (" --dry-run", MissingRequiredArgument),
                (" --all --owner ada", ArgumentConflict),
                (" --all 0a1b", ArgumentConflict),
                (" --state ready", ValueValidation),
                (" --older-than 7", ValueValidation),
                (" --all --limit 0", ValueValidation),
            ] {
                let words = format!("tessera {verb}{options}");
                assert_eq!(parsed(&words).err(), Some(error), "{words}");
            }
            for options in [" --all", " 0a1b beauty", " --owner ada --limit 3", " x --state open"] {
                assert!(parsed(&format!("tessera {verb}{options}")).is_ok(), "{verb}{options}");
            }
        }
    }

    #[test]
    fn options_make_the_same_selection_for_lists_and_changes() {
        let options = "x --owner #7 --state done,failed --older-than 7d --name shot_* --limit 9";
        let expected = JobSelection {
            jobs: vec!["x".into()],
            owner: Some("#7".into()),
            states: vec![JobState::Done, JobState::Failed],
            older_than_secs: Some(604_800),
            name: Some("shot_*".into()),
            limit: Some(9),
        };
        let Ok(Command::Jobs(args)) = parsed(&format!("tessera jobs {options}")) else { panic!() };
        assert_eq!(args.which.selection(), expected);
        let Ok(Command::Forget(args)) = parsed(&format!("tessera forget {options} --dry-run"))
        else {
            panic!()
        };
        let request = args.request(JobChange::Forget);
        assert_eq!((request.selection, request.all, request.dry_run), (expected, false, true));
        let Ok(Command::Jobs(args)) = parsed("tessera jobs --state open,ended --state done") else {
            panic!()
        };
        assert_eq!(args.which.selection().states, JobState::ALL, "each once");
    }
}
