//! `nodes`: lists the nodes of a farm, or shows one of them.

use super::node_detail;
use crate::args::nodes::NodesArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{count, printable, span, table};
use std::collections::BTreeMap;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::status::NodeSummary;

/// `tessera nodes`.
pub(crate) async fn run(args: NodesArgs) -> Result<Status, CliError> {
    let Response::Nodes(nodes) = Farm::of(&args.farm)?.ask(&Request::Nodes).await? else {
        return Err(unexpected());
    };
    if let Some(name) = &args.node {
        let node = find(&nodes, name)?;
        match args.json {
            true => json::print(node)?,
            false => json::line(node_detail::describe(node).trim_end())?,
        }
        return Ok(Status::Done);
    }
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
        "HEARD",
        "NOTE",
    ];
    json::line(table(&head, &rows).trim_end())?;
    Ok(Status::Done)
}

/// The node that a person names, by id or by name.
fn find<'a>(nodes: &'a [NodeSummary], name: &str) -> Result<&'a NodeSummary, CliError> {
    let mut named = nodes.iter().filter(|node| node.name == name || node.node.to_string() == name);
    match (named.next(), named.next()) {
        (Some(node), None) => Ok(node),
        (Some(_), Some(_)) => {
            let text = format!("several nodes are named `{name}`; give the id");
            Err(CliError::new(Status::Usage, text))
        }
        (None, _) => {
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
        format!("{} ago", span(node.silent_secs)),
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
