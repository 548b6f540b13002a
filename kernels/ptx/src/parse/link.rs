//! Calls find their functions, and kernels learn whether their threads wait for each other or work
//! together.

use std::collections::HashMap;

use crate::ParseError;
use crate::instruction::{Function, Op};

/// Resolves every call.
///
/// # Errors
/// [`ParseError`] where a call passes or expects other sizes than its function has.
pub(crate) fn link(functions: &mut [Function]) -> Result<(), ParseError> {
    let names: HashMap<String, u32> = functions.iter().map(|f| f.name.clone()).zip(0..).collect();
    let shapes: Vec<(Vec<u32>, Vec<u32>)> = functions.iter().map(shape).collect();
    for call in functions.iter_mut().flat_map(|function| &mut function.calls) {
        call.callee = names.get(&call.name).copied();
        let Some((parameters, results)) =
            call.callee.and_then(|callee| shapes.get(callee as usize))
        else {
            continue;
        };
        let passes = call.arguments.iter().map(|place| place.bytes);
        let expects = call.results.iter().map(|place| place.bytes);
        if !passes.eq(parameters.iter().copied()) || !expects.eq(results.iter().copied()) {
            let what = format!("call of `{}` with other parameters than it has", call.name);
            return Err(ParseError::new(call.line, what));
        }
    }
    spread_waiting(functions);
    spread_exchanges(functions);
    Ok(())
}

fn shape(function: &Function) -> (Vec<u32>, Vec<u32>) {
    let bytes =
        |places: &[crate::instruction::Place]| places.iter().map(|place| place.bytes).collect();
    (bytes(&function.parameters), bytes(&function.results))
}

/// A function waits if one of its instructions does, or one that it calls: repeated until nothing
/// changes.
fn spread_waiting(functions: &mut [Function]) {
    for function in functions.iter_mut() {
        let waits = |op| matches!(op, Op::Barrier | Op::WarpBarrier | Op::Shuffle | Op::Vote);
        function.is_cooperative = function.code.iter().any(|instruction| waits(instruction.op));
    }
    loop {
        let waiting: Vec<bool> = functions.iter().map(|function| function.is_cooperative).collect();
        let mut changed = false;
        for function in functions.iter_mut().filter(|function| !function.is_cooperative) {
            let mut callees = function.calls.iter().filter_map(|call| call.callee);
            function.is_cooperative = callees.any(|callee| waiting[callee as usize]);
            changed |= function.is_cooperative;
        }
        if !changed {
            return;
        }
    }
}

/// A function has the exchanges of those that it calls; of any, where it calls by an address:
/// repeated until nothing changes.
fn spread_exchanges(functions: &mut [Function]) {
    loop {
        let found: Vec<Option<String>> = functions.iter().map(|f| f.exchange.clone()).collect();
        let any = found.iter().flatten().next();
        let mut changed = false;
        for function in functions.iter_mut().filter(|function| function.exchange.is_none()) {
            let mut callees = function.calls.iter().filter_map(|call| call.callee);
            let called = callees.find_map(|callee| found[callee as usize].as_ref());
            function.exchange = called.or(any.filter(|_| function.calls_pointers)).cloned();
            changed |= function.exchange.is_some();
        }
        if !changed {
            return;
        }
    }
}
