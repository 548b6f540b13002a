//! What a coordinator did to its data folder, read from strace's record of it: writes with their
//! bytes, renames, syncs, and the moments at which its log says that something is acknowledged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One thing that happened, in order.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A folder was made.
    Mkdir(PathBuf),
    /// A file was opened that may be new; cut to nothing where `truncate`.
    Open { path: PathBuf, create: bool, truncate: bool },
    /// Bytes were written at a place.
    Write { path: PathBuf, at: u64, bytes: Vec<u8> },
    /// A file was cut or lengthened.
    Resize { path: PathBuf, length: u64 },
    /// A file got another name.
    Rename { from: PathBuf, to: PathBuf },
    /// A file or an empty folder is gone.
    Remove(PathBuf),
    /// `fsync` or `fdatasync` returned.
    Sync(PathBuf),
    /// The log: everything up to this record is durable, and whoever waits is told.
    Acknowledged(u64),
}

/// What strace is to record.
pub(crate) const CALLS: &str = "trace=open,openat,creat,write,pwrite64,writev,pwritev,lseek,\
                                rename,renameat,renameat2,unlink,unlinkat,rmdir,\
                                mkdir,mkdirat,ftruncate,fsync,fdatasync,copy_file_range,\
                                sendfile,link,linkat,fallocate";

/// The events of a trace that concern `root`, and the acknowledgements in the log `log`.
pub(crate) fn read(trace: &str, root: &Path, log: &Path) -> Vec<Event> {
    let mut reader = Reader {
        root,
        log,
        offsets: BTreeMap::new(),
        lengths: BTreeMap::new(),
        events: Vec::new(),
    };
    let mut unfinished: BTreeMap<&str, &str> = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, begun.trim_end());
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            // A call counts from its return on: what is not back may not have happened.
            let tail = resumed.split_once("resumed>").map_or("", |(_, tail)| tail);
            if let Some(begun) = unfinished.remove(thread) {
                reader.call(&format!("{begun}{tail}"));
            }
        } else {
            reader.call(rest);
        }
    }
    reader.events
}

struct Reader<'a> {
    root: &'a Path,
    log: &'a Path,
    /// Where the next `write` of a descriptor goes; None: to the end.
    offsets: BTreeMap<u32, Option<u64>>,
    /// Lengths of files, as far as the trace tells.
    lengths: BTreeMap<PathBuf, u64>,
    events: Vec<Event>,
}

