//! Templates that admins publish: kept by the journal and by snapshots, bounded, taken away.

use crate::small_farm::SmallFarm;
use tessera_core::{Input, RequestId, Settings};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::limits::{PRESET_BYTES_MAX, PRESETS_MAX};

fn set(farm: &mut SmallFarm, name: &str, text: Option<&str>) -> Response {
    let preset = (name.to_owned(), text.map(str::to_owned));
    farm.ask(Input::SetPreset { request: RequestId(9), preset, by: "root".to_owned() })
}

// promise: P1
#[test]
fn presets_are_in_the_journal_and_in_snapshots() {
    let mut farm = SmallFarm::new(Settings::default(), 1, 1);
    assert_eq!(set(&mut farm, "final", Some("one")), Response::Done);
    assert_eq!(set(&mut farm, "draft", Some("two")), Response::Done);
    assert_eq!(set(&mut farm, "final", Some("three")), Response::Done);
    let names = |farm: &SmallFarm| {
        farm.core.presets().into_iter().map(|preset| preset.name).collect::<Vec<_>>()
    };
    let final_text = |farm: &SmallFarm| farm.core.preset("final").map(|preset| preset.text);
    for from_snapshot in [false, true] {
        assert_eq!(names(&farm), ["draft", "final"]);
        assert_eq!(final_text(&farm).as_deref(), Some("three"));
        assert_eq!(farm.core.preset("final").map(|preset| preset.by).as_deref(), Some("root"));
        farm.restart(from_snapshot);
    }
    assert_eq!(set(&mut farm, "final", None), Response::Done);
    farm.restart(true);
    assert_eq!((names(&farm), final_text(&farm)), (vec!["draft".to_owned()], None));
}

#[test]
fn presets_are_bounded() {
    let mut farm = SmallFarm::new(Settings::default(), 1, 1);
    let refused = |answer: Response| match answer {
        Response::Error(error) => error,
        other => panic!("{other:?}"),
    };
    let long = "x".repeat(PRESET_BYTES_MAX + 1);
    for (name, text) in [("a b", Some("x")), ("a", Some("")), ("a", Some(long.as_str()))] {
        let error = refused(set(&mut farm, name, text));
        assert!(matches!(error, RequestError::Invalid(_)), "{error:?}");
    }
    let error = refused(set(&mut farm, "none", None));
    assert!(matches!(error, RequestError::NotFound(_)), "{error:?}");
    for index in 0..PRESETS_MAX {
        assert_eq!(set(&mut farm, &format!("p{index}"), Some("x")), Response::Done);
    }
    let error = refused(set(&mut farm, "more", Some("x")));
    assert!(matches!(error, RequestError::Unavailable(_)), "{error:?}");
    assert_eq!(set(&mut farm, "p0", Some("y")), Response::Done, "one that is there is replaced");
}
