//! The nodes of the farm, and one of them with its devices.

use super::layout::{self, may};
use super::log;
use super::visitor::{Failed, Visitor};
use super::why::why;
use super::words::{ago, bytes, count, span, state};
use crate::api::{explain, nodes};
use crate::forms::Asked;
use crate::state::Shared;
use crate::views::Node;
use axum::extract::{Path, State};
use maud::{Markup, html};
use serde::Deserialize;
use std::collections::BTreeMap;
use tessera_protocol::client::Role;
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState, DeviceTelemetry};
use tessera_protocol::explain::Subject;
use tessera_protocol::status::{NodeState, NodeSummary};

/// What is shown of a node.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    /// Least severity of the lines of its log.
    level: Option<String>,
}

/// `/nodes`.
pub(super) async fn page(State(server): State<Shared>, visitor: Visitor) -> Result<Markup, Failed> {
    let mut all = nodes::all(&server, &visitor.0).await.map_err(visitor.fails())?;
    all.retain(|node| node.state != NodeState::Removed);
    let body = html! {
        div.title { h1 { "Nodes" } a #news.news href="" hidden {} }
        @if all.is_empty() {
            p.empty { "No node has joined. " code { "tessera token create --role node" }
                " makes a token for one." }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Nodes" {
                table {
                    thead { tr {
                        th scope="col" { "Node" } th scope="col" { "State" }
                        th scope="col" { "Pool" } th scope="col" { "Devices" }
                        th.number scope="col" { "Units" } th.number scope="col" { "Committed" }
                        th.number scope="col" { "Samples/s" } th.number scope="col" { "Busy" }
                        th scope="col" { "Note" }
                    } }
                    tbody #nodes { @for node in &all { (row(node)) } }
                }
            }
        }
    };
    Ok(layout::page(Some(&visitor.0), "Nodes", &body))
}

fn row(node: &NodeSummary) -> Markup {
    let word = Node::from(node).state;
    html! {
        tr data-node=(node.node) {
            th scope="row" { a href={ "/nodes/" (node.node) } { bdi { (name(node)) } } }
            td { (state(&word)) }
            td { bdi { (node.pool.as_deref().unwrap_or("–")) } }
            td { bdi { (devices(&node.devices)) } }
            td.number data-field="units" { (node.units_leased) }
            td.number data-field="committed" { (node.units_committed) }
            td.number data-field="rate" { (count(node.samples_per_second)) }
            td.number data-field="busy" { (busy(node.busy)) }
            td.note { bdi.brief data-field="note" title=(node.note) { (node.note) } }
        }
    }
}

fn name(node: &NodeSummary) -> String {
    if node.name.is_empty() { node.node.to_string() } else { node.name.clone() }
}

