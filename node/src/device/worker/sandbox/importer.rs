//! Calls that a scene importer can make: those that reading and flattening a scene needs, on itself
//! alone. Every other call is refused.

use super::calls::{Calls, Named, Test, calls};

/// Calls that are allowed whatever their arguments.
const ALLOWED: &[Named] = calls![
    // The scene's files, and the pipe.
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_openat SYS_close SYS_fstat
    SYS_newfstatat SYS_statx SYS_lseek SYS_getdents64 SYS_readlinkat SYS_getcwd
    SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_poll
    // Memory.
    SYS_mmap SYS_munmap SYS_mprotect SYS_mremap SYS_madvise SYS_brk
    // Threads and their time.
    SYS_exit SYS_exit_group SYS_futex SYS_set_robust_list SYS_rseq SYS_sched_yield
    SYS_sched_getaffinity SYS_nanosleep SYS_clock_nanosleep SYS_clock_gettime SYS_restart_syscall
    // Signals of its own.
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack
    // About itself.
    SYS_getpid SYS_gettid SYS_getrandom SYS_sysinfo
];

/// Calls that the importer with this process id can make.
pub(super) fn allowed(_own: u32) -> Calls {
    let thread = libc::CLONE_THREAD as u32;
    Calls::default().all(ALLOWED).when(calls![SYS_clone], &[&[Test::Bits(0, thread, thread)]])
}
