//! `store migrate`: brings a farm's state from one store to another.

use crate::args::store::{MigrateArgs, StoreCommand};
use crate::error::{CliError, Status};
use crate::json;
use crate::store_place;
use crate::table::counted;
use std::path::Path;
use tessera_coordinator::store::{Migration, MigrationError, SledPlace, migrate};
use tessera_store_postgres::StoreAddress;

/// `tessera store …`.
pub(crate) fn run(command: StoreCommand) -> Result<Status, CliError> {
    match command {
        StoreCommand::Migrate(args) => run_migrate(&args),
    }
}

fn run_migrate(args: &MigrateArgs) -> Result<Status, CliError> {
    let sled = |text: &'_ str| text.strip_prefix("sled:").map(|data| Path::new(data).to_owned());
    let place = |address| store_place::postgres(address, &args.password, false);
    let (data, migrated) = match (sled(&args.from), sled(&args.to)) {
        (Some(data), None) if StoreAddress::is_one(&args.to) => {
            let migrated = migrate(&data, &SledPlace, &place(&args.to)?);
            (data, migrated)
        }
        (None, Some(data)) if StoreAddress::is_one(&args.from) => {
            let migrated = migrate(&data, &place(&args.from)?, &SledPlace);
            (data, migrated)
        }
        _ => {
            let text = "one of --from and --to is sled:DIR, and the other one postgres://...";
            return Err(CliError::new(Status::Usage, text));
        }
    };
    let Migration { values, records, hash } = migrated.map_err(told)?;
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    if args.json {
        json::print(&serde_json::json!({ "values": values, "records": records, "hash": hash }))?;
        return Ok(Status::Done);
    }
    let [values, records] =
        [(values, "value"), (records, "record")].map(|(count, what)| counted(count, what));
    json::line(&format!("{values}, {records} among them; both stores have the hash {hash}"))?;
    match sled(&args.to) {
        Some(data) => eprintln!("start it with `tessera coordinator --data {}`", data.display()),
        None => eprintln!(
            "start it with `tessera coordinator --data {} --store ADDRESS`",
            data.display()
        ),
    }
    Ok(Status::Done)
}

fn told(error: MigrationError) -> CliError {
    use tessera_coordinator::folder::FolderError;
    use tessera_coordinator::store::StoreError;
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
