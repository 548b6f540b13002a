//! Nodes and devices in JSON.

use serde::Serialize;
use serde_json::Value;
use tessera_protocol::status::NodeSummary;
use utoipa::ToSchema;

/// A node and its devices.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Node {
    /// Id of the node, a UUID.
    pub(crate) node: String,
    /// Name of the node.
    pub(crate) name: String,
    /// Number of the node's identity; 0 if it is not known.
    pub(crate) identity: u64,
    /// `ready`, `draining`, `drained`, `away`, `lost`, `left`, `unfit` or `removed`.
    pub(crate) state: String,
    /// Devices of the node: slot, kind, name, parallelism, memory, state, and what only CUDA
    /// devices have.
    #[schema(value_type = Vec<Object>)]
    pub(crate) devices: Value,
    /// State of the devices at the last heartbeat: busy share, memory, temperature, power, clocks,
    /// errors.
    #[schema(value_type = Vec<Object>)]
    pub(crate) telemetry: Value,
    /// Number of units that are leased to the node now.
    pub(crate) units_leased: u32,
    /// Number of units that the node has committed since it joined.
    pub(crate) units_committed: u64,
    /// Committed camera samples per second, over the last minute.
    pub(crate) samples_per_second: f64,
    /// Seconds since the last message of the node.
    pub(crate) silent_secs: u64,
    /// Name and version of the node's build.
    pub(crate) build: String,
    /// Reason why the node gets no work; empty if it gets work.
    pub(crate) note: String,
    /// Pool of the node; null if it is in no pool.
    pub(crate) pool: Option<String>,
    /// When the node joined, or when it left, was lost or was removed.
    pub(crate) since: u64,
    /// Whether an operator has drained the node.
    pub(crate) drained: bool,
    /// Share of the time with work, of the last minute, in which its devices worked, 0 to 1; null
    /// if it had no work.
    pub(crate) busy: Option<f32>,
}

impl From<&NodeSummary> for Node {
    fn from(node: &NodeSummary) -> Self {
        Self {
            node: node.node.to_string(),
            name: node.name.clone(),
            identity: node.identity,
            state: state(node),
            devices: serde_json::to_value(&node.devices).unwrap_or_default(),
            telemetry: serde_json::to_value(&node.telemetry).unwrap_or_default(),
            units_leased: node.units_leased,
            units_committed: node.units_committed,
            samples_per_second: node.samples_per_second,
            silent_secs: node.silent_secs,
            build: node.build.clone(),
            note: node.note.clone(),
            pool: node.pool.clone(),
            since: node.since,
            drained: node.drained,
            busy: node.busy,
        }
    }
}

fn state(node: &NodeSummary) -> String {
    match serde_json::to_value(node.state) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A node in an event: what lists show of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct NodeLine {
    /// Id of the node.
    pub(crate) node: String,
    /// Name of the node.
    pub(crate) name: String,
    /// State of the node.
    pub(crate) state: String,
    /// Number of units that are leased to the node now.
    pub(crate) units_leased: u32,
    /// Number of units that the node has committed since it joined.
    pub(crate) units_committed: u64,
    /// Committed camera samples per second, over the last minute.
    pub(crate) samples_per_second: f64,
    /// Share of the time with work in which its devices worked.
    pub(crate) busy: Option<f32>,
    /// Reason why the node gets no work.
    pub(crate) note: String,
}

impl From<&NodeSummary> for NodeLine {
    fn from(node: &NodeSummary) -> Self {
        Self {
            node: node.node.to_string(),
            name: node.name.clone(),
            state: state(node),
            units_leased: node.units_leased,
            units_committed: node.units_committed,
            samples_per_second: node.samples_per_second,
            busy: node.busy,
            note: node.note.clone(),
        }
    }
}
