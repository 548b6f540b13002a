//! From a token to an identity, and the ways it must not go.

use crate::farm::*;
use tessera_protocol::NodeId;
use tessera_protocol::client::{EnrolReply, EnrolRequest, Request, Role};
use tessera_protocol::stream::StreamKind;
use tessera_transport::enrol::{Applicant, enrol, grant_to, sign};
use tessera_transport::frame::{FrameSender, accept_kind, open_both};
use tessera_transport::{
    Authority, ConnectError, ConnectFailure, EnrolError, Identity, IdentityError, JoinToken,
    Timing, TokenRecord, TokenUse,
};

/// Serves one enrolment as a coordinator does, with a ledger of one token.
async fn serve_one(farm: &Farm, ledger: &TokenRecord, now_secs: u64) -> EnrolReply {
    let link = farm.next_peer(&hello()).await.unwrap();
    assert_eq!(link.peer, None);
    let (sender, receiver) = link.connection.accept_bi().await.unwrap();
    let (kind, mut receiver) = accept_kind(receiver, link.timing.answer).await.unwrap();
    assert_eq!(kind, StreamKind::Enrol);
    let request: EnrolRequest = receiver.expect(link.timing.answer).await.unwrap();
    let reply = match ledger.check(&request.secret, now_secs) {
        Err(error) => EnrolReply::Refused(error.to_string()),
        Ok(grant) => match grant_to(&grant, &request) {
            Ok(peer) => sign(&farm.authority, (&peer.numbered(7), 1), &request).unwrap(),
            Err(error) => EnrolReply::Refused(error.to_string()),
        },
    };
    let mut sender = FrameSender::new(sender);
    sender.send(&reply).await.unwrap();
    sender.finish_and_deliver(link.timing.answer).await.unwrap();
    reply
}

fn invitation(farm: &Farm, role: Role) -> (JoinToken, TokenRecord) {
    let token = JoinToken::generate(farm.authority.pin()).unwrap();
    let record = TokenRecord {
        hash: token.hash(),
        role,
        expires_at: 1000,
        uses_left: 1,
        pool: None,
        uses: 1,
        made_by: String::new(),
        name: None,
        replace: false,
        purpose: TokenUse::Join,
    };
    (token, record)
}

async fn try_enrol(
    farm: &Farm,
    (token, record): (&JoinToken, &TokenRecord),
    now_secs: u64,
    node: Option<NodeId>,
) -> Result<Identity, EnrolError> {
    let (ours, applicant) = (hello(), Applicant { token, name: "n1", node });
    let dialling = enrol(&farm.address, applicant, &ours, Timing::default());
    tokio::join!(serve_one(farm, record, now_secs), dialling).1
}

#[tokio::test]
async fn a_node_enrols_and_is_known_from_then_on() {
    let farm = Farm::start(Timing::default());
    let (token, record) = invitation(&farm, Role::Node);
    let id = NodeId(uuid::Uuid::now_v7());
    let identity = try_enrol(&farm, (&token, &record), 999, Some(id)).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a/b");
    identity.save(&place).unwrap();
    let identity = Identity::load(&place).unwrap();
    assert_eq!(identity.coordinator.as_ref(), Some(&farm.address));
    assert_eq!(identity.authority_pin(), Some(token.authority));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place), mode(&place.join("identity.pem"))), (0o700, 0o600));
    }
    let (served, _dialled) = farm.pair(&identity).await;
    assert_eq!(served.peer.as_ref().unwrap().node, Some(id));
    // The certificate names the identity's number, and its own serial number.
    assert_eq!((served.peer.unwrap().number, identity.serial()), (7, 1));
}

