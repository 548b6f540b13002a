//! The values of a template's parameters: what is set, else the defaults, each checked.

use super::bounds::{TEXT_BYTES_MAX, VALUES_MAX};
use super::error::{self, TemplateError};
use super::file::Parameter;
use super::kind::Kind;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::FrameSet;

/// What a parameter is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// One value.
    One(String),
    /// A list of them.
    List(Vec<String>),
}

/// The values of all parameters, by name.
pub(super) type Values = BTreeMap<String, Value>;

/// Takes what is set, else the defaults, and checks each.
pub(super) fn values(
    parameters: &BTreeMap<String, Parameter>,
    set: &[String],
) -> Result<Values, TemplateError> {
    let mut given = BTreeMap::new();
    for text in set {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            TemplateError::new(format!("--set {text:?} is not of the form NAME=VALUE"))
        })?;
        let parameter = parameters.get(name).ok_or_else(|| unknown(name, parameters))?;
        let at = |error: TemplateError| error.at(format!("--set {name}"));
        let value = of_text(parameter, value).map_err(at)?;
        if given.insert(name, value).is_some() {
            return Err(TemplateError::new(format!("--set {name} is given twice")));
        }
    }
    let mut values = Values::new();
    for (name, parameter) in parameters {
        let at = |error: TemplateError| error.at(error::parameter(name));
        let default = parameter.default.as_ref().map(|value| checked(parameter, value));
        // A default that is wrong is told of even where it is not used.
        let default = default.transpose().map_err(|error| at(error.at("default")))?;
        let value = given.remove(name.as_str()).or(default).ok_or_else(|| {
            let help = if parameter.help.is_empty() { "" } else { ": " };
            TemplateError::new(format!("has to be set{help}{}", parameter.help))
                .at(error::parameter(name))
                .hint(format!("--set {name}=VALUE, {}", parameter.kind.words()))
        })?;
        values.insert(name.clone(), value);
    }
    Ok(values)
}

/// A default as it would be set; None if it is wrong.
pub(super) fn text_of(parameter: &Parameter, value: &toml::Value) -> Option<String> {
    match checked(parameter, value).ok()? {
        Value::One(text) => Some(text),
        Value::List(texts) => Some(texts.join(",")),
    }
}

fn unknown(name: &str, parameters: &BTreeMap<String, Parameter>) -> TemplateError {
    let known: Vec<&str> = parameters.keys().map(String::as_str).collect();
    let error = TemplateError::new(format!("--set {name}: the template has no such parameter"));
    match known.is_empty() {
        true => error.hint("it has none at all"),
        false => error.hint(format!("it has {}", known.join(", "))),
    }
}

/// The value of a text on the command line: a list is split at commas, and whole numbers may be
/// ranges, as frames are.
fn of_text(parameter: &Parameter, text: &str) -> Result<Value, TemplateError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(TemplateError::new(format!("has more than {TEXT_BYTES_MAX} bytes")));
    }
    let one = |text: &str| {
        let wrong = || TemplateError::new(format!("{text:?} is not {}", parameter.kind.words()));
        parameter.kind.read(text).ok_or_else(wrong)
    };
    if !parameter.list {
        return checked(parameter, &one(text)?);
    }
    let values = match (parameter.kind, range(text)) {
        (Kind::Integer, Some(values)) => values?,
        _ => text.split(',').map(one).collect::<Result<Vec<_>, _>>()?,
    };
    checked(parameter, &toml::Value::Array(values))
}

/// Whole numbers as frames are written: `1-1000`, `0-90x30`; None for any other text.
pub(super) fn range(text: &str) -> Option<Result<Vec<toml::Value>, TemplateError>> {
    let set: FrameSet = text.trim().parse().ok()?;
    if set.len() as usize > VALUES_MAX {
        return Some(Err(too_many(set.len() as usize)));
    }
    Some(Ok(set.iter().map(|frame| toml::Value::Integer(frame.0.into())).collect()))
}

fn too_many(count: usize) -> TemplateError {
    TemplateError::new(format!("{count} values are more than {VALUES_MAX}"))
}

/// Checks a value against all that the parameter says.
fn checked(parameter: &Parameter, value: &toml::Value) -> Result<Value, TemplateError> {
    if !parameter.list {
        return one(parameter, value).map(Value::One);
    }
    let range = value.as_str().filter(|_| parameter.kind == Kind::Integer).and_then(range);
    let owned;
    let values = match (range, value.as_array()) {
        (Some(values), _) => {
            owned = values?;
            &owned
        }
        (None, Some(values)) => values,
        (None, None) => return Err(TemplateError::new("is not a list")),
    };
    if values.is_empty() {
        return Err(TemplateError::new("is a list without a value"));
    }
    if values.len() > VALUES_MAX {
        return Err(too_many(values.len()));
    }
    let texts = values.iter().map(|value| one(parameter, value)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    match texts.iter().find(|text| !seen.insert(text.as_str())) {
        Some(twice) => Err(TemplateError::new(format!("{twice:?} is in the list twice"))),
        None => Ok(Value::List(texts)),
    }
}

fn one(parameter: &Parameter, value: &toml::Value) -> Result<String, TemplateError> {
    let Parameter { kind, min, max, choices, .. } = parameter;
    let shown = shown(value);
    let text = kind
        .text(value)
        .ok_or_else(|| TemplateError::new(format!("{shown} is not {}", kind.words())))?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(TemplateError::new(format!("has more than {TEXT_BYTES_MAX} bytes")));
    }
    for (bound, is_over, word) in [
        (min, (|value, bound| value < bound) as fn(f64, f64) -> bool, "less"),
        (max, |value, bound| value > bound, "more"),
    ] {
        let Some(bound) = bound else { continue };
        let (Some(value), Some(limit)) = (number(value), number(bound)) else {
            return Err(TemplateError::new("min and max are numbers, for numbers"));
        };
        if is_over(value, limit) {
            return Err(TemplateError::new(format!("{shown} is {word} than {bound}")));
        }
    }
    match choices {
        Some(choices)
            if !choices.iter().any(|choice| kind.text(choice).as_ref() == Some(&text)) =>
        {
            let all: Vec<String> = choices.iter().map(self::shown).collect();
            Err(TemplateError::new(format!("{shown} is not one of {}", all.join(", "))))
        }
        _ => Ok(text),
    }
}

fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// A value as people write it, shortened.
fn shown(value: &toml::Value) -> String {
    let text = match value {
        toml::Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    };
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, set: &[&str]) -> Result<Values, TemplateError> {
        let parameters: BTreeMap<String, Parameter> = toml::from_str(text).unwrap();
        let set: Vec<String> = set.iter().map(ToString::to_string).collect();
        values(&parameters, &set)
    }

    fn one(text: &str) -> Value {
        Value::One(text.to_owned())
    }

    #[test]
    fn what_is_set_wins_over_the_default_and_both_are_checked() {
        let spp = "spp = { type = 'integer', default = 64, min = 1, max = 4096 }";
        assert_eq!(of(spp, &[]).unwrap()["spp"], one("64"));
        assert_eq!(of(spp, &["spp=7"]).unwrap()["spp"], one("7"));
        for (set, told) in [
            (&["spp=0"][..], "less than 1"),
            (&["spp=5000"], "more than 4096"),
            (&["spp=x"], "not a whole number"),
            (&["spp=1", "spp=2"], "given twice"),
            (&["sp=1"], "no such parameter"),
            (&["spp"], "NAME=VALUE"),
        ] {
            let error = of(spp, set).unwrap_err().to_string();
            assert!(error.contains(told), "{set:?}: {error}");
        }
        let wrong = "spp = { type = 'integer', default = 0, min = 1 }";
        assert!(of(wrong, &["spp=7"]).unwrap_err().to_string().contains("default"));
        let needed = "shot = { type = 'text', help = 'which shot' }";
        let error = of(needed, &[]).unwrap_err();
        assert!(error.to_string().contains("has to be set: which shot"), "{error}");
        assert_eq!(error.what_to_do(), Some("--set shot=VALUE, a text"));
    }

    #[test]
    fn kinds_take_their_values_alone() {
        for (kind, text, wanted) in [
            ("text", "a=b", Some("a=b")),
            ("integer", "-3", Some("-3")),
            ("integer", "1.5", None),
            ("number", "1.5", Some("1.5")),
            ("number", "2", Some("2")),
            ("number", "nan", None),
            ("switch", "true", Some("true")),
            ("switch", "yes", None),
            ("frames", "1-10x3,20", Some("1-10x3,20")),
            ("frames", "x", None),
        ] {
            let found = of(&format!("p = {{ type = '{kind}' }}"), &[&format!("p={text}")]);
            let found = found.ok().map(|values| values["p"].clone());
            assert_eq!(found, wanted.map(one), "{kind} {text}");
        }
        let named = of("p = { type = 'file' }", &["p=a.glb"]).unwrap();
        let Value::One(path) = &named["p"] else { panic!("a list") };
        assert!(std::path::Path::new(path).is_absolute() && path.ends_with("a.glb"), "{path}");
    }

    #[test]
    fn lists_are_split_and_whole_numbers_may_be_ranges() {
        let seeds = "seeds = { type = 'integer', list = true }";
        let list = |values: &[&str]| Value::List(values.iter().map(ToString::to_string).collect());
        assert_eq!(of(seeds, &["seeds=1-3,7"]).unwrap()["seeds"], list(&["1", "2", "3", "7"]));
        let sizes = "sizes = { type = 'number', list = true, default = [0.5, 1] }";
        assert_eq!(of(sizes, &[]).unwrap()["sizes"], list(&["0.5", "1"]));
        for (text, set, told) in [
            (seeds, "seeds=0-9000", "more than 4096"),
            (seeds, "seeds=", "not a whole number"),
            (sizes, "sizes=1,1", "twice"),
        ] {
            let error = of(text, &[set]).unwrap_err().to_string();
            assert!(error.contains(told), "{set}: {error}");
        }
    }

    #[test]
    fn choices_are_all_that_there_is() {
        let look = "look = { type = 'text', choices = ['dawn', 'noon'], default = 'noon' }";
        assert_eq!(of(look, &["look=dawn"]).unwrap()["look"], one("dawn"));
        let error = of(look, &["look=night"]).unwrap_err().to_string();
        assert!(error.contains("not one of \"dawn\", \"noon\""), "{error}");
    }
}
