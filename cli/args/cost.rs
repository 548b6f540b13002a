//! Options of `cost`.

use super::farm::FarmArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Options of `cost`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Device time is counted when a unit's result is taken, or when it fails, at the \
        price of then, and space of finished frames once an hour, where it has a price. Operators \
        and admins see everybody; others see themselves."
)]
pub struct CostArgs {
    /// What a line is: owner (devices of one kind in one month), group (its owners together),
    /// device (of one kind, of all owners) or job (one that is kept, in all its time)
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value_t = By::Owner,
        hide_possible_values = true
    )]
    pub by: By,
    /// A month in UTC, such as 2026-11; this month if it is left out
    #[arg(long, value_name = "MONTH")]
    pub month: Option<String>,
    /// Only this owner: the name, or # and the number of the identity
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Print comma-separated values on standard output
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Show or set prices, groups and budgets.
    #[command(subcommand)]
    pub command: Option<CostCommand>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// An owner's devices of one kind, in one month
    Owner,
    /// A group's owners together
    Group,
    /// Devices of one kind, of all owners
    Device,
    /// A job that is kept, in all its time
    Job,
}

/// Commands below `cost`.
#[derive(Debug, Subcommand)]
pub enum CostCommand {
    /// Show prices, groups and budgets, or set them from a file
    Rules(RulesArgs),
}

/// Options of `cost rules`.
#[derive(Debug, Args)]
#[command(after_help = "The file is TOML, as this command prints it; docs/costs.md says more. \
    What is spent already keeps its price.")]
pub struct RulesArgs {
    /// Set the rules of this file from now on, instead of those before
    #[arg(long, value_name = "FILE")]
    pub set: Option<PathBuf>,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
