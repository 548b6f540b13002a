//! Options about the place of a coordinator's files.

use clap::Args;
use std::path::PathBuf;

/// Where the files are.
#[derive(Clone, Debug, Args)]
pub struct BlobArgs {
    /// Where scene files, results and frames are: disk, in the data folder, or
    /// s3://BUCKET/PREFIX?OPTIONS
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TESSERA_BLOBS",
        default_value = "disk",
        help_heading = "Store"
    )]
    pub blobs: String,
    /// Who asks there.
    #[command(flatten)]
    pub credentials: BlobCredentialArgs,
}

/// Who asks a place of files.
#[derive(Clone, Debug, Args)]
pub struct BlobCredentialArgs {
    /// File with the key for the files, in the form of ~/.aws/credentials, which others cannot read
    /// [default: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, else the role of this machine]
    #[arg(long, value_name = "FILE", env = "TESSERA_BLOBS_CREDENTIALS", help_heading = "Store")]
    pub blobs_credentials: Option<PathBuf>,
}
