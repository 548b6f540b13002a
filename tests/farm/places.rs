//! A farm whose coordinator goes to another place: nodes and commands that know both follow it.

use super::store::utf8;
use std::net::Ipv4Addr;
use std::process::Command;
use tessera_support::farm::{Farm, library};
use tessera_support::ports;

/// A job of a second or two on one thread, in 48 units.
const OPTIONS: [&str; 8] = ["--size", "256x192", "--spp", "48", "--tile", "32", "--format", "exr"];

/// A command that knows both places.
fn anywhere(farm: &Farm, both: &str, arguments: &[&str]) -> Command {
    let mut command = farm.command(arguments);
    command.env("TESSERA_COORDINATOR", both);
    command
}

// promise: P1
#[test]
fn nodes_and_commands_follow_the_coordinator_to_another_place() {
    let scene = library("cornell-box.gltf");
    let mut farm = Farm::prepare();
    let other = ports::udp(Ipv4Addr::LOCALHOST.into()).to_string();
    let both = format!("{},{other}", farm.address());
    farm.start_coordinator();
    let places = vec![
        ("TESSERA_DEVICE".into(), "cpu".into()),
        ("TESSERA_COORDINATOR".into(), both.clone().into()),
    ];
    farm.add_node_with("node-0", &["--threads", "1"], places);
    let want = {
        let undisturbed = farm.submit(&scene, &OPTIONS);
        farm.hashes(&undisturbed)
    };
    let open = farm.submit(&scene, &OPTIONS);
    let mut watch = farm.spawn(anywhere(&farm, &both, &["watch", &open]), "watch");
    farm.wait_for("some commits", |farm| farm.units_committed(&open) >= 5);
    farm.kill_coordinator();
    let said = anywhere(&farm, &both, &["jobs"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let [here, there] =
        [farm.address(), other.clone()].map(|at| format!("nothing listens at `{at}`"));
    assert!(said.contains(&here) && said.contains(&there), "{said}");
    assert!(said.contains("start a coordinator"), "{said}");
    let data = farm.data();
    let second = ["coordinator", "--data", utf8(&data), "--listen", &other];
    let mut second = farm.spawn(farm.command(&second), "second");
    assert_eq!(watch.wait(), Some(0), "{}", farm.logs());
    assert!(second.terminate(), "{}", farm.logs());
    // And back to the first place.
    farm.start_coordinator();
    assert_eq!(farm.hashes(&open), want, "{}", farm.logs());
    let after = farm.submit(&scene, &OPTIONS);
    assert_eq!(farm.hashes(&after), want, "{}", farm.logs());
}
