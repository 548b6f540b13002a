//! `nodes`, `drain` and `undrain`.

use crate::args::users::{ListArgs, NodeNameArgs};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{count, printable, span, table};
use tessera_protocol::client::{Request, Response};
use tessera_protocol::status::{NodeState, NodeSummary};

/// `tessera nodes`.
pub(crate) async fn list(args: ListArgs) -> Result<Status, CliError> {
    let Response::Nodes(nodes) = Farm::of(&args.farm)?.ask(&Request::Nodes).await? else {
        return Err(unexpected());
    };
    if args.json {
        json::print(&nodes)?;
        return Ok(Status::Done);
    }
    if nodes.is_empty() {
        eprintln!("no nodes; `tessera token create --role node` makes a token for one");
        return Ok(Status::Done);
    }
    let rows: Vec<_> = nodes.iter().map(row).collect();
    let head = ["NODE", "NAME", "STATE", "DEVICES", "UNITS", "COMMITTED", "SAMPLES/S", "HEARD", "NOTE"];
    json::line(table(&head, &rows).trim_end())?;
    Ok(Status::Done)
}

fn row(node: &NodeSummary) -> Vec<String> {
    let devices = node.devices.iter().map(|device| format!("{} x{}", device.name, device.parallelism));
    vec![
        node.node.to_string(),
        printable(&node.name),
        state(node.state).into(),
        printable(&devices.collect::<Vec<_>>().join(", ")),
        node.units_leased.to_string(),
        node.units_committed.to_string(),
        count(node.samples_per_second).trim_end().to_owned(),
        format!("{} ago", span(node.silent_secs)),
        printable(&node.note),
    ]
}

fn state(state: NodeState) -> &'static str {
    match state {
        NodeState::Ready => "ready",
        NodeState::Draining => "draining",
        NodeState::Away => "away",
        NodeState::Lost => "lost",
        NodeState::Unfit => "unfit",
    }
}

/// `tessera drain` and `tessera undrain`.
pub(crate) async fn drain(args: NodeNameArgs, drain: bool) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    match farm.ask(&Request::Drain { node: args.node.clone(), drain }).await? {
        Response::Done if drain => eprintln!("{} gets no new work", args.node),
        Response::Done => eprintln!("{} gets work again", args.node),
        _ => return Err(unexpected()),
    }
    Ok(Status::Done)
}
