//! `cost`: shows what was spent, and how far budgets are used.

use super::cost_rules;
use crate::args::cost::{By, CostArgs, CostCommand};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{printable, table};
use std::collections::BTreeMap;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::cost::{
    Amount, AtLimit, BudgetStatus, CostReport, OwnerCost, Period, Spent, Stored, device_time,
    money, space_time,
};
use tessera_protocol::selection::{JobQuery, JobSelection};
use tessera_protocol::status::JobSummary;

/// Name of the line of space, where others have a device.
const STORAGE: &str = "storage";

/// `tessera cost`.
pub(crate) async fn run(args: CostArgs) -> Result<Status, CliError> {
    if let Some(CostCommand::Rules(args)) = args.command {
        return cost_rules::run(args).await;
    }
    let farm = Farm::of(&args.farm)?;
    if args.by == By::Job {
        return by_job(&farm, &args).await;
    }
    let request = Request::Costs { month: args.month.clone() };
    let Response::Costs(mut report) = farm.ask(&request).await? else { return Err(unexpected()) };
    if let Some(owner) = &args.owner {
        report.owners.retain(|row| row.owner == *owner || format!("#{}", row.owner_id) == *owner);
    }
    if args.json {
        json::print(&report)?;
        return Ok(Status::Done);
    }
    let lines = lines(&report.owners, args.by);
    let [first, second] = match args.by {
        By::Owner => ["OWNER", "GROUP"],
        By::Group => ["GROUP", "OWNERS"],
        By::Device | By::Job => ["DEVICE", "OWNERS"],
    };
    let month = report.owners.first().map_or("", |row| &row.month);
    if args.csv {
        let head = ["month", &first.to_lowercase(), &second.to_lowercase(), "device"];
        let rows = lines.iter().map(|line| {
            let names = [month, &line.names[0], &line.names[1], &line.spent.device];
            csv_row(&names, &line.spent, line.byte_hours)
        });
        return print_csv(&head, &report.currency, rows);
    }
    if lines.is_empty() {
        eprintln!("nothing was spent in that month, as far as this identity may know");
    } else {
        let head = [first, second, "DEVICE", "TIME", "LOST", "COST"];
        let rows: Vec<_> = lines.iter().map(|line| line.row(&report)).collect();
        json::line(table(&head, &rows).trim_end())?;
    }
    for budget in &report.budgets {
        json::line(&printable(&budget_words(budget, &report.currency)))?;
    }
    Ok(Status::Done)
}

/// Lines of the ledger that are shown as one.
struct Line {
    names: [String; 2],
    spent: Spent,
    /// Space, where the line is of that.
    byte_hours: u64,
}

impl Line {
    fn row(&self, report: &CostReport) -> Vec<String> {
        let Spent { device, millis, lost_millis, cost } = &self.spent;
        let [first, second] = &self.names;
        let lost = if *lost_millis == 0 { String::new() } else { device_time(*lost_millis) };
        let cost = money(*cost, &report.currency).unwrap_or_default();
        vec![
            printable(first),
            printable(second),
            printable(device),
            match self.byte_hours {
                0 => device_time(*millis),
                bytes => space_time(bytes),
            },
            lost,
            cost,
        ]
    }
}

/// Adds up what belongs together.
fn lines(owners: &[OwnerCost], by: By) -> Vec<Line> {
    let mut lines: BTreeMap<(String, String), (Vec<&str>, Spent, u64)> = BTreeMap::new();
    let all = owners.iter().flat_map(|row| row_lines(row).map(move |one| (row, one)));
    for (row, (spent, byte_hours)) in all {
        let group = row.group.as_deref().unwrap_or("none");
        let first = match by {
            By::Owner => format!("{} #{}", row.owner, row.owner_id),
            By::Group => group.to_owned(),
            By::Device | By::Job => spent.device.clone(),
        };
        let second = if by == By::Owner { group } else { &row.owner };
        let new = || (Vec::new(), Spent { device: spent.device.clone(), ..Spent::default() }, 0);
        let (seconds, sum, bytes) = lines.entry((first, spent.device.clone())).or_insert_with(new);
        if !seconds.contains(&second) {
            seconds.push(second);
        }
        sum.millis += spent.millis;
        sum.lost_millis += spent.lost_millis;
        sum.cost.0 += spent.cost.0;
        *bytes += byte_hours;
    }
    let line = |((first, _), (seconds, spent, byte_hours)): (_, (Vec<&str>, Spent, u64))| Line {
        names: [first, seconds.join(" ")],
        spent,
        byte_hours,
    };
    lines.into_iter().map(line).collect()
}

