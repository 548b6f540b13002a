//! What is read of a module.

use crate::FEATURES;
use tessera_ptx::{Module, Space, whitelist};

#[test]
fn a_module_lists_its_kernels_and_variables() {
    let module = Module::parse(FEATURES).expect("the compiler's own text");
    assert_eq!(module.version(), (9, 5));
    assert_eq!(module.target(), "sm_75");
    let calls = module.kernel("calls").expect("the source has it");
    assert_eq!((calls.parameter_bytes, calls.threads_max), (40, 64));
    assert_eq!(
        (calls.parameters[0].offset, calls.parameters[0].bytes, calls.parameters[0].align),
        (0, 40, 8)
    );
    let exposure =
        module.variables().iter().find(|variable| variable.name == "exposure").expect("declared");
    assert_eq!((exposure.space, exposure.bytes, exposure.align), (Space::Const, 4, 4));
    assert!(module.unsupported().is_empty(), "{:?}", module.unsupported());
}

#[test]
fn old_and_new_versions_are_read() {
    for version in ["6.3", "7.0", "8.8", "9.5"] {
        let text = format!(
            ".version {version}\n.target sm_75, debug\n.address_size 64\n.visible .entry k()\n{{ \
                ret; }}"
        );
        assert_eq!(Module::parse(&text).expect(version).kernels().len(), 1);
    }
}

#[test]
fn errors_name_the_line() {
    let wrong = [
        ("", 1, "this is not PTX"),
        (".version 7.0\n.target sm_75\n.address_size 32\n", 3, "64-bit"),
        (".version 7.0\n\n.entry k()\n{\n  add.s32 %r1, %r2, 1;\n}", 5, "not declared"),
        (".version 7.0\n.entry k()\n{\n  bra nowhere;\n}", 4, "no label"),
        (".version 7.0\n.entry k()\n{\n ret;\n", 4, "no end"),
        (".version 7.0\n.entry k()\n{\n .reg .b32 %r<2>;\n mov.u32 %r1, 9z;\n}", 5, "no number"),
        (".version 7.0\n.global .align 3 .b8 x[4];", 2, "power of two"),
        (".version 7.0\n.global .b8 x[4] = {1,2,3,4,5};", 2, "more values than room"),
        (".version 7.0\n.entry k() { ret; }\n.entry k() { ret; }", 3, "twice"),
    ];
    for (text, line, what) in wrong {
        let error = Module::parse(text).expect_err(text);
        assert!(error.line == line && error.what.contains(what), "{text:?}: {error}");
    }
}

#[test]
fn what_is_not_modelled_is_listed_and_violates_the_whitelist() {
    let text = ".version 7.0\n.target sm_75\n.entry k()\n{ .reg .f32 %f<4>; .reg .b32 %r<2>;\n\
        tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f1}, [t, {%f1, %f2}];\n  activemask.b32 %r1;\n ret; }";
    let unsupported = Module::parse(text).expect("it is PTX").unsupported();
    assert_eq!(unsupported.iter().map(|found| found.line).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(whitelist::check(text).iter().map(|found| found.line).collect::<Vec<_>>(), [5, 6]);
}

#[test]
fn a_kernel_whose_threads_work_together_says_where() {
    let exchange = |text: &str| {
        let module = Module::parse(text).expect(text);
        module.kernel("k").expect("it is there").exchange.clone()
    };
    let kernel = |instruction: &str| {
        exchange(&format!(
            ".version 7.0\n.target sm_75\n.address_size 64\n.shared .b32 s;\n.entry k()\n{{\n\
                .reg .b32 %r<4>; .reg .pred %p<2>; .reg .b64 %rd<2>;\n{instruction}\nret;\n}}"
        ))
    };
    for together in [
        "bar.sync 0;",
        "@%p1 bar.red.popc.u32 %r1, 0, %p1;",
        "bar.warp.sync 0xffffffff;",
        "barrier.cta.sync.aligned 0;",
        "barrier.cluster.arrive;",
        "shfl.sync.down.b32 %r1, %r2, 1, 31, -1;",
        "vote.sync.ballot.b32 %r1, %p1, -1;",
        "match.any.sync.b32 %r1, %r2, -1;",
        "redux.sync.add.s32 %r1, %r2, -1;",
        "atom.shared.add.u32 %r1, [s], 1;",
        "red.shared::cta.add.u32 [s], 1;",
        "ld.volatile.shared.u32 %r1, [s];",
    ] {
        let name = together.trim_start_matches("@%p1 ").split([' ', ';']).next();
        assert_eq!(kernel(together).as_deref(), name, "{together}");
    }
    for alone in [
        "st.shared.u32 [s], 1;",
        "ld.shared.u32 %r1, [s];",
        "atom.global.add.u32 %r1, [%rd1], 1;",
        "membar.cta;",
        "activemask.b32 %r1;",
    ] {
        assert_eq!(kernel(alone), None, "{alone}");
    }

    // In what is called, by its name or by its address, and in nothing else.
    let calling = |call: &str| {
        exchange(&format!(
            ".version 7.0\n.target sm_75\n.address_size 64\n.func one()\n\
                {{\nbar.sync 0;\nret;\n}}\n.func two()\n{{\ncall one;\nret;\n}}\n.entry k()\n\
                {{\n.reg .b64 %rd<2>;\n{call}\nret;\n}}\n.entry other()\n{{\nbar.sync 0;\n\
                ret;\n}}"
        ))
    };
    assert_eq!(calling(""), None);
    assert_eq!(calling("call two;").as_deref(), Some("bar.sync"));
    assert_eq!(calling("call %rd1, (), proto;").as_deref(), Some("bar.sync"));
}
