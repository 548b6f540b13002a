//! `coordinator`: runs a coordinator, or checks or exports the data folder of a stopped one.

use crate::args::coordinator::{CoordinatorArgs, LifeArgs, LimitArgs};
use crate::args::http::{HttpAddress, HttpArgs};
use crate::args::oidc::OidcArgs;
use crate::blob_place;
use crate::client::{self, Farm, unexpected};
use crate::error::{CliError, Status};
use crate::events_file;
use crate::inspector::SceneInspector;
use crate::json;
use crate::log::Telling;
use crate::service::Manager;
use crate::signals::Stops;
use crate::store_place;
use crate::table::counted;
use crate::wake::{self, Waking};
use std::fs::File;
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tessera_coordinator::api::Api;
use tessera_coordinator::folder::FolderError;
use tessera_coordinator::store::StorePlace;
use tessera_coordinator::{
    AuditError, Begun, Census, Config, Coordinator, CoordinatorError, ExportError, FarmAt, FarmKey,
    FarmKeyError, Limits, PerUser, Probe, RunningCoordinator, Standby,
};
use tessera_events::{Events, Home};
use tessera_http::{HttpConfig, HttpError, HttpServer, OidcConfig};
use tessera_protocol::client::{AuditReport, Request, Response};
use tessera_store_postgres::PostgresPlace;
use tessera_transport::validity::{LIFE_MAX, LIFE_MIN};
use tessera_transport::{Identity, Lifetimes, Rates, files};
use tokio::task::block_in_place;

/// `tessera coordinator`.
pub(crate) async fn run(args: CoordinatorArgs, telling: Telling) -> Result<Status, CliError> {
    if args.audit {
        return audit(&args).await;
    }
    if let Some(file) = &args.export {
        if args.store.store != "sled" {
            let text = "--export reads the journal in the data folder, and the state is in --store";
            return Err(CliError::new(Status::Usage, text)
                .hint("`tessera fsck --store` checks it, and PostgreSQL's own tools copy it"));
        }
        return export(&args, file);
    }
    let mut manager = Manager::find();
    manager.status("opening the data folder".into());
    let mut stops = Stops::listen()?;
    let (config, postgres) = config(&args, telling)?;
    let http = http_config(&args.http, oidc_config(&args.oidc)?)?;
    let events = events_file::read(args.events.as_deref())?;
    wake::check(args.wake.as_deref())?;
    let store = config.store.clone();
    let begun = match args.stand_by {
        true => begin(config, postgres, &mut stops).await?,
        false => {
            Some(Begun::Leads(Box::new(Coordinator::start(config).await.map_err(not_started)?)))
        }
    };
    let (coordinator, served) = match begun {
        None => return Ok(Status::Done),
        Some(Begun::Leads(coordinator)) => match serve_http(http, coordinator.api(), &*store) {
            Ok(served) => (*coordinator, served),
            Err(error) => {
                coordinator.shutdown().await?;
                return Err(error);
            }
        },
        Some(Begun::StandsBy(standby)) => {
            let served = serve_http(http, standby.api(), &*store)?;
            let attending = tokio::spawn(attend_standby(standby.probe()));
            let led = tokio::select! {
                led = standby.lead() => led.map_err(not_started)?,
                () = stops.next() => return Ok(Status::Done),
            };
            attending.abort();
            served.iter().for_each(|served| served.go_on_with(&led.api()));
            (led, served)
        }
    };
    let home = Home { data: &args.data, is_shared: args.store.store != "sled" };
    let telling = match events_file::tell(events.as_ref(), &coordinator.api(), home) {
        Ok(telling) => telling,
        Err(error) => {
            coordinator.shutdown().await?;
            return Err(error);
        }
    };
    let waking = wake::begin(args.wake, coordinator.api());
    run_to_end((coordinator, (served, telling, waking)), manager, stops).await
}

/// What runs beside a coordinator that leads: its pages, its events, and what wakes machines.
type Beside = (Option<HttpServer>, Option<Events>, Option<Waking>);

/// Runs a coordinator that leads, until it is told to end.
async fn run_to_end(
    (mut coordinator, beside): (RunningCoordinator, Beside),
    manager: Manager,
    mut stops: Stops,
) -> Result<Status, CliError> {
    let attending = tokio::spawn(attend(manager, coordinator.probe()));
    tokio::select! {
        () = stops.next() => tracing::info!("stopping"),
        error = coordinator.failed() => {
            return Err(CliError::from(error)
                .hint("what was acknowledged is safe; start the coordinator again once its store \
                    works again"));
        }
    }
    attending.abort();
    drop(beside);
    Manager::find().stopping("stopping");
    tokio::select! {
        ended = coordinator.shutdown() => ended?,
        () = stops.next() => tracing::warn!("a second signal: ended at once, as by a kill; nothing \
            acknowledged is lost"),
    }
    Ok(Status::Done)
}

