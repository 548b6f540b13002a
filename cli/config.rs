//! Settings from files: they become defaults of options, so that flags and the environment win over
//! them.
//!
//! ```toml
//! coordinator = "farm.example:7420"   # for every command that has --coordinator
//! [render]                            # only for `tessera render`
//! spp = 256
//! ```

use crate::error::{CliError, Status};
use crate::small_file;
use clap::Command;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file in the working folder.
const PROJECT_FILE: &str = "tessera.toml";
/// The environment's variable that names the only settings file to read: services are not to find
/// others by chance.
const FILE_VARIABLE: &str = "TESSERA_CONFIG";
/// Bytes of a settings file at most.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Values by option name.
type Values = BTreeMap<String, Vec<String>>;

/// `$XDG_CONFIG_HOME/tessera`, or `~/.config/tessera`; None without a home.
pub(crate) fn user_folder() -> Option<PathBuf> {
    xdg("XDG_CONFIG_HOME", ".config")
}

/// `$XDG_DATA_HOME/tessera`, or `~/.local/share/tessera`; None without a home.
pub(crate) fn data_folder() -> Option<PathBuf> {
    xdg("XDG_DATA_HOME", ".local/share")
}

fn xdg(variable: &str, below_home: &str) -> Option<PathBuf> {
    // The XDG base directory specification: a path that is not absolute counts as none.
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set.or_else(|| std::env::home_dir().map(|home| home.join(below_home)))?;
    Some(base.join("tessera"))
}

/// The only settings file to read, if one is named.
fn named_file() -> Option<PathBuf> {
    std::env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The settings files, of which some may not be there; the later one wins.
pub(crate) fn files() -> Vec<PathBuf> {
    let user = user_folder().map(|folder| folder.join("config.toml"));
    match named_file() {
        Some(named) => vec![named],
        None => user.into_iter().chain([PathBuf::from(PROJECT_FILE)]).collect(),
    }
}

/// The command with the settings of the user's file and of the project's file as defaults; if
/// TESSERA_CONFIG names a file, only with the settings of that one.
pub(crate) fn apply(command: Command, arguments: &[OsString]) -> Result<Command, CliError> {
    let named = named_file();
    let mut command = command;
    for path in files() {
        let text = read(&path)?;
        if text.is_none() && named.is_some() {
            let message = format!("settings file `{}` does not exist", path.display());
            return Err(CliError::new(Status::Usage, message)
                .hint(format!("{FILE_VARIABLE} names it; create it, an empty file is enough")));
        }
        if let Some(text) = text {
            command = with_file(command, &text, chosen(arguments)).map_err(|problem| {
                CliError::new(
                    Status::Usage,
                    format!("settings file `{}`: {problem}", path.display()),
                )
            })?;
        }
    }
    Ok(command)
}

/// Returns the name of the command to run: only its options matter.
fn chosen(arguments: &[OsString]) -> Option<&str> {
    arguments.get(1).and_then(|argument| argument.to_str())
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    let failed =
        |error| CliError::from(error).context(format!("settings file `{}`", path.display()));
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        // The file may have come with a scene from elsewhere; opening a pipe could wait forever.
        Ok(found) if !found.is_file() => {
            return Err(failed(std::io::Error::other("it is not a regular file")));
        }
        Ok(_) => {}
    }
    small_file::read(path, FILE_BYTES_MAX).map(Some).map_err(failed)
}

fn with_file(command: Command, text: &str, chosen: Option<&str>) -> Result<Command, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut common = Values::new();
    let mut own: BTreeMap<String, Values> = BTreeMap::new();
    for (name, value) in &table {
        match value {
            toml::Value::Table(options) if command.find_subcommand(name).is_some() => {
                let values =
                    options.iter().map(|(name, value)| Ok((name.clone(), texts(name, value)?)));
                own.insert(name.clone(), values.collect::<Result<_, String>>()?);
            }
            toml::Value::Table(_) => return Err(format!("[{name}] is not a command")),
            value => {
                common.insert(name.clone(), texts(name, value)?);
            }
        }
    }
    check_names(&command, &common, &own)?;
    let Some(chosen) = chosen.filter(|name| command.find_subcommand(name).is_some()) else {
        return Ok(command);
    };
    let mut values = common;
    values.extend(own.remove(chosen).unwrap_or_default());
    Ok(command.mut_subcommand(chosen, |subcommand| with_defaults(subcommand, &values)))
}