/// Lines of one owner: of each kind of device, and of the space of finished frames.
fn row_lines(row: &OwnerCost) -> impl Iterator<Item = (Spent, u64)> {
    let Stored { byte_hours, cost } = row.stored;
    let stored = Spent { device: STORAGE.to_owned(), cost, ..Spent::default() };
    let stored = (row.stored != Stored::default()).then_some((stored, byte_hours));
    row.spent.iter().map(|spent| (spent.clone(), 0)).chain(stored)
}

async fn by_job(farm: &Farm, args: &CostArgs) -> Result<Status, CliError> {
    if args.month.is_some() {
        let text = "a job is counted in all its time: --by job takes no --month";
        return Err(CliError::new(Status::Usage, text));
    }
    let Response::Costs(report) = farm.ask(&Request::Costs { month: None }).await? else {
        return Err(unexpected());
    };
    let client = farm.connect().await?;
    let selection = JobSelection { owner: args.owner.clone(), ..JobSelection::default() };
    let mut query = JobQuery::first(selection);
    let mut jobs: Vec<JobSummary> = Vec::new();
    loop {
        let Response::Jobs(page) = client.request(&Request::Jobs(query.clone())).await? else {
            return Err(unexpected());
        };
        let has_spent = |job: &JobSummary| job.device_millis > 0 || job.cost > Amount(0);
        jobs.extend(page.jobs.into_iter().filter(has_spent));
        match page.next {
            Some(next) => query.before = Some(next),
            None => break,
        }
    }
    client.close().await;
    if args.json {
        json::print(&jobs)?;
        return Ok(Status::Done);
    }
    if args.csv {
        let rows = jobs.iter().map(|job| {
            let id = job.job.to_string();
            let names = [id.as_str(), &job.name, &job.owner, job.state.name()];
            let (millis, cost) = (job.device_millis, job.cost);
            csv_row(&names, &Spent { millis, cost, ..Spent::default() }, 0)
        });
        return print_csv(&["job", "name", "owner", "state"], &report.currency, rows);
    }
    if jobs.is_empty() {
        eprintln!("no job that is kept has cost anything");
        return Ok(Status::Done);
    }
    let row = |job: &JobSummary| {
        let (time, cost) =
            (device_time(job.device_millis), money(job.cost, &report.currency).unwrap_or_default());
        let texts = [job.job.to_string(), printable(&job.name), printable(&job.owner)];
        texts.into_iter().chain([job.state.name().to_owned(), time, cost]).collect()
    };
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    let head = ["JOB", "NAME", "OWNER", "STATE", "TIME", "COST"];
    json::line(table(&head, &rows).trim_end())?;
    Ok(Status::Done)
}

/// A line of comma-separated values: names, then device time, space, and the cost.
fn csv_row(names: &[&str], spent: &Spent, byte_hours: u64) -> String {
    let Spent { millis, lost_millis, cost, .. } = spent;
    let names = names.iter().map(|name| csv_field(name)).collect::<Vec<_>>().join(",");
    let secs = |millis: u64| format!("{}.{:03}", millis / 1000, millis % 1000);
    let gigabytes = byte_hours as f64 / 1e9;
    let cost = format!("{}.{:06}", cost.0 / 1_000_000, cost.0 % 1_000_000);
    format!("{names},{},{},{gigabytes:.3},{cost}", secs(*millis), secs(*lost_millis))
}