fn busy(share: Option<f32>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// The devices in a line: those of one name together.
fn devices(devices: &[DeviceInfo]) -> String {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for device in devices {
        let name = match device.kind {
            DeviceKind::Cpu => format!("{} x{}", device.name, device.parallelism),
            DeviceKind::Cuda => device.name.clone(),
        };
        *names.entry(name).or_default() += 1;
    }
    let texts = names.into_iter().map(|(name, number)| match number {
        1 => name,
        _ => format!("{number} {name}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// `/nodes/{node}`.
pub(super) async fn one(
    State(server): State<Shared>,
    visitor: Visitor,
    Path(id): Path<String>,
    Asked(Wanted { level }): Asked<Wanted>,
) -> Result<Markup, Failed> {
    let node = nodes::find(&server, &visitor.0, &id).await.map_err(visitor.fails())?;
    let explanation = explain::of(&server, &visitor.0, Subject::Node(node.node.to_string())).await;
    let explanation = explanation.map_err(visitor.fails())?;
    let word = Node::from(&node).state;
    let said = match may(&visitor.0, Role::Operator) {
        true => {
            let said = log::of_node(&server, &visitor.0, node.node, level).await;
            Some(said.map_err(visitor.fails())?)
        }
        false => None,
    };
    let body = html! {
        div data-node=(node.node) data-page="node" {
            div.title { h1 { bdi { (name(&node)) } } (state(&word)) a #news.news href="" hidden {} }
            (why(&explanation))
            @if may(&visitor.0, Role::Operator) { (actions(&node)) }
            (facts(&node))
            (device_table(&node))
            @if let Some(said) = &said { (log::section(said)) }
        }
    };
    Ok(layout::page(Some(&visitor.0), &name(&node), &body))
}

fn actions(node: &NodeSummary) -> Markup {
    let absent = node.state.is_absent();
    let held = node.drained || node.state == NodeState::Unfit;
    html! {
        form.inline method="post" action={ "/nodes/" (node.node) "/change" } data-confirm="" {
            @if held {
                button name="change" value="undrain" { "Give it work again" }
            }
            @if !node.drained {
                button name="change" value="drain" { "Drain" }
                @if !absent { button name="change" value="leave" { "Drain and let it end" } }
            }
            @if absent {
                button name="change" value="remove" { "Take it off the list" }
            }
        }
    }
}

fn facts(node: &NodeSummary) -> Markup {
    html! {
        dl.facts {
            dt { "Pool" } dd { bdi { (node.pool.as_deref().unwrap_or("none")) } }
            dt { "Since" } dd { (ago(node.since)) }
            dt { "Heard" } dd { (span(node.silent_secs)) " ago" }
            dt { "Units" }
            dd { span data-field="units" { (node.units_leased) } " leased, "
                span data-field="committed" { (node.units_committed) } " committed" }
            dt { "Samples/s" } dd data-field="rate" { (count(node.samples_per_second)) }
            dt { "Busy" } dd data-field="busy" { (busy(node.busy)) }
            dt { "Build" } dd { bdi { (node.build) } }
            dt { "Identity" } dd { "#" (node.identity) }
            dt { "Id" } dd { code { (node.node) } }
        }
    }
}

fn device_table(node: &NodeSummary) -> Markup {
    html! {
        h2 { "Devices" }
        div.wide tabindex="0" role="region" aria-label="Devices" {
            table {
                thead { tr {
                    th scope="col" { "Slot" } th scope="col" { "Device" } th scope="col" { "State" }
                    th.number scope="col" { "Busy" } th.number scope="col" { "Samples/s" }
                    th.number scope="col" { "Memory free" } th.number scope="col" { "Temperature" }
                    th.number scope="col" { "Power" } th scope="col" { "Faults" }
                } }
                tbody {
                    @for (place, device) in node.devices.iter().enumerate() {
                        (device_row(device, node.telemetry.iter().find(|one| {
                            usize::from(one.device) == place
                        })))
                    }
                }
            }
        }
    }
}

fn device_row(device: &DeviceInfo, now: Option<&DeviceTelemetry>) -> Markup {
    let none = DeviceTelemetry::default();
    let seen = now.unwrap_or(&none);
    let dash = || "–".to_owned();
    let (word, why) = match &device.state {
        DeviceState::Ready => ("ready", String::new()),
        DeviceState::Testing => ("testing", String::new()),
        DeviceState::Quarantined { reason, remedy } => {
            ("quarantined", format!("{reason}: {remedy}"))
        }
    };
    html! {
        tr {
            th scope="row" { code { (device.slot) } }
            td { bdi { (device.name) } }
            td { span.state data-state=(word) { (word) } " " bdi { (why) } }
            td.number { (now.map_or_else(dash, |now| busy(Some(now.busy)))) }
            td.number { (now.map_or_else(dash, |now| count(now.samples_per_second))) }
            td.number {
                (seen.memory_free.map_or_else(dash, bytes)) " of " (bytes(device.memory_bytes))
            }
            td.number { (seen.temperature.map_or_else(dash, |degrees| format!("{degrees} °C"))) }
            td.number {
                (seen.power_milliwatts.map_or_else(dash, |power| format!("{} W", power / 1000)))
            }
            td { (faults(seen)) }
        }
    }
}

fn faults(seen: &DeviceTelemetry) -> String {
    let mut texts = Vec::new();
    if !seen.throttles.is_empty() {
        texts.push(format!("slowed down: {}", seen.throttles.join(", ")));
    }
    if let Some(count) = seen.ecc_uncorrected.filter(|count| *count > 0) {
        texts.push(format!("{count} memory errors"));
    }
    if let Some(xid) = seen.xid {
        texts.push(format!("Xid {}, {} ago", xid.code, span(xid.secs_ago)));
    }
    texts.join("; ")
}
