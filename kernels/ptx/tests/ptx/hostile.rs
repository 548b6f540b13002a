//! Text from strangers: reading it ends in a module or in an error, and running what was read in an
//! end or in a fault.

use std::sync::Arc;

use crate::{FEATURES, numbers};
use tessera_ptx::{Limits, Machine, Module, Settings, whitelist};

/// Reads, and runs every kernel a little.
fn survive(text: &str) {
    whitelist::check(text);
    let Ok(module) = Module::parse(text) else { return };
    let module = Arc::new(module);
    let settings =
        Settings { memory_bytes: 1 << 20, doubles: true, approximate: true, ..Settings::default() };
    let mut machine = Machine::new(settings);
    let Ok(loaded) = machine.load(&module) else { return };
    for kernel in module.kernels() {
        let at = machine.allocate(4096).unwrap_or_default();
        let parameters: Vec<u8> =
            at.to_le_bytes().into_iter().cycle().take(kernel.parameter_bytes as usize).collect();
        let limits = Limits { steps: 20_000, ..Limits::default() };
        let _ =
            machine.launch(&loaded, &kernel.name, [1, 1, 1], [2, 1, 1], 64, &parameters, &limits);
    }
}

#[test]
fn damaged_text_never_panics() {
    let lines: Vec<&str> = FEATURES.lines().collect();
    let choices = numbers(4 * 400);
    for choice in choices.chunks(4) {
        let mut damaged: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let (at, other) = (choice[0] as usize % lines.len(), choice[1] as usize % lines.len());
        match choice[2] % 5 {
            0 => damaged[at].clear(),
            1 => damaged[at] = lines[other].to_owned(),
            2 => damaged.truncate(at),
            3 => {
                damaged[at] = damaged[at]
                    .replace(['%', ',', '[', '{'], ["", ";", "]", "-"][choice[3] as usize % 4])
            }
            _ => damaged[at] = damaged[at].replace(|c: char| c.is_ascii_digit(), "9"),
        }
        survive(&damaged.join("\n"));
    }
}

#[test]
fn greedy_and_endless_text_is_bounded() {
    let kernel = |body: &str| format!(".version 7.0\n.target sm_75\n.entry k()\n{{\n{body}\n}}");
    let bodies = [
        ".reg .b32 %r<4000000000>; mov.u32 %r3999999999, 1;".to_owned(),
        ".local .align 8 .b8 x[4000000000];".to_owned(),
        ".shared .align 8 .b8 x[4000000000];".to_owned(),
        "{".repeat(100_000),
        "a: bra a;".to_owned(),
        ".reg .b64 %d<2>; mov.u64 %d1, 0; ld.local.u64 %d1, [%d1+-8];".to_owned(),
        ".reg .pred %p<2>; @%p1 @%p1 bra x;".to_owned(),
        ".reg .b32 %r<2>; brx.idx %r1, t; t: .branchtargets;".to_owned(),
        ".reg .b32 %r<2>; mov.b32 {%r1, %r1}, %r1; bfe.u32 %r1, %r1, %r1, %r1; shl.b32 %r1, %r1, \
            4294967295;"
            .to_owned(),
        "call k;".to_owned(),
        "bar.sync 0; bar.warp.sync 0;".to_owned(),
    ];
    bodies.iter().for_each(|body| survive(&kernel(body)));
    survive(".version 7.0\n.global .b8 x[17179869184];\n.entry k() { ret; }");
    survive(".version 7.0\n.func f()\n{ call f; ret; }\n.entry k()\n{ call f; ret; }");
    survive(".version 7.0 .entry k(.param .align 16 .b8 p[100000]) { ret; }");
    survive("\"/* \u{e4} .version");
    survive(&format!(".version 7.0 .global .u32 x = {};", "{".repeat(100_000)));
}
