//! What the processes of a rack share about its devices: a mapped file of counters. Who holds
//! memory is known by file locks, so that a killed process gives its memory back, as with a real
//! driver.

use rustix::mm::{self, MapFlags, ProtFlags};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::{io, ptr};

/// Devices and slices together, at most.
pub(crate) const TARGETS_MAX: usize = 64;
/// Processes that hold a device at the same time, at most.
const HOLDERS_MAX: usize = 32;
/// Faults of a device, at most.
pub(crate) const FAULTS_MAX: usize = 16;
/// Xid events of a device that are kept; later ones overwrite the oldest.
const EVENTS_KEPT: u64 = 32;

/// The mapped file. All zero is its first state.
#[repr(C)]
pub(crate) struct Page {
    /// Largest number of devices that have executed launches at the same time.
    pub(crate) peak_in_flight: AtomicU64,
    pub(crate) targets: [TargetPage; TARGETS_MAX],
}

/// A device's or slice's counters, over all processes.
#[repr(C)]
pub(crate) struct TargetPage {
    pub(crate) launches: AtomicU64,
    pub(crate) allocations: AtomicU64,
    pub(crate) loads: AtomicU64,
    pub(crate) uploaded_bytes: AtomicU64,
    pub(crate) steps: AtomicU64,
    pub(crate) peak_bytes: AtomicU64,
    /// 1 once it has fallen off the bus.
    pub(crate) is_lost: AtomicU64,
    pub(crate) uncorrected: AtomicU64,
    events: AtomicU64,
    xids: [AtomicU64; EVENTS_KEPT as usize],
    pub(crate) faults: [FaultPage; FAULTS_MAX],
    holders: [HolderPage; HOLDERS_MAX],
}

/// How far a fault is.
#[repr(C)]
pub(crate) struct FaultPage {
    pub(crate) seen: AtomicU64,
    pub(crate) struck: AtomicU64,
    /// 1 once its trigger was seen.
    pub(crate) is_told: AtomicU64,
    /// Strikes up to when it was told last.
    pub(crate) struck_before: AtomicU64,
}

/// What one process holds of a device.
#[repr(C)]
struct HolderPage {
    was_used: AtomicU64,
    bytes: AtomicU64,
    running: AtomicU64,
}

/// What was written down of a launch that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// What tells launches apart.
    pub mark: u32,
    /// The element's index.
    pub index: u32,
    /// The element's first word.
    pub word: u32,
}

/// Access to a mapping.
const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// The mapping itself.
pub(crate) struct Shared {
    page: *mut Page,
    folder: PathBuf,
}

// SAFETY: the page consists of atomics alone, and the mapping lives until it is dropped.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Deref for Shared {
    type Target = Page;

    fn deref(&self) -> &Page {
        // SAFETY: mapped in `open` with the page's size, and unmapped only on drop; any bytes are
        // valid atomics.
        unsafe { &*self.page }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: what `open` mapped.
        let _ = unsafe { mm::munmap(self.page.cast(), size_of::<Page>()) };
    }
}

impl Shared {
    /// Maps the state of a folder, and makes it where there is none.
    pub(crate) fn open(folder: &Path) -> io::Result<Shared> {
        let path = folder.join("rack.state");
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let length = size_of::<Page>() as u64;
        // Never shrinks and never changes what another process has written.
        if file.metadata()?.len() < length {
            file.set_len(length)?;
        }
        // SAFETY: a new mapping of a file that is long enough; the file may be closed afterwards.
        let page = unsafe {
            mm::mmap(ptr::null_mut(), size_of::<Page>(), READ_WRITE, MapFlags::SHARED, &file, 0)
        }?;
        Ok(Shared { page: page.cast(), folder: folder.to_owned() })
    }

    /// State of this process's own, where a folder cannot be used.
    pub(crate) fn private() -> io::Result<Shared> {
        // SAFETY: a new mapping of nothing.
        let page = unsafe {
            mm::mmap_anonymous(ptr::null_mut(), size_of::<Page>(), READ_WRITE, MapFlags::PRIVATE)
        }?;
        Ok(Shared { page: page.cast(), folder: PathBuf::new() })
    }

    fn lock_path(&self, target: usize, holder: usize) -> PathBuf {
        self.folder.join(format!("holder-{target}-{holder}.lock"))
    }

    /// A place among those who hold a device. `None` if there are too many.
    pub(crate) fn hold(&self, target: usize) -> io::Result<Option<Holder>> {
        for holder in 0..HOLDERS_MAX {
            let path = self.lock_path(target, holder);
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            if file.try_lock().is_ok() {
                let page = &self.targets[target].holders[holder];
                page.bytes.store(0, SeqCst);
                page.running.store(0, SeqCst);
                page.was_used.store(1, SeqCst);
                return Ok(Some(Holder { target, index: holder, lock: file }));
            }
        }
        Ok(None)
    }

