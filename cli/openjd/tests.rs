//! Documents that become jobs, and jobs that become documents.

use super::*;
use crate::args::chosen::OptionValue;
use crate::template::Work;
use std::path::PathBuf;

const HEAD: &str = "specificationVersion: jobtemplate-2023-09\nname: A Shot\n";

fn planned(text: &str, set: &[&str]) -> Result<Plan, String> {
    let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
    plan(&format!("{HEAD}{text}"), &PathBuf::from("/shots/shot.yaml"), None, &set)
        .map_err(|error| error.to_string())
}

fn option<'a>(job: &'a Planned, name: &str) -> Option<&'a OptionValue> {
    job.options.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn text(of: &str) -> OptionValue {
    OptionValue::Text(of.to_owned())
}

/// A film of which each frame is a task, in two qualities, and a still after it.
const FILM: &str = r#"
parameterDefinitions:
  - { name: Scene, type: PATH, default: scenes/shot.gltf }
  - { name: Frames, type: STRING, default: 1-3 }
  - { name: Spp, type: INT, default: 16, maxValue: 64 }
steps:
  - name: still
    dependencies: [{ dependsOn: film }]
    script:
      actions:
        onRun: { command: /opt/tessera, args: [render, still.glb, -o, still.png, --png16, -q] }
  - name: film
    parameterSpace:
      taskParameterDefinitions:
        - { name: Frame, type: INT, range: "{{Param.Frames}}" }
        - { name: Variant, type: STRING, range: [red, blue] }
    hostRequirements: { amounts: [{ name: amount.worker.gpu, min: 1 }] }
    script:
      actions:
        onRun:
          command: tessera
          args: [render, "{{Param.Scene}}", --frame, "{{Task.Param.Frame}}", --spp,
            "{{Param.Spp}}", "--variant={{Task.Param.Variant}}", --denoise, --device, cpu,
            -o, "out/{{Task.Param.Variant}}.{{Task.Param.Frame}}.exr"]
"#;

#[test]
fn tasks_that_differ_by_their_frame_are_one_job() {
    let plan = planned(FILM, &["Frames=1-9:2,20"]).unwrap();
    let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["A Shot.film.Variant=red", "A Shot.film.Variant=blue", "A Shot.still"]);
    let [red, _, still] = &plan.jobs[..] else { panic!("other jobs") };
    assert_eq!(red.work, Work::Render("/shots/scenes/shot.gltf".to_owned()));
    assert_eq!(option(red, "frames"), Some(&text("1,3,5,7,9,20")));
    assert_eq!(option(red, "spp"), Some(&text("16")));
    assert_eq!(option(red, "variant"), Some(&text("red")));
    assert_eq!(option(red, "denoise"), Some(&OptionValue::Switch(true)));
    assert_eq!(option(red, "format"), Some(&OptionValue::Texts(vec!["exr".to_owned()])));
    for of_machines in ["device", "output", "quiet", "png16"] {
        assert_eq!(option(red, of_machines), None, "{of_machines}");
    }
    assert_eq!(still.work, Work::Render("still.glb".to_owned()));
    assert_eq!(option(still, "format"), Some(&OptionValue::Texts(vec!["png16".to_owned()])));
    assert_eq!(still.after, [(0, Until::Success), (1, Until::Success)]);
    assert_eq!(plan.notes.len(), 1, "{:?}", plan.notes);
    assert!(plan.notes[0].contains("`film`: `hostRequirements`"), "{:?}", plan.notes);
}

