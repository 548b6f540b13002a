//! Roles, tokens and the deny-list, over real connections.

use crate::farm::{Farm, PATIENCE, closed, hello, lives, start};
use tessera_protocol::access::{ApiTokenScope, Keep, TokenScope};
use tessera_protocol::client::{Request, RequestError, Response, Role};
use tessera_protocol::explain::Subject;
use tessera_protocol::live::Watched;
use tessera_protocol::selection::{JobChange, JobsChange};
use tessera_protocol::{BlobHash, JobId, NodeId};
use tessera_transport::enrol::{Applicant, enrol};
use tessera_transport::error::{ConnectFailure, Ended};
use tessera_transport::renew::{self, RenewError};
use tessera_transport::{
    ClientError, CloseCode, ConnectError, EnrolError, FarmClient, Identity, JoinToken, Timing,
};

const PEOPLE: [Role; 4] = [Role::Viewer, Role::Artist, Role::Operator, Role::Admin];

pub(crate) fn replacing(role: Role, name: &str) -> TokenScope {
    TokenScope { name: Some(name.to_owned()), replace: true, ..scope(role, None, 1) }
}

pub(crate) fn scope(role: Role, pool: Option<&str>, uses: u32) -> TokenScope {
    TokenScope {
        role,
        pool: pool.map(str::to_owned),
        name: None,
        ttl_secs: 60,
        uses,
        replace: false,
    }
}

pub(crate) async fn ask(
    farm: &Farm,
    identity: &Identity,
    request: Request,
) -> Result<Response, ClientError> {
    let client = FarmClient::new(farm.dial(identity).await.unwrap());
    tokio::time::timeout(PATIENCE, client.request(&request)).await.expect("an answer in time")
}

fn is_not_allowed(result: &Result<Response, ClientError>) -> bool {
    matches!(result, Err(ClientError::Request(RequestError::NotAllowed(_))))
}

pub(crate) fn change(change: JobChange, job: JobId) -> Request {
    Request::ChangeJobs(Box::new(JobsChange::of_job(change, job)))
}

fn own_rights() -> ApiTokenScope {
    ApiTokenScope { role: None, owner: None, ttl_secs: 60 }
}

