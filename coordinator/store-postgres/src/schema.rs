//! The tables: made and changed by numbered files, each sent as one message.

use crate::connection::Link;
use crate::link_error::LinkError;
use std::time::Duration;
use tokio_postgres::types::Type;

/// The files, from number 1.
const MIGRATIONS: [&str; 3] = [
    include_str!("../migrations/0001_state.sql"),
    include_str!("../migrations/0002_leads.sql"),
    include_str!("../migrations/0003_standbys.sql"),
];
/// Time for one of them. A later one may rewrite a table.
const TIME: Duration = Duration::from_secs(50);
/// Tries when two coordinators make the tables at once.
const TRIES: usize = 3;

/// Makes the tables, or brings them to the version of this build. Refuses those of a newer build.
pub(crate) async fn prepare(link: &Link) -> Result<(), LinkError> {
    let mut last = None;
    for _ in 0..TRIES {
        let found = version(link).await?;
        check(found)?;
        let mut ended = Ok(());
        for statements in MIGRATIONS.iter().skip(found) {
            ended = link.run(statements, TIME).await;
            if ended.is_err() {
                break;
            }
        }
        match ended {
            Ok(()) => return Ok(()),
            // Another coordinator may have done the same just now.
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| LinkError::Setup("the tables cannot be made".into())))
}

/// Fails unless the tables are those of this build.
pub(crate) async fn expect(link: &Link) -> Result<(), LinkError> {
    match version(link).await? {
        0 => Err(LinkError::Setup("the database has no state of a farm".into())),
        found if found < MIGRATIONS.len() => {
            let text = "an older build made the tables; a start of the coordinator changes them";
            Err(LinkError::Setup(text.into()))
        }
        found => check(found),
    }
}

/// Whether a farm's tables are there, of any version.
pub(crate) async fn is_made(link: &Link) -> Result<bool, LinkError> {
    Ok(version(link).await? > 0)
}

fn check(found: usize) -> Result<(), LinkError> {
    match found > MIGRATIONS.len() {
        true => Err(LinkError::Setup(format!(
            "its tables have version {found}, and this build reads {}; use the build that wrote \
             them",
            MIGRATIONS.len()
        ))),
        false => Ok(()),
    }
}

/// Returns the number of the last file that was applied; 0 if there are no tables.
async fn version(link: &Link) -> Result<usize, LinkError> {
    let exists = "SELECT to_regclass($1) IS NOT NULL";
    let name = "tessera.version";
    let rows = link.rows(exists, &[(&name, Type::TEXT)], TIME).await?;
    if !rows.first().is_some_and(|row| row.get::<_, bool>(0)) {
        return Ok(0);
    }
    let rows = link.rows("SELECT max(number) FROM tessera.version", &[], TIME).await?;
    let number = rows.first().and_then(|row| row.get::<_, Option<i32>>(0)).unwrap_or(0);
    Ok(usize::try_from(number).unwrap_or(0))
}
