//! Files in memory that one process fills and the other reads. The reader makes them: their length
//! is fixed before the writer has them, and their content before it is read. Knows no array.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::fs::File;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use tessera_layout::Region;

/// Files that one message brings, at most.
pub(super) const FILES_MAX: usize = 2;
/// Byte of the message that brings files. It needs one.
const BYTE: u8 = 0;
/// Name of the files, for people who look at a process.
const NAME: &str = "tessera-scene";
/// Size of huge pages, and what the addresses of mappings are multiples of.
const HUGE: usize = 2 << 20;
/// A file in memory.
#[derive(Debug)]
pub(super) struct MemoryFile {
    file: File,
    bytes: u64,
}

impl MemoryFile {
    /// Makes a file of `bytes` zeros, which nobody can make longer or shorter.
    pub(super) fn new(bytes: u64) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let made = match memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL) {
            // A kernel before 6.3.
            Err(Errno::INVAL) => memfd_create(NAME, flags),
            made => made,
        }?;
        ftruncate(&made, bytes)?;
        fcntl_add_seals(&made, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(Self { file: File::from(made), bytes })
    }

    /// A file of another kind, for a test.
    #[cfg(test)]
    pub(super) fn of(file: OwnedFd) -> Self {
        Self { file: file.into(), bytes: 0 }
    }

    #[cfg(test)]
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Writes bytes at a place of it.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, at)
    }

    /// Ends all writing for ever.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceBusy`] where a process can still write, because it has the file in
    /// its memory for that.
    pub(super) fn seal(&self) -> Result<()> {
        Ok(fcntl_add_seals(&self.file, SealFlags::WRITE | SealFlags::SEAL)?)
    }

    /// Maps it for reading. Views of places are right once nobody writes there any more.
    pub(super) fn map(&self) -> Result<Region> {
        let bytes = usize::try_from(self.bytes).map_err(|_| ErrorKind::OutOfMemory)?;
        Ok(Arc::new(Mapping::of(self.file.as_fd(), bytes)?))
    }
}

/// A file in the memory of this process, for reading.
struct Mapping {
    /// Addresses of this mapping alone, with room to begin at a multiple of [`HUGE`].
    room: *mut std::ffi::c_void,
    room_bytes: usize,
    start: *const u8,
    bytes: usize,
}

// SAFETY: the bytes are only read, and the addresses are this value's until it is dropped.
unsafe impl Send for Mapping {}
// SAFETY: likewise.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(file: BorrowedFd<'_>, bytes: usize) -> Result<Self> {
        let room_bytes = bytes.checked_add(HUGE).ok_or(ErrorKind::OutOfMemory)?;
        // Private, because before Linux 6.7 a sealed file cannot be mapped otherwise. Pages that
        // are only read are those of the file all the same.
        let (read, private) = (ProtFlags::READ, MapFlags::PRIVATE | MapFlags::NORESERVE);
        let nothing = ProtFlags::empty();
        // SAFETY: the kernel chooses addresses that nobody has.
        let room = unsafe { mmap_anonymous(std::ptr::null_mut(), room_bytes, nothing, private)? };
        let skipped = (room as usize).next_multiple_of(HUGE) - room as usize;
        // SAFETY: the address lies in the room, with at least `bytes` behind it.
        let start = unsafe { room.byte_add(skipped) };
        let mapping = Self { room, room_bytes, start: start.cast(), bytes };
        // SAFETY: the new mapping takes addresses of the room only, which nobody else knows.
        unsafe { mmap(start, bytes, read, private | MapFlags::FIXED, file, 0)? };
        Ok(mapping)
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the addresses are mapped for reading until `self` is dropped. The file cannot
        // shrink, because it was sealed against that before anybody else had it: so no page of it
        // is ever missing, which would end the process with a signal. It is sealed against writing
        // before the node maps it; the importer is the only writer of what it maps, and writes
        // nowhere where it has a view.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody has the addresses any more: every slice borrows `self`. Unmapping what
        // was mapped cannot fail in a way that matters.
        let _ = unsafe { munmap(self.room, self.room_bytes) };
    }
}

