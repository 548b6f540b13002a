//! An epoch belongs to one unit, also after a restart that forgot to which, and whatever a node
//! says.

use std::time::Duration;
use tessera_core::{Action, Core, Input, Moment, Record, SessionId, Settings, Step};
use tessera_protocol::ids::{JobId, Lease};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{CoordinatorToNode, Join};
use tessera_support::inputs::{self, TILE};
use uuid::Uuid;

const NOW: Moment = Moment(1_000_000);

fn join(number: u64, capacity: u32, running: Vec<Lease>) -> Input {
    inputs::joined(number, Join { running, ..inputs::join(number, capacity) })
}

fn result(number: u64, lease: Lease) -> Input {
    Input::ResultArrived { session: SessionId(number), result: inputs::result(lease, 2) }
}

fn step(core: &mut Core, input: Input) -> Step {
    core.handle(input, NOW);
    let step = core.take_step();
    core.verify().expect("the core stands by its invariants");
    step
}

fn sent(step: &Step) -> Vec<&CoordinatorToNode> {
    let messages = step.actions.iter().filter_map(|action| match action {
        Action::Send { message, .. } => Some(message),
        _ => None,
    });
    messages.collect()
}

/// A coordinator that has given two units to node 1 and started again; the records, and the two
/// leases.
fn restarted() -> (Core, Vec<Record>, [Lease; 2]) {
    let settings = Settings { settle: Duration::ZERO, ..Settings::default() };
    let mut core = Core::new(settings.clone(), NOW);
    let job = JobId(Uuid::from_u128(9));
    let render = RenderSpec { width: 4 * TILE, ..inputs::render() };
    let mut records = step(&mut core, inputs::submit(job, inputs::job(render))).records;
    let given = step(&mut core, join(1, 2, Vec::new()));
    records.extend(given.records.clone());
    let work = sent(&given).into_iter().find_map(|message| match message {
        CoordinatorToNode::Work(work) => Some([work[0].lease(), work[1].lease()]),
        _ => None,
    });
    let core = Core::replay(settings, [], records.clone(), NOW).expect("a journal of its own");
    (core, records, work.expect("a node that joins gets work"))
}

// promise: P7
#[test]
fn a_forged_epoch_does_not_displace_a_lease() {
    let (mut core, _, [first, second]) = restarted();
    step(&mut core, join(1, 0, vec![first]));
    let lie = Lease { epoch: first.epoch, ..second };
    let answer = step(&mut core, join(2, 0, vec![lie]));
    assert_eq!(sent(&answer), [&CoordinatorToNode::Revoke { leases: vec![lie] }]);
    let node = inputs::node(1);
    assert_eq!(core.leases().collect::<Vec<_>>(), [(first, node)]);
}

// promise: P2, P7
#[test]
fn an_epoch_commits_one_unit() {
    let (mut core, mut records, [first, second]) = restarted();
    step(&mut core, join(1, 0, Vec::new()));
    step(&mut core, join(2, 0, Vec::new()));
    records.extend(step(&mut core, result(1, first)).records);
    let lie = Lease { epoch: first.epoch, ..second };
    let answer = step(&mut core, result(2, lie));
    assert_eq!(sent(&answer), [&CoordinatorToNode::Unwanted { lease: lie }]);
    records.extend(answer.records);
    records.extend(step(&mut core, result(1, second)).records);
    let report = Core::audit([], records);
    assert_eq!((report.units_committed, report.problems), (2, Vec::new()));
}
