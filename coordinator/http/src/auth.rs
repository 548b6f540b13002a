//! Who makes a request: a session's cookie, or a token in the Authorization header.

use crate::guard::is_same_origin;
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use std::net::SocketAddr;
use std::time::Instant;
use tessera_coordinator::api::{Bearer, Caller, Standing};

/// Somebody who is signed in.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) bearer: Bearer,
    /// Who leads, where this coordinator stands by.
    pub(crate) standing: Option<Standing>,
}

impl Signed {
    /// Whom the requests are made for.
    pub(crate) fn caller(&self) -> &Caller {
        &self.bearer.caller
    }
}

/// The client's address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct From(pub(crate) SocketAddr);

impl<S: Sync> FromRequestParts<S> for From {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let found = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let ConnectInfo(address) = found.ok_or_else(|| Problem::form("no address"))?;
        Ok(Self(*address))
    }
}

impl FromRequestParts<Shared> for Signed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let From(address) = From::from_request_parts(parts, state).await?;
        let found = bearer(parts, state);
        let bearer = match found {
            Ok(bearer) => bearer,
            Err(problem) => return Err(refused(state, address, problem).await),
        };
        let number = bearer.caller.number();
        match state.requests.take(number, Instant::now()) {
            true => Ok(Self { bearer, standing: state.api.standing() }),
            false => Err(Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!("{} asks too often; wait a second", bearer.caller),
            )),
        }
    }
}

/// Notes a refused request, and slows down an address with many.
async fn refused(state: &Shared, from: SocketAddr, problem: Problem) -> Problem {
    if problem.status() != StatusCode::UNAUTHORIZED {
        return problem;
    }
    match state.strangers.take(from.ip(), Instant::now()) {
        true => problem,
        false => Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many requests without a sign-in"),
    }
}

fn bearer(parts: &Parts, state: &Shared) -> Result<Bearer, Problem> {
    if let Some(value) = parts.headers.get(header::AUTHORIZATION) {
        let text = value.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        let token = text.ok_or_else(|| {
            Problem::unknown("the Authorization header is not `Bearer` and a token")
        })?;
        let bearer = state.api.bearer(token).map_err(Problem::unknown)?;
        return match bearer.kind {
            TokenKind::Api => Ok(bearer),
            _ => Err(Problem::unknown("this is a browser's session; programs use API tokens")),
        };
    }
    let Some(token) = session(&parts.headers, &state.cookie) else {
        return Err(Problem::unknown(
            "nobody is signed in: `tessera web` makes a link for a browser, `tessera token create \
             --api` a token for programs",
        ));
    };
    let bearer = state.api.bearer(token).map_err(Problem::unknown)?;
    if bearer.kind != TokenKind::Session {
        return Err(Problem::unknown("the cookie is no session"));
    }
    if !parts.method.is_safe() && !is_same_origin(state, &parts.headers) {
        let text = "a change with a browser's session comes from a page of this server, and the \
            Origin header says otherwise";
        return Err(Problem::new(StatusCode::FORBIDDEN, text));
    }
    Ok(bearer)
}

use tessera_protocol::access::TokenKind;

/// Returns the session's token among the cookies; None if it is not there once.
pub(crate) fn session<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut found = cookies.flat_map(|value| value.split(';')).filter_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_session_is_found_once_or_not_at_all() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::COOKIE, HeaderValue::from_static(value));
            }
            session(&headers, "tessera-1").map(str::to_owned)
        };
        assert_eq!(of(&["a=b; tessera-1=x; c=d"]).as_deref(), Some("x"));
        assert_eq!(of(&["a=b", "tessera-1=x"]).as_deref(), Some("x"));
        assert_eq!(of(&["tessera-1=x; tessera-1=y"]), None, "somebody planted a second one");
        assert_eq!(of(&["tessera-10=x", "nothing"]), None);
    }
}
