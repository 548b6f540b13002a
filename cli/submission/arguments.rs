//! Arguments from a JSON file (`--args`): an object with a member for each variable of the kernel.
//! A member is a number, a bool, a text as for `--arg`, or an array with its type:
//! `{"f32": [[1, 0], [0, 1]]}`, in C order.

use crate::error::{CliError, Status};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tessera_protocol::compute::{Argument, ArgumentValue, Element, Number};
use tessera_protocol::limits::{ARGUMENT_NUMBERS_MAX, ARGUMENTS_MAX};

/// Most bytes of a file: every argument with all its numbers, of 32 bytes each.
const FILE_BYTES_MAX: u64 = (ARGUMENTS_MAX * ARGUMENT_NUMBERS_MAX * 32) as u64;

fn usage(text: impl Into<String>) -> CliError {
    CliError::new(Status::Usage, text.into())
}

/// Reads the arguments in a file. `of_text` reads the text of a member as that of an `--arg`.
pub(super) fn read(
    path: &Path,
    of_text: impl Fn(&str, &str) -> Result<ArgumentValue, CliError>,
) -> Result<Vec<Argument>, CliError> {
    let about = |error: CliError| error.context(format!("--args {}", path.display()));
    let file = File::open(path).map_err(|error| about(CliError::of_file(error)))?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| about(CliError::of_file(error)))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(about(
            usage(format!("it has more than {FILE_BYTES_MAX} bytes"))
                .hint("many numbers are an --input"),
        ));
    }
    let Once(value) = serde_json::from_slice(&bytes).map_err(|error| {
        about(usage(match error.is_data() {
            true => error.to_string(),
            false => format!("it is not JSON: {error}"),
        }))
    })?;
    arguments(value, of_text).map_err(about)
}

