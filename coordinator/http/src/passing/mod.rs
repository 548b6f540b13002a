//! What a coordinator that stands by does with requests: it answers reads from what it follows, and
//! passes everything else on to the one that leads, which believes it by the secret of its term.
//! A request is passed on once.

mod dial;
mod headers;
mod here;
mod mark;

use crate::auth::session;
use crate::guard::is_same_origin;
use crate::pages;
use crate::problem::Problem;
use crate::state::Shared;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use headers::{PASSED, SAME_ORIGIN, SESSION, SESSION_SET};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use mark::{Asked, Mark};
use std::net::SocketAddr;
use std::time::Duration;
use tessera_coordinator::api::Standing;

/// How old what is shown may be, so that a load balancer sends readers here.
const FRESH: Duration = Duration::from_secs(60);
/// Longest wait for the head of an answer to a request without a body.
const HEAD_WITHIN: Duration = Duration::from_secs(60);

/// The route for load balancers, which need no token.
pub(crate) fn router() -> Router<Shared> {
    Router::new().route("/ready", get(ready))
}

/// Whether readers are answered: this coordinator leads, or stands by and is not cut off.
async fn ready(State(server): State<Shared>) -> (StatusCode, String) {
    let Some(standing) = server.api.standing() else {
        return match server.api.census().await {
            Some(_) => (StatusCode::OK, "leads\n".to_owned()),
            None => (StatusCode::SERVICE_UNAVAILABLE, "stops\n".to_owned()),
        };
    };
    let age = standing.seen.elapsed();
    let status = if age <= FRESH { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, format!("stands by, {} s old\n", age.as_secs()))
}

