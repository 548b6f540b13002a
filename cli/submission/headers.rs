//! Finds the headers that a kernel includes: beside it, and in what `--include` names. Reads only
//! what an `#include` line asks for, and nothing outside of these folders.

use crate::error::{CliError, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use tessera_node::compute::{Header, Include, includes};
use tessera_protocol::limits::{HEADERS_BYTES_MAX, HEADERS_MAX};

/// A header, and the file that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) header: Header,
    pub(super) path: PathBuf,
}

/// A place in which headers are looked for.
enum Place<'a> {
    /// The folder of the kernel, for names in quotes.
    Beside(PathBuf),
    /// `--include DIR`.
    Folder(&'a Path),
    /// `--include FILE`, by its own name, and what that file includes beside it.
    File(&'a Path),
}

fn usage(text: impl Into<String>) -> CliError {
    CliError::new(Status::Usage, text.into())
}

/// Returns the headers of a kernel, by name. `included` are the arguments of `--include`.
pub(super) fn find(
    kernel: &Path,
    (name, text): (&str, &str),
    included: &[PathBuf],
) -> Result<Vec<Found>, CliError> {
    let folder = kernel.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut places = vec![Place::Beside(folder.unwrap_or(Path::new(".")).to_owned())];
    for path in included {
        let about = |error: CliError| error.context(format!("--include {}", path.display()));
        let data = std::fs::metadata(path).map_err(|error| about(CliError::of_file(error)))?;
        places.push(if data.is_dir() { Place::Folder(path) } else { Place::File(path) });
    }
    let mut search = Search { places, found: BTreeMap::new(), bytes: 0 };
    // A file that was named is a header, even if only a macro includes it.
    for path in included.iter().filter(|path| !path.is_dir()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        search.take(&name, path, path)?;
    }
    search.follow(name, text)?;
    let mut seen = BTreeSet::new();
    while let Some(next) = search.found.keys().find(|name| !seen.contains(*name)).cloned() {
        let text = search.found[&next].header.text.clone();
        search.follow(&next, &text)?;
        seen.insert(next);
    }
    Ok(search.found.into_values().collect())
}

/// What was found so far.
struct Search<'a> {
    places: Vec<Place<'a>>,
    found: BTreeMap<String, Found>,
    bytes: u64,
}

