//! The file of `--events`: whom the coordinator tells what.

use crate::error::{CliError, Status};
use std::path::Path;
use tessera_coordinator::api::Api;
use tessera_events::{ConfigError, Events, EventsConfig, Home};

/// Reads the file, and checks that all is there to tell events; None where there is no file.
pub(crate) fn read(path: Option<&Path>) -> Result<Option<EventsConfig>, CliError> {
    let Some(path) = path else { return Ok(None) };
    let config = EventsConfig::read(path).map_err(|error| match error {
        ConfigError::Read { .. } => CliError::of_file(error),
        error => CliError::new(Status::Usage, error),
    })?;
    Events::check(&config).map_err(failed)?;
    Ok(Some(config))
}

/// Begins to tell events of a coordinator that leads.
pub(crate) fn tell(
    config: Option<&EventsConfig>,
    api: &Api,
    home: Home<'_>,
) -> Result<Option<Events>, CliError> {
    config.map(|config| Events::start(config, api, home).map_err(failed)).transpose()
}

fn failed(error: tessera_events::StartError) -> CliError {
    CliError::new(Status::Failure, error)
}
