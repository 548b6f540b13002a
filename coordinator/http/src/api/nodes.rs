//! Nodes: listed, shown, drained, taken off the list.

use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::Json;
use crate::problem::Problem;
use crate::state::Shared;
use crate::views::Node;
use axum::extract::{Path, State};
use serde::Deserialize;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::status::NodeSummary;
use utoipa::ToSchema;

/// List nodes
///
/// Of the present and the past, by name.
#[utoipa::path(get, path = "/nodes", operation_id = "nodes", tag = "nodes", responses(
    (status = 200, body = Vec<Node>), (status = 401, body = Problem)))]
pub(crate) async fn list(
    State(server): State<Shared>,
    signed: Signed,
) -> Result<axum::Json<Vec<Node>>, Problem> {
    let nodes = all(&server, &signed).await?;
    Ok(axum::Json(nodes.iter().map(Node::from).collect()))
}

/// All nodes.
pub(crate) async fn all(server: &Shared, signed: &Signed) -> Result<Vec<NodeSummary>, Problem> {
    nodes(ask(server, signed.caller(), Request::Nodes).await?)
}

fn nodes(response: Response) -> Result<Vec<NodeSummary>, Problem> {
    match response {
        Response::Nodes(nodes) => Ok(nodes),
        _ => Err(stopping()),
    }
}

/// Show a node
#[utoipa::path(get, path = "/nodes/{node}", operation_id = "node", tag = "nodes",
    params(("node" = String, Path)),
    responses((status = 200, body = Node), (status = 401, body = Problem),
    (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(server): State<Shared>,
    signed: Signed,
    Path(node): Path<String>,
) -> Result<axum::Json<Node>, Problem> {
    let found = find(&server, &signed, &node).await?;
    Ok(axum::Json(Node::from(&found)))
}

/// The node of an id.
pub(crate) async fn find(
    server: &Shared,
    signed: &Signed,
    node: &str,
) -> Result<NodeSummary, Problem> {
    let nodes = all(server, signed).await?;
    let found = nodes.into_iter().find(|row| row.node.to_string() == node);
    found.ok_or_else(|| Problem::not_found(format!("there is no node {node:?}")))
}

async fn changed(
    server: &Shared,
    signed: &Signed,
    request: Request,
) -> Result<axum::Json<Node>, Problem> {
    let nodes = nodes(ask(server, signed.caller(), request).await?)?;
    nodes.first().map(|node| axum::Json(Node::from(node))).ok_or_else(stopping)
}

/// How a node is drained.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrainForm {
    /// Whether the node also leaves, once it has finished its units.
    #[serde(default)]
    leave: bool,
}

/// Drain a node
///
/// It finishes the units that it has and gets no more.
#[utoipa::path(post, path = "/nodes/{node}/drain", tag = "nodes",
    params(("node" = String, Path, description = "Id or name")), request_body = DrainForm,
    responses((status = 200, body = Node), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn drain(
    State(server): State<Shared>,
    signed: Signed,
    Path(node): Path<String>,
    Json(DrainForm { leave }): Json<DrainForm>,
) -> Result<axum::Json<Node>, Problem> {
    changed(&server, &signed, Request::Drain { node, drain: true, leave }).await
}

/// Give a drained or quarantined node work again
#[utoipa::path(post, path = "/nodes/{node}/undrain", tag = "nodes",
    params(("node" = String, Path, description = "Id or name")),
    responses((status = 200, body = Node), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 409, body = Problem)))]
pub(crate) async fn undrain(
    State(server): State<Shared>,
    signed: Signed,
    Path(node): Path<String>,
) -> Result<axum::Json<Node>, Problem> {
    changed(&server, &signed, Request::Drain { node, drain: false, leave: false }).await
}

/// Take an absent node off the list
#[utoipa::path(delete, path = "/nodes/{node}", tag = "nodes",
    params(("node" = String, Path, description = "Id or name")),
    responses((status = 200, body = Node), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn remove(
    State(server): State<Shared>,
    signed: Signed,
    Path(node): Path<String>,
) -> Result<axum::Json<Node>, Problem> {
    changed(&server, &signed, Request::RemoveNode { node }).await
}
