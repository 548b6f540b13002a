//! Calls that a device worker is known to need: those of NVIDIA's driver and compiler, of the C
//! library, and of the worker itself. Others are logged by the kernel, and not refused, until
//! `tests/gpu/run.sh` has recorded what the drivers of the day use.

use super::calls::{Calls, Named, calls};

const NEEDED: &[Named] = calls![
    // Files.
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_openat SYS_close
    SYS_fstat SYS_newfstatat SYS_statx SYS_lseek SYS_getdents64 SYS_readlinkat SYS_faccessat
    SYS_faccessat2 SYS_mkdirat SYS_unlinkat SYS_renameat SYS_renameat2 SYS_ftruncate SYS_fallocate
    SYS_fsync SYS_fdatasync SYS_flock SYS_fcntl SYS_dup SYS_dup3 SYS_ioctl SYS_statfs SYS_fstatfs
    SYS_getcwd SYS_umask SYS_memfd_create SYS_pipe2 SYS_eventfd2
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
    // Local sockets.
    SYS_socket SYS_socketpair SYS_connect SYS_bind SYS_sendto SYS_sendmsg SYS_recvfrom SYS_recvmsg
    SYS_shutdown SYS_getsockname SYS_getpeername SYS_getsockopt SYS_setsockopt
    // About itself and the machine.
    SYS_getpid SYS_gettid SYS_getppid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getrlimit
    SYS_prlimit64 SYS_getrusage SYS_times SYS_sysinfo SYS_uname SYS_getrandom SYS_prctl SYS_capget
];

/// The same where only x86-64 has them.
#[cfg(target_arch = "x86_64")]
const OLD: &[Named] = calls![
    SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink SYS_mkdir SYS_unlink SYS_rename SYS_rmdir
    SYS_dup2 SYS_pipe SYS_poll SYS_select SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_time
    SYS_getpgrp SYS_arch_prctl
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Named] = &[];

/// Calls that are not logged.
pub(super) fn needed() -> Calls {
    Calls::default().all(NEEDED).all(OLD)
}
