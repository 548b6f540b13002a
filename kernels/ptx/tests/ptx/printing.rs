//! `printf` and `assert` of kernels: `data/printing.cu`, compiled.

use crate::{Rig, parameters};
use tessera_ptx::{Cause, Settings};

const PRINTING: &str = include_str!("data/printing.ptx");

fn rig() -> Rig {
    Rig::of(PRINTING, Settings { doubles: true, ..Settings::default() })
}

fn printed(rig: &mut Rig) -> String {
    String::from_utf8(rig.machine.take_printed()).expect("a text")
}

#[test]
fn numbers_are_written_as_c_writes_them() {
    let mut rig = rig();
    let real = std::f64::consts::PI.to_bits();
    let given = parameters(&[(42, 8), (real, 8)]);
    rig.run("numbers", [1, 1, 1], [32, 1, 1], &given).expect("an end");
    // What C's own `printf` makes of the same.
    let right = "\
        -42    42|42   |00042 +42  42 4294967295 ff 0XFF 10\n\
        -1099511627776 18446744073709551615 -3 16\n\
        3.141593 3.14      3.142|3.1     |00003.14 3.141593e+00 3.142E+00 3.14159 1e-07 1e+10\n\
        text te ok %        a|b       |   7 0.2 %q\n";
    assert_eq!(printed(&mut rig), right);
    assert_eq!(printed(&mut rig), "", "it was taken");
}

#[test]
fn every_thread_prints_and_hears_how_much() {
    let mut rig = rig();
    let at = rig.words(&[0; 3]);
    rig.run("each", [1, 1, 1], [3, 1, 1], &parameters(&[(at, 8)])).expect("an end");
    assert_eq!(printed(&mut rig), "0 of 3\n1 of 3\n2 of 3\n");
    assert_eq!(rig.read(at, 3), [2; 3]);
}

#[test]
fn the_newest_text_of_much_is_kept() {
    let mut rig = rig();
    rig.run("endless", [1, 1, 1], [1, 1, 1], &parameters(&[(50_000, 4)])).expect("an end");
    let text = printed(&mut rig);
    assert!(text.len() <= 1 << 20 && text.len() > 1 << 19, "{}", text.len());
    assert!(text.ends_with("line    49999 of an endless text, which nobody wants\n"));
}

#[test]
fn a_format_outside_of_memory_faults() {
    let mut rig = rig();
    let fault = rig.run("wild", [1, 1, 1], [1, 1, 1], &parameters(&[(1 << 50, 8)]));
    let cause = fault.expect_err("a fault").cause();
    assert_eq!(cause, Some(Cause::OutOfBounds { address: 1 << 50, bytes: 1 }));
}

#[test]
fn an_assertion_says_where_and_which() {
    let mut rig = rig();
    rig.run("asserts", [1, 1, 1], [4, 1, 1], &parameters(&[(4, 4)])).expect("it holds");
    assert_eq!(rig.machine.take_assertion(), None);
    let fault = rig.run("asserts", [1, 1, 1], [4, 1, 1], &parameters(&[(2, 4)]));
    assert_eq!(fault.expect_err("a fault").cause(), Some(Cause::Asserted));
    let text = "printing.cu:33: void asserts(int): block: [0,0,0], thread: [2,0,0] \
                Assertion `(int)threadIdx.x < most` failed.";
    assert_eq!(rig.machine.take_assertion().as_deref(), Some(text));
}