#[tokio::test]
async fn an_expired_a_used_and_a_foreign_token_are_refused() {
    let farm = Farm::start(Timing::default());
    let (token, record) = invitation(&farm, Role::Artist);
    let used = TokenRecord { uses_left: 0, ..record.clone() };
    let other = invitation(&farm, Role::Artist).1;
    for (record, now_secs, words) in
        [(&record, 1000, "expired"), (&used, 0, "used up"), (&other, 0, "not known")]
    {
        let error = try_enrol(&farm, (&token, record), now_secs, None).await.unwrap_err();
        assert!(
            matches!(&error, EnrolError::Refused(reason) if reason.contains(words)),
            "{error:?}"
        );
    }
    // A user's token makes no node.
    let node = Some(NodeId(uuid::Uuid::now_v7()));
    let error = try_enrol(&farm, (&token, &record), 0, node).await.unwrap_err();
    assert!(matches!(error, EnrolError::Refused(_)), "{error:?}");
}

#[tokio::test]
async fn a_token_for_a_name_enrols_only_that_name() {
    let farm = Farm::start(Timing::default());
    let (token, record) = invitation(&farm, Role::Node);
    let node = Some(NodeId(uuid::Uuid::now_v7()));
    let other = TokenRecord { name: Some("n2".into()), ..record.clone() };
    let error = try_enrol(&farm, (&token, &other), 0, node).await.unwrap_err().to_string();
    assert!(error.contains("for the name `n2`, and `n1` was given; use --name n2"), "{error}");
    let own = TokenRecord { name: Some("n1".into()), ..record };
    try_enrol(&farm, (&token, &own), 0, node).await.unwrap();
}

#[tokio::test]
async fn a_coordinator_in_the_middle_does_not_get_the_secret() {
    let farm = Farm::start(Timing::default());
    let token = JoinToken::generate(Authority::generate().unwrap().pin()).unwrap();
    let (ours, applicant) = (hello(), Applicant { token: &token, name: "ada", node: None });
    let (served, dialled) = tokio::join!(
        farm.next_peer(&ours),
        enrol(&farm.address, applicant, &ours, Timing::default())
    );
    assert!(served.is_err());
    let error = dialled.unwrap_err();
    let EnrolError::Connect(inner @ ConnectError::Foreign { .. }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(inner.failure(), ConnectFailure::NotAllowed);
}

#[tokio::test]
async fn a_wrong_certificate_in_the_answer_is_not_taken() {
    let farm = Farm::start(Timing::default());
    let (token, _) = invitation(&farm, Role::Artist);
    let theirs = async {
        let link = farm.next_peer(&hello()).await.unwrap();
        let (sender, receiver) = link.connection.accept_bi().await.unwrap();
        let (_, mut receiver) = accept_kind(receiver, link.timing.answer).await.unwrap();
        let request: EnrolRequest = receiver.expect(link.timing.answer).await.unwrap();
        let renamed = EnrolRequest { name: "mallory".into(), ..request };
        let reply = sign(&farm.authority, (&user("mallory"), 1), &renamed).unwrap();
        let mut sender = FrameSender::new(sender);
        sender.send(&reply).await.unwrap();
        sender.finish_and_deliver(link.timing.answer).await.unwrap();
    };
    let (ours, applicant) = (hello(), Applicant { token: &token, name: "ada", node: None });
    let (_, result) =
        tokio::join!(theirs, enrol(&farm.address, applicant, &ours, Timing::default()));
    let error = result.unwrap_err();
    assert!(matches!(error, EnrolError::Wrong("it names another identity")), "{error:?}");
}

#[test]
fn malformed_requests_are_refused() {
    let authority = Authority::generate().unwrap();
    for request in [vec![], vec![0x30], vec![0xff; 100], vec![0x30; 20_000]] {
        let peer = user("ada");
        assert!(authority.sign_request((&peer, 1), &request).is_err());
    }
    // A request whose signature is of another key: whoever sends it does not hold the key it names.
    let key = rcgen::KeyPair::generate().unwrap();
    let blank = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let mut request = blank.serialize_request(&key).unwrap().der().to_vec();
    assert!(authority.sign_request((&user("ada"), 1), &request).is_ok());
    let last = request.len() - 1;
    request[last] ^= 1;
    assert!(authority.sign_request((&user("ada"), 1), &request).is_err());
    for name in ["", "a b", "a/b", "ada\n", &"x".repeat(129)] {
        let peer = tessera_transport::PeerIdentity { name: name.to_owned(), ..user("ada") };
        assert!(authority.issue(&peer).is_err(), "{name:?}");
    }
}

#[test]
fn an_authority_survives_its_folder_and_a_broken_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = Authority::open_or_create(folder.path()).unwrap();
    let again = Authority::open_or_create(folder.path()).unwrap();
    assert_eq!(first.pin(), again.pin());
    assert_eq!(first.certificate(), again.certificate());

    // A first start that was cut off after the key.
    std::fs::remove_file(folder.path().join("authority.pem")).unwrap();
    assert_eq!(Authority::open_or_create(folder.path()).unwrap().pin(), first.pin());

    let key = folder.path().join("authority.key");
    std::fs::write(&key, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
    let error = Authority::open_or_create(folder.path()).err().unwrap().to_string();
    assert!(error.contains("authority.key") && error.contains("backup"), "{error}");
    std::fs::remove_file(&key).unwrap();
    assert!(Authority::open_or_create(folder.path()).is_err());
}

#[test]
fn a_missing_or_damaged_identity_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let error = Identity::load(folder.path()).unwrap_err();
    assert!(matches!(error, IdentityError::Missing { .. }));
    assert!(error.to_string().contains("enrol"), "{error}");
    let identity = Authority::generate().unwrap().issue(&user("ada")).unwrap();
    identity.save(folder.path()).unwrap();
    let file = folder.path().join("identity.pem");
    let text = std::fs::read_to_string(&file).unwrap();
    for cut in [0, 10, text.len() / 3, text.len() * 2 / 3, text.len() - 40] {
        std::fs::write(&file, &text[..cut]).unwrap();
        let error = Identity::load(folder.path()).unwrap_err();
        assert!(matches!(error, IdentityError::Broken { .. }), "{cut}: {error:?}");
    }
}

