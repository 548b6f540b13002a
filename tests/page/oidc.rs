//! Signing in by an OpenID Connect provider: a real one (oidc-provider, by node) in front of real
//! farms, with a browser and with answers that no honest browser gives.

use super::{CHROMIUM, tools};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tessera_support::farm::{Farm, Process};

/// Secret of the client, with letters that a form writes otherwise.
const SECRET: &str = "a+b c&d=%e";

/// Time for the provider to start; then it is started again.
const PROVIDER_STARTS: Duration = Duration::from_secs(60);

/// How a provider is set up.
#[derive(Clone, Copy)]
struct Kind {
    algorithm: &'static str,
    /// Whether the client has a secret.
    secret: bool,
    /// Whether claims are at the provider's endpoint alone, and not in the token.
    conforms: bool,
    tls: bool,
}

const USUAL: Kind = Kind { algorithm: "RS256", secret: true, conforms: false, tls: false };

/// A farm, and the provider by which people sign in to it.
struct Place {
    tools: PathBuf,
    farm: Farm,
    kind: Kind,
    pages: u16,
    provider: u16,
    running: Option<Process>,
    /// Certificate and key of the provider, as PEM.
    certificate: (String, String),
    /// Whether the farm's machine trusts that certificate.
    trusts: bool,
}

/// A TCP port that was free a moment ago, below those that the system takes for connections. No
/// other test of this process gets it.
fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    loop {
        let nth = TRIED.fetch_add(1, Relaxed) + 16 * std::process::id();
        let port = 10_000 + (nth % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Place {
    /// A provider that runs, and a farm.
    fn start(kind: Kind) -> Option<Self> {
        let mut place = Self::prepare(kind)?;
        place.start_provider();
        place.start_farm();
        Some(place)
    }

    fn prepare(kind: Kind) -> Option<Self> {
        let (tools, farm) = (tools()?, Farm::prepare());
        let secret = farm.folder().join("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).expect("it is written");
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600))
            .expect("its mode is set");
        let (pages, provider) = (free_port(), free_port());
        let made =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let certificate = (made.cert.pem(), made.signing_key.serialize_pem());
        std::fs::write(farm.folder().join("trusted.pem"), &certificate.0).expect("it is written");
        let (running, trusts) = (None, kind.tls);
        Some(Self { tools, farm, kind, pages, provider, running, certificate, trusts })
    }

    fn start_provider(&mut self) {
        let Kind { algorithm, secret, conforms, tls } = self.kind;
        let (cert, key) = &self.certificate;
        let options = serde_json::json!({
            "port": self.provider,
            "redirect": format!("{}/oidc/return", self.origin()),
            "secret": secret.then_some(SECRET),
            "algorithm": algorithm,
            "conforms": conforms,
            "tls": tls.then_some(serde_json::json!({ "cert": cert, "key": key })),
        });
        let (port, log) = (self.provider, self.farm.folder().join("provider.log"));
        // It has been seen to run and listen to nobody for minutes, twice in some hundred starts.
        for attempt in 1.. {
            let mut command = Command::new("node");
            command.arg(script("provider.mjs")).arg(options.to_string());
            command.env("TESSERA_PAGE_TOOLS", &self.tools);
            let mut running = self.farm.spawn(command, "provider");
            let deadline = Instant::now() + PROVIDER_STARTS;
            while Instant::now() < deadline {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                assert!(running.is_running(), "the provider has ended: {said}");
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    self.running = Some(running);
                    return;
                }
                std::thread::sleep(Duration::from_millis(30));
            }
            assert!(attempt < 3, "the provider does not start");
            running.kill();
        }
    }

    fn start_farm(&mut self) {
        let mut command = self.farm.coordinator_command();
        command.args(["--http", &format!("127.0.0.1:{}", self.pages)]);
        command.args(["--oidc", &self.issuer(), "--oidc-client-id", "tessera"]);
        command.args(["--oidc-role", "artists=artist", "--oidc-role", "td=operator"]);
        if self.kind.secret {
            command.arg("--oidc-secret-file").arg(self.farm.folder().join("secret"));
        }
        if self.trusts {
            command.env("SSL_CERT_FILE", self.farm.folder().join("trusted.pem"));
        }
        self.farm.run_coordinator(command);
        let pages = self.pages;
        self.farm.wait_for("the pages", |_| TcpStream::connect(("127.0.0.1", pages)).is_ok());
    }

    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.pages)
    }

    fn issuer(&self) -> String {
        let scheme = if self.kind.tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.provider)
    }

    fn command(&self, step: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("node");
        command
            .arg(script("oidc.mjs"))
            .args([step, CHROMIUM, &self.origin(), &self.issuer()])
            .args(arguments)
            .env("NODE_EXTRA_CA_CERTS", self.farm.folder().join("trusted.pem"))
            .env("TESSERA_PAGE_TOOLS", &self.tools);
        command
    }

    /// Runs a step to its end; what it says.
    fn step(&self, step: &str, arguments: &[&str]) -> String {
        let output = self.command(step, arguments).output().expect("node starts");
        let (said, wrong) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let logs = self.farm.logs();
        assert!(output.status.success(), "{step} {arguments:?}: {said}{wrong}\n{logs}");
        said.trim().to_owned()
    }

    /// Begins a step that waits for lines.
    fn begin(&self, step: &str, arguments: &[&str]) -> Waiting {
        let mut command = self.command(step, arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let input = child.stdin.take();
        Waiting { child, input, lines }
    }

    /// Asks the provider to do what tests need.
    fn provider_does(&self, path: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.provider)).expect("a provider");
        let head = format!("GET /test/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it is sent");
        let mut first = String::new();
        BufReader::new(stream).read_line(&mut first).expect("an answer");
        assert!(first.contains("200"), "{first}");
    }

    /// What the audit log has.
    fn audit_log(&self) -> String {
        self.farm.text(&["audit"])
    }
}

