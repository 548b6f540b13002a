//! Calls that a device worker is known to need: those of NVIDIA's driver and compiler, of the C
//! library, and of the worker itself. Others are logged by the kernel, and not refused: what
//! `tests/gpu/run.sh` recorded of one driver (580.159 with an H100) is all on this list, and other
//! drivers may make other calls.

use super::calls::{Calls, Named, calls};

const NEEDED: &[Named] = calls![
    // Files.
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_openat SYS_close
    SYS_fstat SYS_newfstatat SYS_statx SYS_lseek SYS_getdents64 SYS_readlinkat SYS_faccessat
    SYS_faccessat2 SYS_mkdirat SYS_unlinkat SYS_renameat SYS_renameat2 SYS_ftruncate SYS_fallocate
    SYS_fsync SYS_fdatasync SYS_flock SYS_fcntl SYS_dup SYS_dup3 SYS_ioctl SYS_statfs SYS_fstatfs
    SYS_getcwd SYS_umask SYS_memfd_create SYS_pipe2 SYS_eventfd2
    // The driver makes a symbolic link. Landlock confines it to folders that the worker writes.
    SYS_symlinkat
    // Memory.
    SYS_mmap SYS_munmap SYS_mprotect SYS_mremap SYS_madvise SYS_brk SYS_mlock SYS_munlock SYS_msync
    SYS_mincore SYS_get_mempolicy SYS_set_mempolicy SYS_mbind
    // Threads and their time.
    SYS_clone SYS_clone3 SYS_exit SYS_exit_group SYS_futex SYS_set_robust_list SYS_set_tid_address
    SYS_rseq SYS_membarrier SYS_sched_yield SYS_sched_getaffinity SYS_sched_setaffinity
    SYS_sched_getparam SYS_sched_getscheduler SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_nanosleep SYS_clock_nanosleep SYS_clock_gettime
    SYS_clock_getres SYS_gettimeofday SYS_restart_syscall SYS_getcpu
    // Events.
    SYS_ppoll SYS_pselect6 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait
    // Signals of its own.
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack SYS_tgkill
    // Local sockets: the driver listens on one of its own. There are no others to listen on.
    SYS_socket SYS_socketpair SYS_connect SYS_bind SYS_listen SYS_sendto SYS_sendmsg SYS_recvfrom
    SYS_recvmsg SYS_shutdown SYS_getsockname SYS_getpeername SYS_getsockopt SYS_setsockopt
    // About itself and the machine.
    SYS_getpid SYS_gettid SYS_getppid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getrlimit
    SYS_prlimit64 SYS_getrusage SYS_times SYS_sysinfo SYS_uname SYS_getrandom SYS_prctl SYS_capget
];

/// The same where only x86-64 has them.
#[cfg(target_arch = "x86_64")]
const OLD: &[Named] = calls![
    SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink SYS_mkdir SYS_unlink SYS_rename SYS_rmdir
    SYS_symlink SYS_dup2 SYS_pipe SYS_poll SYS_select SYS_epoll_create SYS_epoll_wait SYS_eventfd
    SYS_time SYS_getpgrp SYS_arch_prctl
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Named] = &[];

/// Calls that are not logged.
pub(super) fn needed() -> Calls {
    Calls::default().all(NEEDED).all(OLD)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::policy::{Policy, Verdict};
    use super::*;

    /// Calls that a driver made (580.159 with an H100), whose arguments are not looked at.
    const RECORDED: &[Named] = calls![
        SYS_access SYS_bind SYS_brk SYS_clock_gettime SYS_clock_nanosleep SYS_close SYS_connect
        SYS_dup SYS_eventfd2 SYS_fstat SYS_futex SYS_get_mempolicy SYS_getcwd SYS_getdents64
        SYS_geteuid SYS_getpid SYS_gettid SYS_ioctl SYS_listen SYS_lseek SYS_mkdir SYS_mmap
        SYS_mprotect SYS_munmap SYS_newfstatat SYS_openat SYS_pipe2 SYS_poll SYS_prctl SYS_read
        SYS_readlink SYS_recvfrom SYS_rseq SYS_rt_sigaction SYS_rt_sigprocmask
        SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_sched_getaffinity SYS_sendto
        SYS_set_robust_list SYS_setsockopt SYS_sigaltstack SYS_stat SYS_symlink SYS_sysinfo
        SYS_uname SYS_unlink SYS_write
    ];
    /// The same with the arguments on which it depends: whom, what and how.
    const OF_ARGUMENTS: &[(libc::c_long, &[u64])] = &[
        (libc::SYS_clone, &[0x3d_0f00]),
        (libc::SYS_socket, &[libc::AF_UNIX as u64]),
        (libc::SYS_fcntl, &[0, 1]),
        (libc::SYS_fcntl, &[0, 2]),
        (libc::SYS_fcntl, &[0, 3]),
        (libc::SYS_fcntl, &[0, 4]),
        (libc::SYS_fcntl, &[0, 6]),
        (libc::SYS_ioctl, &[0, 0x46 << 8]),
        (libc::SYS_prlimit64, &[0, 3]),
        (libc::SYS_prlimit64, &[0, 9]),
    ];

    #[test]
    fn what_a_driver_was_seen_to_call_is_not_logged() {
        let policy = Policy::of_worker(77);
        let arguments =
            |given: &[u64]| [0, 1, 2, 3, 4, 5].map(|at| given.get(at).copied().unwrap_or_default());
        let plain = RECORDED.iter().map(|(number, _)| (*number, [].as_slice()));
        for (number, given) in plain.chain(OF_ARGUMENTS.iter().copied()) {
            let verdict = policy.verdict(number, &arguments(given));
            assert_eq!(verdict, Verdict::Allowed, "call {number} {given:x?}");
        }
        assert_eq!(policy.verdict(libc::SYS_clone3, &[0; 6]), Verdict::Absent);
        assert_eq!(policy.verdict(libc::SYS_socket, &arguments(&[2])), Verdict::Refused);
    }
}
