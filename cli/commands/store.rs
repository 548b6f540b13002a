//! `store migrate`: brings a farm's state or files from one place to another.

use crate::args::store::{MigrateArgs, StoreCommand};
use crate::blob_place;
use crate::error::{CliError, Status};
use crate::json;
use crate::progress::{Audience, Copying};
use crate::store_place;
use crate::table::{bytes, counted};
use std::path::{Path, PathBuf};
use tessera_blobs_s3::BlobAddress;
use tessera_coordinator::blobs::{self, BlobMigration, BlobMigrationError, BlobPlace, DiskPlace};
use tessera_coordinator::folder::FolderError;
use tessera_coordinator::store::{
    Migration, MigrationError, SledPlace, StoreError, StorePlace, migrate,
};
use tessera_store_postgres::StoreAddress;

/// `tessera store …`.
pub(crate) fn run(command: StoreCommand) -> Result<Status, CliError> {
    match command {
        StoreCommand::Migrate(args) => run_migrate(&args),
    }
}

fn run_migrate(args: &MigrateArgs) -> Result<Status, CliError> {
    let is_s3 = |text: &str| BlobAddress::is_one(text);
    if is_s3(&args.from) || is_s3(&args.to) {
        return migrate_files(args);
    }
    migrate_state(args)
}

/// The data folder in an address like `sled:DIR`.
fn folder_in(address: &str, scheme: &str) -> Option<PathBuf> {
    address.strip_prefix(scheme).map(|data| Path::new(data).to_owned())
}

fn migrate_state(args: &MigrateArgs) -> Result<Status, CliError> {
    let elsewhere = |address| store_place::postgres(address, &args.password, false);
    let sled = |address: &str| folder_in(address, "sled:");
    let (data, from, to): (_, Box<dyn StorePlace>, Box<dyn StorePlace>) =
        match (sled(&args.from), sled(&args.to)) {
            (Some(data), None) if StoreAddress::is_one(&args.to) => {
                (data, Box::new(SledPlace), Box::new(elsewhere(&args.to)?))
            }
            (None, Some(data)) if StoreAddress::is_one(&args.from) => {
                (data, Box::new(elsewhere(&args.from)?), Box::new(SledPlace))
            }
            _ => {
                let text = "--from and --to are sled:DIR and postgres://..., or disk:DIR and \
                    s3://..., in either order";
                return Err(CliError::new(Status::Usage, text));
            }
        };
    let migrated = migrate(&data, &*from, &*to);
    let Migration { values, records, hash } = migrated.map_err(told_of_state)?;
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    if args.json {
        json::print(&serde_json::json!({ "values": values, "records": records, "hash": hash }))?;
        return Ok(Status::Done);
    }
    let [values, records] =
        [(values, "value"), (records, "record")].map(|(count, what)| counted(count, what));
    json::line(&format!("{values}, {records} among them; both stores have the hash {hash}"))?;
    say_start(&data, sled(&args.to).is_none().then_some("--store"));
    Ok(Status::Done)
}

fn migrate_files(args: &MigrateArgs) -> Result<Status, CliError> {
    let elsewhere = |address| blob_place::s3(address, &args.credentials);
    let disk = |address: &str| folder_in(address, "disk:");
    let (data, from, to): (_, Box<dyn BlobPlace>, Box<dyn BlobPlace>) =
        match (disk(&args.from), disk(&args.to)) {
            (Some(data), None) => (data, Box::new(DiskPlace), Box::new(elsewhere(&args.to)?)),
            (None, Some(data)) => (data, Box::new(elsewhere(&args.from)?), Box::new(DiskPlace)),
            _ => {
                let text = "files go between disk:DIR and s3://...: one of --from and --to is each";
                return Err(CliError::new(Status::Usage, text));
            }
        };
    let copying = Copying::begin(Audience::of_stderr(args.json));
    let migrated = blobs::migrate(&data, (&*from, &*to), &|done, all| copying.update(done, all));
    copying.end();
    let BlobMigration { blobs, bytes: length, results } = migrated.map_err(told_of_files)?;
    if args.json {
        let moved = serde_json::json!({ "blobs": blobs, "bytes": length, "results": results });
        json::print(&moved)?;
        return Ok(Status::Done);
    }
    json::line(&format!("{}, {}", counted(blobs, "file"), bytes(length)))?;
    if results > 0 {
        json::line(&format!("{} with results of frames in work", counted(results, "object")))?;
    }
    say_start(&data, disk(&args.to).is_none().then_some("--blobs"));
    Ok(Status::Done)
}

fn say_start(data: &Path, option: Option<&str>) {
    let more = option.map(|option| format!(" {option} ADDRESS")).unwrap_or_default();
    eprintln!("start it with `tessera coordinator --data {}{more}`", data.display());
}

/// A failed copy of the state.
pub(super) fn told_of_state(error: MigrationError) -> CliError {
    let hint = match &error {
        MigrationError::Folder(FolderError::InUse { .. }) => Some("stop the coordinator first"),
        MigrationError::Store(StoreError::NotEmpty { .. }) => Some(
            "if what is there is not needed: DROP SCHEMA tessera CASCADE in the database, or move \
             DIR/sled away",
        ),
        MigrationError::Store(error) => error.hint(),
        _ => None,
    };
    CliError::new(Status::Failure, error).hint_if(hint)
}

/// A failed copy of files.
pub(super) fn told_of_files(error: BlobMigrationError) -> CliError {
    let hint = match &error {
        BlobMigrationError::Folder(FolderError::InUse { .. }) => Some("stop the coordinator first"),
        BlobMigrationError::Place(error) => error.hint(),
        BlobMigrationError::Damaged { .. } => Some(
            "`tessera fsck` says what needs it; without it, the file can be moved away and the \
             copy goes on",
        ),
        _ => Some("run it again: it goes on where it was"),
    };
    CliError::new(Status::Failure, error).hint_if(hint)
}
