//! The filter for system calls: only local sockets, no access to other processes, no programs.
//! Knows no files.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;

/// Bit in a call's number for the 32-bit variant of x86-64, whose calls do the same under other
/// numbers.
#[cfg(target_arch = "x86_64")]
const X32_BIT: i64 = 0x4000_0000;

/// Calls that are refused whatever their arguments. Rings can open sockets past the filter. The
/// others access other processes or start programs.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_mount,
];

/// More calls that a scene importer does not need: sockets of every kind, signals, and the clock of
/// the machine.
const REFUSED_TO_IMPORTERS: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_clock_settime,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
];

/// Closes the network permanently, for every thread of this process.
pub(super) fn close() -> Result<(), String> {
    apply(local_sockets_alone())
}

/// Closes the network, all local sockets, signals to other processes and similar calls permanently,
/// for every thread of this process.
pub(super) fn close_all() -> Result<(), String> {
    let mut rules = BTreeMap::new();
    for call in REFUSED.iter().chain(REFUSED_TO_IMPORTERS) {
        add(&mut rules, *call, Vec::new());
    }
    apply(filter(rules))
}

fn apply(program: Result<BpfProgram, seccompiler::Error>) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| format!("cannot filter system calls: {error}");
    let program = program.map_err(|error| text(&error))?;
    seccompiler::apply_filter_all_threads(&program).map_err(|error| text(&error))
}

fn local_sockets_alone() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in REFUSED {
        add(&mut rules, *call, Vec::new());
    }
    // The driver uses local sockets for its own services; every other family is a network.
    // Connecting and binding need no rule: no socket of another family exists, and none is
    // inherited.
    let mut not_local = Vec::new();
    for family in [libc::AF_UNIX, libc::AF_NETLINK] {
        let family = u64::from(family.unsigned_abs());
        not_local.push(SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            family,
        )?);
    }
    add(&mut rules, libc::SYS_socket, vec![SeccompRule::new(not_local)?]);
    filter(rules)
}

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>) -> Result<BpfProgram, seccompiler::Error> {
    let refusal = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refusal, machine)?.try_into()?)
}

fn add(
    rules: &mut BTreeMap<i64, Vec<SeccompRule>>,
    call: libc::c_long,
    conditions: Vec<SeccompRule>,
) {
    #[cfg(target_arch = "x86_64")]
    rules.insert(call | X32_BIT, conditions.clone());
    rules.insert(call, conditions);
}