/// A value in which each object has a name once. JSON leaves open which of two members counts.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(OnceVisitor)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Once, E> {
        Ok(Once(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Once, A::Error> {
        let mut values = Vec::new();
        while let Some(Once(value)) = source.next_element()? {
            values.push(value);
        }
        Ok(Once(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Once, A::Error> {
        let mut members = serde_json::Map::new();
        while let Some((name, Once(value))) = source.next_entry::<String, Once>()? {
            if members.contains_key(&name) {
                let text = format!("it has `{name}` twice; which of the two is meant?");
                return Err(A::Error::custom(text));
            }
            members.insert(name, value);
        }
        Ok(Once(members.into()))
    }
}

fn arguments(
    value: Value,
    of_text: impl Fn(&str, &str) -> Result<ArgumentValue, CliError>,
) -> Result<Vec<Argument>, CliError> {
    let Value::Object(members) = value else {
        return Err(usage("it is not an object").hint("write {\"NAME\": VALUE, ...}"));
    };
    let argument = |(name, value): (String, Value)| {
        let value = match &value {
            Value::String(text) => of_text(&name, text)?,
            other => value_of(&name, other)?,
        };
        Ok(Argument { name, value })
    };
    members.into_iter().map(argument).collect()
}

fn value_of(name: &str, value: &Value) -> Result<ArgumentValue, CliError> {
    let typed = |problem: &str| {
        usage(format!("`{name}` {problem}"))
            .hint(format!("an array has its type: \"{name}\": {{\"f32\": [1, 2, 3]}}"))
    };
    match value {
        Value::Array(_) => Err(typed("is an array without a type")),
        Value::Object(members) => {
            let mut members = members.iter();
            let (Some((element, values)), None) = (members.next(), members.next()) else {
                return Err(typed("is an object with other than one member"));
            };
            let element: Element = element
                .parse()
                .map_err(|error| typed(&format!("has no type of an element: {error}")))?;
            let mut numbers = Vec::new();
            flatten(name, values, &mut numbers)?;
            Ok(ArgumentValue { element: Some(element), numbers })
        }
        single => Ok(ArgumentValue { element: None, numbers: vec![number(name, single)?] }),
    }
}

/// Appends the numbers of nested arrays in C order. The parser bounds the depth.
fn flatten(name: &str, value: &Value, numbers: &mut Vec<Number>) -> Result<(), CliError> {
    let Value::Array(values) = value else {
        numbers.push(number(name, value)?);
        return Ok(());
    };
    let length = |value: &Value| value.as_array().map(Vec::len);
    if values.windows(2).any(|pair| length(&pair[0]) != length(&pair[1])) {
        return Err(usage(format!("the rows of `{name}` have different lengths")));
    }
    values.iter().try_for_each(|value| flatten(name, value, numbers))
}

fn number(name: &str, value: &Value) -> Result<Number, CliError> {
    let found = match value {
        Value::Bool(value) => Some(Number::Integer((*value).into())),
        Value::Number(number) => number
            .as_i64()
            .map(Number::Integer)
            .or_else(|| number.as_u64().map(Number::Unsigned))
            .or_else(|| number.as_f64().map(Number::Real)),
        _ => None,
    };
    found.ok_or_else(|| usage(format!("`{name}`: `{value}` is neither a number nor true or false")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, type and numbers.
    type Parts = (String, Option<Element>, Vec<Number>);

    fn read_text(json: &str) -> Result<Vec<Parts>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), json).unwrap();
        let of_text = |_: &str, text: &str| {
            let numbers = vec![Number::Integer(text.len() as i64)];
            Ok(ArgumentValue { element: None, numbers })
        };
        let read = read(file.path(), of_text).map_err(|error| error.to_string())?;
        let parts =
            |argument: Argument| (argument.name, argument.value.element, argument.value.numbers);
        Ok(read.into_iter().map(parts).collect())
    }

    #[test]
    fn members_of_an_object_are_arguments() {
        use Number::{Integer, Real, Unsigned};
        let json = r#"{"steps": 3, "gain": -0.5, "on": true, "big": 18446744073709551615,
            "word": "abcd", "m": {"f32": [[1, 2.5], [3, 4]]}, "one": {"u8": 7}}"#;
        let mut read = read_text(json).unwrap();
        read.sort_by(|a, b| a.0.cmp(&b.0));
        let matrix = vec![Integer(1), Real(2.5), Integer(3), Integer(4)];
        let expected = [
            ("big", None, vec![Unsigned(u64::MAX)]),
            ("gain", None, vec![Real(-0.5)]),
            ("m", Some(Element::F32), matrix),
            ("on", None, vec![Integer(1)]),
            ("one", Some(Element::U8), vec![Integer(7)]),
            ("steps", None, vec![Integer(3)]),
            ("word", None, vec![Integer(4)]),
        ];
        assert_eq!(read, expected.map(|(name, element, numbers)| (name.into(), element, numbers)));
    }

    #[test]
    fn other_files_are_refused_with_the_member() {
        for (json, expected) in [
            ("[1]", "not an object"),
            ("{\"a\": 1", "not JSON"),
            (r#"{"a": null}"#, "`a`: `null` is neither"),
            (r#"{"a": [1, 2]}"#, "\"a\": {\"f32\": [1, 2, 3]}"),
            (r#"{"a": {"f32": [1], "f64": [1]}}"#, "other than one member"),
            (r#"{"a": {"f8": [1]}}"#, "`f8` is not an element type"),
            (r#"{"a": {"f32": [[1, 2], [3]]}}"#, "rows of `a`"),
            (r#"{"a": {"f32": [[1, 2], 3]}}"#, "rows of `a`"),
            (r#"{"a": {"f32": ["x"]}}"#, "is neither"),
            (r#"{"a": 1e999}"#, "not JSON"),
            (r#"{"a": 1, "b": 2, "a": 1}"#, "it has `a` twice; which of the two is meant?"),
            (r#"{"a": {"f32": [1], "f32": [2]}}"#, "it has `f32` twice"),
        ] {
            let error = read_text(json).unwrap_err();
            assert!(error.contains(expected) && error.contains("--args"), "{json}: {error}");
        }
        assert!(read_text(&"[".repeat(100_000)).unwrap_err().contains("not JSON"));
        let absent = read(Path::new("/nowhere.json"), |_, _| Err(usage("")));
        assert_eq!(absent.unwrap_err().status(), Status::NotFound);
    }
}