impl Search<'_> {
    /// Takes the headers that the lines of a file mean. A line whose header is nowhere may mean one
    /// of CUDA's.
    fn follow(&mut self, includer: &str, text: &str) -> Result<(), CliError> {
        for include in includes(text) {
            let candidates = include.candidates(includer).map_err(|bad| usage(bad.to_string()))?;
            if include.is_standard() && !include.quoted {
                continue;
            }
            for name in candidates {
                if self.found.contains_key(&name) || self.look_for(&include, &name)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Looks for a header in every place. Returns whether it is there.
    fn look_for(&mut self, include: &Include, name: &str) -> Result<bool, CliError> {
        for place in &self.places {
            let (folder, path) = match place {
                Place::Beside(_) if !include.quoted => continue,
                Place::Beside(folder) => (folder.clone(), folder.join(name)),
                Place::Folder(folder) => (folder.to_path_buf(), folder.join(name)),
                Place::File(file) => {
                    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
                    let path = folder.join(name);
                    (folder, path)
                }
            };
            let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
            // What is no file, such as a folder of that name, is not meant.
            if std::fs::metadata(&path).is_ok_and(|data| data.is_file()) {
                self.take(name, &path, &folder)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a header. A link must not lead out of `folder`.
    fn take(&mut self, name: &str, path: &Path, folder: &Path) -> Result<(), CliError> {
        let about = |error: CliError| error.context(format!("header `{}`", path.display()));
        let failed = |error: std::io::Error| about(CliError::of_file(error));
        let real = path.canonicalize().map_err(failed)?;
        if !real.starts_with(folder.canonicalize().map_err(failed)?) {
            return Err(about(
                usage(format!("it is a link to `{}`", real.display())).hint(
                    "a header is inside of its folder; give that file itself: --include FILE",
                ),
            ));
        }
        let data = std::fs::metadata(&real).map_err(failed)?;
        self.check_room(&data).map_err(about)?;
        let mut bytes = Vec::new();
        let opened = File::open(&real).map_err(failed)?;
        opened.take(data.len()).read_to_end(&mut bytes).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|_| about(usage("it is not UTF-8 text")))?;
        self.bytes += text.len() as u64;
        let header = Header { name: name.to_owned(), text };
        self.found.insert(name.to_owned(), Found { header, path: path.to_owned() });
        Ok(())
    }

    /// Checks the size of a file before it is read.
    fn check_room(&self, data: &Metadata) -> Result<(), CliError> {
        if !data.is_file() {
            return Err(usage("it is not a file"));
        }
        let total = self.bytes.saturating_add(data.len());
        if total > HEADERS_BYTES_MAX {
            let (own, all) = (data.len(), HEADERS_BYTES_MAX);
            return Err(usage(format!(
                "it has {own} bytes, and all headers together may have {all}"
            ))
            .hint("data belongs into an --input"));
        }
        if self.found.len() >= HEADERS_MAX {
            return Err(usage(format!("the kernel includes more than {HEADERS_MAX} headers")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    /// Returns the names and texts of the headers of a kernel in a folder.
    fn found(
        folder: &tempfile::TempDir,
        kernel: &str,
        include: &[&str],
    ) -> Result<Vec<(String, String)>, String> {
        let include: Vec<PathBuf> = include.iter().map(|path| folder.path().join(path)).collect();
        let found = find(&folder.path().join("own/k.cu"), ("k.cu", kernel), &include);
        let header = |found: Found| (found.header.name, found.header.text);
        found
            .map(|found| found.into_iter().map(header).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn headers_come_from_the_kernels_folder_and_from_includes() {
        let folder = folder(&[
            ("own/mine.h", "#include \"lib/a.h\"\n#include <b.h>\n"),
            ("own/lib/a.h", "#include \"../c.h\"\n#include <cuda_fp16.h>\n"),
            ("own/c.h", "c"),
            ("dir/b.h", "b"),
            ("dir/c.h", "another"),
            ("dir/unused.h", "unused"),
            ("one/single.h", "#include \"beside.h\"\n"),
            ("one/beside.h", "beside"),
        ]);
        let kernel = "#include \"tessera.cuh\"\n#include <math.h>\n#include \"mine.h\"\n";
        let names = |include: &[&str]| {
            let found = found(&folder, kernel, include).unwrap();
            found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["c.h", "lib/a.h", "mine.h"]);
        assert_eq!(names(&["dir"]), ["b.h", "c.h", "lib/a.h", "mine.h"]);
        assert_eq!(names(&["one/single.h"]), ["beside.h", "c.h", "lib/a.h", "mine.h", "single.h"]);
        let found = found(&folder, kernel, &["dir"]).unwrap();
        assert_eq!(found[1], ("c.h".into(), "c".into()), "the kernel's folder comes first");
    }

    #[test]
    fn includes_that_leave_their_folder_are_refused() {
        let folder = folder(&[("own/k.cu", ""), ("secret", "secret"), ("dir/x.h", "")]);
        for line in ["../secret", "../../etc/passwd", "/etc/passwd", "a/../../secret"] {
            let error = found(&folder, &format!("\n#include \"{line}\"\n"), &[]).unwrap_err();
            assert!(error.contains("k.cu(2)") && error.contains(line), "{error}");
        }
        let link = folder.path().join("own/link.h");
        std::os::unix::fs::symlink(folder.path().join("secret"), link).unwrap();
        let error = found(&folder, "#include \"link.h\"", &[]).unwrap_err();
        assert!(error.contains("link.h") && error.contains("it is a link to"), "{error}");
        let named = found(&folder, "#include <link.h>", &["own/link.h"]).unwrap();
        assert_eq!(named, [("link.h".into(), "secret".into())], "who names a link means it");
        let error = found(&folder, "", &["nowhere"]).unwrap_err();
        assert!(error.contains("--include") && error.contains("nowhere"), "{error}");
    }

    #[test]
    fn large_and_many_headers_are_refused_before_they_are_read() {
        let folder = folder(&[("own/k.cu", "")]);
        let huge = File::create(folder.path().join("own/huge.h")).unwrap();
        huge.set_len(100 << 20).unwrap();
        let error = found(&folder, "#include \"huge.h\"", &[]).unwrap_err();
        assert!(error.contains("104857600 bytes") && error.contains("16777216"), "{error}");
        let mut kernel = String::new();
        for index in 0..=HEADERS_MAX {
            std::fs::write(folder.path().join(format!("own/{index}.h")), "").unwrap();
            kernel.push_str(&format!("#include \"{index}.h\"\n"));
        }
        let error = found(&folder, &kernel, &[]).unwrap_err();
        assert!(error.contains("more than 1024 headers"), "{error}");
        std::fs::write(folder.path().join("own/bytes.h"), b"\xff\xfe").unwrap();
        let error = found(&folder, "#include \"bytes.h\"", &[]).unwrap_err();
        assert!(error.contains("not UTF-8"), "{error}");
    }
}
