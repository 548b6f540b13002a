//! The sandbox from within: a process confines itself and then makes every call of a list, with
//! arguments that do no harm. The kernel must refuse each one, whatever its Landlock can do.

use super::*;
use landlock::ABI;
use std::fs::File;
use std::io::{Error, Read};
use std::process::Command;

/// Environment variable with what the probed process shall be.
const ROLE: &str = "PROBED_SANDBOX";
/// Stands for the id of the process that started the probed one.
const NODE: u64 = u64::MAX - 7;
/// A pointer to nothing. A call that gets through fails with another error than a refused one.
const BAD: u64 = 1;

macro_rules! probes {
    ($($name:ident($($argument:expr),*);)*) => {
        &[$((stringify!($name), libc::$name, &[$($argument as u64),*])),*]
    };
}

type Probe = (&'static str, libc::c_long, &'static [u64]);

/// Calls that neither workers nor importers can make.
const BOTH: &[Probe] = probes! {
    SYS_prlimit64(NODE, libc::RLIMIT_CPU, 0, 0);
    SYS_sched_setaffinity(NODE, 0, 0);
    SYS_sched_setscheduler(NODE, 0, 0);
    SYS_sched_setparam(NODE, 0);
    SYS_sched_setattr(NODE, 0, 0);
    SYS_setpriority(libc::PRIO_PROCESS, NODE, 19);
    SYS_setpriority(libc::PRIO_USER, 0, 19);
    SYS_ioprio_set(1, NODE, 0xffff);
    SYS_kill(NODE, 0);
    SYS_tgkill(NODE, NODE, 0);
    SYS_tkill(NODE, 0);
    SYS_rt_sigqueueinfo(NODE, 0, 0);
    SYS_rt_tgsigqueueinfo(NODE, NODE, 0, 0);
    SYS_fcntl(0, libc::F_SETOWN, NODE);
    SYS_fcntl(0, 10, 0);
    SYS_fcntl(0, 15, BAD);
    SYS_ioctl(0, 0x8901, BAD);
    SYS_ioctl(0, 0x8902, BAD);
    SYS_ptrace(16, NODE);
    SYS_process_vm_readv(NODE, 0, 0, 0, 0, 0);
    SYS_process_vm_writev(NODE, 0, 0, 0, 0, 0);
    SYS_pidfd_getfd(-1i64, -1i64, 0);
    SYS_pidfd_send_signal(-1i64, 0, 0, 0);
    SYS_process_madvise(-1i64, 0, 0, 0, 0);
    SYS_migrate_pages(NODE, 0, 0, 0);
    SYS_move_pages(NODE, 0, 0, 0, 0, 0);
    SYS_clone(libc::SIGCHLD, 0, 0, 0, 0);
    SYS_clone(libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0);
    SYS_clone(libc::CLONE_NEWNET | libc::SIGCHLD, 0, 0, 0, 0);
    SYS_unshare(libc::CLONE_NEWUSER);
    SYS_setns(-1i64, 0);
    SYS_execve(0, 0, 0);
    SYS_execveat(-1i64, 0, 0, 0, 0);
    SYS_io_uring_setup(0, 0);
    SYS_bpf(-1i64, 0, 0);
    SYS_keyctl(-1i64);
    SYS_add_key(0, 0, 0, 0, 0);
    SYS_request_key(0, 0, 0, 0);
    SYS_perf_event_open(0, 0, 0, 0, 0);
    SYS_userfaultfd(0x1000);
    SYS_mount(BAD, BAD, BAD, 0, 0);
    SYS_umount2(BAD, 0);
    SYS_pivot_root(BAD, BAD);
    SYS_chroot(BAD);
    SYS_fsopen(BAD, 0);
    SYS_fsmount(-1i64, 0, 0);
    SYS_fspick(-1i64, BAD, 0);
    SYS_open_tree(-1i64, BAD, 0);
    SYS_move_mount(-1i64, BAD, -1i64, BAD, 0);
    SYS_mount_setattr(-1i64, BAD, 0, 0, 0);
    SYS_quotactl(0, BAD, 0, 0);
    SYS_fanotify_init(0xffff, 0);
    SYS_open_by_handle_at(-1i64, BAD, 0);
    SYS_fchmodat(-100i64, BAD, 0);
    SYS_fchownat(-100i64, BAD, 0, 0, 0);
    SYS_utimensat(-100i64, BAD, 0, 0);
    SYS_setxattr(BAD, BAD, 0, 0, 0);
    SYS_lsetxattr(BAD, BAD, 0, 0, 0);
    SYS_removexattr(BAD, BAD);
    SYS_settimeofday(BAD, 0);
    SYS_clock_settime(0, BAD);
    SYS_clock_adjtime(0, BAD);
    SYS_adjtimex(BAD);
    SYS_swapon(BAD, 0);
    SYS_swapoff(BAD);
    SYS_reboot(0, 0, 0, 0);
    SYS_sethostname(BAD, -1i64);
    SYS_setdomainname(BAD, -1i64);
    SYS_init_module(BAD, 0, BAD);
    SYS_finit_module(-1i64, BAD, 0);
    SYS_delete_module(BAD, 0);
    SYS_syslog(10, 0, 0);
    SYS_socket(libc::AF_INET, libc::SOCK_STREAM, 0);
    SYS_socket(libc::AF_INET6, libc::SOCK_DGRAM, 0);
    SYS_socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
};

