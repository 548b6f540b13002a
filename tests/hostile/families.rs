//! Mechanical families: every place of a whole scene with every kind of wrong value in it, and
//! damaged texts.

use crate::hostile::random::{Dice, damaged};
use crate::hostile::scenes::whole;
use crate::hostile::traps::Trap;
use serde_json::{Value, json};

/// Rounds of damage to the text.
const DAMAGED: usize = 120;

/// JSON pointers to every value, the bytes of the buffer apart.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(entries) => {
            for (name, item) in entries {
                places(
                    item,
                    &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        _ => {}
    }
}

/// Wrong in one way or another, whatever stands there.
fn wrong_values() -> [Value; 12] {
    [
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(4_294_967_295u32),
        json!(99),
        json!(1e308),
        json!(null),
        json!(""),
        json!([]),
        json!({}),
        json!("\u{202e}\u{7}\u{1b}[31m"),
        json!(true),
    ]
}

/// All of them: each place gets two of the values, in turn, and is left out once.
pub(crate) fn all() -> Vec<Trap> {
    let scene = whole();
    let (mut found, mut traps) = (Vec::new(), Vec::new());
    places(&scene, "", &mut found);
    let values = wrong_values();
    for (number, place) in found.iter().enumerate() {
        for step in [0, 5] {
            let value = values[(number + step) % values.len()].clone();
            let mut changed = scene.clone();
            if let Some(target) = changed.pointer_mut(place) {
                *target = value.clone();
            }
            traps.push(Trap::new(format!("{value} at {place}"), changed.to_string()));
        }
        if let Some(shorter) = without(&scene, place) {
            traps.push(Trap::new(format!("nothing at {place}"), shorter.to_string()));
        }
    }
    let (mut dice, text) = (Dice(0x5eed_1dea), scene.to_string());
    for round in 0..DAMAGED {
        traps.push(Trap::new(format!("damage {round}"), damaged(text.as_bytes(), &mut dice)));
    }
    traps
}

fn without(scene: &Value, place: &str) -> Option<Value> {
    let (parent, name) = place.rsplit_once('/')?;
    let mut changed = scene.clone();
    match changed.pointer_mut(parent)? {
        Value::Object(entries) => entries.remove(name).map(drop)?,
        Value::Array(items) => drop(items.remove(name.parse().ok()?)),
        _ => return None,
    }
    Some(changed)
}
