//! Sweeps: all combinations of the values of a step's variables.

use super::bounds::{JOBS_MAX, VALUES_MAX};
use super::error::TemplateError;
use super::parameter::{self, Value, Values};
use super::text::whole_name;
use std::collections::{BTreeMap, BTreeSet};

/// A value for each variable.
pub(super) type Combination = BTreeMap<String, String>;

/// All combinations, the last variable's values next to each other. One without a variable where
/// nothing is swept.
pub(super) fn combinations(
    each: &BTreeMap<String, toml::Value>,
    parameters: &Values,
) -> Result<Vec<Combination>, TemplateError> {
    let mut lists = Vec::new();
    let mut count = 1_usize;
    for (name, value) in each {
        let values = list(value, parameters).map_err(|error| error.at(format!("each.{name}")))?;
        count = count.checked_mul(values.len()).filter(|count| *count <= JOBS_MAX).ok_or_else(
            || TemplateError::new(format!("the values of `each` make more than {JOBS_MAX} jobs")),
        )?;
        lists.push((name, values));
    }
    let mut all = vec![Combination::new()];
    for (name, values) in lists {
        let with = |before: &Combination, value: &String| {
            let mut next = before.clone();
            next.insert(name.clone(), value.clone());
            next
        };
        all = all
            .iter()
            .flat_map(|before| values.iter().map(move |value| with(before, value)))
            .collect();
    }
    Ok(all)
}

/// The values of a variable: a list, a range of whole numbers, or a parameter that is a list.
fn list(value: &toml::Value, parameters: &Values) -> Result<Vec<String>, TemplateError> {
    let wrong = "has to be a list of texts and numbers, a range such as \"1-100\", or the name of \
        a parameter that is a list, such as \"{seeds}\"";
    let values = match value {
        toml::Value::Array(values) => values.iter().map(text_of).collect::<Option<Vec<_>>>(),
        toml::Value::String(text) => match (whole_name(text), parameter::range(text)) {
            (Some(name), _) => match parameters.get(name) {
                Some(Value::List(values)) => Some(values.clone()),
                _ => None,
            },
            (None, Some(values)) => Some(values?.iter().filter_map(text_of).collect()),
            (None, None) => None,
        },
        _ => None,
    };
    let values = values.filter(|values| !values.is_empty());
    let values = values.ok_or_else(|| TemplateError::new(wrong))?;
    if values.len() > VALUES_MAX {
        let text = format!("{} values are more than {VALUES_MAX}", values.len());
        return Err(TemplateError::new(text));
    }
    let mut seen = BTreeSet::new();
    match values.iter().find(|value| !seen.insert(value.as_str())) {
        Some(twice) => Err(TemplateError::new(format!("{twice:?} is there twice"))),
        None => Ok(values),
    }
}

/// The text of a plain value.
pub(super) fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<Combination>, TemplateError> {
        let seeds = Value::List(vec!["7".into(), "9".into()]);
        let parameters = Values::from([("seeds".into(), seeds)]);
        combinations(&toml::from_str(text).unwrap(), &parameters)
    }

    #[test]
    fn a_sweep_has_every_combination_once() {
        assert_eq!(of("").unwrap(), [Combination::new()]);
        let texts: Vec<String> = of("a = ['x', 'y']\nb = '{seeds}'")
            .unwrap()
            .iter()
            .map(|each| format!("{}{}", each["a"], each["b"]))
            .collect();
        assert_eq!(texts, ["x7", "x9", "y7", "y9"]);
        assert_eq!(of("a = '1-5x2'").unwrap().len(), 3);
    }

    #[test]
    fn sweeps_are_bounded_before_they_are_made() {
        let bomb = "a = '1-4096'\nb = '1-4096'\nc = '1-4096'\nd = '1-4096'\ne = '1-4096'";
        assert!(of(bomb).unwrap_err().to_string().contains("more than 4096 jobs"));
        for wrong in ["a = []", "a = 5", "a = '{none}'", "a = 'x'", "a = [1, 1]", "a = [[1]]"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
