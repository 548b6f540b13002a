//! A roofline for each launch: what a card needs at least for what warps do, by published figures
//! and by assumptions that `docs/measurements/model.md` states. Nothing here is measured.

use crate::ptx::model::Stage;
use tessera_kernels::cuda::Kernel;
use tessera_ptx::profile::{LINE_BYTES, SECTOR_BYTES};

/// Instructions that a multiprocessor issues a clock: one by each of its four schedulers.
const ISSUES: f64 = 4.0;
/// Clocks from one instruction of a warp to its next, if nothing else holds it up: assumed, such
/// that the first `extend` of the hall takes on an H200 what it was measured to take.
const CLOCKS_PER_INSTRUCTION: f64 = 10.3;
/// Registers of a multiprocessor, and those that a warp is given at a time.
const REGISTERS: u32 = 65_536;
const REGISTERS_AT_ONCE: u32 = 256;

/// A card, by its maker's figures.
pub(super) struct Card {
    pub(super) name: &'static str,
    multiprocessors: u32,
    /// At most, in GHz.
    clock: f64,
    /// Of a multiprocessor.
    warps_max: u32,
    /// Bytes from the L1 of a multiprocessor a clock.
    l1_bytes: f64,
    /// GB/s.
    memory: f64,
}

const fn card(
    name: &'static str,
    (multiprocessors, clock, warps_max): (u32, f64, u32),
    (l1_bytes, memory): (f64, f64),
) -> Card {
    Card { name, multiprocessors, clock, warps_max, l1_bytes, memory }
}

/// The cards that are asked about.
pub(super) const CARDS: [Card; 4] = [
    card("T4", (40, 1.59, 32), (64.0, 320.0)),
    card("A100", (108, 1.41, 64), (128.0, 2_039.0)),
    card("H100", (132, 1.98, 64), (128.0, 3_350.0)),
    card("RTX 4090", (128, 2.52, 48), (128.0, 1_008.0)),
];

/// The one on which stages were measured.
pub(super) const MEASURED: Card = card("H200", (132, 1.98, 64), (128.0, 4_800.0));

/// What a launch is held up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Schedulers issue as fast as they can.
    Issue,
    /// Warps wait for their own instructions, and there are too few of them.
    Latency,
    /// The L1 of the multiprocessors.
    L1,
    /// The card's memory, if each line of a launch were moved once.
    Memory,
}

/// The time that a launch takes at least, in µs, and why.
pub(super) fn least(stage: &Stage, card: &Card) -> (f64, Limit) {
    let profile = &stage.profile;
    let clocks_a_us = card.clock * 1e3;
    let everywhere = f64::from(card.multiprocessors) * clocks_a_us;
    let issued = profile.warp_instructions as f64 * stage.scale;
    let issue = issued / (ISSUES * everywhere);
    let sectors = (profile.global.sectors + profile.local.sectors) as f64 * stage.scale;
    let l1 = sectors * SECTOR_BYTES as f64 / (card.l1_bytes * everywhere);
    let memory = profile.lines_touched as f64 * LINE_BYTES as f64 * stage.scale / card.memory / 1e3;
    let groups = stage.groups().max(1.0);
    let resident = f64::from(card.multiprocessors * resident_warps(stage.kernel, card));
    let turns = (groups / resident).max(1.0);
    let latency = turns * issued / groups * CLOCKS_PER_INSTRUCTION / clocks_a_us;
    let all = [
        (issue, Limit::Issue),
        (latency, Limit::Latency),
        (l1, Limit::L1),
        (memory, Limit::Memory),
    ];
    all.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or(all[0])
}

/// Warps of a kernel that a multiprocessor has at a time, by the registers of `docs/kernels.md`.
fn resident_warps(kernel: Kernel, card: &Card) -> u32 {
    let registers: u32 = match kernel {
        Kernel::Generate => 30,
        Kernel::Extend => 72,
        Kernel::Shade => 128,
        Kernel::ShadeLayered => 197,
        Kernel::Shadow => 96,
        Kernel::ShadowPanes => 108,
        Kernel::Finish => 38,
        Kernel::RenderPaths => 150,
        Kernel::RenderLayered => 225,
    };
    let of_warp = (registers * 32).next_multiple_of(REGISTERS_AT_ONCE);
    // Blocks have four warps.
    (REGISTERS / of_warp / 4 * 4).min(card.warps_max)
}