fn check_names(
    command: &Command,
    common: &Values,
    own: &BTreeMap<String, Values>,
) -> Result<(), String> {
    for name in common.keys() {
        if !command.get_subcommands().any(|subcommand| has_option(subcommand, name)) {
            return Err(format!("`{name}` is not an option of any command"));
        }
    }
    for (subcommand, values) in own {
        let known = |name: &String| {
            command.find_subcommand(subcommand).is_some_and(|command| has_option(command, name))
        };
        if let Some(name) = values.keys().find(|name| !known(name)) {
            return Err(format!("`{name}` is not an option of `tessera {subcommand}`"));
        }
    }
    Ok(())
}

/// Returns whether the option belongs to this command or to one below it.
fn has_option(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(name))
        || command.get_subcommands().any(|below| has_option(below, name))
}

fn with_defaults(command: Command, values: &Values) -> Command {
    let below: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = below.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| with_defaults(subcommand, values))
    });
    command.mut_args(|argument| match argument.get_long().and_then(|long| values.get(long)) {
        Some(texts) => argument.default_values(texts.clone()).required(false),
        None => argument,
    })
}

fn texts(name: &str, value: &toml::Value) -> Result<Vec<String>, String> {
    match value {
        toml::Value::String(text) => Ok(vec![text.clone()]),
        toml::Value::Integer(number) => Ok(vec![number.to_string()]),
        toml::Value::Float(number) => Ok(vec![number.to_string()]),
        toml::Value::Boolean(value) => Ok(vec![value.to_string()]),
        toml::Value::Array(items) => {
            let each = items.iter().map(|item| texts(name, item));
            Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => {
            Err(format!("`{name}` is not a text, number or list"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::FromArgMatches;

    fn parsed(file: &str, line: &[&str]) -> Result<Cli, String> {
        let command = with_file(crate::args::command(), file, line.get(1).copied())?;
        let matches = command.try_get_matches_from(line).map_err(|error| error.to_string())?;
        Cli::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    fn spp(file: &str, line: &[&str]) -> u32 {
        match parsed(file, line).unwrap().command {
            crate::args::Command::Render(args) => args.picture.spp(),
            _ => unreachable!("the line is a render"),
        }
    }

    #[test]
    fn a_command_is_sound() {
        crate::args::command().debug_assert();
    }

    #[test]
    fn flags_win_over_files() {
        let line = ["tessera", "render", "a.glb", "-o", "a.exr"];
        assert_eq!(spp("", &line), 64);
        assert_eq!(spp("spp = 7", &line), 7);
        assert_eq!(spp("spp = 7\n[render]\nspp = 9", &line), 9);
        assert_eq!(spp("spp = 7\n[submit]\nspp = 9", &line), 7);
        assert_eq!(spp("spp = 7", &[&line[..], &["--spp", "3"]].concat()), 3);
    }

    #[test]
    fn wrong_settings_are_named() {
        let line = ["tessera", "jobs"];
        for (file, part) in [
            ("sppp = 7", "`sppp` is not an option"),
            ("[render]\nidentity = 'x'", "`identity` is not an option of `tessera render`"),
            ("[paint]\nspp = 1", "[paint] is not a command"),
            ("spp = 1979-05-27", "not a text, number or list"),
            ("spp = ", "TOML"),
        ] {
            let error = parsed(file, &line).unwrap_err();
            assert!(error.contains(part), "{file}: {error}");
        }
    }

    #[test]
    fn options_of_nested_commands_are_found() {
        let line = ["tessera", "token", "create", "--role", "node"];
        let command = parsed("coordinator = 'farm.example'", &line).unwrap().command;
        let crate::args::Command::Token(crate::args::token::TokenCommand::Create(args)) = command
        else {
            unreachable!("the line is a token create");
        };
        assert_eq!(args.farm.coordinator.as_deref(), Some("farm.example"));
    }
}
