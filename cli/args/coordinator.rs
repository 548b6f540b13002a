//! Options of `coordinator`.

use super::blobs::BlobArgs;
use super::http::HttpArgs;
use super::oidc::OidcArgs;
use super::store::StoreArgs;
use super::time::{parse_grace, parse_ttl};
use clap::Args;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tessera_coordinator::Weights;

/// Options of `coordinator`.
#[derive(Debug, Args)]
#[command(
    after_help = "SIGTERM or SIGINT stops the coordinator. It may be killed at any time: the next \
        start continues from what is on the disk, and nothing acknowledged is lost."
)]
pub struct CoordinatorArgs {
    /// Data folder; created if absent
    #[arg(long, value_name = "DIR", env = "TESSERA_DATA")]
    pub data: PathBuf,
    /// Where the farm's state is.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Where the farm's files are.
    #[command(flatten)]
    pub blobs: BlobArgs,
    /// While another coordinator leads the store, stand by: follow it, show the pages, pass changes
    /// on to it, and lead once it has ended; without --farm-key, only wait
    #[arg(long, help_heading = "Store")]
    pub stand_by: bool,
    /// UDP address to listen on
    #[arg(
        long,
        value_name = "ADDR:PORT",
        env = "TESSERA_LISTEN",
        default_value = "0.0.0.0:7420",
        value_parser = listen_address,
    )]
    pub listen: SocketAddr,
    /// Free disk space to keep, in MiB; below it, nothing new is accepted
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub disk_reserve: u64,
    /// Disk space that uploads leave free beside that, so that frames can be finished, in MiB
    /// [default: a twentieth of the disk, at most 1024]
    #[arg(long, value_name = "MIB")]
    pub frame_reserve: Option<u64>,
    /// Where the API and the pages are.
    #[command(flatten)]
    pub http: HttpArgs,
    /// By which provider people sign in.
    #[command(flatten)]
    pub oidc: OidcArgs,
    /// File with the webhooks and mails to send about jobs and nodes (docs/events.md)
    #[arg(long, value_name = "FILE", env = "TESSERA_EVENTS")]
    pub events: Option<PathBuf>,
    /// Program that wakes the machine of an absent node, whose name is its argument; run while
    /// units wait for nodes
    #[arg(long, value_name = "PROGRAM", env = "TESSERA_WAKE")]
    pub wake: Option<PathBuf>,
    /// How certificates hold.
    #[command(flatten)]
    pub lives: LifeArgs,
    /// How long to keep files that no job uses, since they were last written or requested: 30m,
    /// 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_ttl)]
    pub blob_grace: u64,
    /// How long to keep jobs and their frames after they end: 24h, 30d [default: until tessera
    /// forget]
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    pub keep_jobs: Option<u64>,
    /// What peers may take.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Percentage of an established node's results that another node renders again and compares, 0
    /// to 100
    #[arg(
        long,
        value_name = "PERCENT",
        env = "TESSERA_CHECK",
        default_value_t = 1.0,
        value_parser = percent,
    )]
    pub check: f64,
    /// Verify every result of a new node until this many have passed. With --check 0, 0 disables
    /// verification
    #[arg(long, value_name = "N", env = "TESSERA_CHECK_FIRST", default_value_t = 200)]
    pub check_first: u32,
    /// Share of the farm that a user gets in proportion to others, who have 1: ada=2 or #7=0.5, by
    /// name or by the number of the identity; 0.01 to 100, may be given more than once
    #[arg(
        long = "weight",
        value_name = "USER=N",
        env = "TESSERA_WEIGHT",
        value_delimiter = ',',
        value_parser = weight,
    )]
    pub weights: Vec<(String, f64)>,
    /// Make a new authority if the data folder has lost its own; every node and user must enrol
    /// again
    #[arg(long, help_heading = "Identity")]
    pub new_authority: bool,
    /// File with the key under which a store elsewhere keeps the farm's authority and deny-list, so
    /// that a coordinator with an empty folder can lead; TESSERA_FARM_KEY has the key itself
    #[arg(long, value_name = "FILE", help_heading = "Identity")]
    pub farm_key: Option<PathBuf>,
    /// Become the farm's coordinator before one that a backup was restored for: nodes then refuse
    /// that one
    #[arg(long, help_heading = "Identity")]
    pub take_over: bool,
    /// Instead of running, check the data folder against its own records
    #[arg(long)]
    pub audit: bool,
    /// Instead of running, write every intact record of the data folder to a file, one JSON line
    /// each
    #[arg(long, value_name = "FILE", conflicts_with = "audit")]
    pub export: Option<PathBuf>,
    /// With --audit or --export, print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// How long certificates hold; they are renewed by themselves at half of that, while there is a