/// Answers or passes on, where another coordinator leads. Says how old an answer of its own is.
pub(crate) async fn pass_on(
    State(server): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let Some(standing) = server.api.standing() else { return next.run(request).await };
    let path = request.uri().path().to_owned();
    let is_read = here::is_read(request.method(), &path, standing.reads_files);
    if here::is_for_anybody(&path) || (is_read && !is_unknown(&server, request.headers())) {
        let mut response = next.run(request).await;
        if is_read {
            let age = HeaderValue::from(standing.seen.elapsed().as_secs());
            response.headers_mut().insert(header::AGE, age);
        }
        return response;
    }
    match send(&server, &standing, request).await {
        Ok(response) => response,
        Err(text) => {
            let leader = &standing.leader.owner;
            let text = format!("this coordinator stands by; {leader} leads, and {text}");
            refused(&path, StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }
}

/// A refusal, as a page where a page was asked for.
fn refused(path: &str, status: StatusCode, text: String) -> Response {
    let problem = Problem::new(status, text);
    match path.starts_with("/api/") || path == "/metrics" {
        true => problem.into_response(),
        false => pages::trouble(&problem),
    }
}

/// Whether a request shows a token that this coordinator does not know, and the one that leads may.
fn is_unknown(server: &Shared, headers: &HeaderMap) -> bool {
    let of_program = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let of_program = of_program.and_then(|text| text.strip_prefix("Bearer "));
    let shown = of_program.or_else(|| session(headers, &server.cookie));
    shown.is_some_and(|token| server.api.bearer(token).is_err())
}

/// Passes a request on. The error says why it was not.
async fn send(server: &Shared, standing: &Standing, request: Request) -> Result<Response, String> {
    let leader = &standing.leader;
    if leader.http.is_empty() || leader.key.is_empty() {
        return Err("it serves no HTTP (--http off), or is only beginning to: ask again".to_owned());
    }
    let client = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let client = client.map(|ConnectInfo(address)| *address).ok_or("your address is unknown")?;
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
    let mut asked = axum::http::Request::new(body);
    *asked.method_mut() = parts.method.clone();
    *asked.uri_mut() = target.parse().map_err(|_| "your address is no path")?;
    let mut passed = headers::onward(&parts.headers, &server.cookie);
    let token = session(&parts.headers, &server.cookie).unwrap_or_default();
    let is_own = is_same_origin(server, &parts.headers);
    let told = [(SESSION, token), (SAME_ORIGIN, if is_own { "1" } else { "" })];
    for (name, value) in told.into_iter().filter(|(_, value)| !value.is_empty()) {
        passed.insert(name, value.parse().map_err(|_| "your session is none")?);
    }
    let asked_for = Asked { method: parts.method.as_str(), target: &target, token, is_own };
    let mark = Mark { client, asked: asked_for }.signed(&leader.key);
    passed.insert(PASSED, mark.ok_or("it cannot be told who asks")?);
    let (stream, host) = dial::leader(&leader.http, server.api.authority_certificate())
        .await
        .map_err(|problem| {
            format!("cannot be reached at {}: {problem}; nothing was done: ask again", leader.http)
        })?;
    passed.insert(header::HOST, host.parse().map_err(|_| "its address is none")?);
    *asked.headers_mut() = passed;
    let may_take = parts.method.is_safe().then_some(HEAD_WITHIN);
    let response = exchange(stream, asked, may_take).await.map_err(|problem| {
        format!(
            "has not answered: {problem}; it may have done what you asked for: look, and ask again"
        )
    })?;
    Ok(taken_back(server, response))
}

/// Makes a request over a connection that is open. The connection ends with the answer.
async fn exchange(
    stream: dial::Stream,
    request: axum::http::Request<Body>,
    within: Option<Duration>,
) -> Result<Response, String> {
    let opened = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| error.to_string())?;
    // Its error reaches whoever reads the answer.
    tokio::spawn(async move { drop(connection.await) });
    let answer = sender.send_request(request);
    let answer = match within {
        Some(time) => tokio::time::timeout(time, answer)
            .await
            .map_err(|_| format!("no answer within {} s", time.as_secs()))?,
        None => answer.await,
    };
    answer.map(|answer| answer.map(Body::new)).map_err(|error| error.to_string())
}

/// Makes the leader's answer one of this coordinator.
fn taken_back(server: &Shared, mut response: Response) -> Response {
    headers::drop_hops(response.headers_mut());
    let set = response.headers_mut().remove(SESSION_SET);
    let set = set.as_ref().and_then(|set| set.to_str().ok()?.split_once(' '));
    if let Some((secs, token)) = set
        && let Ok(secs) = secs.parse()
        && let Ok(cookie) = crate::api::session::cookie(server, token, secs).parse()
    {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Takes a request that another coordinator has passed on, and believes what it says of the client.
pub(crate) async fn take(
    State(server): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut marks = request.headers().get_all(PASSED).iter();
    let (Some(mark), more) = (marks.next().cloned(), marks.next().is_some()) else {
        return next.run(request).await;
    };
    let path = request.uri().path().to_owned();
    if let Some(standing) = server.api.standing() {
        let text = format!(
            "this coordinator stands by, and was taken for the one that leads ({}, at {}): a \
             request is passed on once; the leader's --advertise-http must be its own address",
            standing.leader.owner, standing.leader.http
        );
        return refused(&path, StatusCode::SERVICE_UNAVAILABLE, text);
    }
    let client = match believed(&server, &request, &mark) {
        Some(client) if !more => client,
        _ => {
            let text = "the request says that another coordinator has passed it on, and none of \
                this term has";
            return refused(&path, StatusCode::FORBIDDEN, text.to_owned());
        }
    };
    request.extensions_mut().insert(ConnectInfo(client));
    let arrived = request.headers_mut();
    arrived.remove(PASSED);
    let token = arrived.remove(SESSION);
    let is_own = arrived.remove(SAME_ORIGIN).is_some();
    headers::make_own(arrived, (&server.place.base, &server.cookie), (token.as_ref(), is_own));
    let mut response = next.run(request).await;
    headers::give_session(response.headers_mut(), &server.cookie);
    response
}

/// Returns the client for whom a coordinator of the farm asks; None if it is none.
fn believed(server: &Shared, request: &Request, mark: &HeaderValue) -> Option<SocketAddr> {
    let headers = request.headers();
    let token = match headers.get(SESSION) {
        Some(token) => token.to_str().ok()?,
        None => "",
    };
    let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let asked = Asked {
        method: request.method().as_str(),
        target,
        token,
        is_own: headers.contains_key(SAME_ORIGIN),
    };
    mark::believed(mark.to_str().ok()?, &asked, server.api.term_key()?)
}
