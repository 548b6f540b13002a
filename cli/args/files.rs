//! Options of jobs that name files.

/// Options that name a file or a folder, and the character that the path follows.
pub const FILE_OPTIONS: &[(&str, Option<char>)] =
    &[("args", None), ("env", None), ("include", None), ("input", Some('='))];

/// The option with its value, where the path in it is what `place` makes of it.
pub fn with_place(name: &str, text: &str, place: impl FnOnce(&str) -> String) -> String {
    // A frame of a job is no file of this machine.
    if name == "input" && text.split_once('=').is_some_and(|(_, of)| of.starts_with("job:")) {
        return format!("--{name}={text}");
    }
    match FILE_OPTIONS.iter().find(|(option, _)| *option == name) {
        Some((_, Some(split))) => match text.split_once(*split) {
            Some((before, path)) => format!("--{name}={before}{split}{}", place(path)),
            None => format!("--{name}={text}"),
        },
        // Else it is a colour, or a word.
        Some(_) if name == "env" && !is_map(text) => format!("--{name}={text}"),
        Some(_) => format!("--{name}={}", place(text)),
        None => format!("--{name}={text}"),
    }
}

/// Whether --env names an environment map.
fn is_map(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.ends_with(".hdr") || lower.ends_with(".exr")
}
