//! `token create`, `token list` and `token revoke`.

use crate::args::farm::ListArgs;
use crate::args::token::{TokenCommand, TokenCreateArgs};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{printable, span, table};
use serde_json::json;
use tessera_protocol::access::{ApiTokenScope, TOKEN_PAGE_MAX, TokenScope, TokenSummary};
use tessera_protocol::client::{Request, Response};
use tessera_transport::validity::now_secs;

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
    if args.api {
        return create_api(args).await;
    }
    let TokenCreateArgs { role, pool, name, replace, ttl, uses, .. } = args;
    let role = role.ok_or_else(|| CliError::new(Status::Usage, "--role is missing"))?;
    let (of_pool, of_name) = (pool.clone(), name.clone());
    let scope = TokenScope { role, pool: of_pool, name: of_name, ttl_secs: ttl, uses, replace };
    let request = Request::CreateToken(scope);
    let Response::Token(token) = Farm::of(&args.farm)?.ask(&request).await? else {
        return Err(unexpected());
    };
    match args.json {
        true => json::print(
            &json!({ "token": token, "role": role, "pool": pool, "name": name, "ttl_secs": ttl,
                "uses": uses, "replace": replace }),
        )?,
        false => json::line(&token)?,
    }
    Ok(Status::Done)
}

/// Creates a token for HTTP requests.
async fn create_api(args: TokenCreateArgs) -> Result<Status, CliError> {
    let TokenCreateArgs { role, owner, ttl, .. } = args;
    let scope = ApiTokenScope { role, owner: owner.clone(), ttl_secs: ttl };
    let request = Request::CreateApiToken(scope);
    let Response::Token(token) = Farm::of(&args.farm)?.ask(&request).await? else {
        return Err(unexpected());
    };
    match args.json {
        true => {
            json::print(&json!({ "token": token, "role": role, "owner": owner, "ttl_secs": ttl }))?
        }
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
        let replaces = if token.replace { " (replaces)" } else { "" };
        let name = printable(token.name.as_deref().unwrap_or("-")) + replaces;
        let left = span(token.expires_at.saturating_sub(now));
        vec![
            token.id.clone(),
            token.kind.name().to_owned(),
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
        table(&["TOKEN", "KIND", "ROLE", "POOL", "NAME", "USES LEFT", "EXPIRES IN", "BY"], &rows)
            .trim_end(),
    )?;
    Ok(Status::Done)
}
