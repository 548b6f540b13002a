//! `cost rules`: shows prices, groups and budgets, or sets them from a file.

use crate::args::cost::RulesArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::table::counted;
use crate::{json, small_file};
use std::path::Path;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::cost::CostRules;

/// Longest file of rules: more than all that rules may have.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// `tessera cost rules`.
pub(crate) async fn run(args: RulesArgs) -> Result<Status, CliError> {
    // A fault of the file is said before anybody is asked.
    let set = args.set.as_deref().map(read).transpose()?;
    let farm = Farm::of(&args.farm)?;
    if let Some(rules) = set {
        let prices = counted(rules.prices.len() as u64, "price");
        let budgets = counted(rules.budgets.len() as u64, "budget");
        match farm.ask(&Request::SetCostRules(Box::new(rules))).await? {
            Response::Done => eprintln!("set: {prices}, {budgets}"),
            _ => return Err(unexpected()),
        }
        return Ok(Status::Done);
    }
    let Response::CostRules(rules) = farm.ask(&Request::CostRules).await? else {
        return Err(unexpected());
    };
    if args.json {
        json::print(&rules)?;
    } else if *rules == CostRules::default() {
        eprintln!("there are no rules: device time is counted and costs nothing");
    } else {
        let text = toml::to_string(&*rules);
        json::line(text.map_err(|error| CliError::new(Status::Failure, error))?.trim_end())?;
    }
    Ok(Status::Done)
}

/// Reads rules from a file, and checks them.
fn read(file: &Path) -> Result<CostRules, CliError> {
    let about = |error: CliError| error.context(format!("`{}`", file.display()));
    let text = small_file::read(file, FILE_BYTES_MAX).map_err(|error| about(error.into()))?;
    let wrong = |text: String| about(CliError::new(Status::Usage, text));
    let rules: CostRules = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    rules.check().map_err(wrong)?;
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::cost::{Amount, AtLimit, Period, Whose};

    const FILE: &str = r#"
currency = "EUR"
factor = 1.15
utc_offset_minutes = 60

[[price]]
device = "NVIDIA H*"
pool = "spot"
per_hour = 1.20

[[price]]
device = "NVIDIA H*"
hours = "22:00-06:00"
per_hour = 2

[group]
light = ["ada", "bob"]

[[budget]]
of = { group = "light" }
amount = 500

[[budget]]
of = "farm"
amount = 10000
period = "total"
at_limit = "warn"
warn_percent = 50
"#;

    #[test]
    fn a_file_has_prices_groups_and_budgets() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.toml");
        std::fs::write(&file, FILE).unwrap();
        let rules = read(&file).unwrap();
        assert_eq!(rules.prices[0].per_hour, Amount(1_200_000));
        assert_eq!(rules.prices[1].hours.unwrap().to_string(), "22:00-06:00");
        let first = &rules.budgets[0];
        assert_eq!(first.whose, Whose::Group("light".into()));
        assert_eq!((first.period, first.at_limit), (Period::Month, AtLimit::Pause));
        assert_eq!((&rules.budgets[1].whose, rules.budgets[1].warn_percent), (&Whose::Farm, 50));
        // What is printed can be set again.
        std::fs::write(&file, toml::to_string(&rules).unwrap()).unwrap();
        assert_eq!(read(&file).unwrap(), rules);
    }

    #[test]
    fn files_that_make_no_sense_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.toml");
        for (text, problem) in [
            ("curency = 'EUR'", "curency"),
            ("[[price]]\nper_hour = -1", "not an amount"),
            ("[[price]]\nper_hour = 1\nhours = '9-5'", "22:00-06:00"),
            ("[[budget]]\nof = { group = 'x' }\namount = 1", "no group `x`"),
            ("[[budget]]\nof = 'x'\namount = 1", "unknown variant"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = read(&file).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("rules.toml"), "{text}: {error}");
        }
    }
}