#[tokio::test]
async fn a_peer_without_a_certificate_has_no_identity() {
    // Whoever enrols may open any stream; the coordinator sees that it has no identity.
    let farm = Farm::start(Timing::default());
    let (token, _) = invitation(&farm, Role::Artist);
    let served = async {
        let link = farm.next_peer(&hello()).await.unwrap();
        link.close(tessera_transport::CloseCode::NotAllowed, "enrol first").await;
        link.peer
    };
    let (ours, applicant) = (hello(), Applicant { token: &token, name: "ada", node: None });
    let (peer, result) =
        tokio::join!(served, enrol(&farm.address, applicant, &ours, Timing::default()));
    assert_eq!(peer, None);
    let error = result.unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("NotAllowed") && text.contains("enrol first"), "{text}");
}

#[tokio::test]
async fn a_request_and_its_refusal_reach_the_client() {
    use tessera_protocol::client::{RequestError, Response};
    let farm = Farm::start(Timing::default());
    let (served, dialled) = farm.pair(&farm.identity("ada")).await;
    let coordinator = async {
        for answer in
            [Response::Done, Response::Error(RequestError::NotFound("no such job".into()))]
        {
            let (sender, receiver) = served.connection.accept_bi().await.unwrap();
            let (kind, mut receiver) = accept_kind(receiver, served.timing.answer).await.unwrap();
            assert_eq!(kind, StreamKind::Request);
            assert_eq!(
                receiver.receive::<Request>().await.unwrap(),
                Some(Request::Jobs(Default::default()))
            );
            let mut sender = FrameSender::new(sender);
            sender.send(&answer).await.unwrap();
            sender.finish();
        }
    };
    let client = tessera_transport::FarmClient::new(dialled);
    let asking = async {
        assert_eq!(
            client.request(&Request::Jobs(Default::default())).await.unwrap(),
            Response::Done
        );
        let error = client.request(&Request::Jobs(Default::default())).await.unwrap_err();
        assert_eq!(error.to_string(), "no such job");
    };
    tokio::join!(coordinator, asking);
    // A stream that is never read does not delay the close.
    let _stream = open_both(&client.link().connection, StreamKind::Request).await.unwrap();
    client.close().await;
}
