//! Memory of control groups, as folders that look like those of real machines.

use super::*;
use tempfile::TempDir;

const GIB: u64 = 1 << 30;
const V2: &str = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
const V1: &str =
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory";

/// A machine of 64 GiB with these files.
fn machine(files: &[(&str, &str)]) -> (TempDir, HostMemory) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let meminfo =
        "MemTotal:       67108864 kB\nMemFree:         1 kB\nMemAvailable:   33554432 kB\n";
    for (path, text) in [("proc/meminfo", meminfo)].iter().chain(files) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("its folder");
        fs::write(path, text).expect("a file");
    }
    let memory = HostMemory::read(folder.path(), 0);
    (folder, memory)
}

fn bytes(files: &[(&str, &str)]) -> u64 {
    let (_folder, memory) = machine(files);
    memory.bytes()
}

#[test]
fn a_machine_without_limits_has_its_memory() {
    let (_folder, memory) = machine(&[]);
    assert_eq!(memory.free_bytes, Some(32 * GIB));
    assert_eq!((memory.bytes(), memory.group_bytes), (64 * GIB, None));
    let max = [
        ("proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n"),
        ("proc/self/mountinfo", V2),
        ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
        ("sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope/memory.max", "max\n"),
    ];
    assert_eq!(bytes(&max), 64 * GIB);
    let v1 = [
        ("proc/self/cgroup", "4:memory:/user.slice\n0::/\n"),
        ("proc/self/mountinfo", V1),
        ("sys/fs/cgroup/memory/user.slice/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
    ];
    assert_eq!(bytes(&v1), 64 * GIB);
}

#[test]
fn a_container_of_version_2_sees_its_own_group_at_the_top() {
    // As Kubernetes, Podman and Docker do with a namespace of control groups.
    let files = [
        ("proc/self/cgroup", "0::/\n"),
        ("proc/self/mountinfo", V2),
        ("sys/fs/cgroup/memory.max", "2147483648\n"),
    ];
    assert_eq!(bytes(&files), 2 * GIB);
    // And without one: the group is told from outside, and the mount shows only it.
    let shown = "31 23 0:28 /kubepods.slice/pod7 /sys/fs/cgroup ro shared:4 - cgroup2 cgroup2 rw";
    let files = [
        ("proc/self/cgroup", "0::/kubepods.slice/pod7/node\n"),
        ("proc/self/mountinfo", shown),
        ("sys/fs/cgroup/memory.max", "8589934592\n"),
        ("sys/fs/cgroup/node/memory.max", "4294967296\n"),
    ];
    assert_eq!(bytes(&files), 4 * GIB);
}

#[test]
fn a_container_of_version_1_sees_its_own_group_at_the_top() {
    let shown =
        "35 31 0:32 /docker/4f1 /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory";
    let files = [
        ("proc/self/cgroup", "11:cpu,cpuacct:/docker/4f1\n4:memory:/docker/4f1\n"),
        ("proc/self/mountinfo", shown),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "3221225472\n"),
    ];
    assert_eq!(bytes(&files), 3 * GIB);
    // The limit is of a pod around it that the mount does not show.
    let stat = "cache 0\nhierarchical_memory_limit 1073741824\ntotal_cache 0\n";
    let files = [
        ("proc/self/cgroup", "4:memory:/kubepods/pod7/4f1\n"),
        ("proc/self/mountinfo", V1),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/memory.stat", stat),
    ];
    assert_eq!(bytes(&files), GIB);
}

#[test]
fn the_tightest_of_nested_groups_counts() {
    // Slurm limits the step, systemd may limit a slice around it.
    let slurm = "0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0\n";
    let folder = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_5";
    let max = |below: &str| format!("{folder}{below}/memory.max");
    let (job, step, task) = (max(""), max("/step_0"), max("/step_0/user/task_0"));
    let files = [
        ("proc/self/cgroup", slurm),
        ("proc/self/mountinfo", V2),
        (job.as_str(), "17179869184\n"),
        (step.as_str(), "12884901888\n"),
        (task.as_str(), "max\n"),
        ("sys/fs/cgroup/system.slice/memory.max", "34359738368\n"),
    ];
    assert_eq!(bytes(&files), 12 * GIB);
    let v1 = [
        ("proc/self/cgroup", "4:memory:/slurm/uid_1000/job_5/step_0/task_0\n0::/\n"),
        ("proc/self/mountinfo", &format!("{V1}\n{V2}")),
        ("sys/fs/cgroup/memory/slurm/uid_1000/job_5/memory.limit_in_bytes", "5368709120\n"),
        (
            "sys/fs/cgroup/memory/slurm/uid_1000/job_5/step_0/task_0/memory.limit_in_bytes",
            "9223372036854771712\n",
        ),
    ];
    assert_eq!(bytes(&v1), 5 * GIB, "beside an empty hierarchy of version 2");
}

#[test]
fn a_limit_beyond_the_machine_is_none() {
    let files = [
        ("proc/self/cgroup", "0::/a\n"),
        ("proc/self/mountinfo", V2),
        ("sys/fs/cgroup/a/memory.max", "1099511627776\n"),
    ];
    assert_eq!(bytes(&files), 64 * GIB);
}

#[test]
fn groups_that_cannot_be_followed_are_taken_at_the_top() {
    let mounts = "1 2 0:3 / /mnt/with\\040blank rw - cgroup2 none rw\nnonsense\n - x y\n";
    let files = [
        ("proc/self/cgroup", "0::/../../elsewhere\n"),
        ("proc/self/mountinfo", mounts),
        ("mnt/with blank/memory.max", "1073741824\n"),
        ("elsewhere/memory.max", "1\n"),
    ];
    assert_eq!(bytes(&files), GIB);
    // No list of mounts: the usual places.
    let files = [("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", "1073741824\n")];
    assert_eq!(bytes(&files), GIB);
    for text in ["", "lots\n", "-1\n", "18446744073709551616\n"] {
        let files = [("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", text)];
        assert_eq!(bytes(&files), 64 * GIB, "{text:?}");
    }
}

#[test]
fn this_process_has_some_memory() {
    let memory = HostMemory::of_this_process();
    assert!(memory.bytes() > 0 && memory.bytes() <= memory.machine_bytes, "{memory:?}");
}
