//! Calls that a device worker is refused: those that reach other processes, the network, or the
//! machine as a whole. The others are allowed, since only a real driver shows which ones it needs
//! (`needed.rs`).

use super::calls::{Calls, Named, Test, calls};

/// Calls that are refused whatever their arguments.
const REFUSED: &[Named] = calls![
    // Rings can open sockets past the filter.
    SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register
    // Other processes.
    SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_pidfd_getfd SYS_pidfd_send_signal
    SYS_process_madvise SYS_process_mrelease SYS_kcmp SYS_tkill SYS_perf_event_open
    SYS_userfaultfd
    // Programs, and namespaces.
    SYS_execve SYS_execveat SYS_setns SYS_unshare
    // Keys of the kernel, and its own programs.
    SYS_keyctl SYS_add_key SYS_request_key SYS_bpf
    // File systems.
    SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick
    SYS_move_mount SYS_open_tree SYS_mount_setattr SYS_quotactl SYS_quotactl_fd
    SYS_fanotify_init SYS_open_by_handle_at SYS_acct
    // Owners, modes, times and attributes of files by their path, which Landlock does not confine.
    SYS_fchmodat SYS_fchownat SYS_utimensat SYS_setxattr SYS_lsetxattr SYS_removexattr
    SYS_lremovexattr
    // The machine.
    SYS_settimeofday SYS_clock_settime SYS_clock_adjtime SYS_adjtimex SYS_swapon SYS_swapoff
    SYS_reboot SYS_sethostname SYS_setdomainname SYS_init_module SYS_finit_module
    SYS_delete_module SYS_kexec_load SYS_syslog SYS_vhangup
];

/// The same where only x86-64 has them.
#[cfg(target_arch = "x86_64")]
const OLD: &[Named] = calls![
    SYS_fork SYS_vfork SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat
    SYS_iopl SYS_ioperm SYS_modify_ldt SYS_kexec_file_load
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Named] = &[];

/// The same for calls that are newer than the library's list. They have one number everywhere.
const NEW: &[Named] = &[
    (452, "fchmodat2"),
    (463, "setxattrat"),
    (466, "removexattrat"),
    (467, "open_tree_attr"),
    (469, "file_setattr"),
];

/// Flags with which a call begins namespaces of its own.
const NAMESPACES: &[u32] = &[
    libc::CLONE_NEWNS as u32,
    libc::CLONE_NEWCGROUP as u32,
    libc::CLONE_NEWUTS as u32,
    libc::CLONE_NEWIPC as u32,
    libc::CLONE_NEWUSER as u32,
    libc::CLONE_NEWPID as u32,
    libc::CLONE_NEWNET as u32,
];

/// Flag of a thread, which other tasks of a process share.
const THREAD: u32 = libc::CLONE_THREAD as u32;

/// Calls that get the answer of a kernel which does not have them, so that libraries use an older
/// call: the flags of this one are in memory, where a filter cannot read them.
pub(super) fn absent() -> Calls {
    Calls::default().all(calls![SYS_clone3]).with_variants()
}

/// Calls that the worker with this process id is refused.
pub(super) fn refused(own: u32) -> Calls {
    // The driver uses local sockets for its own services; every other family is a network.
    // Connecting and binding need no rule: no socket of another family exists, and none is
    // inherited.
    let local = [libc::AF_UNIX, libc::AF_NETLINK].map(|family| Test::Not(0, family as u32));
    let of_other = [Test::Not(0, 0), Test::Not(0, own)];
    let to_other = [Test::Not(0, own)];
    let of_other_by_kind = [Test::Not(1, 0), Test::Not(1, own)];
    let mut begun: Vec<Vec<Test>> =
        NAMESPACES.iter().map(|flag| vec![Test::Bits(0, *flag, *flag)]).collect();
    begun.push(vec![Test::Bits(0, THREAD, 0)]);
    let begun: Vec<&[Test]> = begun.iter().map(Vec::as_slice).collect();
    // Input and output on such a file sends a signal to whom it names.
    let owner =
        [libc::F_SETOWN, F_SETOWN_EX, F_SETSIG].map(|command| [Test::Is(1, command as u32)]);
    let owner_by_ioctl = [FIOSETOWN, SIOCSPGRP].map(|request| [Test::Is(1, request)]);
    Calls::default()
        .all(REFUSED)
        .all(OLD)
        .all(NEW)
        .when(calls![SYS_socket], &[&local])
        .when(calls![SYS_clone], &begun)
        .when(
            calls![SYS_prlimit64 SYS_sched_setaffinity SYS_sched_setscheduler SYS_sched_setparam
                SYS_sched_setattr SYS_migrate_pages SYS_move_pages],
            &[&of_other],
        )
        .when(calls![SYS_kill SYS_tgkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo], &[&to_other])
        // The first kind is a process; others are many.
        .when(calls![SYS_setpriority], &[&[Test::Not(0, 0)], &of_other_by_kind])
        .when(calls![SYS_ioprio_set], &[&[Test::Not(0, 1)], &of_other_by_kind])
        .when(calls![SYS_fcntl], &owner.each_ref().map(|case| case.as_slice()))
        .when(calls![SYS_ioctl], &owner_by_ioctl.each_ref().map(|case| case.as_slice()))
        .with_variants()
}

/// Commands of `fcntl` that the library does not name everywhere.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
/// Requests of `ioctl` that set the owner of a file or a socket.
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;