impl Reader<'_> {
    fn call(&mut self, line: &str) {
        let Some((name, rest)) = line.split_once('(') else { return };
        let Some((arguments, result)) = rest.rsplit_once(") ") else { return };
        let Some(result) = result.trim_start().strip_prefix("= ") else { return };
        if result.starts_with('-') || result.starts_with('?') {
            return;
        }
        let arguments = split(arguments);
        let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
        match name {
            "openat" => self.open(path_of(argument(0), argument(1)), argument(2), result),
            "open" => self.open(text(argument(0)).into(), argument(1), result),
            "lseek" => {
                if let (Some(fd), Ok(at)) = (number(argument(0)), result.trim().parse()) {
                    self.offsets.insert(fd, Some(at));
                }
            }
            "write" => self.write(argument(0), None, argument(1)),
            "pwrite64" => self.write(argument(0), argument(3).parse().ok(), argument(1)),
            "pwritev" => {
                let mut at = arguments.last().and_then(|at| at.parse().ok()).unwrap_or(0);
                let parts = arguments.iter().filter_map(|part| part.split_once("iov_base="));
                for (_, part) in parts {
                    self.write(argument(0), Some(at), part);
                    at += bytes(part).len() as u64;
                }
            }
            "mkdir" => self.here(text(argument(0)).into(), Event::Mkdir),
            "mkdirat" => self.here(path_of(argument(0), argument(1)), Event::Mkdir),
            "rename" => self.rename(text(argument(0)).into(), text(argument(1)).into()),
            "renameat" | "renameat2" => {
                self.rename(path_of(argument(0), argument(1)), path_of(argument(2), argument(3)));
            }
            "unlink" | "rmdir" => self.here(text(argument(0)).into(), Event::Remove),
            "unlinkat" => self.here(path_of(argument(0), argument(1)), Event::Remove),
            "ftruncate" => {
                let length = argument(1).parse().unwrap_or(0);
                if let Some(path) = opened(argument(0)) {
                    self.lengths.insert(path.clone(), length);
                    self.here(path, |path| Event::Resize { path, length });
                }
            }
            "fsync" | "fdatasync" => {
                if let Some(path) = opened(argument(0)) {
                    self.here(path, Event::Sync);
                }
            }
            other => {
                let inside = arguments.iter().filter_map(|argument| opened(argument));
                let inside = inside.filter(|path| path.starts_with(self.root)).collect::<Vec<_>>();
                assert!(
                    inside.is_empty(),
                    "{other} on {inside:?}: the emulation does not know this call"
                );
            }
        }
    }

    fn here(&mut self, path: PathBuf, event: impl FnOnce(PathBuf) -> Event) {
        if path.starts_with(self.root) {
            self.events.push(event(path));
        }
    }

    fn open(&mut self, path: PathBuf, flags: &str, result: &str) {
        let Some(fd) = number(result) else { return };
        self.offsets.insert(fd, if flags.contains("O_APPEND") { None } else { Some(0) });
        let (create, truncate) = (flags.contains("O_CREAT"), flags.contains("O_TRUNC"));
        if truncate {
            self.lengths.insert(path.clone(), 0);
        }
        if create || truncate {
            self.here(path, |path| Event::Open { path, create, truncate });
        }
    }

    fn write(&mut self, descriptor: &str, at: Option<u64>, data: &str) {
        let Some(path) = opened(descriptor) else { return };
        if path == self.log {
            let line = String::from_utf8_lossy(&bytes(data)).into_owned();
            if line.contains("step is durable, and acknowledged") {
                self.events.extend(field(&line, "through=").map(Event::Acknowledged));
            }
            return;
        }
        if !path.starts_with(self.root) {
            return;
        }
        let bytes = bytes(data);
        let end = self.lengths.get(&path).copied().unwrap_or(0);
        let fd = number(descriptor).unwrap_or(u32::MAX);
        let at = at.unwrap_or_else(|| {
            let at = self.offsets.get(&fd).copied().flatten();
            let start = at.unwrap_or(end);
            if at.is_some() {
                self.offsets.insert(fd, Some(start + bytes.len() as u64));
            }
            start
        });
        self.lengths.insert(path.clone(), end.max(at + bytes.len() as u64));
        self.events.push(Event::Write { path, at, bytes });
    }

    fn rename(&mut self, from: PathBuf, to: PathBuf) {
        if let Some(length) = self.lengths.remove(&from) {
            self.lengths.insert(to.clone(), length);
        }
        if from.starts_with(self.root) && to.starts_with(self.root) {
            self.events.push(Event::Rename { from, to });
        }
    }
}

/// A number that a line of the log names.
pub(crate) fn field(line: &str, name: &str) -> Option<u64> {
    let rest = &line[line.find(name)? + name.len()..];
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Arguments of a call; with `-xx` no string holds a comma.
fn split(arguments: &str) -> Vec<&str> {
    arguments.split(", ").collect()
}

fn number(text: &str) -> Option<u32> {
    let digits: String = text.trim().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The path of a descriptor that is printed with it; None where its file is gone.
fn opened(argument: &str) -> Option<PathBuf> {
    let (_, rest) = argument.split_once('<')?;
    let (path, behind) = rest.rsplit_once('>')?;
    (behind != "(deleted)").then(|| text(path).into())
}

/// A path beside the folder that it is relative to.
fn path_of(folder: &str, path: &str) -> PathBuf {
    opened(folder).unwrap_or_default().join(text(path))
}

fn text(quoted: &str) -> String {
    String::from_utf8_lossy(&bytes(quoted)).into_owned()
}

/// The bytes of `\x41\x42`, quoted or not.
fn bytes(quoted: &str) -> Vec<u8> {
    let digits = quoted.trim_matches('"').as_bytes();
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    digits.chunks_exact(4).map(|four| digit(four[2]) << 4 | digit(four[3])).collect()
}