/// A field of comma-separated values (RFC 4180, section 2). A text that a spreadsheet would take
/// for a formula begins with an apostrophe.
fn csv_field(text: &str) -> String {
    let text = printable(text);
    let text = match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text,
    };
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

fn print_csv(
    head: &[&str],
    currency: &str,
    rows: impl Iterator<Item = String>,
) -> Result<Status, CliError> {
    let columns = "device_seconds,lost_seconds,stored_gb_hours,cost,currency";
    json::line(&format!("{},{columns}", head.join(",")))?;
    for row in rows {
        json::line(&format!("{row},{}", csv_field(currency)))?;
    }
    Ok(Status::Done)
}

fn budget_words(budget: &BudgetStatus, currency: &str) -> String {
    let BudgetStatus { whose, period, amount, spent, warns, reached } = budget;
    let period = match period {
        Period::Month => "this month",
        Period::Total => "in all",
    };
    let [spent, amount] =
        [spent, amount].map(|amount| money(*amount, currency).unwrap_or_default());
    let state = match (reached, warns) {
        (Some(AtLimit::Warn), _) => ": used up",
        (Some(AtLimit::Refuse), _) => ": used up, new jobs are refused",
        (Some(AtLimit::Pause), _) => ": used up, no unit begins",
        (None, true) => ": nearly used up",
        (None, false) => "",
    };
    format!("budget of {whose} {period}: {spent} of {amount}{state}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::cost::Whose;

    fn row(owner: &str, group: Option<&str>, device: &str, millis: u64) -> OwnerCost {
        let spent = Spent { device: device.into(), millis, lost_millis: 1, cost: Amount(millis) };
        OwnerCost {
            owner: owner.into(),
            owner_id: 1,
            group: group.map(str::to_owned),
            month: "2026-11".into(),
            spent: vec![spent],
            stored: Stored::default(),
        }
    }

    #[test]
    fn lines_add_up_what_belongs_together() {
        let owners = [
            row("ada", Some("light"), "H200", 1000),
            row("bob", Some("light"), "H200", 500),
            row("eve", None, "cpu", 7),
        ];
        let shown = |by| {
            let lines = lines(&owners, by);
            lines.iter().map(|line| (line.names.join("/"), line.spent.millis)).collect::<Vec<_>>()
        };
        assert_eq!(shown(By::Owner).len(), 3);
        assert_eq!(shown(By::Group), [("light/ada bob".into(), 1500), ("none/eve".into(), 7)]);
        assert_eq!(shown(By::Device), [("H200/ada bob".into(), 1500), ("cpu/eve".into(), 7)]);

        let mut owners = owners;
        for row in &mut owners[..2] {
            row.stored = Stored { byte_hours: 1_500_000_000, cost: Amount(20_000) };
        }
        let all = lines(&owners, By::Group);
        let stored = all.iter().find(|line| line.spent.device == STORAGE).expect("a line");
        assert_eq!((stored.byte_hours, stored.spent.cost), (3_000_000_000, Amount(40_000)));
        let row = stored.row(&CostReport { currency: "EUR".into(), ..CostReport::default() });
        assert_eq!(row, ["light", "ada bob", "storage", "3.0 GB h", "", "0.04 EUR"]);
    }

    #[test]
    fn values_are_quoted_and_are_no_formulas() {
        let (cost, device) = (Amount(1_250_000), String::new());
        let spent = Spent { millis: 61_005, lost_millis: 4, cost, device };
        let row = csv_row(&["a,\"b\"", "=1+1"], &spent, 1_250_000_000);
        assert_eq!(row, "\"a,\"\"b\"\"\",'=1+1,61.005,0.004,1.250,1.250000");
    }

    #[test]
    fn budgets_are_read_by_people() {
        let budget = BudgetStatus {
            whose: Whose::Group("light".into()),
            period: Period::Month,
            amount: Amount(2_000_000),
            spent: Amount(1_700_000),
            warns: true,
            reached: None,
        };
        let words = budget_words(&budget, "EUR");
        assert_eq!(
            words,
            "budget of group `light` this month: 1.70 EUR of 2.00 EUR: nearly used up"
        );
    }
}
