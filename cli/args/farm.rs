//! Options of commands that make up a farm: coordinator, node, tokens, enrolment.

use super::local::{DeviceArgs, ImportArgs};
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use tessera_protocol::client::Role;

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

/// Options of `node`.
#[derive(Debug, Args)]
#[command(
    after_help = "SIGTERM drains it: what is in work is finished and delivered, the rest handed \
        back (see --hand-in-after). A second signal hands all of it back and ends it at once."
)]
pub struct NodeArgs {
    /// The coordinator
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "TESSERA_COORDINATOR",
        default_value = "127.0.0.1:7420"
    )]
    pub coordinator: String,
    /// File with a join token; needed once, while the data folder holds no identity
    #[arg(long, value_name = "FILE", env = "TESSERA_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// The node's own folder: identity, scene cache, results not yet delivered [default:
    /// $XDG_DATA_HOME/tessera/node]
    #[arg(long, value_name = "DIR", env = "TESSERA_NODE_DATA")]
    pub data: Option<PathBuf>,
    /// Name for people [default: the host's name]
    #[arg(long, value_name = "NAME", env = "TESSERA_NODE_NAME")]
    pub name: Option<String>,
    /// The pool of this node: jobs for a pool get its nodes alone (a token for a pool puts nodes
    /// there by itself)
    #[arg(long, value_name = "POOL", env = "TESSERA_POOL")]
    pub pool: Option<String>,
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// Disk space for scene files, MiB
    #[arg(long, value_name = "MIB", default_value_t = 16 << 10)]
    pub cache: u64,
    /// What reading a scene may take.
    #[command(flatten)]
    pub import: ImportArgs,
    /// Leave, with success, once it has had work and the farm has none for it (for 5 s)
    #[arg(long, help_heading = "Batch")]
    pub once: bool,
    /// Leave, with success, when no work has come for so long: 90s, 30m, 24h
    #[arg(long, value_name = "TIME", value_parser = parse_ttl, help_heading = "Batch")]
    pub max_idle: Option<u64>,
    /// After SIGTERM, finish units for so long and no longer: 0s, 20s, 5m; then they end early, and
    /// the samples that they have are handed in
    #[arg(long, value_name = "TIME", value_parser = parse_grace)]
    pub hand_in_after: Option<u64>,
    /// Whose notices that this machine is taken back are waited for: auto, off, aws, gcp or azure;
    /// then the node leaves within 25 s
    #[arg(
        long,
        value_name = "CLOUD",
        env = "TESSERA_SPOT",
        default_value_t = tessera_node::spot::Spot::Auto,
    )]
    pub spot: tessera_node::spot::Spot,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a join token; prints the token alone
    Create(TokenCreateArgs),
    /// List tokens that have not expired, without their secrets
    List(super::users::ListArgs),
    /// A token lets nobody in any more; who has used it stays (see `deny`)
    Revoke(super::identity::RevokeArgs),
}

/// Options of `token create`.
#[derive(Debug, Args)]
pub struct TokenCreateArgs {
    /// What it lets its bearer become: node, viewer, artist, operator or admin
    #[arg(long, value_name = "ROLE")]
    pub role: Role,
    /// The pool that nodes become part of by it; it stands in their certificates
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,
    /// The name that its bearer must have, a node's or a person's; it stands in the certificate
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How long it is good for: 90s, 30m, 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_ttl)]
    pub ttl: u64,
    /// How often it may be used
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub uses: u32,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `enrol`.
#[derive(Debug, Args)]
pub struct EnrolArgs {
    /// File with a join token for a person
    #[arg(long, value_name = "FILE", env = "TESSERA_TOKEN_FILE")]
    pub token_file: PathBuf,
    /// Name of the user [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Replace the identity that is there
    #[arg(long)]
    pub replace: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Which farm, and as whom.
#[derive(Clone, Debug, Args)]
pub struct FarmArgs {
    /// The coordinator [default: where the identity was made, else 127.0.0.1:7420]
    #[arg(long, value_name = "HOST:PORT", env = "TESSERA_COORDINATOR", help_heading = "Farm")]
    pub coordinator: Option<String>,
    /// Folder of the identity [default: $XDG_CONFIG_HOME/tessera/identity]
    #[arg(long, value_name = "DIR", env = "TESSERA_IDENTITY", help_heading = "Farm")]
    pub identity: Option<PathBuf>,
}

/// Seconds of `90s`, `30m`, `24h` or `7d`.
pub fn parse_ttl(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a time; write 90s, 30m, 24h or 7d, up to 365d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let digits = &text[..text.len() - 1];
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let secs = digits
        .parse::<u64>()
        .ok()
        .filter(|_| is_number)
        .and_then(|value| value.checked_mul(factor));
    secs.filter(|secs| (1..=365 * 86_400).contains(secs)).ok_or_else(wrong)
}

/// The same, and nothing: `0s`.
pub fn parse_grace(text: &str) -> Result<u64, String> {
    if text == "0s" { Ok(0) } else { parse_ttl(text) }
}

/// A percentage, 0 to 100.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| format!("`{text}` is not a number from 0 to 100"))
}

#[cfg(test)]
mod tests {
    use super::{parse_grace, parse_ttl};

    #[test]
    fn a_grace_may_be_none() {
        assert_eq!((parse_grace("0s"), parse_grace("2m")), (Ok(0), Ok(120)));
        assert!(parse_grace("0").is_err());
    }

    #[test]
    fn times_have_units_and_bounds() {
        let good = [("90s", 90), ("30m", 1800), ("24h", 86_400), ("365d", 31_536_000)];
        good.iter().for_each(|(text, secs)| assert_eq!(parse_ttl(text), Ok(*secs)));
        for text in ["", "s", "0s", "5", "366d", "-1h", "1h30m", "1µ", "99999999999999999999d"] {
            assert!(parse_ttl(text).is_err(), "{text}");
        }
    }
}
