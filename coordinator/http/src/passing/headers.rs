//! Which headers go along with a request that is passed on, and with its answer.

use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue};

/// Mark of a request that was passed on.
pub(super) const PASSED: HeaderName = HeaderName::from_static("tessera-passed");
/// Token of the browser's session: its cookie has another name at each coordinator.
pub(super) const SESSION: HeaderName = HeaderName::from_static("tessera-session");
/// Says that a page of the coordinator that passes the request on makes it.
pub(super) const SAME_ORIGIN: HeaderName = HeaderName::from_static("tessera-same-origin");
/// Seconds and token of a session's cookie that an answer sets.
pub(super) const SESSION_SET: HeaderName = HeaderName::from_static("tessera-session-set");

/// Headers about one connection, and not about what goes over it (RFC 9110, section 7.6.1).
const HOPS: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// Headers with which a client could speak as a coordinator or a proxy.
const OURS: [HeaderName; 9] = [
    PASSED,
    SESSION,
    SAME_ORIGIN,
    SESSION_SET,
    header::FORWARDED,
    header::HOST,
    header::ORIGIN,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
];

/// Drops what is about the connection, also what `Connection` names.
pub(super) fn drop_hops(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOPS.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Returns the headers of a client that go along: not its address and origin, which are told
/// otherwise, and no session's cookie.
pub(super) fn onward(from: &HeaderMap, cookie: &str) -> HeaderMap {
    let mut headers = from.clone();
    drop_hops(&mut headers);
    for name in &OURS {
        headers.remove(name);
    }
    let cookies = without(&headers, cookie);
    set_cookies(&mut headers, cookies);
    headers
}

/// Makes the headers of a request that was passed on those of one of our own pages, if it came from
/// a page of the other coordinator.
pub(super) fn make_own(
    headers: &mut HeaderMap,
    (base, cookie): (&str, &str),
    (token, is_own): (Option<&HeaderValue>, bool),
) {
    let host = base.split_once("://").map_or(base, |(_, host)| host);
    if let Ok(host) = host.parse() {
        headers.insert(header::HOST, host);
    }
    headers.remove(header::ORIGIN);
    if is_own && let Ok(origin) = base.parse() {
        headers.insert(header::ORIGIN, origin);
    }
    let mut cookies = without(headers, cookie);
    if let Some(token) = token.and_then(|token| token.to_str().ok()) {
        cookies.push(format!("{cookie}={token}"));
    }
    set_cookies(headers, cookies);
}

/// Gives a session that an answer sets to the coordinator that passed the request on.
pub(super) fn give_session(headers: &mut HeaderMap, cookie: &str) {
    let set: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
    headers.remove(header::SET_COOKIE);
    for value in set {
        match session_of(&value, cookie) {
            Some(session) => drop(headers.insert(SESSION_SET, session)),
            None => drop(headers.append(header::SET_COOKIE, value)),
        }
    }
}

/// Returns the seconds and the token of a cookie, if it is that of the session.
fn session_of(value: &HeaderValue, cookie: &str) -> Option<HeaderValue> {
    let (pair, rest) = value.to_str().ok()?.split_once(';')?;
    let (name, token) = pair.split_once('=')?;
    let secs = rest.split(';').find_map(|part| part.trim().strip_prefix("Max-Age="))?;
    (name == cookie).then(|| format!("{secs} {token}").parse().ok()).flatten()
}

/// Returns the cookies but one.
fn without(headers: &HeaderMap, cookie: &str) -> Vec<String> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).map(str::trim);
    let is_other = |pair: &&str| {
        !pair.is_empty() && pair.split_once('=').is_none_or(|(name, _)| name != cookie)
    };
    pairs.filter(is_other).map(str::to_owned).collect()
}

fn set_cookies(headers: &mut HeaderMap, cookies: Vec<String>) {
    headers.remove(header::COOKIE);
    if !cookies.is_empty()
        && let Ok(value) = cookies.join("; ").parse()
    {
        headers.insert(header::COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn what_is_about_a_connection_stays_on_it() {
        let mut headers = map(&[
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("accept", "text/html"),
        ]);
        drop_hops(&mut headers);
        assert_eq!(headers, map(&[("accept", "text/html")]));
    }

    #[test]
    fn a_client_cannot_speak_as_a_coordinator() {
        let headers = onward(
            &map(&[
                ("tessera-passed", "1 2 3"),
                ("tessera-session", "t"),
                ("tessera-same-origin", "1"),
                ("tessera-session-set", "9 t"),
                ("x-forwarded-for", "192.0.2.1"),
                ("forwarded", "for=192.0.2.1"),
                ("host", "farm.example"),
                ("origin", "https://evil.example"),
                ("authorization", "Bearer x"),
                ("cookie", "a=1; tessera-1=secret; b=2"),
            ]),
            "tessera-1",
        );
        assert_eq!(headers, map(&[("authorization", "Bearer x"), ("cookie", "a=1; b=2")]));
    }

    #[test]
    fn only_a_page_of_ours_makes_a_request_of_our_origin() {
        let base = ("https://lead.example", "tessera-2");
        let token = HeaderValue::from_static("t");
        let mut headers =
            map(&[("host", "x"), ("origin", "https://evil.example"), ("cookie", "a=1")]);
        make_own(&mut headers, base, (Some(&token), true));
        let own = [
            ("host", "lead.example"),
            ("origin", "https://lead.example"),
            ("cookie", "a=1; tessera-2=t"),
        ];
        assert_eq!(headers, map(&own));
        make_own(&mut headers, base, (None, false));
        assert_eq!(headers, map(&[("host", "lead.example"), ("cookie", "a=1")]));
    }

    #[test]
    fn a_session_is_given_back_under_no_name() {
        let mut headers = HeaderMap::new();
        for value in ["tessera-2=t; Path=/; Max-Age=60", "other=1; Path=/"] {
            headers.append(header::SET_COOKIE, HeaderValue::from_static(value));
        }
        give_session(&mut headers, "tessera-2");
        let want = [("tessera-session-set", "60 t"), ("set-cookie", "other=1; Path=/")];
        assert_eq!(headers, map(&want));
    }
}