/// Returns the settings of a coordinator, and its store if that is on PostgreSQL.
fn config(
    args: &CoordinatorArgs,
    telling: Telling,
) -> Result<(Config, Option<Arc<PostgresPlace>>), CliError> {
    let store = store_place::chosen(&args.store, args.stand_by)?;
    let mut config = Config::new(&args.data, args.listen, tessera_node::fingerprint());
    config.store = store.place;
    config.blobs = blob_place::chosen(&args.blobs)?;
    config.user_identity = client::default_identity();
    config.disk_reserve_bytes = args.disk_reserve.saturating_mul(1 << 20);
    config.frame_reserve_bytes = args.frame_reserve.map(|mib| mib.saturating_mul(1 << 20));
    config.settings.per_user = PerUser {
        jobs: args.limits.jobs_per_user,
        frames: args.limits.frames_per_user,
        units: args.limits.units_per_user,
        spec_bytes: args.limits.job_mib_per_user.saturating_mul(1 << 20),
    };
    config.settings.absent_nodes = args.limits.absent_nodes as usize;
    config.lifetimes = lifetimes(args.lives)?;
    config.take_over = args.take_over;
    config.new_authority = args.new_authority;
    config.farm_key = farm_key(args.farm_key.as_deref())?;
    if config.farm_key.is_some() && args.blobs.blobs == "disk" {
        tracing::warn!(
            "files and frames are on this machine's disk: a coordinator elsewhere goes on without \
             them; --blobs keeps them in a bucket"
        );
    }
    config.blob_grace = Duration::from_secs(args.blob_grace);
    config.keep_jobs = args.keep_jobs.map(Duration::from_secs);
    config.limits = limits(&args.limits);
    config.settings.check_share = (args.check * 10.24).round() as u16;
    config.settings.check_first = args.check_first;
    for (user, weight) in &args.weights {
        config.settings.weights.set(user, *weight);
    }
    (config.tracer, config.lines) = (telling.tracer, telling.lines);
    Ok((config, store.postgres))
}

/// Begins to lead or to stand by. None if it was told to end while it waited for its store.
async fn begin(
    config: Config,
    store: Option<Arc<PostgresPlace>>,
    stops: &mut Stops,
) -> Result<Option<Begun>, CliError> {
    tokio::select! {
        begun = Standby::begin(config) => begun.map(Some).map_err(not_started),
        () = stops.next(), if store.is_some() => {
            store.inspect(|store| store.stop_waiting());
            Ok(None)
        }
    }
}

/// Longest file with a provider's secret, in bytes.
const SECRET_BYTES_MAX: u64 = 4096;
/// Variable of the environment that has the farm's key.
const FARM_KEY: &str = "TESSERA_FARM_KEY";
/// Address of the pages where none is given.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7421);

/// Where HTTP is served, and whether that was asked for; None where it is off.
fn http_config(
    args: &HttpArgs,
    oidc: Option<OidcConfig>,
) -> Result<Option<(HttpConfig, bool)>, CliError> {
    let listen = match args.http {
        Some(HttpAddress::Off) if oidc.is_some() => {
            let text = "--oidc signs in to pages, and --http off serves none";
            return Err(CliError::new(Status::Usage, text));
        }
        Some(HttpAddress::Off) => return Ok(None),
        Some(HttpAddress::At(address)) => Some(address),
        None => None,
    };
    let HttpArgs { http_tls, http_base, advertise_http, .. } = args.clone();
    let listens = listen.unwrap_or(HTTP);
    let (tls, base, advertise) = (http_tls, http_base, advertise_http);
    let config = HttpConfig { listen: listens, tls, base, advertise, oidc };
    config.check().map_err(|error| CliError::new(Status::Usage, error))?;
    Ok(Some((config, listen.is_some())))
}

/// By which provider people sign in; None where only links of `tessera web` do.
fn oidc_config(args: &OidcArgs) -> Result<Option<OidcConfig>, CliError> {
    let wrong = |text: &str| CliError::new(Status::Usage, text);
    let OidcArgs { oidc, oidc_client_id, oidc_secret_file, oidc_groups, oidc_roles } = args.clone();
    let Some(issuer) = oidc else {
        return match oidc_client_id.is_some() || !oidc_roles.is_empty() {
            true => Err(wrong("--oidc-client-id and --oidc-role need --oidc ISSUER")),
            false => Ok(None),
        };
    };
    let needs_client = || wrong("--oidc needs --oidc-client-id ID, which the provider gives");
    let config = OidcConfig {
        issuer,
        client_id: oidc_client_id.ok_or_else(needs_client)?,
        secret: oidc_secret_file.as_deref().map(read_line).transpose()?,
        groups: oidc_groups,
        roles: oidc_roles.into_iter().collect(),
    };
    config.check().map_err(|error| CliError::new(Status::Usage, error))?;
    Ok(Some(config))
}

