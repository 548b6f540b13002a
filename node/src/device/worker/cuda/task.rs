//! Orders to the renderer thread, and the units that must stop.

use super::lane::Lane;
use crate::device::worker::message::ScenePart;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tessera_layout::UnitParams;

/// Numbers of the units that must stop.
#[derive(Clone, Default)]
pub(crate) struct Cancelled(Arc<Mutex<BTreeSet<u64>>>);

impl Cancelled {
    pub(crate) fn add(&self, unit: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(unit);
    }

    pub(super) fn has(&self, unit: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&unit)
    }

    pub(super) fn forget(&self, unit: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&unit);
    }
}

/// An order to the renderer thread.
pub(crate) enum Task {
    Scene {
        scene: u64,
        bytes: u64,
        view: Vec<u8>,
        parts: Vec<ScenePart>,
    },
    SceneBytes {
        scene: u64,
        offset: u64,
        last: bool,
        bytes: Vec<u8>,
    },
    NoScene {
        scene: u64,
        problem: String,
    },
    Render {
        unit: u64,
        scene: u64,
        params: UnitParams,
        in_stages: bool,
    },
    /// Free the memory that no unit uses.
    GiveUp,
    /// A lane is free again; these units have ended.
    Free {
        lane: Lane,
        units: Vec<u64>,
    },
}