    /// Bytes that living processes hold.
    pub(crate) fn used(&self, target: usize) -> u64 {
        let holders = &self.targets[target].holders;
        (0..HOLDERS_MAX)
            .filter(|index| holders[*index].bytes.load(SeqCst) > 0 && self.lives(target, *index))
            .map(|index| holders[index].bytes.load(SeqCst))
            .sum()
    }

    /// Whether another one holds the device too.
    pub(crate) fn has_others(&self, holder: &Holder) -> bool {
        let Holder { target, index, .. } = holder;
        (0..HOLDERS_MAX).any(|other| other != *index && self.lives(*target, other))
    }

    fn lives(&self, target: usize, holder: usize) -> bool {
        // A lock that can be had is nobody's: its process has ended, however it ended.
        File::open(self.lock_path(target, holder)).is_ok_and(|file| file.try_lock_shared().is_err())
    }

    fn watched_path(&self, target: usize) -> PathBuf {
        self.folder.join(format!("watched-{target}"))
    }

    /// Writes down what was watched at a launch.
    pub(crate) fn write_down(&self, target: usize, watched: Watched) -> io::Result<()> {
        let Watched { mark, index, word } = watched;
        let line = format!("{mark} {index} {word}\n");
        let path = self.watched_path(target);
        OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
    }

    /// What was written down of a device, in order.
    pub(crate) fn watched(&self, target: usize) -> Vec<Watched> {
        let text = std::fs::read_to_string(self.watched_path(target)).unwrap_or_default();
        let of_line = |line: &str| {
            let mut numbers = line.split(' ').map(str::parse);
            let mut next = || numbers.next()?.ok();
            Some(Watched { mark: next()?, index: next()?, word: next()? })
        };
        text.lines().filter_map(of_line).collect()
    }

    /// Devices that execute a launch now.
    pub(crate) fn in_flight(&self) -> u64 {
        self.targets.iter().filter(|target| target.is_running()).count() as u64
    }
}

impl TargetPage {
    /// True while a launch executes.
    pub(crate) fn is_running(&self) -> bool {
        self.holders.iter().any(|holder| holder.running.load(SeqCst) > 0)
    }

    /// Xid events so far.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(SeqCst)
    }

    /// The Xid of event `number`, counted from 0; `None` if it is not there yet or no longer.
    pub(crate) fn xid(&self, number: u64) -> Option<u64> {
        let events = self.events();
        let kept = number < events && events - number <= EVENTS_KEPT;
        kept.then(|| self.xids[(number % EVENTS_KEPT) as usize].load(SeqCst))
    }

    /// Reports an Xid.
    pub(crate) fn report(&self, xid: u64) {
        let number = self.events();
        self.xids[(number % EVENTS_KEPT) as usize].store(xid, SeqCst);
        self.events.store(number + 1, SeqCst);
    }
}

/// A process's place among those who hold a device; left when dropped.
pub(crate) struct Holder {
    target: usize,
    index: usize,
    lock: File,
}

impl Holder {
    fn page<'page>(&self, shared: &'page Shared) -> &'page HolderPage {
        &shared.targets[self.target].holders[self.index]
    }

    /// Takes bytes of the device's memory; `false` if fewer are free.
    pub(crate) fn take(&self, shared: &Shared, bytes: u64, memory: u64) -> bool {
        let page = self.page(shared);
        page.bytes.fetch_add(bytes, SeqCst);
        let used = shared.used(self.target);
        if used > memory {
            page.bytes.fetch_sub(bytes, SeqCst);
            return false;
        }
        shared.targets[self.target].peak_bytes.fetch_max(used, SeqCst);
        true
    }

    /// Gives bytes back.
    pub(crate) fn give(&self, shared: &Shared, bytes: u64) {
        self.page(shared).bytes.fetch_sub(bytes, SeqCst);
    }

    /// Says that a launch begins.
    pub(crate) fn begin_launch(&self, shared: &Shared) {
        self.page(shared).running.store(1, SeqCst);
        shared.targets[self.target].launches.fetch_add(1, SeqCst);
        shared.peak_in_flight.fetch_max(shared.in_flight(), SeqCst);
    }

    /// Says that a launch has ended.
    pub(crate) fn end_launch(&self, shared: &Shared) {
        self.page(shared).running.store(0, SeqCst);
    }

    /// Gives everything back and leaves.
    pub(crate) fn leave(&self, shared: &Shared) {
        self.page(shared).bytes.store(0, SeqCst);
        self.page(shared).running.store(0, SeqCst);
        // The lock goes with the file; an error would mean that it is gone already.
        let _ = self.lock.unlock();
    }
}
