//! A real PostgreSQL in a temporary folder, for one test: started, killed, restarted; never left
//! behind.

use crate::farm::skipped;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// User that owns the databases.
pub const USER: &str = "tessera";
/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// An unprivileged user (`nobody`): PostgreSQL and its poolers refuse to run as root.
pub const NOBODY: u32 = 65534;

/// A running PostgreSQL, which takes anybody of this machine for who they say they are.
pub struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
    server: Child,
}

/// The folder of PostgreSQL's programs, by `TESSERA_POSTGRES` or where Debian has them; says by
/// name what is left out without it.
pub fn programs(what: &str) -> Option<PathBuf> {
    let named = std::env::var_os("TESSERA_POSTGRES").map(PathBuf::from);
    let debian = || {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
        versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).max()
    };
    let found = named.or_else(debian).filter(|folder| folder.join("initdb").is_file());
    if found.is_none() {
        skipped(&format!("{what}: PostgreSQL is not installed"));
    }
    found
}

/// A command as an unprivileged user, also where tests run as root.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// A folder, and one for data in it that the unprivileged user owns.
fn new_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let anybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), anybody).expect("the folder's permissions");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let owned = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&data, owned).expect("the folder's permissions");
    if rustix::process::geteuid().is_root() {
        chown(&data, Some(NOBODY), Some(NOBODY)).expect("the folder's owner");
    }
    (folder, data)
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

impl Postgres {
    /// Starts one, if PostgreSQL is installed. `what`: what is left out otherwise.
    pub fn start(what: &str) -> Option<Self> {
        let programs = programs(what)?;
        let (folder, data) = new_folder();
        let mut initdb = command(&programs.join("initdb"));
        initdb
            .args(["-U", USER, "-A", "trust", "-E", "UTF8", "--no-instructions", "-D"])
            .arg(&data);
        succeed(&mut initdb);
        Some(Self::run(folder, programs))
    }

    /// Runs the database of a folder on a free port.
    fn run(folder: tempfile::TempDir, programs: PathBuf) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let server = Self::spawn(&programs, &folder.path().join("data"), port);
        let mut postgres = Self { folder, programs, port, server };
        postgres.wait();
        postgres
    }

    /// Starts a standby that follows it by way of another port, and that nobody waits for.
    pub fn standby(&self, port: u16) -> Self {
        let (folder, data) = new_folder();
        let mut copy = command(&self.programs.join("pg_basebackup"));
        copy.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", USER, "-c", "fast"]);
        copy.args(["-X", "stream", "-R", "-D"]).arg(&data);
        succeed(&mut copy);
        // As the primary it has no standby of its own.
        let settings = data.join("postgresql.auto.conf");
        let settings = std::fs::File::options().append(true).open(settings);
        settings
            .and_then(|mut file| writeln!(file, "synchronous_standby_names = ''"))
            .expect("its settings");
        Self::run(folder, self.programs.clone())
    }

    /// From now on a commit waits until a standby has it on its disk.
    pub fn wait_for_standbys(&self) {
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("SELECT pg_reload_conf()");
        let deadline = Instant::now() + PATIENCE;
        let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while self.sql(state) != "1" {
            assert!(Instant::now() < deadline, "no standby is synchronous: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        assert_eq!(self.sql("SELECT pg_promote()"), "t", "{}", self.log());
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn spawn(programs: &Path, data: &Path, port: u16) -> Child {
        let log = data.parent().expect("a folder").join("log");
        let log = std::fs::File::options().create(true).append(true).open(log).expect("a log");
        command(&programs.join("postgres"))
            .arg("-D")
            .arg(data)
            .args(["-p", &port.to_string(), "-k", "", "-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "max_wal_size=128MB", "-c", "shared_buffers=32MB"])
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("PostgreSQL runs")
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.try_sql("SELECT 1").is_none() {
            if matches!(self.server.try_wait(), Ok(Some(_))) {
                // A killed one's last process was still there.
                self.server = Self::spawn(&self.programs, &self.data(), self.port);
            }
            assert!(Instant::now() < deadline, "PostgreSQL does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The address of its database.
    pub fn address(&self) -> String {
        self.address_at(self.port)
    }

    /// The address, by way of another port.
    pub fn address_at(&self, port: u16) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/postgres")
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Writes a file in its folder, which only it can read.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.data().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("its owner");
        }
    }

    /// Runs a statement and returns what it prints: columns by `|`.
    pub fn sql(&self, statement: &str) -> String {
        self.try_sql(statement).unwrap_or_else(|| panic!("{statement}: {}", self.log()))
    }

    fn try_sql(&self, statement: &str) -> Option<String> {
        let output = command(&self.programs.join("psql"))
            .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, "-d"])
            .arg(self.address())
            .output()
            .expect("psql runs");
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    }

    /// Kills it with all its processes, as a crash does, and starts it again.
    pub fn crash_and_restart(&mut self) {
        self.kill();
        self.server = Self::spawn(&self.programs, &self.data(), self.port);
        self.wait();
    }

    /// Kills all its processes, without a chance to tidy up.
    pub fn kill(&mut self) {
        let others = self.others();
        let _ = self.server.kill();
        let _ = self.server.wait();
        for process in others {
            let _ = kill_process(process, Signal::KILL);
        }
    }

    /// Its processes but the first.
    fn others(&self) -> Vec<Pid> {
        let first = self.server.id();
        let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        let children = children.unwrap_or_default();
        let numbers = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        numbers.filter_map(Pid::from_raw).collect()
    }

    /// Stops all its processes, or lets them go on.
    pub fn pause(&self, stopped: bool) {
        let signal = if stopped { Signal::STOP } else { Signal::CONT };
        let first = Pid::from_raw(self.server.id().cast_signed());
        for process in first.into_iter().chain(self.others()) {
            // A process may have ended meanwhile.
            let _ = kill_process(process, signal);
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if matches!(self.server.try_wait(), Ok(Some(_))) {
            return;
        }
        // An immediate shutdown: it ends its processes itself.
        if let Some(process) = Pid::from_raw(self.server.id().cast_signed()) {
            let _ = kill_process(process, Signal::CONT);
            let _ = kill_process(process, Signal::QUIT);
        }
        let _ = self.server.wait();
    }
}
