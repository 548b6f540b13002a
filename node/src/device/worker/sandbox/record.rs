//! Recording of a worker's system calls: a thread of the worker hears of every call before it is
//! made, writes down the first one of its kind, and answers as the policy says. It needs nothing
//! but the kernel (Linux 5.5), and makes every call slower, so it is for measurements only.
//!
//! The thread that records is the only one that the kernel does not ask about. It must not
//! allocate: a thread that waits for its answer may hold the allocator's lock.

use super::policy::{Policy, Verdict};
use std::fs::File;
use std::io::{Cursor, Error, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// Kinds of calls that are kept apart. The rest is not written down.
const KINDS_MAX: usize = 1024;
/// Longest line, bytes.
const LINE_BYTES_MAX: usize = 96;
/// Most bytes of a record.
pub(super) const BYTES_MAX: u64 = (KINDS_MAX * LINE_BYTES_MAX) as u64;
/// Time between two looks for the kernel's descriptor, at the start only.
const START: Duration = Duration::from_millis(1);
/// Value of a descriptor that has not come yet.
const NONE_YET: i32 = -1;
/// Value of a descriptor that will not come.
const NEVER: i32 = -2;

/// Opens the record of this process in a folder, before files are confined.
pub(super) fn open(folder: &Path) -> Result<File, String> {
    let path = folder.join(format!("{}.calls", std::process::id()));
    std::fs::create_dir_all(folder)
        .and_then(|()| File::create(&path))
        .map_err(|error| format!("cannot record calls in `{}`: {error}", path.display()))
}

/// Enforces a policy on the calling thread and those that it starts, and writes down their calls.
pub(super) fn start(policy: Policy, file: File) -> Result<(), String> {
    let text = |error: Error| format!("cannot record system calls: {error}");
    let told = Arc::new(AtomicI32::new(NONE_YET));
    let heard = Arc::clone(&told);
    // Before the filter, which holds for the threads that begin after it.
    std::thread::Builder::new()
        .name("records calls".into())
        .spawn(move || record(&policy, file, &heard))
        .map_err(text)?;
    match listen() {
        Ok(descriptor) => {
            told.store(descriptor, Ordering::Release);
            Ok(())
        }
        Err(error) => {
            told.store(NEVER, Ordering::Release);
            Err(text(error))
        }
    }
}

/// Has the kernel ask about every call of this thread and those that it starts. Returns the
/// descriptor on which it asks.
fn listen() -> Result<i32, Error> {
    let mut filter = [libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_USER_NOTIF,
    }];
    let program = libc::sock_fprog { len: 1, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel reads the program, which lives until the call returns.
    let descriptor = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(Error::last_os_error());
        }
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            std::ptr::from_ref(&program),
        )
    };
    match i32::try_from(descriptor) {
        Ok(descriptor) if descriptor >= 0 => Ok(descriptor),
        _ => Err(Error::last_os_error()),
    }
}

/// Answers the kernel until the process ends.
fn record(policy: &Policy, mut file: File, told: &AtomicI32) {
    let descriptor = loop {
        match told.load(Ordering::Acquire) {
            NONE_YET => std::thread::sleep(START),
            NEVER => return,
            descriptor => break descriptor,
        }
    };
    // SAFETY: the kernel made the descriptor for this thread alone.
    let asks = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut seen = [(0i64, 0u64, Verdict::Allowed); KINDS_MAX];
    let mut count = 0;
    loop {
        // SAFETY: zero is a value of these structures, and the kernel wants the first one so.
        let (mut call, mut answer): (libc::seccomp_notif, libc::seccomp_notif_resp) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: the kernel fills the structure.
        let got =
            unsafe { libc::ioctl(asks.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
        if got != 0 {
            // A call whose thread was interrupted is asked again.
            continue;
        }
        let (number, arguments) = (i64::from(call.data.nr), call.data.args);
        let verdict = policy.verdict(number, &arguments);
        let kind = (number, detail(number, &arguments), verdict);
        let known = seen.get(..count).is_some_and(|seen| seen.contains(&kind));
        if let (false, Some(place)) = (known, seen.get_mut(count)) {
            *place = kind;
            count += 1;
            write_down(&mut file, policy, kind);
        }
        answer.id = call.id;
        match verdict {
            Verdict::Allowed | Verdict::Logged => {
                answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
            }
            Verdict::Refused => answer.error = -libc::EACCES,
            Verdict::Absent => answer.error = -libc::ENOSYS,
        }
        // SAFETY: the kernel reads the structure. A thread that has ended needs no answer.
        unsafe {
            libc::ioctl(asks.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer);
        }
    }
}

/// Returns the argument that tells calls of one name apart: what is asked of the kernel.
fn detail(number: i64, arguments: &[u64; 6]) -> u64 {
    let [first, second, third, ..] = *arguments;
    match number {
        // The letter of a driver. What it is asked for is between it and its library.
        libc::SYS_ioctl => second >> 8 & 0xff,
        libc::SYS_socket | libc::SYS_socketpair | libc::SYS_prctl | libc::SYS_clone => first,
        libc::SYS_setpriority | libc::SYS_ioprio_set => first,
        libc::SYS_fcntl => second,
        libc::SYS_madvise | libc::SYS_mmap | libc::SYS_mprotect => third,
        libc::SYS_prlimit64 => second,
        _ => 0,
    }
}

/// Writes a line: the call, its distinguishing argument, and what became of it.
fn write_down(file: &mut File, policy: &Policy, (number, detail, verdict): (i64, u64, Verdict)) {
    let verdict = match verdict {
        Verdict::Allowed => "needed",
        Verdict::Logged => "unlisted",
        Verdict::Refused => "refused",
        Verdict::Absent => "absent",
    };
    let mut line = Cursor::new([0u8; LINE_BYTES_MAX]);
    let written = match policy.name(number) {
        Some(name) => writeln!(line, "{name} {detail:#x} {verdict}"),
        None => writeln!(line, "call-{number} {detail:#x} {verdict}"),
    };
    let end = line.position() as usize;
    // A record that cannot be written must not stop the worker.
    if let (Ok(()), Some(line)) = (written, line.get_ref().get(..end)) {
        let _ = file.write_all(line);
    }
}