/// Every request, and the least role that may ask it.
fn table() -> Vec<(Request, Role)> {
    let job = JobId(uuid::Uuid::now_v7());
    let text = String::new;
    vec![
        (Request::Jobs(Default::default()), Role::Viewer),
        (Request::Job(job), Role::Viewer),
        (Request::Frames { job, from: 0 }, Role::Viewer),
        (Request::Watch(job), Role::Viewer),
        (Request::Nodes, Role::Viewer),
        (Request::Explain(Subject::Job(job)), Role::Viewer),
        (Request::MissingBlobs(vec![BlobHash([1; 32])]), Role::Artist),
        (change(JobChange::Cancel { reason: text() }, job), Role::Artist),
        (change(JobChange::Pause, job), Role::Artist),
        (change(JobChange::Resume, job), Role::Artist),
        (change(JobChange::Retry, job), Role::Artist),
        (change(JobChange::Forget, job), Role::Artist),
        (Request::KernelText(job), Role::Viewer),
        (Request::Drain { node: "none".into(), drain: true, leave: true }, Role::Operator),
        (Request::RemoveNode { node: "none".into() }, Role::Operator),
        (Request::CreateToken(scope(Role::Node, None, 1)), Role::Operator),
        (Request::CreateToken(replacing(Role::Node, "n1")), Role::Admin),
        (Request::CreateToken(scope(Role::Viewer, None, 1)), Role::Admin),
        (Request::Members { from: 0 }, Role::Operator),
        (Request::KeepMember { member: "none".into(), keep: Keep::Newer }, Role::Operator),
        (Request::RemoveMember { member: "none".into() }, Role::Admin),
        (Request::Tokens { from: 0 }, Role::Viewer),
        (Request::RevokeToken { id: text() }, Role::Viewer),
        (Request::CreateApiToken(own_rights()), Role::Viewer),
        (Request::WebLink, Role::Viewer),
        (Request::Live(Watched { job, frame: None }), Role::Viewer),
        (Request::Deny { identity: "node:none".into(), reason: text() }, Role::Admin),
        (Request::Allow { identity: "nobody".into() }, Role::Admin),
        (Request::Denied, Role::Admin),
        (Request::Log { last: 1 }, Role::Admin),
        (Request::Authority, Role::Admin),
        (Request::RotateAuthority { overlap_secs: Some(1 << 40) }, Role::Admin),
        (Request::Audit, Role::Admin),
    ]
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn every_role_may_do_what_its_table_says_and_no_more() {
    let farm = Farm::start(lives(60, 60)).await;
    for role in PEOPLE {
        let identity = farm.person(role, "ada");
        for (request, needed) in table() {
            let result = ask(&farm, &identity, request.clone()).await;
            assert_eq!(
                is_not_allowed(&result),
                !role.covers(needed),
                "{role} {request:?}: {result:?}"
            );
            if let Err(ClientError::Request(RequestError::NotAllowed(text))) = &result {
                assert!(text.contains(&format!("the role {needed}")), "{text}");
            }
        }
    }
    farm.coordinator.shutdown().await.unwrap();
}

pub(crate) async fn join(
    farm: &Farm,
    token: &JoinToken,
    name: &str,
    node: Option<NodeId>,
) -> Result<Identity, EnrolError> {
    let (address, ours) = (farm.coordinator.local_address().into(), hello());
    enrol(&address, Applicant { token, name, node }, &ours, Timing::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_scoped_by_role_pool_and_uses_listed_and_revoked() {
    let farm = Farm::start(lives(60, 60)).await;
    let admin = farm.person(Role::Admin, "ada");
    let node = || Some(NodeId(uuid::Uuid::now_v7()));
    let Response::Token(text) =
        ask(&farm, &admin, Request::CreateToken(scope(Role::Node, Some("gpu"), 2))).await.unwrap()
    else {
        panic!("no token")
    };
    let token: JoinToken = text.parse().unwrap();
    let identity = join(&farm, &token, "n1", node()).await.unwrap();
    assert_eq!((identity.peer.role, identity.peer.pool.as_deref()), (Role::Node, Some("gpu")));
    assert!(join(&farm, &token, "ada", None).await.is_err(), "a node's token makes no person");

    let Response::Tokens(tokens) = ask(&farm, &admin, Request::Tokens { from: 0 }).await.unwrap()
    else {
        panic!("no list")
    };
    let [listed] = tokens.as_slice() else { panic!("{tokens:?}") };
    assert_eq!((listed.uses, listed.uses_left, listed.pool.as_deref()), (2, 1, Some("gpu")));
    assert_eq!(listed.made_by, format!("admin ada #{}", admin.peer.number));
    let revoke = Request::RevokeToken { id: listed.id[..6].to_owned() };
    assert_eq!(ask(&farm, &admin, revoke).await.unwrap(), Response::Done);
    let error = join(&farm, &token, "n2", node()).await.unwrap_err();
    assert!(
        matches!(&error, EnrolError::Refused(reason) if reason.contains("not known")),
        "{error:?}"
    );
    for wrong in [
        scope(Role::Artist, Some("gpu"), 1),
        scope(Role::Node, Some("a b"), 1),
        scope(Role::Node, None, 0),
    ] {
        let result = ask(&farm, &admin, Request::CreateToken(wrong)).await;
        assert!(
            matches!(result, Err(ClientError::Request(RequestError::Invalid(_)))),
            "{result:?}"
        );
    }
    farm.coordinator.shutdown().await.unwrap();
}

/// How a dialler is turned away: within the exchange of hellos, or right after it.
async fn turned_away(farm: &Farm, identity: &Identity) -> Option<CloseCode> {
    match farm.dial(identity).await {
        Ok(link) => closed(&link).await.0,
        Err(ConnectError::Ended { source: Ended::Closed { code, .. }, .. }) => code,
        Err(other) => panic!("{other:?}"),
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_identity_stays_out_over_restarts_until_allowed() {
    let farm = Farm::start(lives(60, 60)).await;
    let (admin, ada) = (farm.person(Role::Admin, "root"), farm.person(Role::Artist, "ada"));
    let live = farm.dial(&ada).await.unwrap();
    let deny = |identity: &str| Request::Deny { identity: identity.into(), reason: "left".into() };
    ask(&farm, &admin, deny("ada")).await.unwrap();
    let (code, reason) = closed(&live).await;
    assert_eq!(code, Some(CloseCode::Denied));
    assert!(reason.contains("tessera allow user:ada") && reason.contains("left"), "{reason}");
    // Neither by another connection, nor by a token.
    assert_eq!(turned_away(&farm, &ada).await, Some(CloseCode::Denied));
    let token = farm.coordinator.create_token(replacing(Role::Admin, "ada")).await.unwrap();
    let error = join(&farm, &token, "ada", None).await.unwrap_err();
    assert!(
        matches!(&error, EnrolError::Refused(reason) if reason.contains("denied")),
        "{error:?}"
    );
    // Neither oneself nor the last admin.
    for last in ["root", "user:admin"] {
        let result = ask(&farm, &admin, deny(last)).await;
        assert!(is_not_allowed(&result), "{last}: {result:?}");
    }

    let Farm { folder, coordinator } = farm;
    coordinator.shutdown().await.unwrap();
    let coordinator = start(folder.path(), lives(60, 60)).await;
    let farm = Farm { folder, coordinator };
    assert_eq!(turned_away(&farm, &ada).await, Some(CloseCode::Denied));
    ask(&farm, &admin, Request::Allow { identity: "ada".into() }).await.unwrap();
    ask(&farm, &ada, Request::Jobs(Default::default())).await.unwrap();
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_node_renews_nothing() {
    let farm = Farm::start(lives(2, 60)).await;
    let node = farm.node("n1");
    let link = farm.dial(&node).await.unwrap();
    let admin = farm.person(Role::Admin, "root");
    let identity = format!("node:{}", node.peer.node.unwrap());
    ask(&farm, &admin, Request::Deny { identity, reason: String::new() }).await.unwrap();
    assert_eq!(closed(&link).await.0, Some(CloseCode::Denied));
    match farm.dial(&node).await {
        Ok(link) => {
            let result = renew::ask(&link.connection, &node, Timing::default()).await;
            assert!(
                matches!(result, Err(RenewError::Frame(_) | RenewError::Refused(_))),
                "{result:?}"
            );
        }
        Err(error) => assert_eq!(error.failure(), ConnectFailure::NotAllowed, "{error:?}"),
    }
    farm.coordinator.shutdown().await.unwrap();
}
