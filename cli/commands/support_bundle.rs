//! `support-bundle`: writes what helps others to help into one text, without secrets.

use crate::args::support_bundle::SupportBundleArgs;
use crate::config;
use crate::error::{CliError, Status};
use crate::secrets;
use crate::small_file;
use crate::table::{bytes, printable, printable_lines};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;
use tessera_protocol::utc::utc;

/// Bytes of a settings file at most, and of what one command said.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
const SAID_BYTES_MAX: usize = 1 << 20;
/// Jobs that are looked at because they failed.
const FAILED_MAX: usize = 5;
/// Files of a data folder that are listed.
const LISTED_MAX: usize = 2000;
/// Lines of a service's log.
const JOURNAL_LINES: &str = "2000";
/// Services as the packages name them.
const SERVICES: [&str; 2] = ["tessera-coordinator", "tessera-node"];

/// `tessera support-bundle`.
pub(crate) async fn run(args: SupportBundleArgs) -> Result<Status, CliError> {
    let about = |error: std::io::Error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        let error = CliError::from(error).context(format!("`{}`", args.output.display()));
        if exists { error.hint("name another file with -o") } else { error }
    };
    let mut file = File::create_new(&args.output).map_err(about)?;
    let output = args.output.clone();
    let gathered = tokio::task::spawn_blocking(move || gather(&args)).await;
    let text = gathered.map_err(|error| CliError::new(Status::Failure, error))?;
    file.write_all(text.as_bytes())?;
    eprintln!(
        "{} in `{}`; it has names of people, machines, jobs and files: read it before you send it",
        bytes(text.len() as u64),
        output.display()
    );
    Ok(Status::Done)
}

/// The sections of the text.
#[derive(Default)]
struct Bundle {
    text: String,
}

impl Bundle {
    fn add(&mut self, name: &str, content: &str) {
        let _ = write!(self.text, "==> {name}\n{}\n\n", content.trim_end());
    }

    /// What a command says, on both outputs; its text.
    fn say(&mut self, program: &str, arguments: &[&str]) -> String {
        let said = match Command::new(program).args(arguments).output() {
            Ok(output) => {
                let out = String::from_utf8_lossy(&output.stdout);
                let error = String::from_utf8_lossy(&output.stderr);
                let status = match output.status.code() {
                    Some(0) => String::new(),
                    Some(code) => format!("\n(status {code})"),
                    None => "\n(ended by a signal)".to_owned(),
                };
                (out.clone().into_owned(), format!("{out}{error}{status}"))
            }
            Err(error) => (String::new(), format!("(cannot be run: {error})")),
        };
        let name = Path::new(program).file_stem().unwrap_or_default().to_string_lossy();
        let words = format!("{name} {}", arguments.join(" "));
        self.add(&words, &secrets::without_user(&printable_lines(newest(&said.1))));
        said.0
    }
}

/// The end of a text, from a line's beginning on.
fn newest(text: &str) -> &str {
    let from = text.len().saturating_sub(SAID_BYTES_MAX);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}

fn gather(args: &SupportBundleArgs) -> String {
    let mut bundle = Bundle::default();
    bundle.add("program", &program());
    bundle.add("environment", &environment());
    for path in config::files() {
        let name = format!("settings {}", path.display());
        match small_file::read(&path, SETTINGS_BYTES_MAX) {
            Ok(text) => bundle.add(&name, &secrets::settings(&printable_lines(&text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => bundle.add(&name, &format!("(cannot be read: {error})")),
        }
    }
    let own = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
    match own {
        Ok(own) => commands(&mut bundle, &own, args),
        Err(error) => bundle.add("commands", &format!("(this program is not found: {error})")),
    }
    for folder in &args.data {
        bundle.add(&format!("files of {}", folder.display()), &listing(folder));
    }
    for service in SERVICES {
        let unit = format!("{service}.service");
        bundle.say(
            "journalctl",
            &["-u", &unit, "-n", JOURNAL_LINES, "--no-pager", "-o", "short-iso"],
        );
    }
    bundle.text
}

/// What this program says of the machine and the farm.
fn commands(bundle: &mut Bundle, own: &str, args: &SupportBundleArgs) {
    bundle.say(own, &["doctor"]);
    if args.no_farm {
        return;
    }
    let mut farm: Vec<&str> = Vec::new();
    let identity = args.farm.identity.as_ref().map(|path| path.to_string_lossy().into_owned());
    farm.extend(args.farm.coordinator.iter().flat_map(|of| ["--coordinator", of]));
    farm.extend(identity.iter().flat_map(|of| ["--identity", of]));
    let with = |words: &[&'static str]| [words, &farm[..]].concat();
    bundle.say(own, &with(&["nodes"]));
    bundle.say(own, &with(&["nodes", "--json"]));
    bundle.say(own, &with(&["jobs"]));
    let failed = bundle.say(own, &with(&["jobs", "--state", "failed", "--json"]));
    let failed: Vec<serde_json::Value> = serde_json::from_str(&failed).unwrap_or_default();
    let ids = failed.iter().rev().filter_map(|job| job["job"].as_str()).take(FAILED_MAX);
    let ids: Vec<String> = ids.map(str::to_owned).chain(args.job.iter().cloned()).collect();
    for id in &ids {
        for words in [&["job"][..], &["explain"], &["logs"]] {
            let mut all: Vec<&str> = words.to_vec();
            all.push(id);
            all.extend(&farm);
            bundle.say(own, &all);
        }
    }
}

fn program() -> String {
    let fingerprint: String =
        tessera_node::fingerprint().0.iter().map(|byte| format!("{byte:02x}")).collect();
    let secs =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |of| of.as_secs());
    let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = system.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = rustix::system::uname();
    let (kernel, machine) = (name.release().to_string_lossy(), name.machine().to_string_lossy());
    let threads = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory.lines().next().unwrap_or_default().trim_start_matches("MemTotal:").trim();
    format!(
        "version      {}\nfingerprint  {fingerprint}\ntime         {}\nsystem       {}\n\
         kernel       {kernel}, {machine}\nthreads      {threads}\nmemory       {memory}",
        env!("CARGO_PKG_VERSION"),
        utc(secs),
        printable(system.unwrap_or("unknown").trim_matches('"')),
    )
}

/// The variables that this program looks at.
fn environment() -> String {
    let is_ours = |name: &str| {
        ["TESSERA_", "CUDA_", "NVIDIA_", "XDG_", "OTEL_"].iter().any(|head| name.starts_with(head))
    };
    let mut lines: Vec<String> = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| is_ours(name))
        .map(|(name, value)| {
            let value = secrets::shown(&name, &value.to_string_lossy());
            format!("{}={}", printable(&name), printable(&value))
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

/// Names, sizes and rights of the files below a folder; no content.
fn listing(folder: &Path) -> String {
    let mut lines = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = match std::fs::read_dir(&next) {
            Ok(entries) => entries,
            Err(error) => {
                lines.push(format!("{}: {error}", next.display()));
                continue;
            }
        };
        for entry in entries.flatten() {
            if lines.len() >= LISTED_MAX {
                lines.push("and more".to_owned());
                return printable_lines(&lines.join("\n"));
            }
            let path = entry.path();
            let Ok(found) = entry.metadata() else { continue };
            let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o7777;
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            if found.is_dir() {
                lines.push(format!("{mode:04o} {:>14} {name}/", ""));
                folders.push(path);
            } else {
                lines.push(format!("{mode:04o} {:>14} {name}", found.len()));
            }
        }
    }
    printable_lines(&lines.join("\n"))
}
