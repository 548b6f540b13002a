//! `nodes`: lists the nodes of a farm, shows one of them, or takes one off the list.

use super::node_detail;
use crate::args::nodes::{NodesArgs, NodesCommand, RemoveNodeArgs};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{count, printable, table};
use std::collections::BTreeMap;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::status::{NodeState, NodeSummary};

/// `tessera nodes`.
pub(crate) async fn run(args: NodesArgs) -> Result<Status, CliError> {
    if let Some(NodesCommand::Remove(args)) = args.command {
        return remove(args).await;
    }
    let mut nodes = ask(&Farm::of(&args.farm)?, &Request::Nodes).await?;
    if let Some(name) = &args.node {
        let node = find(&nodes, name)?;
        match args.json {
            true => json::print(node)?,
            false => json::line(node_detail::describe(node).trim_end())?,
        }
        return Ok(Status::Done);
    }
    nodes.retain(|node| args.all || node.state != NodeState::Removed);
    if args.json {
        json::print(&nodes)?;
        return Ok(Status::Done);
    }
    if nodes.is_empty() {
        eprintln!("no nodes; `tessera token create --role node` makes a token for one");
        return Ok(Status::Done);
    }
    let rows: Vec<_> = nodes.iter().map(row).collect();
    let head = [
        "NODE",
        "NAME",
        "STATE",
        "POOL",
        "DEVICES",
        "UNITS",
        "COMMITTED",
        "SAMPLES/S",
        "BUSY",
        "HEARD",
        "NOTE",
    ];
    json::line(table(&head, &rows).trim_end())?;
    Ok(Status::Done)
}

/// `tessera nodes remove`.
async fn remove(args: RemoveNodeArgs) -> Result<Status, CliError> {
    let node = one(&Farm::of(&args.farm)?, &Request::RemoveNode { node: args.node }).await?;
    if args.json {
        json::print(&node)?;
    }
    eprintln!(
        "{} is off the list; its identity stays valid (`tessera members remove` ends that)",
        printable(&node.name)
    );
    Ok(Status::Done)
}

async fn ask(farm: &Farm, request: &Request) -> Result<Vec<NodeSummary>, CliError> {
    match farm.ask(request).await? {
        Response::Nodes(nodes) => Ok(nodes),
        _ => Err(unexpected()),
    }
}

/// The node that a request about one node is answered with.
pub(super) async fn one(farm: &Farm, request: &Request) -> Result<NodeSummary, CliError> {
    ask(farm, request).await?.into_iter().next().ok_or_else(unexpected)
}

/// The node that a person names, by id or by name. Removed ones have no name.
fn find<'a>(nodes: &'a [NodeSummary], name: &str) -> Result<&'a NodeSummary, CliError> {
    if let Some(node) = nodes.iter().find(|node| node.node.to_string() == name) {
        return Ok(node);
    }
    let listed = nodes.iter().filter(|node| node.state != NodeState::Removed);
    let named: Vec<_> = listed.filter(|node| node.name == name).collect();
    match named.as_slice() {
        [node] => Ok(node),
        [_, _, ..] => {
            let ids: Vec<_> = named.iter().map(|node| node.node.to_string()).collect();
            let ids = ids.join(", ");
            let text = format!("several nodes are named `{name}`; give the id: {ids}");
            Err(CliError::new(Status::Usage, text))
        }
        [] => {
            let text = format!("no node has the id or name `{name}`");
            Err(CliError::new(Status::NotFound, text).hint("`tessera nodes` lists them"))
        }
    }
}

fn row(node: &NodeSummary) -> Vec<String> {
    vec![
        node.node.to_string(),
        printable(&node_detail::named(node)),
        node_detail::state(node.state).into(),
        printable(node.pool.as_deref().unwrap_or("-")),
        printable(&devices(&node.devices)),
        node.units_leased.to_string(),
        node.units_committed.to_string(),
        count(node.samples_per_second).trim_end().to_owned(),
        node_detail::busy(node),
        node_detail::ago(node),
        printable(&node.note),
    ]
}

/// The devices in a line: those of one name together, with how many of them may have no work.
fn devices(devices: &[DeviceInfo]) -> String {
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for device in devices {
        let name = match device.kind {
            DeviceKind::Cpu => format!("{} x{}", device.name, device.parallelism),
            DeviceKind::Cuda => device.name.clone(),
        };
        let (all, out) = kinds.entry(name).or_default();
        *all += 1;
        *out += usize::from(device.state != DeviceState::Ready);
    }
    let texts = kinds.into_iter().map(|(name, (all, out))| match (all, out) {
        (1, 0) => name,
        (1, _) => format!("{name} (out of work)"),
        (_, 0) => format!("{all} {name}"),
        _ => format!("{all} {name} ({out} out of work)"),
    });
    texts.collect::<Vec<_>>().join(", ")
}
