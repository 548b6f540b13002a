//! `token` and `enrol`: letting nodes and people into a farm.

use crate::args::farm::{EnrolArgs, TokenCommand, TokenCreateArgs};
use crate::args::users::ListArgs;
use crate::client::{Farm, first_address, identity_folder, unexpected};
use crate::error::{CliError, Status};
use crate::table::{printable, span, table};
use crate::{json, small_file};
use serde_json::json;
use std::path::Path;
use tessera_protocol::Hello;
use tessera_protocol::access::{TOKEN_PAGE_MAX, TokenScope, TokenSummary};
use tessera_protocol::client::{Request, Response};
use tessera_transport::enrol::Applicant;
use tessera_transport::validity::now_secs;
use tessera_transport::{Identity, JoinToken, Timing};

/// Bytes of a token file at most.
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

/// `tessera token …`.
pub(crate) async fn run(command: TokenCommand) -> Result<Status, CliError> {
    match command {
        TokenCommand::Create(args) => create(args).await,
        TokenCommand::List(args) => list(args).await,
        TokenCommand::Revoke(args) => {
            match Farm::of(&args.farm)?.ask(&Request::RevokeToken { id: args.id }).await? {
                Response::Done => Ok(Status::Done),
                _ => Err(unexpected()),
            }
        }
    }
}

async fn create(args: TokenCreateArgs) -> Result<Status, CliError> {
    let TokenCreateArgs { role, pool, name, ttl, uses, .. } = args;
    let scope = TokenScope { role, pool: pool.clone(), name: name.clone(), ttl_secs: ttl, uses };
    let request = Request::CreateToken(scope);
    let Response::Token(token) = Farm::of(&args.farm)?.ask(&request).await? else {
        return Err(unexpected());
    };
    match args.json {
        true => json::print(
            &json!({ "token": token, "role": role, "pool": pool, "name": name, "ttl_secs": ttl,
                "uses": uses }),
        )?,
        false => json::line(&token)?,
    }
    Ok(Status::Done)
}

async fn list(args: ListArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let mut tokens: Vec<TokenSummary> = Vec::new();
    loop {
        let from = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let Response::Tokens(page) = farm.ask(&Request::Tokens { from }).await? else {
            return Err(unexpected());
        };
        let more = page.len() >= TOKEN_PAGE_MAX;
        tokens.extend(page);
        if !more {
            break;
        }
    }
    if args.json {
        json::print(&tokens)?;
        return Ok(Status::Done);
    }
    let now = now_secs();
    let row = |token: &TokenSummary| {
        let uses = match token.uses {
            0 => token.uses_left.to_string(),
            uses => format!("{} of {uses}", token.uses_left),
        };
        let pool = printable(token.pool.as_deref().unwrap_or("-"));
        let name = printable(token.name.as_deref().unwrap_or("-"));
        let left = span(token.expires_at.saturating_sub(now));
        vec![
            token.id.clone(),
            token.role.to_string(),
            pool,
            name,
            uses,
            left,
            printable(&token.made_by),
        ]
    };
    let rows: Vec<_> = tokens.iter().map(row).collect();
    if rows.is_empty() {
        eprintln!("no tokens");
        return Ok(Status::Done);
    }
    json::line(
        table(&["TOKEN", "ROLE", "POOL", "NAME", "USES LEFT", "EXPIRES IN", "BY"], &rows)
            .trim_end(),
    )?;
    Ok(Status::Done)
}

/// `tessera enrol`.
pub(crate) async fn enrol(args: EnrolArgs) -> Result<Status, CliError> {
    let folder = identity_folder(&args.farm)?;
    if Identity::is_at(&folder) && !args.replace {
        let message = format!("there is an identity at `{}` already", folder.display());
        return Err(CliError::new(Status::Failure, message)
            .hint("--replace takes its place; --identity DIR puts the new one elsewhere"));
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
