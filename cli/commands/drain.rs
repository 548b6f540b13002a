//! `drain` and `undrain`: give a node no new work, or work again.

use super::node_detail::ago;
use super::nodes::one;
use crate::args::drain::{DrainArgs, UndrainArgs};
use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{counted, printable};
use tessera_protocol::client::Request;
use tessera_protocol::status::{NodeState, NodeSummary};

/// `tessera drain`.
pub(crate) async fn drain(args: DrainArgs) -> Result<Status, CliError> {
    let request = Request::Drain { node: args.node, drain: true, leave: args.leave };
    let node = one(&Farm::of(&args.farm)?, &request).await?;
    if args.json {
        json::print(&node)?;
    }
    eprintln!("{}", drained(&node, args.leave));
    Ok(Status::Done)
}

/// `tessera undrain`.
pub(crate) async fn undrain(args: UndrainArgs) -> Result<Status, CliError> {
    let request = Request::Drain { node: args.node, drain: false, leave: false };
    let node = one(&Farm::of(&args.farm)?, &request).await?;
    if args.json {
        json::print(&node)?;
    }
    eprintln!("{}", undrained(&node));
    Ok(Status::Done)
}

/// What was done to a node that is drained now.
fn drained(node: &NodeSummary, leave: bool) -> String {
    let name = printable(&node.name);
    if node.state.is_absent() {
        let leave = if leave { " (--leave is for connected nodes)" } else { "" };
        return format!("{} It will get no work when it comes back{leave}", absent(node));
    }
    let units = match node.units_leased {
        0 => "has no unit".to_owned(),
        units => format!("finishes {}", counted(units.into(), "unit")),
    };
    match leave {
        true => format!("{name} gets no new work, {units}, and leaves"),
        false => format!("{name} gets no new work, {units}, and stays connected"),
    }
}

/// What was done to a node that is not drained any more.
fn undrained(node: &NodeSummary) -> String {
    let (name, note) = (printable(&node.name), printable(&node.note));
    match node.state {
        state if state.is_absent() => {
            format!("{} It will get work when it comes back", absent(node))
        }
        NodeState::Ready => format!("{name} gets work again"),
        NodeState::Draining => {
            format!("{name} is leaving; it will get work when it comes back")
        }
        _ => format!("{name} is not drained, and still gets no work: {note}"),
    }
}

/// `node1 is not connected (lost 5 min ago: connection lost).`
fn absent(node: &NodeSummary) -> String {
    let (name, note) = (printable(&node.name), printable(&node.note));
    let state = super::node_detail::state(node.state);
    format!("{name} is not connected ({state} {}: {note}).", ago(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::node_detail::tests::node;

    #[test]
    fn what_is_told_of_a_node_is_true_of_it() {
        let told = |state| undrained(&NodeSummary { state, ..node() });
        assert_eq!(told(NodeState::Ready), "rack-1 gets work again");
        let lost = told(NodeState::Lost);
        assert!(lost.starts_with("rack-1 is not connected (lost "), "{lost}");
        assert!(lost.ends_with("It will get work when it comes back"), "{lost}");
        assert!(
            told(NodeState::Unfit).contains("still gets no work"),
            "{}",
            told(NodeState::Unfit)
        );
        let working = NodeSummary { state: NodeState::Draining, units_leased: 2, ..node() };
        let text = "rack-1 gets no new work, finishes 2 units, and stays connected";
        assert_eq!(drained(&working, false), text);
        let left = NodeSummary { state: NodeState::Left, ..node() };
        assert!(drained(&left, true).contains("--leave is for connected nodes"));
    }
}