#[test]
fn chunks_and_expressions_are_resolved() {
    let text = r#"
extensions: [TASK_CHUNKING, EXPR]
parameterDefinitions: [{ name: Base, type: INT, default: 5 }]
steps:
  - name: waves
    parameterSpace:
      taskParameterDefinitions:
        - name: Frame
          type: CHUNK[INT]
          range: 1-40
          chunks: { defaultTaskCount: 7, rangeConstraint: CONTIGUOUS }
    script:
      actions:
        onRun:
          command: tessera
          args: [compute, "builtin:resize", --domain, "{{Param.Base * 2}}x8", --local,
            --frames, "{{Task.Param.Frame}}", "--out=r.####.npy", "--input=image=in.npy"]
"#;
    let plan = planned(text, &[]).unwrap();
    let [job] = &plan.jobs[..] else { panic!("{plan:?}") };
    assert_eq!(job.work, Work::Compute("builtin:resize".to_owned()));
    assert_eq!(option(job, "domain"), Some(&self::text("10x8")));
    assert_eq!(option(job, "frames"), Some(&self::text("1-40")));
    assert_eq!(option(job, "format"), Some(&self::text("npy")));
    assert_eq!(option(job, "input"), Some(&self::text("image=in.npy")));
    assert_eq!(option(job, "local"), None);
}

#[test]
fn what_is_no_job_is_refused_by_its_name() {
    let run = |command: &str| {
        format!("steps: [{{name: a, script: {{actions: {{onRun: {command}}}}}}}]\n")
    };
    let cases = [
        (run("{command: blender, args: [-b]}"), "step `a`: it runs the command `blender`"),
        (run("{command: tessera, args: [node]}"), "step `a`: it runs `tessera node`"),
        (run("{command: tessera, args: [render, a.glb]}"), "--output <FILE>"),
        (run("{command: tessera, args: [render, a.glb, -o, a.tga]}"), "`a.tga` is neither"),
        (run("{command: tessera, args: [render, a.glb, -o, a.png, --sp, 3]}"), "'--sp' found"),
        (run("{command: tessera, args: [render, a.glb, -o, a.png, --frame]}"), "has no value"),
        (run("{command: '{{Session.WorkingDirectory}}/tessera'}"), "Session.WorkingDirectory"),
        ("steps: []\n".to_owned(), "at least one step"),
        (format!("{}surprise: 1\n", run("{command: tessera}")), "surprise"),
        (
            format!(
                "jobEnvironments: [{{name: e, variables: {{A: b}}}}]\n{}",
                run("{command: tessera}")
            ),
            "the template has environments",
        ),
        (
            "steps:\n - {name: a, dependencies: [{dependsOn: b}], script: {actions: {onRun: \
             {command: tessera}}}}\n - {name: b, dependencies: [{dependsOn: a}], script: \
             {actions: {onRun: {command: tessera}}}}\n"
                .to_owned(),
            "contain a cycle",
        ),
    ];
    for (text, told) in cases {
        let error = planned(&text, &[]).unwrap_err();
        assert!(error.contains(told), "{text}\n{error}");
    }
    for (set, told) in [
        (&["Spp=65"][..], "Spp"),
        (&["Spp=x"], "Spp"),
        (&["Spp"], "NAME=VALUE"),
        (&["Nothing=1"], "Nothing"),
        (&["Spp=1", "Spp=2"], "given twice"),
    ] {
        let error = planned(FILM, set).unwrap_err();
        assert!(error.contains(told), "{set:?}\n{error}");
    }
}

#[test]
fn bombs_are_refused() {
    let huge = FILM.replace("1-3", "1-100000000");
    let error = planned(&huge, &[]).unwrap_err();
    assert!(error.contains("100000"), "{error}");
    let aliases = format!(
        "a0: &a0 [x, x, x, x, x, x, x, x]\n{}steps: *a9\n",
        (1..10)
            .map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 8].join(", ")))
            .collect::<String>()
    );
    assert!(planned(&aliases, &[]).is_err());
    assert!(planned(&format!("x: {}", "[".repeat(100_000)), &[]).is_err());
    let named = "steps: [{name: a, parameterSpace: {taskParameterDefinitions: [{name: N, type: \
        INT, range: 1-100}]}, script: {actions: {onRun: {command: tessera, args: [render, a.glb, \
        --frames, 0-262143, -o, a.exr]}}}}]\n";
    assert!(planned(named, &[]).unwrap_err().contains("more frames than"));
}
