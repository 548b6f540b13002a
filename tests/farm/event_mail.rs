//! Mails out of a real farm, through a real server (aiosmtpd) on loopback: gathered, in the clear
//! and over TLS, and again once a server that was down is back.

use super::events::{start, submit};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tessera_support::farm::{Farm, Process, skipped};

/// A mail server that prints what it takes into a file of the farm's folder. It ends with this
/// value.
struct MailServer {
    program: PathBuf,
    address: String,
    running: Option<Process>,
}

impl MailServer {
    /// A server that is yet to be started, at a free port; None where it is not installed.
    fn prepare(what: &str) -> Option<Self> {
        let named = std::env::var_os("TESSERA_SMTP").map(PathBuf::from);
        let Some(program) = named.filter(|program| program.is_file()) else {
            skipped(&format!("{what}: aiosmtpd is not installed (TESSERA_SMTP)"));
            return None;
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        Some(Self { program, address, running: None })
    }

    fn port(&self) -> &str {
        self.address.rsplit_once(':').expect("a port").1
    }

    fn run(&mut self, farm: &Farm, options: &[&str]) {
        let mut command = Command::new(&self.program);
        command.args(["-n", "-l", &self.address]).args(options);
        command.args(["-c", "aiosmtpd.handlers.Debugging", "stderr"]);
        command.env("PYTHONUNBUFFERED", "1").stdin(Stdio::null());
        self.running = Some(farm.spawn(command, "mails"));
        farm.wait_for("the mail server", |_| TcpStream::connect(&self.address).is_ok());
    }
}

/// The mails that came, each as its text.
fn mails(farm: &Farm) -> Vec<String> {
    let text = std::fs::read_to_string(farm.folder().join("mails.log")).unwrap_or_default();
    let text = text.split("MESSAGE FOLLOWS ----------").skip(1);
    text.filter_map(|part| Some(part.split_once("------------ END MESSAGE")?.0.to_owned()))
        .collect()
}

/// A file of events with one recipient.
fn file(server: &str, tls: &str) -> String {
    format!(
        "[mail]\nserver = '{server}'\ntls = '{tls}'\nfrom = 'Tessera <farm@example.org>'\n\
         gather-secs = 4\n[[mail.to]]\nname = 'ada'\nto = ['Ada <ada@example.org>']\n\
         events = ['done', 'cancelled']\n"
    )
}

#[test]
fn events_of_a_while_come_as_one_mail_once_the_server_is_there() {
    let Some(mut server) = MailServer::prepare("mails through a real server") else { return };
    let mut farm = Farm::prepare();
    start(&mut farm, &file(&server.address, "none"), &[]);
    farm.add_node("node-0", 1);
    let names: Vec<String> = (0..5).map(|at| format!("shot-{at}")).collect();
    let jobs: Vec<String> = names.iter().map(|name| submit(&farm, name, &[])).collect();
    jobs.iter().for_each(|job| drop(farm.text(&["wait", job])));
    farm.wait_for("a first attempt to fail", |farm| {
        let log = std::fs::read_to_string(farm.folder().join("coordinator.log"));
        log.is_ok_and(|log| log.contains("events are not delivered") && log.contains("ada"))
    });
    server.run(&farm, &[]);
    farm.wait_for("all events in mails", |farm| {
        let mails = mails(farm).concat();
        jobs.iter().all(|job| mails.contains(job.as_str()))
    });
    let all = mails(&farm);
    println!("{} mails for {} jobs", all.len(), jobs.len());
    assert!(all.len() <= 2, "{} mails for {} jobs: {all:#?}", all.len(), jobs.len());
    for (job, name) in jobs.iter().zip(&names) {
        assert_eq!(all.iter().filter(|mail| mail.contains(job.as_str())).count(), 1, "once");
        assert!(all.concat().contains(&format!("done: job {name} of admin")), "{all:#?}");
    }
    let mail = &all[0];
    for line in ["From: Tessera <farm@example.org>", "To: Ada <ada@example.org>", "Auto-Submitted"]
    {
        assert!(mail.contains(line), "{line}\n{mail}");
    }
    assert!(mail.contains("Subject: [tessera] "), "{mail}");
    farm.text(&["events", "test", "ada"]);
    farm.wait_for("the test", |farm| mails(farm).concat().contains("mails of this farm arrive"));
}

#[test]
fn mails_go_over_tls_to_a_server_that_is_known() {
    for tls in ["starttls", "tls"] {
        let Some(mut server) = MailServer::prepare("mails over TLS") else { return };
        let mut farm = Farm::prepare();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.expect("a certificate");
        let [certificate, key, none] =
            ["server.pem", "server.key", "none"].map(|name| farm.folder().join(name));
        std::fs::write(&certificate, made.cert.pem()).expect("a file");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
        std::fs::create_dir(&none).expect("an empty folder");
        let [certificate, key] = [&certificate, &key].map(|path| path.to_str().expect("a path"));
        match tls {
            "tls" => server.run(&farm, &["--smtpscert", certificate, "--smtpskey", key]),
            _ => server.run(&farm, &["--tlscert", certificate, "--tlskey", key]),
        }
        start(&mut farm, &file(&format!("localhost:{}", server.port()), tls), &[]);
        // Nobody whom this machine trusts has signed for the server.
        let output = farm.run(&["events", "test", "ada"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("certificate"), "{said}");
        assert!(farm.stop_coordinator(), "{}", farm.logs());
        let mut command = farm.coordinator_command();
        command.args(["--events", "events.toml"]).env("SSL_CERT_FILE", certificate);
        farm.run_coordinator(command);
        farm.wait_for("a mail over TLS", |farm| {
            farm.run(&["events", "test", "ada"]).status.success()
        });
        assert!(mails(&farm).concat().contains("Subject: [tessera] a test"), "{tls}");
    }
}
