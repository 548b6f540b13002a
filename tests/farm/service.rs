//! What a service manager hears of real processes: systemd's protocol, spoken to a socket of ours.
//! A loop or a device that hangs goes silent, and nothing else does.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tessera_support::farm::{Farm, Process, library};

/// What the manager asks for: proof of progress every 2 seconds.
const WATCHDOG_MICROS: &str = "2000000";
/// Silence that a manager with that watchdog would act on.
const SILENCE: Duration = Duration::from_secs(3);
/// Long enough for anything on a slow machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// The manager's end of the socket.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn listen(farm: &Farm) -> Self {
        let path = farm.folder().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        Self { socket, path }
    }

    fn ask(&self, command: &mut Command) {
        command.env("NOTIFY_SOCKET", &self.path).env("WATCHDOG_USEC", WATCHDOG_MICROS);
        command.env_remove("WATCHDOG_PID");
    }

    /// The next lines that came in one datagram; None where there are none for so long.
    fn next(&self, wait: Duration) -> Option<String> {
        let mut buffer = [0; 4096];
        self.socket.set_read_timeout(Some(wait)).expect("a wait");
        let length = self.socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    /// Everything up to the first datagram with a line that starts so.
    fn until(&self, start: &str, farm: &Farm) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        while Instant::now() < deadline {
            let Some(text) = self.next(Duration::from_secs(1)) else { continue };
            let found = text.lines().any(|line| line.starts_with(start));
            heard.push(text);
            if found {
                return heard;
            }
        }
        panic!("never heard {start:?} in {heard:?}\n{}", farm.logs());
    }

    /// Waits until there was no proof of progress for [`SILENCE`]; whatever else is said counts as
    /// silence.
    fn until_silent(&self, farm: &Farm) {
        let (deadline, mut last) = (Instant::now() + PATIENCE, Instant::now());
        while last.elapsed() < SILENCE {
            assert!(
                Instant::now() < deadline,
                "progress is told of where there is none\n{}",
                farm.logs()
            );
            if self.next(Duration::from_millis(200)).is_some_and(|text| text.contains("WATCHDOG=1"))
            {
                last = Instant::now();
            }
        }
    }
}

/// The threads of a process that render.
fn render_threads(process: &Process) -> Vec<i32> {
    let tasks =
        std::fs::read_dir(format!("/proc/{}/task", process.id())).expect("a running process");
    let named = |path: &PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("render-"))
    };
    let paths = tasks.map(|task| task.expect("a thread").path()).filter(named);
    paths.filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}

/// Stops one thread of another process as a debugger does, the others run on. False where that is
/// not allowed here.
fn stop_thread(thread: i32) -> bool {
    // rustix has no `ptrace`.
    // SAFETY: attaching names a thread and passes no memory of ours.
    let attached =
        unsafe { libc::ptrace(libc::PTRACE_ATTACH, thread, std::ptr::null_mut::<u8>(), 0) } == 0;
    let mut status = 0;
    // SAFETY: the status is a whole integer of ours.
    attached && unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) } == thread
}

fn go_on(thread: i32) {
    // SAFETY: detaching names a thread and passes no memory of ours.
    let detached =
        unsafe { libc::ptrace(libc::PTRACE_DETACH, thread, std::ptr::null_mut::<u8>(), 0) };
    assert_eq!(detached, 0, "the thread goes on");
}

#[test]
fn a_node_notifies_when_joined_and_stops_if_it_hangs() {
    let mut farm = Farm::start(0, 1);
    let manager = Manager::listen(&farm);
    farm.invite("node-0", 1);
    let mut command = farm.node_command(0);
    manager.ask(&mut command);
    let mut node = farm.spawn(command, "node-0");
    manager.until("READY=1", &farm);
    assert!(farm.text(&["nodes", "--json"]).contains("\"node-0\""), "ready before it has joined");
    manager.until("STATUS=1 device, 0 units held", &farm);
    manager.until("WATCHDOG=1", &farm);

    // The whole process hangs.
    node.signal("STOP");
    manager.until_silent(&farm);
    node.signal("CONT");
    manager.until("WATCHDOG=1", &farm);

    // Its device hangs with work, while its loop turns.
    farm.submit(&library("cornell-box.gltf"), &["--size", "1024x1024", "--spp", "65536"]);
    // It may tell once more that it has none.
    let status = || manager.until("STATUS=1 device, ", &farm).pop().expect("a line");
    while status().contains(" 0 units held") {}
    let threads = render_threads(&node);
    assert_eq!(threads.len(), 1, "the node has one render thread");
    if threads.iter().all(|thread| stop_thread(*thread)) {
        manager.until_silent(&farm);
        assert!(
            farm.text(&["nodes", "--json"]).contains("\"ready\""),
            "the loop turns all the same"
        );
        threads.iter().for_each(|thread| go_on(*thread));
        manager.until("WATCHDOG=1", &farm);
    } else {
        tessera_support::farm::skipped("a device that hangs: ptrace is not allowed here");
    }

    node.signal("TERM");
    let heard = manager.until("STOPPING=1", &farm);
    assert!(heard.last().is_some_and(|text| text.contains("STATUS=draining")), "{heard:?}");
    node.signal("TERM");
    assert_eq!(node.wait(), Some(0), "{}", farm.logs());
}

#[test]
fn a_coordinator_notifies_when_listening_and_stops_if_it_hangs() {
    let mut farm = Farm::prepare();
    let manager = Manager::listen(&farm);
    let mut command = farm.coordinator_command();
    manager.ask(&mut command);
    let mut coordinator = farm.spawn(command, "coordinator");
    manager.until("READY=1", &farm);
    farm.text(&["jobs"]);
    manager.until("STATUS=0 nodes, 0 open jobs, 0 units leased", &farm);
    farm.add_node("node-0", 1);
    farm.submit(&library("cornell-box.gltf"), &["--size", "1024x1024", "--spp", "65536"]);
    manager.until("STATUS=1 node, 1 open job, ", &farm);
    manager.until("WATCHDOG=1", &farm);
    coordinator.signal("STOP");
    manager.until_silent(&farm);
    coordinator.signal("CONT");
    manager.until("WATCHDOG=1", &farm);
    coordinator.signal("TERM");
    manager.until("STOPPING=1", &farm);
    assert_eq!(coordinator.wait(), Some(0), "{}", farm.logs());
}
