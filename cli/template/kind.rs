//! Kinds of parameters: which values are of one, and what a text on the command line means.

use serde::Deserialize;
use tessera_protocol::FrameSet;

/// Kind of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Switch,
    /// Numbers of frames, as --frames takes them.
    Frames,
    /// A file. One that is set on the command line is looked for in the working folder, one in the
    /// template beside the template.
    File,
}

impl Kind {
    /// What its values are, for people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Switch => "true or false",
            Self::Frames => "frames, such as 5, 1-100 or 1-100x2",
            Self::File => "a file",
        }
    }

    /// Its name in a template.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Switch => "switch",
            Self::Frames => "frames",
            Self::File => "file",
        }
    }

    /// The text of a value, where it is of this kind.
    pub(super) fn text(self, value: &toml::Value) -> Option<String> {
        match (self, value) {
            (Self::Text | Self::File, toml::Value::String(text)) => Some(text.clone()),
            (Self::Frames, toml::Value::String(text)) => {
                text.parse::<FrameSet>().is_ok().then(|| text.clone())
            }
            (Self::Frames, toml::Value::Integer(number)) => {
                u32::try_from(*number).ok().map(|number| number.to_string())
            }
            (Self::Integer | Self::Number, toml::Value::Integer(number)) => {
                Some(number.to_string())
            }
            (Self::Number, toml::Value::Float(number)) if number.is_finite() => {
                Some(number.to_string())
            }
            (Self::Switch, toml::Value::Boolean(value)) => Some(value.to_string()),
            _ => None,
        }
    }

    /// The value that a text on the command line means.
    pub(super) fn read(self, text: &str) -> Option<toml::Value> {
        let value = match self {
            Self::Text | Self::Frames => toml::Value::String(text.to_owned()),
            Self::File => toml::Value::String(absolute(text)),
            Self::Integer => toml::Value::Integer(text.trim().parse().ok()?),
            Self::Number => match text.trim().parse::<i64>() {
                Ok(number) => toml::Value::Integer(number),
                Err(_) => toml::Value::Float(text.trim().parse().ok()?),
            },
            Self::Switch => toml::Value::Boolean(text.trim().parse().ok()?),
        };
        self.text(&value).map(|_| value)
    }
}

/// The place of a file that is named in the working folder.
fn absolute(text: &str) -> String {
    let absolute = std::path::absolute(text).unwrap_or_else(|_| text.into());
    absolute.to_string_lossy().into_owned()
}
