//! Stores by their addresses. Finds passwords, and reads the environment of PostgreSQL's clients
//! for them.

use crate::args::store::{PasswordArgs, StoreArgs};
use crate::error::{CliError, Status};
use std::path::PathBuf;
use std::sync::Arc;
use tessera_coordinator::store::{SledPlace, StorePlace};
use tessera_store_postgres::{AddressError, Passwords, PostgresPlace, StoreAddress};

/// A store, and how to end a wait for it.
pub(crate) struct Chosen {
    /// The store.
    pub(crate) place: Arc<dyn StorePlace>,
    /// The same, if it is on PostgreSQL.
    pub(crate) postgres: Option<Arc<PostgresPlace>>,
}

/// Returns the store that options name. With `stand_by` it is waited for.
pub(crate) fn chosen(args: &StoreArgs, stand_by: bool) -> Result<Chosen, CliError> {
    if args.store == "sled" {
        if stand_by {
            let text = "--stand-by waits for the leader of a shared store, and sled has none";
            return Err(CliError::new(Status::Usage, text));
        }
        return Ok(Chosen { place: Arc::new(SledPlace), postgres: None });
    }
    let place = Arc::new(postgres(&args.store, &args.password, stand_by)?);
    Ok(Chosen { place: place.clone(), postgres: Some(place) })
}

/// Returns a store on PostgreSQL.
pub(crate) fn postgres(
    address: &str,
    password: &PasswordArgs,
    stand_by: bool,
) -> Result<PostgresPlace, CliError> {
    let usage = |error: AddressError| CliError::new(Status::Usage, error);
    let mut address = StoreAddress::parse(address).map_err(usage)?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let passwords = Passwords {
        file: password.store_password_file.clone(),
        given: std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty()),
        pgpass: std::env::var_os("PGPASSFILE").map(PathBuf::from),
        usual: home.map(|home| home.join(".pgpass")),
    };
    passwords.add_to(&mut address).map_err(CliError::of_file)?;
    Ok(PostgresPlace::new(address, owner(), stand_by))
}

/// Says to people which process leads.
fn owner() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy().into_owned();
    format!("the coordinator on {host}, process {}", std::process::id())
}