/// Gives files to the process at the other end.
pub(super) fn give(socket: &UnixStream, files: &[MemoryFile]) -> Result<()> {
    let given: Vec<BorrowedFd<'_>> = files.iter().map(|file| file.file.as_fd()).collect();
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut room);
    if !given.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(&given)) {
        return Err(ErrorKind::InvalidInput.into());
    }
    loop {
        match sendmsg(socket, &[IoSlice::new(&[BYTE])], &mut beside, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes files of these lengths.
///
/// # Errors
/// [`ErrorKind::InvalidData`] where other files come; [`ErrorKind::UnexpectedEof`] where the other
/// process is gone.
pub(super) fn take(socket: &UnixStream, lengths: &[u64]) -> Result<Vec<MemoryFile>> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let mut byte = [0];
    let got = loop {
        let mut into = [IoSliceMut::new(&mut byte)];
        match recvmsg(socket, &mut into, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            got => break got?,
        }
    };
    if got.bytes == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let mut taken: Vec<OwnedFd> = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            taken.extend(files);
        }
    }
    if byte != [BYTE] || taken.len() != lengths.len() {
        return Err(Error::new(ErrorKind::InvalidData, "other files came than were expected"));
    }
    let file = |(taken, bytes): (OwnedFd, &u64)| MemoryFile { file: taken.into(), bytes: *bytes };
    Ok(taken.into_iter().zip(lengths).map(file).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::fcntl_get_seals;

    fn crossed(lengths: &[u64]) -> (Vec<MemoryFile>, Vec<MemoryFile>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let files: Vec<MemoryFile> =
            lengths.iter().map(|bytes| MemoryFile::new(*bytes).unwrap()).collect();
        give(&ours, &files).unwrap();
        let taken = take(&theirs, lengths).unwrap();
        (files, taken)
    }

    #[test]
    fn what_one_side_writes_is_what_the_other_maps() {
        let (ours, theirs) = crossed(&[64, 3 << 20]);
        theirs[0].write(60, &[1, 2, 3, 4]).unwrap();
        theirs[1].write((3 << 20) - 1, &[9]).unwrap();
        ours.iter().for_each(|file| file.seal().unwrap());
        let (small, large) = (ours[0].map().unwrap(), ours[1].map().unwrap());
        drop((ours, theirs));
        assert_eq!(
            ((*small).as_ref().len(), &(*small).as_ref()[58..]),
            (64, &[0, 0, 1, 2, 3, 4][..])
        );
        let large = (*large).as_ref();
        assert_eq!((large.len(), large[0], large[large.len() - 1]), (3 << 20, 0, 9));
        assert_eq!(large.as_ptr() as usize % HUGE, 0);
    }

    #[test]
    fn no_side_changes_a_sealed_file() {
        let (ours, theirs) = crossed(&[4096]);
        for bytes in [0, 4095, 4097] {
            assert_eq!(ftruncate(&theirs[0].file, bytes), Err(Errno::PERM), "its length is fixed");
        }
        assert!(theirs[0].write(4090, &[1; 7]).is_err());
        ours[0].seal().unwrap();
        let all = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        assert!(fcntl_get_seals(&theirs[0].file).unwrap().contains(all));
        assert!(theirs[0].write(0, &[1]).is_err());
        // Through another opening of the file too.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&theirs[0].file));
        let again = File::options().write(true).open(path).unwrap();
        assert!(again.write_all_at(&[1], 0).is_err());
        assert!(writable(&theirs[0]).is_err(), "it cannot be mapped for writing");
    }

    /// Maps a file so that it can be written.
    fn writable(file: &MemoryFile) -> rustix::io::Result<*mut std::ffi::c_void> {
        let (read, write) = (ProtFlags::READ, ProtFlags::WRITE);
        // SAFETY: the kernel chooses addresses that nobody has.
        unsafe { mmap(std::ptr::null_mut(), 4096, read | write, MapFlags::SHARED, &file.file, 0) }
    }

    #[test]
    fn a_file_that_somebody_can_write_is_not_sealed() {
        let (ours, theirs) = crossed(&[4096]);
        let mapped = writable(&theirs[0]).unwrap();
        assert_eq!(ours[0].seal().unwrap_err().kind(), ErrorKind::ResourceBusy);
        // SAFETY: nobody uses the addresses.
        unsafe { munmap(mapped, 4096).unwrap() };
        ours[0].seal().unwrap();
        // Nor is one that another process has sealed against seals.
        let (ours, theirs) = crossed(&[4096]);
        fcntl_add_seals(&theirs[0].file, SealFlags::SEAL).unwrap();
        assert_eq!(ours[0].seal().unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn files_that_are_not_expected_are_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        give(&ours, &[]).unwrap();
        assert!(take(&theirs, &[]).unwrap().is_empty());
        give(&ours, &[]).unwrap();
        assert_eq!(take(&theirs, &[64]).unwrap_err().kind(), ErrorKind::InvalidData);
        give(&ours, &[MemoryFile::new(64).unwrap()]).unwrap();
        assert_eq!(take(&theirs, &[]).unwrap_err().kind(), ErrorKind::InvalidData);
        drop(ours);
        assert_eq!(take(&theirs, &[]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