/// connection.
#[derive(Clone, Copy, Debug, Args)]
pub struct LifeArgs {
    /// Lifetime of node certificates, up to 31d; they are renewed at half of it while connected
    #[arg(
        long,
        value_name = "TIME",
        default_value = "24h",
        value_parser = parse_ttl,
        help_heading = "Identity",
    )]
    pub node_life: u64,
    /// Lifetime of user certificates, up to 31d; they are renewed at half of it while connected
    #[arg(
        long,
        value_name = "TIME",
        default_value = "8h",
        value_parser = parse_ttl,
        help_heading = "Identity",
    )]
    pub user_life: u64,
    /// How long an expired node certificate can still be used to renew itself, 0s to 31d
    #[arg(
        long,
        value_name = "TIME",
        default_value = "72h",
        value_parser = parse_grace,
        help_heading = "Identity",
    )]
    pub node_grace: u64,
    /// How long an expired user certificate can still be used to renew itself, 0s to 31d
    #[arg(
        long,
        value_name = "TIME",
        default_value = "14d",
        value_parser = parse_grace,
        help_heading = "Identity",
    )]
    pub user_grace: u64,
}

/// What peers may take of the coordinator.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Maximum number of connections
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Limits",
    )]
    pub connections: u32,
    /// Maximum number of connections of one user or administrator; a node may have four
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Limits",
    )]
    pub connections_per_identity: u32,
    /// Maximum number of connections still in their handshake; above a quarter of it, peers must
    /// prove their address
    #[arg(
        long,
        value_name = "N",
        default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(4..),
        help_heading = "Limits",
    )]
    pub handshakes: u32,
    /// Messages and streams accepted per second from one identity; faster peers are slowed down
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4000,
        value_parser = clap::value_parser!(u32).range(10..),
        help_heading = "Limits",
    )]
    pub messages_per_second: u32,
    /// MiB accepted per second from one identity; faster peers are slowed down
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Limits",
    )]
    pub mib_per_second: u32,
    /// Least KiB per second at which a result must arrive; a slower node loses its connection
    #[arg(long, value_name = "KIB", default_value_t = 32, help_heading = "Limits")]
    pub result_rate: u32,
    /// Maximum number of open jobs of one user
    #[arg(long, value_name = "N", default_value_t = 2000, help_heading = "Limits")]
    pub jobs_per_user: u64,
    /// Maximum number of frames of one user: those of open jobs, and finished ones
    #[arg(long, value_name = "N", default_value_t = 4_194_304, help_heading = "Limits")]
    pub frames_per_user: u64,
    /// Maximum number of units of one user that wait for a result
    #[arg(long, value_name = "N", default_value_t = 8_589_934_592, help_heading = "Limits")]
    pub units_per_user: u64,
    /// Maximum size of the descriptions of one user's jobs in MiB, also of ended ones
    #[arg(long, value_name = "MIB", default_value_t = 256, help_heading = "Limits")]
    pub job_mib_per_user: u64,
    /// Maximum size of one user's uploaded files that no open job uses, in MiB [default: a quarter
    /// of the disk that is free for them]
    #[arg(long, value_name = "MIB", help_heading = "Limits")]
    pub uploads_per_user: Option<u64>,
    /// Maximum number of jobs that one user watches
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Limits")]
    pub watchers_per_user: u32,
    /// Maximum number of requests of one user that are answered at a time
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Limits")]
    pub requests_per_user: u32,
    /// Maximum number of absent nodes that stay listed, up to 4096; those that are gone for longest
    /// are forgotten, drained ones last
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(..=4096),
        help_heading = "Limits",
    )]
    pub absent_nodes: u32,
}

/// A user and a weight.
fn weight(text: &str) -> Result<(String, f64), String> {
    let wrong = || "write it as USER=N, with a user's name or `#` and the number of the identity";
    let (user, weight) = text.split_once('=').ok_or_else(wrong)?;
    let number: f64 = weight.parse().map_err(|_| wrong())?;
    match user.is_empty() || !Weights::default().set(user, number) {
        true => Err(format!("`{text}` does not name a user, or its weight is not in 0.01 to 100")),
        false => Ok((user.to_owned(), number)),
    }
}

/// An address and a port. A name is none: it may stand for several addresses.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
        let example = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port.unwrap_or(7420)));
        format!("`{text}` is not an address and a port; write {example} to listen everywhere")
    })
}

/// A percentage, 0 to 100.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| format!("`{text}` is not a number from 0 to 100"))
}

#[cfg(test)]
mod tests {
    use super::listen_address;

    #[test]
    fn a_wrong_address_is_answered_with_a_right_one() {
        assert_eq!(listen_address("[::]:7420").unwrap().to_string(), "[::]:7420");
        for (text, example) in [("7421", "0.0.0.0:7421"), ("farm:x", "0.0.0.0:7420")] {
            let error = listen_address(text).unwrap_err();
            assert!(error.contains(&format!("`{text}`")) && error.contains(example), "{error}");
        }
    }
}
