//! The options that a command line sets, as they were written: for what hands them on.

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};

/// What an option is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// Once, with this text.
    Text(String),
    /// Once for each text.
    Texts(Vec<String>),
    /// With or without it.
    Switch(bool),
}

impl OptionValue {
    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Texts(texts) => texts.iter().map(|text| text.len() + size_of::<String>()).sum(),
            Self::Switch(_) => 0,
        }
    }
}

/// Options by their long names, with their values.
pub type Chosen = Vec<(String, OptionValue)>;

/// What is set by the command line, the environment or a settings file. `command` has the options
/// as they are without any of these.
pub fn chosen(command: &Command, matches: &ArgMatches) -> Chosen {
    let mut chosen = Chosen::new();
    for argument in command.get_arguments() {
        let (id, Some(name)) = (argument.get_id().as_str(), argument.get_long()) else { continue };
        let Ok(Some(values)) = matches.try_get_raw(id) else { continue };
        let texts: Vec<String> = values.map(|value| value.to_string_lossy().into_owned()).collect();
        let defaults = argument.get_default_values();
        let is_default = matches.value_source(id) == Some(ValueSource::DefaultValue)
            && (texts.iter().map(String::as_str))
                .eq(defaults.iter().map(|text| text.to_str().unwrap_or_default()));
        let value = match (argument.get_action(), &texts[..]) {
            (ArgAction::SetTrue, [text]) if text == "true" => OptionValue::Switch(true),
            (ArgAction::SetTrue, _) | (_, []) => continue,
            (_, [text]) => OptionValue::Text(text.clone()),
            _ => OptionValue::Texts(texts.clone()),
        };
        if !is_default {
            chosen.push((name.to_owned(), value));
        }
    }
    chosen
}

/// The names of the options that are on the command line itself.
pub fn given(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let given = command.get_arguments().filter(|argument| is_given(argument.get_id().as_str()));
    given.filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
}

/// What is wrong with options, in a line: without usage and tips, which are about a command line.
pub fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    let said = lines.collect::<Vec<_>>().join(" ");
    said.strip_prefix("error: ").unwrap_or(&said).to_owned()
}
