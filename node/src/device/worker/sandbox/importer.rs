//! Calls that a scene importer can make: those that reading and flattening a scene needs, on itself
//! alone. Every other call is refused.

use super::calls::{Calls, Named, Test, calls};

/// Calls that are allowed whatever their arguments. They open no file for a name that Landlock
/// does not confine, and reach no other process.
const ALLOWED: &[Named] = calls![
    // The scene's files, the pipe, and the node's files for arrays.
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_close SYS_fstat
    SYS_newfstatat SYS_statx SYS_lseek SYS_readlinkat SYS_getcwd SYS_sendto SYS_recvfrom
    SYS_recvmsg
    // Memory.
    SYS_mmap SYS_munmap SYS_mprotect SYS_mremap SYS_madvise SYS_brk
    // Threads and their time.
    SYS_exit SYS_exit_group SYS_futex SYS_set_robust_list SYS_rseq SYS_sched_yield
    SYS_sched_getaffinity SYS_nanosleep SYS_clock_nanosleep SYS_clock_gettime SYS_gettimeofday
    SYS_restart_syscall SYS_getcpu
    // Signals of its own.
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack
    // About itself and the machine.
    SYS_getpid SYS_gettid SYS_getrandom SYS_sysinfo
];

/// The same where only x86-64 has them: some C libraries use them.
#[cfg(target_arch = "x86_64")]
const OLD: &[Named] = calls![SYS_stat SYS_lstat SYS_readlink];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Named] = &[];

/// The call that opens a file by its name alone, where there is one.
#[cfg(target_arch = "x86_64")]
const OPEN: &[Named] = calls![SYS_open];
#[cfg(not(target_arch = "x86_64"))]
const OPEN: &[Named] = &[];

/// Flags of an opened file with which it can be written, or come to be.
const WRITES: u32 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;

/// Commands of `fcntl` that read flags, or make another number for the same file.
const READS: [i32; 3] = [libc::F_GETFD, libc::F_GETFL, libc::F_DUPFD_CLOEXEC];
/// Options of `prctl` that name a thread, or an area of memory.
const NAMES: [u32; 2] = [libc::PR_SET_NAME as u32, 0x5356_4d41];

/// Calls that the importer with this process id can make.
pub(super) fn allowed(own: u32) -> Calls {
    // A task of this process, in its namespaces.
    let thread = [Test::Bits(0, THREAD | NAMESPACES, THREAD)];
    let reads = READS.map(|command| [Test::Is(1, command as u32)]);
    let names = NAMES.map(|option| [Test::Is(0, option)]);
    // Without a new value, the limits are only read.
    let reads_limits = [Test::Is(0, 0), Test::Null(2)];
    Calls::default()
        .all(ALLOWED)
        .all(OLD)
        // The limit on the length of files is for the node's, so it keeps others from nothing.
        .when(calls![SYS_openat], &[&[Test::Bits(2, WRITES, libc::O_RDONLY as u32)]])
        .when(OPEN, &[&[Test::Bits(1, WRITES, libc::O_RDONLY as u32)]])
        // An earlier filter answers that this call is absent. Of two refusals the kernel gives the
        // newer filter's, so this one must let it pass.
        .all(calls![SYS_clone3])
        .when(calls![SYS_clone], &[&thread])
        .when(calls![SYS_fcntl], &reads.each_ref().map(|case| case.as_slice()))
        .when(calls![SYS_prctl], &names.each_ref().map(|case| case.as_slice()))
        .when(calls![SYS_prlimit64], &[&reads_limits])
        // An abort ends the process by this.
        .when(calls![SYS_tgkill], &[&[Test::Is(0, own)]])
}

/// Flag of a thread.
const THREAD: u32 = libc::CLONE_THREAD as u32;
/// Flags of tasks with namespaces of their own.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
