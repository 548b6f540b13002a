//! Options of `coordinator`.

use super::time::{parse_grace, parse_ttl};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of `coordinator`.
#[derive(Debug, Args)]
#[command(
    after_help = "SIGTERM and SIGINT end it; killed at any time, it goes on at its next start. \
        Nothing acknowledged is lost."
)]
pub struct CoordinatorArgs {
    /// Folder that holds everything; made where it is absent
    #[arg(long, value_name = "DIR", env = "TESSERA_DATA")]
    pub data: PathBuf,
    /// UDP address to listen at
    #[arg(long, value_name = "ADDR:PORT", env = "TESSERA_LISTEN", default_value = "0.0.0.0:7420")]
    pub listen: SocketAddr,
    /// Disk space to keep free, MiB; below it nothing new is accepted
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub disk_reserve: u64,
    /// How certificates hold.
    #[command(flatten)]
    pub lives: LifeArgs,
    /// How long files stay that no job names, after they were last written or asked for: 30m, 24h,
    /// 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_ttl)]
    pub blob_grace: u64,
    /// How long jobs are known, with their frames, after their end: 24h, 30d [default: until
    /// `tessera forget JOB`]
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    pub keep_jobs: Option<u64>,
    /// What peers may take.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Results of well-known nodes that another node renders again and compares, percent (0 to 100;
    /// a new node's first are all checked)
    #[arg(
        long,
        value_name = "PERCENT",
        env = "TESSERA_CHECK",
        default_value_t = 1.0,
        value_parser = percent,
    )]
    pub check: f64,
    /// Checks that a node must pass before fewer than all of its results are checked; 0 with
    /// --check 0: nothing is ever checked
    #[arg(long, value_name = "N", env = "TESSERA_CHECK_FIRST", default_value_t = 200)]
    pub check_first: u32,
    /// Do not run: check a data folder against its own records, and say what is wrong
    #[arg(long)]
    pub audit: bool,
    /// Do not run: write every intact record of a data folder to a file, a line of JSON each
    #[arg(long, value_name = "FILE", conflicts_with = "audit")]
    pub export: Option<PathBuf>,
    /// JSON on standard output (with --audit or --export)
    #[arg(long)]
    pub json: bool,
}

/// How long certificates hold; they are renewed by themselves at half of that, while there is a
/// connection.
#[derive(Clone, Copy, Debug, Args)]
pub struct LifeArgs {
    /// Life of nodes' certificates, up to 31d
    #[arg(
        long,
        value_name = "TIME",
        default_value = "24h",
        value_parser = parse_ttl,
        help_heading = "Identity",
    )]
    pub node_life: u64,
    /// Life of people's certificates, up to 31d
    #[arg(
        long,
        value_name = "TIME",
        default_value = "8h",
        value_parser = parse_ttl,
        help_heading = "Identity",
    )]
    pub user_life: u64,
    /// How long after its end a node's certificate may still be renewed, and do nothing else; 0s,
    /// up to 31d
    #[arg(
        long,
        value_name = "TIME",
        default_value = "72h",
        value_parser = parse_grace,
        help_heading = "Identity",
    )]
    pub node_grace: u64,
    /// The same for people's certificates
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0s",
        value_parser = parse_grace,
        help_heading = "Identity",
    )]
    pub user_grace: u64,
}

/// What peers may take of the coordinator.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Connections in all
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Limits",
    )]
    pub connections: u32,
    /// Connections of one user or administrator; a node has four
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Limits",
    )]
    pub connections_per_identity: u32,
    /// Connections at a time whose peer is not known yet; from a quarter of them on, addresses must
    /// be shown
    #[arg(
        long,
        value_name = "N",
        default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(4..),
        help_heading = "Limits",
    )]
    pub handshakes: u32,
    /// Messages and streams that one identity may send; beyond, it is read more slowly
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4000,
        value_parser = clap::value_parser!(u32).range(10..),
        help_heading = "Limits",
    )]
    pub messages_per_second: u32,
    /// MiB that one identity may send; beyond, it is read more slowly
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Limits",
    )]
    pub mib_per_second: u32,
}

/// A percentage, 0 to 100.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| format!("`{text}` is not a number from 0 to 100"))
}
