//! Two hosts whose networks are the kernel's own: namespaces of Linux with a cable between them.
//! Unlike `fault_proxy`, what goes wrong is told to the processes: a route that is gone, an address
//! that is, a packet that is too long. Needs no rights where users may have namespaces, and `ip`
//! and `nsenter`.

use crate::farm::network::{audit, node, told, undisturbed};
use std::io::BufRead;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tessera_support::farm::{Farm, Host, library, skipped};

/// A frame of units short beside the faults.
const PICTURE: [&str; 6] = ["--size", "128x128", "--spp", "256", "--tile", "32"];
const SERVER: &str = "10.79.0.1";
const NODE: &str = "10.79.0.2";
const MOVED: &str = "10.79.0.3";

/// A network of its own, for as long as this lives.
struct Network(Child);

impl Network {
    /// None where this machine lets nobody have one.
    fn new(mut command: Command) -> Option<Network> {
        // It says that it is there, and ends with its standard input.
        command.args(["sh", "-c", "echo up; cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().ok()?;
        let mut line = String::new();
        let said = std::io::BufReader::new(child.stdout.take()?).read_line(&mut line);
        let network = Network(child);
        (said.is_ok() && line == "up\n").then_some(network)
    }

    fn host(&self) -> Host {
        let of = self.0.id().to_string();
        let words = ["nsenter", "--target", &of, "--user", "--preserve-credentials", "--net", "--"];
        Host(words.iter().map(Into::into).collect())
    }

    /// Runs `ip` in it.
    fn ip(&self, words: &str) -> bool {
        let output = self.host().command("ip").args(words.split(' ')).output().expect("ip runs");
        let error = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            println!("ip {words}: {error}");
        }
        output.status.success()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two hosts, and nothing else on their network.
struct Hosts {
    server: Network,
    node: Network,
}

impl Hosts {
    fn new() -> Option<Hosts> {
        let mut outer = Command::new("unshare");
        outer.args(["--user", "--map-root-user", "--net", "--"]);
        let server = Network::new(outer)?;
        let mut inner = server.host().command("unshare");
        inner.args(["--net", "--"]);
        let node = Network::new(inner)?;
        let hosts = Hosts { server, node };
        let both = [&hosts.server, &hosts.node];
        (both.iter().all(|host| host.ip("link set lo up")) && hosts.lay()).then_some(hosts)
    }

    /// Lays the cable, and gives both ends their addresses.
    fn lay(&self) -> bool {
        let end = self.node.0.id();
        self.server.ip(&format!("link add name cable type veth peer name cable netns {end}"))
            && self.server.ip(&format!("address add {SERVER}/24 dev cable"))
            && self.node.ip(&format!("address add {NODE}/24 dev cable"))
            && [&self.server, &self.node].iter().all(|host| host.ip("link set cable up"))
    }
}

fn state(farm: &Farm, name: &str) -> String {
    node(farm, name)["state"].as_str().unwrap_or_default().to_owned()
}

/// Two more units are committed from now.
fn wait_for_progress(farm: &Farm, job: &str, when: &str) {
    let before = farm.units_committed(job);
    farm.wait_for(&format!("progress {when}"), |farm| farm.units_committed(job) >= before + 2);
}

// promise: P4, P5
#[test]
fn a_network_link_lost_and_restored_changes_no_bit() {
    let Some(hosts) = Hosts::new() else {
        return skipped(
            "NOT RUN: two hosts in namespaces: this machine lets users have none, or has no `ip`",
        );
    };
    let address: SocketAddr = format!("{SERVER}:7300").parse().expect("an address");
    let mut farm = Farm::prepare_on(hosts.server.host(), address);
    farm.start_coordinator();
    farm.add_node_on(hosts.node.host(), "far");
    farm.wait_for("the node", |farm| state(farm, "far") == "ready");
    let scene = library("cornell-box.gltf");
    let want = undisturbed(&PICTURE);
    let job = farm.submit(&scene, &[&PICTURE[..], &["--unit-samples", "16"]].concat());
    wait_for_progress(&farm, &job, "to begin with");

    // Sending is an error now, not silence.
    assert!(hosts.node.ip("link set cable down"));
    farm.wait_for("the loss of the node", |farm| state(farm, "far") == "lost");
    assert!(hosts.node.ip("link set cable up"));
    farm.wait_for("the node's return", |farm| state(farm, "far") == "ready");
    wait_for_progress(&farm, &job, "after the cable was out");

    // The address that the connection was made from is nobody's.
    assert!(hosts.node.ip(&format!("address del {NODE}/24 dev cable")));
    assert!(hosts.node.ip(&format!("address add {MOVED}/24 dev cable")));
    wait_for_progress(&farm, &job, "from another address");

    // The least that IPv4's senders have to allow for, far below what the connection has found to
    // pass.
    assert!(hosts.node.ip("link set cable mtu 1280"));
    assert!(hosts.server.ip("link set cable mtu 1280"));
    wait_for_progress(&farm, &job, "by short packets");

    // The coordinator's own address goes, with the interface; later there is another of the name.
    assert!(hosts.server.ip("link delete cable"));
    std::thread::sleep(Duration::from_secs(2));
    assert!(hosts.lay());
    assert_eq!(farm.hashes(&job), [want], "{}", farm.logs());

    let summary = told(&farm, &["job", &job, "--json"]);
    assert_eq!(summary["summary"]["units_committed"], summary["summary"]["units"], "{summary}");
    assert!(farm.drain_node(0), "the node did not end by itself\n{}", farm.logs());
    audit(farm);
}
