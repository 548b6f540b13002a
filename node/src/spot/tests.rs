//! Tests with each cloud's service as its documents describe it, on a socket of this process.

use super::http::{Answer, parse};
use super::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers of a service: status and body by method and path. Everything else is absent.
type Pages = Arc<Mutex<BTreeMap<&'static str, (u16, &'static str)>>>;

/// Runs a service that requires this header in every GET.
async fn serve(wanted: &'static str, pages: Pages) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            let request = String::from_utf8(request).unwrap();
            let asked = request.split(" HTTP/1.1").next().unwrap().to_owned();
            let known = pages.lock().unwrap().get(asked.as_str()).copied();
            let (status, body) = match known {
                _ if asked.starts_with("GET") && !request.contains(wanted) => (401, "who are you?"),
                Some(page) => page,
                None => (404, "not found"),
            };
            let answer =
                format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}

/// Waits for a notice that must come after the page has changed, and not before.
async fn changes(
    cloud: Cloud,
    (address, pages): (&str, &Pages),
    path: &'static str,
    body: &'static str,
) -> Notice {
    let early =
        tokio::time::timeout(Duration::from_millis(300), cloud.notice(Some(address), None)).await;
    assert!(early.is_err(), "a notice before there was one: {early:?}");
    pages.lock().unwrap().insert(path, (200, body));
    let notice = cloud.notice(Some(address), None);
    tokio::time::timeout(Duration::from_secs(60), notice).await.expect("the notice is heard")
}

// promise: P4
#[tokio::test]
async fn aws_notices_need_a_token_and_say_if_they_are_certain() {
    let pages = Pages::default();
    pages.lock().unwrap().insert("PUT /latest/api/token", (200, "secret"));
    let address = serve("X-aws-ec2-metadata-token: secret\r\n", pages.clone()).await;
    let path = "GET /latest/meta-data/events/recommendations/rebalance";
    let likely = changes(Cloud::Aws, (&address, &pages), path, r#"{"noticeTime": "T"}"#).await;
    assert!(!likely.certain && likely.what.contains("noticeTime"), "{likely:?}");
    let again = Cloud::Aws.notice(Some(&address), Some(&likely));
    assert!(tokio::time::timeout(Duration::from_millis(300), again).await.is_err(), "told twice");
    let path = "GET /latest/meta-data/spot/instance-action";
    pages.lock().unwrap().insert(path, (200, r#"{"action": "terminate", "time": "T"}"#));
    let certain = Cloud::Aws.notice(Some(&address), Some(&likely)).await;
    assert!(certain.certain && certain.what.contains("terminate"), "{certain:?}");
}

// promise: P4
#[tokio::test]
async fn google_notices_exclude_live_migrations() {
    let pages = Pages::default();
    let (preempted, event) = (
        "GET /computeMetadata/v1/instance/preempted",
        "GET /computeMetadata/v1/instance/maintenance-event",
    );
    pages
        .lock()
        .unwrap()
        .extend([(preempted, (200, "FALSE")), (event, (200, "MIGRATE_ON_HOST_MAINTENANCE"))]);
    let address = serve("Metadata-Flavor: Google\r\n", pages.clone()).await;
    let ended =
        changes(Cloud::Gcp, (&address, &pages), event, "TERMINATE_ON_HOST_MAINTENANCE").await;
    assert!(ended.certain && ended.what.contains("TERMINATE"), "{ended:?}");
    pages.lock().unwrap().insert(event, (200, "NONE"));
    let gone = changes(Cloud::Gcp, (&address, &pages), preempted, "TRUE").await;
    assert!(gone.certain && gone.what.contains("preempts"), "{gone:?}");
}

// promise: P4
#[tokio::test]
async fn azure_notices_of_other_machines_are_ignored() {
    let pages = Pages::default();
    let events = "GET /metadata/scheduledevents?api-version=2020-07-01";
    let others = r#"{"DocumentIncarnation": 1, "Events": [
        {"EventId": "a", "EventType": "Preempt", "Resources": ["other"], "NotBefore": "T"},
        {"EventId": "b", "EventType": "Freeze", "Resources": ["ours"], "NotBefore": "T"}]}"#;
    pages.lock().unwrap().extend([
        (events, (200, others)),
        ("GET /metadata/instance/compute/name?api-version=2021-02-01&format=text", (200, "ours")),
    ]);
    let address = serve("Metadata: true\r\n", pages.clone()).await;
    let ours = r#"{"Events": [{"EventType": "Preempt", "Resources": ["ours"], "NotBefore": "T"}]}"#;
    let notice = changes(Cloud::Azure, (&address, &pages), events, ours).await;
    assert!(notice.certain && notice.what.contains("Preempt"), "{notice:?}");
}

#[test]
fn split_and_truncated_http_answers_are_handled() {
    let good = |status, body: &str| Ok(Answer { status, body: body.into() });
    assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi and more"), good(200, "hi"));
    assert_eq!(parse(b"HTTP/1.0 404 No\r\n\r\nnone"), good(404, "none"));
    let pieces = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3;x=y\r\n \
        yo\r\n0\r\n\r\n";
    assert_eq!(parse(pieces), good(200, "hi yo"));
    let wrong: [&[u8]; 7] = [
        b"",
        b"\xff\xff",
        b"HTTP/1.1 200 OK\r\n",
        b"SSH-2.0\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhi\r\n",
    ];
    wrong.iter().for_each(|bytes| assert!(parse(bytes).is_err(), "{bytes:?}"));
}

#[test]
fn the_cloud_is_recognized_by_the_firmware() {
    let folder = tempfile::tempdir().unwrap();
    let of = |vendor: &str, tag: &str| {
        std::fs::write(folder.path().join("sys_vendor"), vendor).unwrap();
        std::fs::write(folder.path().join("chassis_asset_tag"), tag).unwrap();
        Cloud::of_machine(folder.path())
    };
    assert_eq!(of("Amazon EC2\n", ""), Some(Cloud::Aws));
    assert_eq!(of("Google\n", ""), Some(Cloud::Gcp));
    assert_eq!(
        of("Microsoft Corporation\n", "7783-7084-3265-9085-8269-3286-77\n"),
        Some(Cloud::Azure)
    );
    assert_eq!(of("Microsoft Corporation\n", "a laptop\n"), None);
    assert_eq!(of("Anybody\n", ""), None);
    for text in ["off", "auto", "aws", "gcp", "azure"] {
        assert_eq!(text.parse::<Spot>().unwrap().to_string(), text);
    }
    assert!("cloud".parse::<Spot>().is_err());
}
