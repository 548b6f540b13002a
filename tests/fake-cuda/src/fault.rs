//! When a planned fault strikes. Does not say what it does.

use crate::config::{Fault, FaultKind, Occasion};
use crate::shared::{FAULTS_MAX, FaultPage, TargetPage};
use std::sync::atomic::Ordering::SeqCst;

/// The fault that strikes on this occasion, if one does. `kernel` is the name of what is launched,
/// and `module` the number of its module in this process, from 1.
pub(crate) fn strike(
    faults: &[Fault],
    page: &TargetPage,
    occasion: Occasion,
    (kernel, module): (&str, u64),
) -> Option<FaultKind> {
    let mut struck = None;
    for (fault, progress) in faults.iter().take(FAULTS_MAX).zip(&page.faults) {
        let is_elsewhere = fault.module != 0 && fault.module != module;
        if fault.kind.occasion() != occasion || !kernel.contains(&fault.kernel) || is_elsewhere {
            continue;
        }
        // Counted even where another one strikes: a plan does not depend on its neighbours.
        let seen = progress.seen.fetch_add(1, SeqCst);
        if struck.is_none() && seen >= fault.after && is_due(fault, progress) {
            progress.struck.fetch_add(1, SeqCst);
            struck = Some(fault.kind);
        }
    }
    struck
}

/// Whether a fault has been told to strike, and has strikes left since. A trigger is used up by
/// whoever sees it first.
fn is_due(fault: &Fault, progress: &FaultPage) -> bool {
    let struck = progress.struck.load(SeqCst);
    if !fault.trigger.as_os_str().is_empty() {
        if std::fs::remove_file(&fault.trigger).is_ok() {
            progress.is_told.store(1, SeqCst);
            progress.struck_before.store(struck, SeqCst);
        }
        if progress.is_told.load(SeqCst) == 0 {
            return false;
        }
    }
    fault.times == 0 || struck - progress.struck_before.load(SeqCst) < fault.times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Shared;

    #[test]
    fn a_fault_strikes_when_it_is_due_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let shared = Shared::open(folder.path()).unwrap();
        let faults = [Fault::new(FaultKind::Crash).after(2).times(2).at_kernel("shade")];
        let mut struck = Vec::new();
        for kernel in ["shade_a", "extend", "shade_b", "shade_a", "extend", "shade_c", "shade_a"] {
            let at = (kernel, 1);
            struck.push(strike(&faults, &shared.targets[0], Occasion::Launch, at).is_some());
        }
        assert_eq!(struck, [false, false, false, true, false, true, false]);
        assert_eq!(strike(&faults, &shared.targets[0], Occasion::Allocation, ("", 0)), None);
    }

    #[test]
    fn a_fault_of_one_module_leaves_the_others_alone() {
        let folder = tempfile::tempdir().unwrap();
        let shared = Shared::open(folder.path()).unwrap();
        let faults = [Fault::new(FaultKind::Crash).times(0).at_module(2)];
        let at = |module| strike(&faults, &shared.targets[0], Occasion::Launch, ("k", module));
        assert_eq!([at(1), at(2), at(3)], [None, Some(FaultKind::Crash), None]);
    }

    #[test]
    fn a_trigger_is_used_up() {
        let folder = tempfile::tempdir().unwrap();
        let shared = Shared::open(folder.path()).unwrap();
        let trigger = folder.path().join("now");
        let faults = [Fault::new(FaultKind::Ecc).times(2).when(trigger.clone())];
        let struck = || strike(&faults, &shared.targets[1], Occasion::Launch, ("k", 1)).is_some();
        assert!(!struck());
        for _ in 0..2 {
            std::fs::write(&trigger, "").unwrap();
            assert_eq!([struck(), struck(), struck()], [true, true, false]);
        }
    }
}