/// Calls that importers cannot make either.
const IMPORTER: &[Probe] = probes! {
    SYS_socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
    SYS_socket(libc::AF_NETLINK, libc::SOCK_RAW, 0);
    SYS_socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, BAD);
    SYS_connect(0, BAD, 0);
    SYS_bind(0, BAD, 0);
    SYS_sendmsg(0, BAD, 0);
    SYS_prlimit64(0, libc::RLIMIT_NOFILE, BAD, 0);
    SYS_sched_setaffinity(0, 0, 0);
    SYS_clone(libc::CLONE_THREAD | libc::CLONE_NEWNS, 0, 0, 0, 0);
    SYS_prctl(libc::PR_SET_PDEATHSIG, 0);
    SYS_prctl(libc::PR_SET_DUMPABLE, 1);
    SYS_fcntl(0, libc::F_SETFL, 0);
    SYS_ioctl(0, libc::FIONREAD, BAD);
    SYS_pidfd_open(NODE, 0);
    SYS_memfd_create(BAD, 0);
    SYS_memfd_create(BAD, libc::MFD_ALLOW_SEALING);
    SYS_fcntl(-1i64, libc::F_ADD_SEALS, libc::F_SEAL_SEAL);
    SYS_fallocate(-1i64, 0, 0, 1);
    SYS_openat(libc::AT_FDCWD, BAD, libc::O_WRONLY);
    SYS_openat(libc::AT_FDCWD, BAD, libc::O_RDWR | libc::O_CLOEXEC);
    SYS_openat(libc::AT_FDCWD, BAD, libc::O_CREAT, 0o600);
    SYS_openat(libc::AT_FDCWD, BAD, libc::O_TRUNC);
    SYS_openat(libc::AT_FDCWD, BAD, libc::O_TMPFILE | libc::O_RDWR, 0o600);
    SYS_openat2(libc::AT_FDCWD, BAD, BAD, 24);
    SYS_ftruncate(-1i64, 0);
    SYS_unlinkat(-100i64, BAD, 0);
    SYS_mkdirat(-100i64, BAD, 0);
    SYS_renameat2(-100i64, BAD, -100i64, BAD, 0);
    SYS_linkat(-100i64, BAD, -100i64, BAD, 0);
    SYS_symlinkat(BAD, -100i64, BAD);
    SYS_mknodat(-100i64, BAD, 0, 0);
    SYS_fchmod(-1i64, 0);
    SYS_shmget(0, 0, 0);
    SYS_msgget(0, 0);
    SYS_semget(0, 0, 0);
    SYS_mq_open(BAD, 0, 0, 0);
    SYS_timer_create(0, BAD, BAD);
    SYS_capset(BAD, BAD);
    SYS_setuid(0);
    SYS_setsid();
    SYS_personality(0xffff_ffffu32);
    SYS_seccomp(0xff, 0, 0);
};

/// The same where only x86-64 has them.
#[cfg(target_arch = "x86_64")]
const IMPORTER_OLD: &[Probe] = probes! {
    SYS_open(BAD, libc::O_WRONLY);
    SYS_creat(BAD, 0o600);
};
#[cfg(not(target_arch = "x86_64"))]
const IMPORTER_OLD: &[Probe] = &[];

/// Calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const OLD: &[Probe] = probes! {
    SYS_fork();
    SYS_chmod(BAD, 0);
    SYS_chown(BAD, 0, 0);
    SYS_utime(BAD, 0);
    SYS_iopl(4);
    SYS_ioperm(0, 0, 0);
    SYS_modify_ldt(99, 0, 0);
};
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Probe] = &[];

