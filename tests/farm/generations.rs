//! Two coordinators of one farm: a backup is restored while the original one goes on. A node that
//! has worked for the restored one refuses the original, and both say so, until it takes over.

use std::net::{Ipv4Addr, UdpSocket};
use tessera_support::farm::Farm;

fn log_of(farm: &Farm, name: &str) -> String {
    std::fs::read_to_string(farm.folder().join(format!("{name}.log"))).unwrap_or_default()
}

fn free_address() -> String {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.local_addr().expect("a bound socket has an address").to_string()
}

fn is_ready(farm: &Farm) -> bool {
    let nodes: serde_json::Value =
        serde_json::from_str(&farm.text(&["nodes", "--json"])).expect("JSON");
    nodes[0]["state"] == "ready"
}

// promise: P8
#[test]
fn nodes_notice_an_older_coordinator_of_their_farm() {
    const SAID: &str = "two coordinators of one farm run";
    let mut farm = Farm::start(1, 1);
    farm.wait_for("the node", is_ready);
    let (file, restored) = (farm.folder().join("backup"), farm.folder().join("restored"));
    let [data, file, restored] =
        [&farm.data(), &file, &restored].map(|path| path.to_str().expect("UTF-8").to_owned());
    farm.text(&["backup", "-o", &file, "--data", &data]);
    farm.text(&["restore", &file, "--data", &restored]);
    let address = free_address();
    let command = farm.command(&["coordinator", "--data", &restored, "--listen", &address]);
    let second = farm.spawn(command, "restored");
    farm.wait_for("the second coordinator", |farm| {
        log_of(farm, "restored").contains("coordinator listens")
    });
    farm.kill_node(0);
    let mut command = farm.node_command(0);
    command.env("TESSERA_COORDINATOR", &address);
    let moved = farm.spawn(command, "moved");
    farm.wait_for("the node to move", |farm| log_of(farm, "moved").contains("connected"));
    drop(moved);

    // Both go on, and the node comes back to the original one.
    farm.start_node(0);
    farm.wait_for("the node to notice", |farm| log_of(farm, "node-0").contains(SAID));
    farm.wait_for("the coordinator to hear it", |farm| log_of(farm, "coordinator").contains(SAID));
    farm.wait_for("the node to be missed", |farm| !is_ready(farm));
    drop(second);
    farm.kill_node(0);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    let mut command = farm.coordinator_command();
    command.arg("--take-over");
    farm.run_coordinator(command);
    farm.start_node(0);
    farm.wait_for("the node to work again", is_ready);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
}
