//! Tests of the chain: complete, cut by a crash, shortened, and tampered with.

use super::*;

fn filled(entries: u64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), None, false).unwrap();
    (1..=entries)
        .for_each(|n| log.append((n, "admin ada"), "job cancelled", &format!("job {n}")).unwrap());
    let file = folder.path().join("00000001.log");
    (folder, file)
}

fn problems(folder: &tempfile::TempDir) -> Vec<String> {
    read(folder.path(), 0, None).unwrap().0.problems
}

#[test]
fn a_log_continues_over_restarts_with_an_unbroken_chain() {
    let (folder, _) = filled(5);
    let log = Log::open(folder.path(), None, false).unwrap();
    log.append((9, "admin ada"), "denied", "user:eve").unwrap();
    let report = log.report(2).unwrap();
    assert_eq!((report.first, report.entries, report.problems.len()), (1, 6, 0));
    let told: Vec<_> = report.newest.iter().map(|entry| (entry.n, entry.what.as_str())).collect();
    assert_eq!(told, [(5, "job cancelled"), (6, "denied")]);
    assert_eq!(report.head, report.newest[1].hash);
}

#[test]
fn entries_of_many_threads_are_written_together_and_chained() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), None, true).unwrap();
    // Whoever has the file writes what waits by then.
    let held = lock(&log.state);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let log = &log;
            scope.spawn(move || log.append((thread, "ada"), "job submitted", "job").unwrap());
        }
        while lock(&log.waiting).len() < 8 {
            std::thread::yield_now();
        }
        drop(held);
    });
    let report = log.report(8).unwrap();
    assert_eq!((report.entries, report.problems.len()), (8, 0));
    let mut numbers: Vec<u64> =
        log.head().waiting().entries.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    assert_eq!(read(folder.path(), 0, None).unwrap().1, lock(&log.state).head);
}

#[test]
fn entries_that_could_not_be_written_are_refused_to_all() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), None, false).unwrap();
    // The head cannot be replaced by a file.
    std::fs::create_dir_all(folder.path().join(HEAD_FILE).join("in the way")).unwrap();
    let held = lock(&log.state);
    std::thread::scope(|scope| {
        let append = |at| {
            let log = &log;
            scope.spawn(move || log.append((at, "ada"), "denied", "user:eve"))
        };
        let appended: Vec<_> = (0..4).map(append).collect();
        while lock(&log.waiting).len() < 4 {
            std::thread::yield_now();
        }
        drop(held);
        assert!(appended.into_iter().all(|thread| thread.join().unwrap().is_err()));
    });
    std::fs::remove_dir_all(folder.path().join(HEAD_FILE)).unwrap();
    log.append((9, "ada"), "denied", "user:eve").unwrap();
}

// promise: P8
#[test]
fn every_changed_byte_and_every_cut_line_is_seen() {
    let (folder, file) = filled(4);
    let whole = std::fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        std::fs::write(&file, &changed).unwrap();
        assert!(!problems(&folder).is_empty(), "byte {at}");
    }
    for length in 0..whole.len() {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert!(!problems(&folder).is_empty(), "{length} bytes");
    }
    // One entry is removed, and the rest stays as it was.
    let mut lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    lines.remove(2);
    std::fs::write(&file, lines.concat()).unwrap();
    assert!(problems(&folder)[0].contains("entry 3 follows entry 1"));
    std::fs::remove_file(&file).unwrap();
    assert!(problems(&folder)[0].contains("cut"));
}

#[test]
fn torn_audit_entries_are_tolerated_and_damage_is_reported() {
    let (folder, file) = filled(3);
    let mut torn = OpenOptions::new().append(true).open(&file).unwrap();
    torn.write_all(b"{\"n\":4,\"at\"").unwrap();
    assert_eq!(problems(&folder), [""; 0]);
    Log::open(folder.path(), None, false)
        .unwrap()
        .append((5, "admin ada"), "denied", "user:eve")
        .unwrap();
    assert_eq!(problems(&folder), [""; 0]);

    let text = std::fs::read_to_string(&file).unwrap().replace("job 2", "job 7");
    std::fs::write(&file, text).unwrap();
    let log = Log::open(folder.path(), None, false).unwrap();
    let report = log.report(1).unwrap();
    assert!(report.newest[0].about.contains("entry 2 was changed"), "{report:?}");
    assert!(!report.problems.is_empty());
}

#[test]
fn files_are_followed_by_others_and_the_oldest_go() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), None, false).unwrap();
    for n in 1..=(FILES_MAX as u64 + 3) {
        lock(&log.state).bytes = FILE_BYTES;
        log.append((n, "admin ada"), "denied", "user:eve").unwrap();
    }
    assert_eq!(names(folder.path()).unwrap().len(), FILES_MAX);
    let report = log.report(0).unwrap();
    assert_eq!((report.first, report.entries, report.problems.len()), (4, FILES_MAX as u64, 0));
}

// promise: P8
#[test]
fn a_cut_tail_is_seen_without_the_head() {
    let (folder, file) = filled(6);
    let kept = std::fs::read(folder.path().join(HEAD_FILE)).unwrap();
    let whole = std::fs::read_to_string(&file).unwrap();
    let cut: String = whole.split_inclusive('\n').take(4).collect();
    std::fs::write(&file, &cut).unwrap();
    std::fs::remove_file(folder.path().join(HEAD_FILE)).unwrap();
    assert!(problems(&folder)[0].contains("the head is missing"), "{:?}", problems(&folder));
    let found = check(folder.path(), Some(&kept)).unwrap().join("; ");
    assert!(found.contains("the journal says that entry 6 was written"), "{found}");
    // Somebody who writes a head for the cut log is found by the journal.
    let third: LogEntry = serde_json::from_str(cut.lines().last().unwrap()).unwrap();
    let forged = serde_json::to_vec(&Head { after: third.n, hash: third.hash }).unwrap();
    std::fs::write(folder.path().join(HEAD_FILE), forged).unwrap();
    assert_eq!(problems(&folder), [""; 0]);
    assert_eq!(check(folder.path(), Some(&kept)).unwrap().len(), 1);
    // The numbers go on behind the lost entries.
    let log = Log::open(folder.path(), Some(&kept), false).unwrap();
    let report = log.report(1).unwrap();
    assert_eq!(report.newest[0].n, 7, "{report:?}");
    assert!(report.newest[0].about.contains("entry 6 was written"), "{report:?}");
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(check(folder.path(), None).unwrap(), [""; 0]);
    assert!(check(folder.path(), Some(&kept)).unwrap()[0].contains("ends with entry 0"));
}

// promise: P8
#[test]
fn a_running_log_notices_that_its_folder_was_cut() {
    let (folder, file) = filled(0);
    let log = Log::open(folder.path(), None, false).unwrap();
    (1..=5).for_each(|n| log.append((n, "admin ada"), "denied", "user:eve").unwrap());
    assert_eq!(log.report(0).unwrap().problems, [""; 0]);
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, whole.split_inclusive('\n').take(3).collect::<String>()).unwrap();
    std::fs::remove_file(folder.path().join(HEAD_FILE)).unwrap();
    let problems = log.report(0).unwrap().problems.join("; ");
    assert!(problems.contains("entry 5 was written"), "{problems}");
}