/// Makes a call. Returns its error, or 0.
fn attempt((_, number, arguments): &Probe, node: u32) -> i32 {
    let own = std::process::id();
    let argument = |at: usize| match arguments.get(at) {
        Some(&NODE) => u64::from(node),
        Some(value) => *value,
        None => 0,
    };
    // SAFETY: the arguments make the call fail, or change nothing of this process.
    let result = unsafe {
        let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(argument);
        libc::syscall(*number, a, b, c, d, e, f)
    };
    if std::process::id() != own {
        // A process that should not have come to be.
        std::process::exit(0);
    }
    if result >= 0 { 0 } else { Error::last_os_error().raw_os_error().unwrap_or(0) }
}

/// Returns the capabilities that a thread has in any of its sets, by its status.
fn rights_in(mut status: File) -> u64 {
    let mut text = String::new();
    status.read_to_string(&mut text).unwrap();
    let sets = ["CapInh:", "CapPrm:", "CapEff:"].map(|name| {
        let set = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(set.trim(), 16).unwrap()
    });
    sets[0] | sets[1] | sets[2]
}

/// Confines this process as its environment says, and prints what came of every probe.
#[test]
fn probed_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let [who, asked, node, secret] = words.as_slice() else { panic!("{role}") };
    let asked = if *asked == "5" { ABI::V5 } else { files::ASKED };
    let node: u32 = node.parse().unwrap();
    // An importer opens no such file later.
    let status = File::open("/proc/thread-self/status").unwrap();
    let report = match *who {
        "importer" => enter_importer_asking(asked, &[], true, 1 << 30, None),
        _ => enter_asking(asked, &Allowed::default()),
    };
    assert!(report.no_network, "{report}");
    let more: &[&[Probe]] = if *who == "importer" { &[IMPORTER, IMPORTER_OLD] } else { &[] };
    for probe in BOTH.iter().chain(OLD).chain(more.iter().copied().flatten()) {
        println!("call {} {:x?} {}", probe.0, probe.2, attempt(probe, node));
    }
    // Libraries then use `clone`, whose flags a filter can read.
    let absent = ("SYS_clone3", libc::SYS_clone3, [BAD, 0].as_slice());
    println!("absent {}", attempt(&absent, node));
    let kept = match *who {
        "importer" => CapabilitySet::DAC_READ_SEARCH,
        _ => CapabilitySet::empty(),
    };
    println!("rights {:x}", rights_in(status) & !kept.bits());
    if report.files != FileConfinement::None {
        let opened = |write: bool, path: &str| {
            let opened = std::fs::OpenOptions::new().read(!write).write(write).open(path);
            opened.err().and_then(|error| error.raw_os_error()).unwrap_or(0)
        };
        println!("file {secret} {}", opened(false, secret));
        println!("file memory of the node {}", opened(true, &format!("/proc/{node}/mem")));
        println!("file core pattern {}", opened(true, "/proc/sys/kernel/core_pattern"));
        println!("file rank {}", opened(true, &format!("/proc/{node}/oom_score_adj")));
    }
    // What it needs goes on.
    let sum = std::thread::Builder::new().name("adds".into()).spawn(|| (0..1000).sum::<u32>());
    assert_eq!(sum.unwrap().join().unwrap(), 499_500);
    println!("end");
    std::process::exit(0);
}

/// Runs the probed process, and checks that everything was refused.
fn probe(who: &str, asked: &str, probes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("key.pem");
    std::fs::write(&secret, "secret").unwrap();
    let role = format!("{who} {asked} {} {}", std::process::id(), secret.display());
    let name = format!("{}::probed_process", module_path!().split_once("::").unwrap().1);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name, "--nocapture", "--test-threads=1"]).env(ROLE, role);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.ends_with("end\n"), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let refused = |line: &&str| {
        (line.starts_with("call ") || line.starts_with("file ")) && line.ends_with(" 13")
    };
    let tried = said.lines().filter(|line| line.starts_with("call ") || line.starts_with("file "));
    let through: Vec<&str> = tried.clone().filter(|line| !refused(line)).collect();
    assert!(through.is_empty(), "{who}, Landlock {asked}: these got through: {through:#?}");
    assert!(tried.count() >= probes, "{said}");
    assert!(said.contains("absent 38"), "{said}");
    assert!(said.contains("rights 0\n"), "{said}");
}

// promise: P8
#[test]
fn an_importer_is_refused_every_call_of_the_probe() {
    let probes = BOTH.len() + OLD.len() + IMPORTER.len() + IMPORTER_OLD.len();
    probe("importer", "all", probes);
    probe("importer", "5", probes);
}

// promise: P8
#[test]
fn a_worker_is_refused_every_call_of_the_probe() {
    let probes = BOTH.len() + OLD.len();
    probe("worker", "all", probes);
    probe("worker", "5", probes);
}