/// A step that goes on at each line.
struct Waiting {
    child: Child,
    input: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Waiting {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn go_on(&mut self) {
        self.input.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
    }

    /// Lets it end; true if all was as it should be.
    fn ends_well(mut self) -> bool {
        drop(self.input.take());
        self.child.wait().expect("it ends").success()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page").join(name)
}

// promise: P8
#[test]
fn a_person_signs_in_by_a_provider_and_has_its_groups_role() {
    let Some(place) = Place::start(USUAL) else { return };
    place.step("browser", &["ada"]);
    let tess: serde_json::Value = serde_json::from_str(&place.step("enter", &["tess"])).unwrap();
    assert_eq!((&tess["name"], &tess["role"]), (&"tess".into(), &"operator".into()));
    let again: serde_json::Value = serde_json::from_str(&place.step("enter", &["tess"])).unwrap();
    assert_eq!(again["number"], tess["number"], "it is the same identity");
    let mail: serde_json::Value = serde_json::from_str(&place.step("enter", &["mail"])).unwrap();
    assert_eq!(mail["name"], "mail@studio.example");
    let members = place.farm.text(&["members", "list"]);
    let ada = members.lines().find(|line| line.contains("ada")).expect("ada is a member");
    assert!(ada.contains("artist") && ada.contains("signed in for"), "{members}");
    assert!(place.farm.text(&["members", "list", "--json"]).contains(&place.issuer()));
    let log = place.audit_log();
    assert!(log.contains(r#"as "ada" of"#) && log.contains("for the first time"), "{log}");
}

// promise: P8
#[test]
fn answers_of_no_honest_browser_are_refused() {
    let Some(place) = Place::start(USUAL) else { return };
    place.step("attacks", &[]);
    let log = place.audit_log();
    assert!(log.contains("sign-in refused") && log.contains("belongs to another sign-in"), "{log}");
}

// promise: P8
#[test]
fn people_without_a_role_or_a_free_name_are_told_why() {
    let Some(place) = Place::start(USUAL) else { return };
    place.farm.enrol("artist", "taken");
    let quoted = "&quot;comp&quot;, &quot;&lt;b&gt;roto&lt;/b&gt;&quot;";
    place.step("refuse", &["guest", quoted, "--oidc-role GROUP=ROLE"]);
    place.step("refuse", &["loner", "says nothing of your groups"]);
    place.step("refuse", &["admin", "is reserved here"]);
    place.step("refuse", &["taken", "belongs to taken #", "tessera members remove taken"]);
    let members = place.farm.text(&["members", "list"]);
    assert!(!members.contains("guest") && !members.contains("loner"), "{members}");
    // The other way round: a name of somebody who signs in elsewhere is not enrolled.
    place.step("enter", &["bob"]);
    let token =
        place.farm.text(&["token", "create", "--role", "artist", "--name", "bob", "--replace"]);
    let file = place.farm.folder().join("bob.token");
    std::fs::write(&file, token).unwrap();
    let file = file.to_str().unwrap();
    let enrolled =
        place.farm.run(&["enrol", "--token-file", file, "--name", "bob", "--identity", "bob"]);
    let error = String::from_utf8_lossy(&enrolled.stderr);
    assert!(!enrolled.status.success() && error.contains("who signs in at"), "{error}");
}

// promise: P8
#[test]
fn a_barred_or_removed_person_is_out_at_once() {
    let Some(place) = Place::start(USUAL) else { return };
    let mut bob = place.begin("stay", &["bob"]);
    assert_eq!(bob.line(), "[200,200]");
    let mut stands = |wanted: &str| {
        bob.go_on();
        assert_eq!(bob.line(), wanted);
    };
    place.farm.text(&["deny", "user:bob", "--reason", "left"]);
    stands("[401,401]");
    place.step("refuse", &["bob", "was denied by", "(left)"]);
    place.farm.text(&["allow", "user:bob"]);
    stands("[200,200]");
    // The provider takes the groups away; that is known at the next sign-in.
    place.provider_does("groups/bob/comp");
    stands("[200,200]");
    place.step("refuse", &["bob", "&quot;comp&quot;"]);
    stands("[401,401]");
    place.provider_does("groups/bob/artists");
    let before: serde_json::Value = serde_json::from_str(&place.step("enter", &["bob"])).unwrap();
    stands("[200,200]");
    place.farm.text(&["members", "remove", "bob"]);
    stands("[401,401]");
    assert!(!place.farm.text(&["members", "list"]).contains("bob"));
    place.step("refuse", &["bob", "the name bob was taken away"]);
    // The name is free for others, and the person comes back as somebody else.
    place.farm.text(&["allow", &format!("#{}", before["number"])]);
    let after: serde_json::Value = serde_json::from_str(&place.step("enter", &["bob"])).unwrap();
    assert_ne!(after["number"], before["number"]);
    stands("[401,401]");
    assert!(bob.ends_well());
}

#[test]
fn a_provider_may_be_down_and_come_back() {
    let kind = Kind { algorithm: "ES256", secret: false, conforms: true, tls: false };
    let Some(mut place) = Place::prepare(kind) else { return };
    place.start_farm();
    place.step("down", &[]);
    place.start_provider();
    place.farm.wait_for("the provider to be asked again", |_| {
        place.command("enter", &["ada"]).output().unwrap().status.success()
    });
    let mut late = place.begin("late", &["ada"]);
    assert_eq!(late.line(), "there");
    place.running = None;
    late.go_on();
    assert!(late.ends_well());
}

// promise: P8
#[test]
fn a_token_of_another_key_lets_nobody_in() {
    let kind = Kind { algorithm: "EdDSA", secret: true, conforms: true, tls: false };
    let Some(mut place) = Place::prepare(kind) else { return };
    place.start_provider();
    place.provider_does("keys/first");
    place.start_farm();
    place.step("keys", &[]);
}

// promise: P8
#[test]
fn a_provider_has_a_certificate_that_the_machine_trusts() {
    let kind = Kind { tls: true, ..USUAL };
    let Some(mut place) = Place::prepare(kind) else { return };
    place.start_provider();
    place.trusts = false;
    place.start_farm();
    place.step("down", &[]);
    assert!(place.farm.logs().contains("certificate"), "{}", place.farm.logs());
    assert!(place.farm.stop_coordinator());
    place.trusts = true;
    place.start_farm();
    place.step("enter", &["ada"]);
}
