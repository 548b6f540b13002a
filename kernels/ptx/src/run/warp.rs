//! Operations of a warp: shuffles, votes, its own barrier. All threads that an operation names take
//! part at once.

use super::Launch;
use super::block::Status;
use super::thread::Thread;
use crate::instruction::{Function, Instruction, Op, SLOT_SINK, warp};

/// What a lane gets that reads from one which takes no part.
const NOBODY: u64 = 0xCDCD_CDCD;

/// Performs one operation whose threads have all arrived. False where there is none.
pub(super) fn operate(launch: &Launch<'_>, lanes: &mut [Thread], status: &mut [Status]) -> bool {
    for first in 0..lanes.len() {
        if status[first] != Status::Waiting {
            continue;
        }
        let Some((function, instruction)) = lanes[first].waiting_at(launch) else { continue };
        if instruction.op == Op::Barrier {
            continue;
        }
        let place = lanes[first].place();
        let named = lanes[first].get(instruction.b);
        let members: Vec<usize> = (0..lanes.len())
            .filter(|lane| (named >> lane) & 1 == 1 && status[*lane] != Status::Done)
            .collect();
        let arrived = |lane: &usize| {
            status[*lane] == Status::Waiting
                && lanes[*lane].place() == place
                && lanes[*lane].get(instruction.b) == named
        };
        if members.contains(&first) && members.iter().all(arrived) {
            perform(function, instruction, lanes, &members);
            members.iter().for_each(|lane| status[*lane] = Status::Ready);
            return true;
        }
    }
    false
}

fn perform(function: &Function, i: &Instruction, lanes: &mut [Thread], members: &[usize]) {
    match i.op {
        Op::Shuffle => shuffle(function, i, lanes, members),
        Op::Vote => vote(i, lanes, members),
        _ => {}
    }
}

/// The rules of `shfl.sync` in the PTX manual, 9.7.9.
fn shuffle(function: &Function, i: &Instruction, lanes: &mut [Thread], members: &[usize]) {
    let [found, lane, clamp] = [0, 1, 2].map(|at| function.lists[i.c as usize + at]);
    let values: Vec<u64> = lanes.iter().map(|thread| thread.get(i.a)).collect();
    for at in members {
        let (own, b, c) = (*at as u64, lanes[*at].get(lane) & 31, lanes[*at].get(clamp));
        let (limit, segment) = (c & 31, (c >> 8) & 31);
        let last = (own & segment) | (limit & !segment);
        let first = own & segment;
        // Below lane 0 is below every limit: compared as signed numbers.
        let (from, is_found) = match i.flags {
            warp::UP => (own as i64 - b as i64, own as i64 - b as i64 >= last as i64),
            warp::DOWN => ((own + b) as i64, own + b <= last),
            warp::BUTTERFLY => ((own ^ b) as i64, own ^ b <= last),
            _ => ((first | (b & !segment)) as i64, first | (b & !segment) <= last),
        };
        let from = if is_found { from as usize } else { *at };
        let value = if members.contains(&from) { values[from] } else { NOBODY };
        lanes[*at].set(i.d, value);
        if found != SLOT_SINK {
            lanes[*at].set(found, u64::from(is_found));
        }
    }
}

fn vote(i: &Instruction, lanes: &mut [Thread], members: &[usize]) {
    let votes: Vec<bool> = members.iter().map(|lane| lanes[*lane].get(i.a) & 1 == 1).collect();
    let (all, any) = (votes.iter().all(|vote| *vote), votes.iter().any(|vote| *vote));
    let value = match i.flags {
        warp::ALL => u64::from(all),
        warp::ANY => u64::from(any),
        warp::UNIFORM => u64::from(all || !any),
        _ => members
            .iter()
            .zip(&votes)
            .fold(0, |ballot, (lane, vote)| ballot | (u64::from(*vote) << lane)),
    };
    members.iter().for_each(|lane| lanes[*lane].set(i.d, value));
}