/// The secret in a file that others cannot read, without the end of its line.
fn read_line(path: &Path) -> Result<String, CliError> {
    let about =
        |error: std::io::Error| CliError::from(error).context(format!("`{}`", path.display()));
    let bytes = files::read_secret(path, SECRET_BYTES_MAX).map_err(about)?;
    let text = String::from_utf8(bytes).map_err(|_| about(std::io::Error::other("no text")))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The farm's key of a file, or of the environment.
fn farm_key(file: Option<&Path>) -> Result<Option<FarmKey>, CliError> {
    let (text, from) = match (file, std::env::var(FARM_KEY)) {
        (Some(path), _) => (read_line(path)?, format!("`{}`", path.display())),
        (None, Ok(text)) if !text.is_empty() => (text, FARM_KEY.to_owned()),
        (None, _) => return Ok(None),
    };
    let wrong = |error: FarmKeyError| CliError::new(Status::Usage, format!("{from}: {error}"));
    FarmKey::of_text(&text).map(Some).map_err(wrong)
}

/// Serves HTTP. Where nobody asked for it and the port is taken, as by a second coordinator of this
/// machine, the farm runs without.
fn serve_http(
    config: Option<(HttpConfig, bool)>,
    api: Api,
    store: &dyn StorePlace,
) -> Result<Option<HttpServer>, CliError> {
    let Some((config, asked)) = config else { return Ok(None) };
    match HttpServer::start(&config, api, Some(Arc::new(SceneInspector::new()))) {
        Ok(server) => {
            store.serves_http_at(server.advertised());
            tracing::info!(address = server.base(), "pages and API; `tessera web` signs in");
            Ok(Some(server))
        }
        Err(error @ HttpError::Bind { .. }) if !asked => {
            let error = CliError::from(error).to_string();
            tracing::warn!(error, "no pages and no API: give another address by --http");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn not_started(error: CoordinatorError) -> CliError {
    let in_use = matches!(error, CoordinatorError::Folder(FolderError::InUse { .. }));
    let error = CliError::from(error);
    match in_use {
        true => error.hint("stop that one, or give this one a folder of its own"),
        false => error,
    }
}

fn lifetimes(args: LifeArgs) -> Result<Lifetimes, CliError> {
    let LifeArgs { node_life, user_life, node_grace, user_grace } = args;
    let all = [
        ("--node-life", node_life, LIFE_MIN),
        ("--user-life", user_life, LIFE_MIN),
        ("--node-grace", node_grace, Duration::ZERO),
        ("--user-grace", user_grace, Duration::ZERO),
    ];
    for (option, secs, least) in all {
        if !(least..=LIFE_MAX).contains(&Duration::from_secs(secs)) {
            let text = format!("{option} of {secs} s is not in {} s to 31d", least.as_secs());
            return Err(CliError::new(Status::Usage, text));
        }
    }
    let [node, user, node_grace, user_grace] = all.map(|(_, secs, _)| Duration::from_secs(secs));
    Ok(Lifetimes { node, user, node_grace, user_grace })
}

fn limits(args: &LimitArgs) -> Limits {
    Limits {
        connections: args.connections as usize,
        connections_per_identity: args.connections_per_identity as usize,
        handshakes: args.handshakes as usize,
        rates: Rates {
            messages: args.messages_per_second,
            bytes: u64::from(args.mib_per_second) << 20,
        },
        result_rate: u64::from(args.result_rate) << 10,
        uploads_per_user: args.uploads_per_user.map(|mib| mib.saturating_mul(1 << 20)),
        watchers_per_user: args.watchers_per_user,
        requests_per_user: args.requests_per_user,
    }
}

/// Tells the service manager that a coordinator stands by, and that its loop turns.
async fn attend_standby(probe: Probe) {
    let mut manager = Manager::find();
    manager.status("stands by, and follows the leader".into());
    while manager.listens() && probe.census().await.is_some() {
        manager.ready();
        manager.alive();
        tokio::time::sleep(manager.interval()).await;
    }
}

/// Tells the service manager how the coordinator is, and that its loop turns, for as long as it
/// does.
async fn attend(mut manager: Manager, probe: Probe) {
    if !manager.listens() {
        return;
    }
    while let Some(Census { nodes, jobs, units }) = probe.census().await {
        manager.ready();
        let [nodes, jobs, units] = [(nodes, "node"), (jobs, "open job"), (units, "unit")]
            .map(|(count, what)| counted(count as u64, what));
        manager.status(format!("{nodes}, {jobs}, {units} leased"));
        manager.alive();
        tokio::time::sleep(manager.interval()).await;
    }
}

async fn audit(args: &CoordinatorArgs) -> Result<Status, CliError> {
    let store = store_place::chosen(&args.store, false)?.place;
    let blobs = blob_place::chosen(&args.blobs)?;
    let kept = FarmAt { data: &args.data, store: &*store, blobs: &*blobs };
    let audited = block_in_place(|| tessera_coordinator::audit(kept));
    let report = match audited {
        Ok(report) => report,
        Err(AuditError::Folder(FolderError::InUse { .. })) => ask_for_audit(&args.data).await?,
        Err(error) => return Err(error.into()),
    };
    match args.json {
        true => json::print(&report)?,
        false => json::line(&describe(&report))?,
    }
    if report.problems.is_empty() {
        return Ok(Status::Done);
    }
    let found = counted(report.problems.len() as u64, "problem");
    Err(CliError::new(Status::Failure, format!("the audit found {found}"))
        .hint("`--export FILE` saves every record that is intact"))
}

/// A running coordinator audits itself.
async fn ask_for_audit(data: &Path) -> Result<AuditReport, CliError> {
    let identity = Identity::load(&data.join("admin"))?;
    let address = identity.coordinator.clone().ok_or_else(|| {
        CliError::new(
            Status::Failure,
            "the folder is in use, and does not say where its coordinator listens",
        )
    })?;
    match Farm::new(address, identity).ask(&Request::Audit).await? {
        Response::Audit(report) => Ok(report),
        _ => Err(unexpected()),
    }
}

fn describe(report: &AuditReport) -> String {
    let AuditReport {
        records,
        jobs,
        units_committed,
        units_committed_twice,
        frames,
        device_millis,
        problems,
    } = report;
    let [records, jobs, units, frames] = [
        (*records, "record"),
        (*jobs, "job"),
        (*units_committed, "unit"),
        (*frames, "finished frame"),
    ]
    .map(|(count, what)| counted(count, what));
    let mut text =
        format!("{records}, {jobs}, {units} committed ({units_committed_twice} twice), {frames}");
    text += &format!(", {}.{:03} s of devices", device_millis / 1000, device_millis % 1000);
    for problem in problems {
        text += &format!("\nproblem: {problem}");
    }
    if problems.is_empty() {
        text += "\nno problem";
    }
    text
}

fn export(args: &CoordinatorArgs, file: &Path) -> Result<Status, CliError> {
    let about =
        |error: std::io::Error| CliError::from(error).context(format!("`{}`", file.display()));
    let mut out = BufWriter::new(File::create_new(file).map_err(about)?);
    let exported = tessera_coordinator::export(&args.data, &mut out);
    let summary = exported.map_err(|error| match error {
        ExportError::Folder(FolderError::InUse { .. }) => {
            // Nothing was written, and a second try needs the name.
            let _ = std::fs::remove_file(file);
            CliError::from(error).hint("stop the coordinator first")
        }
        ExportError::Write(source) => about(source),
        error => error.into(),
    })?;
    out.into_inner().map_err(|error| about(error.into_error()))?.sync_all().map_err(about)?;
    match args.json {
        true => json::print(
            &serde_json::json!({ "intact": summary.intact, "damaged": summary.damaged }),
        )?,
        false => {
            let intact = counted(summary.intact, "value");
            eprintln!("{intact} written, {} damaged named", summary.damaged)
        }
    }
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_coordinator_is_told_to_take_another_folder() {
        let error = FolderError::InUse { path: "farm".into() };
        let text = not_started(CoordinatorError::Folder(error)).to_string();
        assert!(text.contains("`farm` is in use") && text.contains("of its own"), "{text}");
    }

    #[test]
    fn an_audit_counts_one_of_each_in_the_singular() {
        let report = AuditReport {
            records: 1,
            jobs: 1,
            units_committed: 1,
            units_committed_twice: 0,
            frames: 1,
            device_millis: 1005,
            problems: Vec::new(),
        };
        let text = describe(&report);
        assert_eq!(
            text,
            "1 record, 1 job, 1 unit committed (0 twice), 1 finished frame, 1.005 s of devices\n\
             no problem"
        );
    }
}
