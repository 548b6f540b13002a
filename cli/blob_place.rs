//! Places of files by their addresses. Finds credentials, and reads the environment of other
//! programs for S3 for them.

use crate::args::blobs::{BlobArgs, BlobCredentialArgs};
use crate::error::{CliError, Status};
use std::sync::Arc;
use tessera_blobs_s3::{AddressError, BlobAddress, Credentials, S3Place};
use tessera_coordinator::blobs::{BlobPlace, DiskPlace};

/// Returns the place that options name.
pub(crate) fn chosen(args: &BlobArgs) -> Result<Arc<dyn BlobPlace>, CliError> {
    match args.blobs.as_str() {
        "disk" => Ok(Arc::new(DiskPlace)),
        address => Ok(Arc::new(s3(address, &args.credentials)?)),
    }
}

/// Returns a place in a bucket.
pub(crate) fn s3(address: &str, args: &BlobCredentialArgs) -> Result<S3Place, CliError> {
    let usage = |error: AddressError| CliError::new(Status::Usage, error);
    let address = BlobAddress::parse(address).map_err(usage)?;
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let credentials = match &args.blobs_credentials {
        Some(path) => Credentials::of_file(path),
        None => Credentials::of_variables(
            variable("AWS_ACCESS_KEY_ID"),
            variable("AWS_SECRET_ACCESS_KEY"),
            variable("AWS_SESSION_TOKEN"),
        ),
    };
    Ok(S3Place::new(address, credentials.map_err(CliError::of_file)?))
}
