//! Templates become jobs: values, order, waits, names; hostile ones are refused by name.

use super::bounds::STEPS_MAX;
use super::*;
use crate::args::chosen::OptionValue;
use std::fmt::Write as _;
use tessera_protocol::job::Until;

fn planned(text: &str) -> Result<Plan, TemplateError> {
    plan(&format!("tessera = 1\nname = 'film'\n{text}"), None, &[])
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.jobs.iter().map(|job| job.name.as_str()).collect()
}

#[test]
fn steps_become_jobs_in_an_order_that_they_can_wait_in() {
    let plan = planned(
        "[parameters.spp]\ntype = 'integer'\ndefault = 16\n\
         [[steps]]\nname = 'merge'\ncompute = 'builtin:merge'\nafter = ['beauty:frames']\n\
         after-any = ['sim']\n\
         [[steps]]\nname = 'beauty'\nrender = 'a.gltf'\nspp = '{spp}'\ndenoise = true\n\
         aov = ['normal', 'depth']\nafter = ['sim']\n\
         [[steps]]\nname = 'sim'\ncompute = 'waves.cu'\n",
    )
    .unwrap();
    assert_eq!(names(&plan), ["film.sim", "film.beauty", "film.merge"]);
    assert_eq!(plan.jobs[1].after, [(0, Until::Success)]);
    assert_eq!(plan.jobs[2].after, [(1, Until::Frames), (0, Until::End)]);
    assert_eq!(plan.jobs[1].work, Work::Render("a.gltf".into()));
    let options = [
        ("aov".to_owned(), OptionValue::Texts(vec!["normal".into(), "depth".into()])),
        ("denoise".to_owned(), OptionValue::Switch(true)),
        ("spp".to_owned(), OptionValue::Text("16".into())),
    ];
    assert_eq!(plan.jobs[1].options, options);
}

#[test]
fn a_sweep_waits_value_by_value_for_a_sweep_over_the_same() {
    let plan = planned(
        "[[steps]]\nname = 'a'\nrender = 's.gltf'\neach = { seed = '1-3' }\nseed = '{seed}'\n\
         [[steps]]\nname = 'b'\ncompute = 'k.ptx'\nafter = ['a']\n\
         each = { seed = '2-3', size = ['s', 'l'] }\n\
         [[steps]]\nname = 'c'\ncompute = 'k.ptx'\nafter = ['a', 'b']\n",
    )
    .unwrap();
    assert_eq!(
        names(&plan)[..4],
        ["film.a.seed=1", "film.a.seed=2", "film.a.seed=3", "film.b.seed=2,size=s"]
    );
    let waits = |at: usize| plan.jobs[at].after.iter().map(|(place, _)| *place).collect::<Vec<_>>();
    assert_eq!([waits(3), waits(4), waits(5), waits(6)], [[1], [1], [2], [2]]);
    assert_eq!(waits(7), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn values_that_no_file_can_have_are_numbered_in_names() {
    let plan = planned(
        "[[steps]]\nname = 'a'\nrender = '{scene}'\neach = { scene = ['x/y.glb', 'z.glb'] }\n",
    )
    .unwrap();
    assert_eq!(names(&plan), ["film.a.0001", "film.a.scene=z.glb"]);
    assert_eq!(plan.jobs[0].work, Work::Render("x/y.glb".into()));
}

#[test]
fn hostile_templates_are_refused_by_name() {
    let step = "[[steps]]\nname = 'a'\nrender = 's.gltf'\n";
    let many = (0..=STEPS_MAX).fold(String::new(), |mut text, at| {
        let _ = write!(text, "[[steps]]\nname = 'a{at}'\nrender = 's.gltf'\n");
        text
    });
    for (text, told) in [
        ("", "missing field `steps`"),
        ("steps = []", "0 steps"),
        (many.as_str(), "65 steps"),
        ("run = 'rm -rf /'\n[[steps]]\nname = 'a'\nrender = 'x'\n", "unknown field `run`"),
        ("[[steps]]\nname = 'a'\ncommand = 'rm'\n", "either render = \"SCENE\" or compute"),
        ("[[steps]]\nname = 'a'\nrender = 'x'\ncompute = 'y'\n", "either render"),
        ("[[steps]]\nname = '../a'\nrender = 'x'\n", "is not 1 to 64 letters"),
        (&format!("{step}{step}"), "two steps have this name"),
        (&format!("{step}after = ['a']\n"), "circle: a → a"),
        (&format!("{step}after = ['b']\n"), "there is no step `b`"),
        (&format!("{step}after = ['']\n"), "names no job"),
        (&format!("{step}spp = '{{spp}}'\n"), "there is no `{spp}` here"),
        (&format!("{step}spp = {{ a = 1 }}\n"), "step `a`: spp: has to be a text"),
        (
            "[[steps]]\nname = 'a'\nrender = 'x'\nafter = ['c']\n\
             [[steps]]\nname = 'b'\nrender = 'x'\nafter = ['a']\n\
             [[steps]]\nname = 'c'\nrender = 'x'\nafter = ['b']\n",
            "circle: a → c → b → a",
        ),
        (
            &format!(
                "{step}each = {{ v = '1-100' }}\n[[steps]]\nname = 'b'\nrender = 'x'\n\
             after = ['a']\n"
            ),
            "waits for 100 jobs",
        ),
        (
            &format!(
                "{step}each = {{ v = [1] }}\n[[steps]]\nname = 'b'\nrender = 'x'\n\
             after = ['a']\neach = {{ v = [2] }}\n"
            ),
            "no job of the step before it has these values",
        ),
        (
            &format!(
                "{step}each = {{ v = '1-4000' }}\n[[steps]]\nname = 'b'\nrender = 'x'\n\
             each = {{ v = '1-4000' }}\n"
            ),
            "more than 4096 jobs",
        ),
    ] {
        let error = planned(text).unwrap_err().to_string();
        assert!(error.contains(told), "{text}\n{error}");
    }
    let long = format!("'{}'", "x".repeat(16_000));
    let options = (0..10).fold(String::new(), |mut text, at| {
        let _ = writeln!(text, "o{at} = {long}");
        text
    });
    let large = planned(&format!("{step}each = {{ v = '1-4000' }}\n{options}"));
    assert!(large.unwrap_err().to_string().contains("bytes together"));
    let deep = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let error = planned(&deep).unwrap_err().to_string();
    assert!(error.contains("recursion") && error.len() < 1000, "{}", error.len());
    let named = |name| {
        let text = format!("tessera = 1\nname = 'f'\n{step}");
        plan(&text, Some(name), &[]).map(|plan| plan.jobs[0].name.clone())
    };
    assert_eq!(named("drink").unwrap(), "drink.a");
    assert!(named("../x").unwrap_err().to_string().starts_with("--name: \"../x\" is not"));
    let newer = plan("tessera = 2\nname = 'f'\n[[steps]]\nname = 'a'\nrender = 'x'", None, &[]);
    assert!(newer.unwrap_err().to_string().contains("version 1"));
}
