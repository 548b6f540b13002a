//! Options of `pause`, `resume`, `retry` and `forget`, which change all selected jobs.

use super::farm::FarmArgs;
use super::selection::SelectionArgs;
use clap::{ArgGroup, Args};
use tessera_protocol::selection::{JobChange, JobsChange};

/// Options of `pause`, `resume`, `retry` and `forget`, and of `cancel` with its reason.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("selected")
        .required(true)
        .multiple(true)
        .args(["jobs", "owner", "state", "older_than", "name", "batch", "all"]),
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
            for options in [
                " --all",
                " 0a1b beauty",
                " --batch b",
                " --owner ada --limit 3",
                " x --state open",
            ] {
                assert!(parsed(&format!("tessera {verb}{options}")).is_ok(), "{verb}{options}");
            }
        }
    }

    #[test]
    fn options_make_the_same_selection_for_lists_and_changes() {
        let options = "x --owner #7 --state done,failed --older-than 7d --name shot_* --batch b \
            --limit 9";
        let expected = JobSelection {
            jobs: vec!["x".into()],
            owner: Some("#7".into()),
            states: vec![JobState::Done, JobState::Failed],
            older_than_secs: Some(604_800),
            name: Some("shot_*".into()),
            batch: Some("b".into()),
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
