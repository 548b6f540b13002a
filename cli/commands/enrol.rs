//! `enrol`: makes an identity of a farm from a join token.

use crate::args::enrol::EnrolArgs;
use crate::client::{first_address, identity_folder};
use crate::error::{CliError, Status};
use crate::small_file;
use std::path::Path;
use tessera_protocol::Hello;
use tessera_transport::enrol::Applicant;
use tessera_transport::{Identity, JoinToken, Timing};

/// Bytes of a token file at most.
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

/// `tessera enrol`.
pub(crate) async fn run(args: EnrolArgs) -> Result<Status, CliError> {
    let folder = identity_folder(&args.farm)?;
    if Identity::is_at(&folder) && !args.replace {
        let message = format!("there is an identity at `{}` already", folder.display());
        return Err(CliError::new(Status::Failure, message)
            .hint("--replace replaces it; --identity DIR stores the new one elsewhere"));
    }
    let address = first_address(&args.farm)?;
    let token: JoinToken = read_token(&args.token_file)?.parse().map_err(|error| {
        CliError::new(Status::NotAllowed, error).context(format!("`{}`", args.token_file.display()))
    })?;
    let name = args.name.or_else(login_name).ok_or_else(|| {
        CliError::new(Status::Usage, "this user has no login name").hint("give one: --name NAME")
    })?;
    let hello = Hello::ours(tessera_node::fingerprint());
    let applicant = Applicant { token: &token, name: &name, node: None };
    let identity =
        tessera_transport::enrol::enrol(&address, applicant, &hello, Timing::default()).await?;
    identity.save(&folder)?;
    eprintln!("{} of the farm at {address}, kept in `{}`", identity.peer, folder.display());
    Ok(Status::Done)
}

/// The token of a file, without the line's end.
pub(crate) fn read_token(path: &Path) -> Result<String, CliError> {
    let about = |error: std::io::Error| {
        CliError::from(error).context(format!("token file `{}`", path.display()))
    };
    Ok(small_file::read(path, TOKEN_FILE_BYTES_MAX).map_err(about)?.trim().to_owned())
}

fn login_name() -> Option<String> {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .filter(|name| !name.is_empty())
}
