//! What every help text keeps to: groups, width, plain words.

use super::*;
use tessera_protocol::job::options::OPTIONS;

/// Expressions that help texts avoid; each has a plain one.
const RIDDLES: [&str; 6] = ["nobody", "somebody", " alone", "is none", "what came of", "`"];

fn walk(command: &clap::Command, visit: &mut dyn FnMut(&clap::Command)) {
    visit(command);
    command.get_subcommands().for_each(|sub| walk(sub, visit));
}

#[test]
fn every_command_is_in_one_group_of_the_help() {
    let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    grouped.sort_unstable();
    let command = command();
    let mut names: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
    names.sort_unstable();
    assert_eq!(grouped, names);
}

#[test]
fn names_in_the_help_stand_apart_from_their_texts() {
    let help = command().render_help().to_string();
    for name in GROUPS.iter().flat_map(|(_, names)| *names) {
        assert!(help.contains(&format!("  {name}  ")), "{name} in\n{help}");
    }
}

#[test]
fn help_has_no_wide_line_and_no_dialect() {
    walk(&command(), &mut |command| {
        let mut command = command.clone().term_width(100);
        for text in [command.render_help(), command.render_long_help()] {
            let text = text.to_string();
            let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 100).collect();
            assert!(!text.contains("Possible values"), "{}: a list", command.get_name());
            assert!(wide.is_empty(), "{}: over 100 columns: {wide:#?}", command.get_name());
            let found: Vec<_> = RIDDLES.iter().filter(|word| text.contains(**word)).collect();
            assert!(found.is_empty(), "{}: {found:?} in\n{text}", command.get_name());
        }
    });
}

#[test]
fn every_option_has_a_help_sentence_without_a_period() {
    walk(&command(), &mut |command| {
        let about = ("command", command.get_about().map(ToString::to_string));
        let help = command
            .get_arguments()
            .map(|option| (option.get_id().as_str(), option.get_help().map(ToString::to_string)));
        for (name, text) in std::iter::once(about).chain(help) {
            let text = text.unwrap_or_default();
            let is_sentence = text.starts_with(char::is_uppercase) || text.starts_with("glTF");
            let ends_well = text.starts_with("A render farm") || !text.ends_with('.');
            assert!(is_sentence && ends_well, "{} {name}: `{text}`", command.get_name());
        }
    });
}

#[test]
fn help_shows_no_value_of_the_environment() {
    walk(&command(), &mut |command| {
        let shown = command.get_arguments().filter(|option| option.get_env().is_some());
        let shown: Vec<_> = shown.filter(|option| !option.is_hide_env_values_set()).collect();
        assert!(shown.is_empty(), "{}: {shown:?}", command.get_name());
    });
}

#[test]
fn every_command_has_a_file_of_its_name() {
    let shared = [
        ("pause", "change"),
        ("resume", "change"),
        ("retry", "change"),
        ("forget", "change"),
        ("undrain", "drain"),
        ("allow", "deny"),
    ];
    for command in command().get_subcommands() {
        let name = command.get_name();
        let file = shared.iter().find(|(of, _)| *of == name).map_or(name, |(_, file)| file);
        let file = file.replace('-', "_");
        for folder in ["args", "commands"] {
            let folders =
                [env!("CARGO_MANIFEST_DIR").to_owned() + "/cli", env!("CARGO_MANIFEST_DIR").into()];
            let found = folders.iter().any(|cli| {
                std::path::Path::new(cli).join(folder).join(format!("{file}.rs")).is_file()
            });
            assert!(found, "{folder}/{file}.rs is not there");
        }
    }
}

/// Each flag in the table of a job's options is one of `render` and of `submit`, but for the file
/// formats, which `render` takes from the names of its files.
#[test]
fn options_of_jobs_are_flags_of_render_and_submit() {
    let cli = Cli::command();
    for command in ["render", "submit"] {
        let command = cli.find_subcommand(command).expect("a command");
        let has = |flag: &str| command.get_arguments().any(|arg| arg.get_long() == Some(flag));
        for option in &OPTIONS {
            // A space is measured of the scene.
            let is_of_scene = ["scene", "files", "space"].contains(&option.field);
            assert_eq!(option.flags.is_empty(), is_of_scene, "{} has flags", option.field);
            for flag in option.flags.split(',').filter(|flag| !flag.is_empty()) {
                let of_files = flag == "format" && command.get_name() == "render";
                assert_eq!(has(flag), !of_files, "--{flag} of {}", command.get_name());
            }
        }
    }
}
