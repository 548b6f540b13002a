//! What a user's kernel printed, and what compilers said of it: asked for, and shown without what
//! could take over a terminal.

use crate::client::Farm;
use crate::table::printable;
use std::collections::HashMap;
use tessera_protocol::JobId;
use tessera_protocol::client::{Request, Response};

/// Asks for the text of a job's kernel. Empty if there is none, and for people that it is not for.
pub(crate) async fn of(farm: &Farm, job: JobId) -> String {
    match farm.ask(&Request::KernelText(job)).await {
        Ok(Response::KernelText(text)) => text,
        Ok(_) => String::new(),
        // Only the owner and operators may see it, and the job counts without it.
        Err(error) => {
            tracing::debug!(%error, "the text of the kernel cannot be had");
            String::new()
        }
    }
}

/// The text of a job that runs: each line is told once, when it is there.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// How often each line was told.
    told: HashMap<String, usize>,
}

impl Heard {
    /// Asks for the text of a job, and returns the lines that were not told before.
    pub(crate) async fn ask(&mut self, farm: &Farm, job: JobId) -> Vec<String> {
        self.news(&of(farm, job).await)
    }

    /// Returns the lines of a text that were not told before. A text is in the order of units,
    /// which end in another: lines come between others later.
    fn news(&mut self, text: &str) -> Vec<String> {
        let mut here: HashMap<String, usize> = HashMap::new();
        let is_new = |line: &String| {
            let count = here.entry(line.clone()).or_default();
            *count += 1;
            let told = self.told.entry(line.clone()).or_default();
            let is_new = *count > *told;
            *told = (*told).max(*count);
            is_new
        };
        lines(text).filter(is_new).collect()
    }
}

/// Shows a text on standard error, line by line.
pub(crate) fn show_lines(text: &str) {
    for line in lines(text) {
        eprintln!("{line}");
    }
}

/// Returns the lines of a text from elsewhere, safe for a terminal.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| printable(line).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_once_for_each_time_that_it_is_said() {
        let mut heard = Heard::default();
        assert_eq!(heard.news("b\nb\nd\n"), ["b", "b", "d"]);
        assert_eq!(heard.news("b\nb\nd\n"), [""; 0]);
        // Units before and after have ended.
        assert_eq!(heard.news("a\nb\nb\nb\nc\nd\n"), ["a", "b", "c"]);
        assert_eq!(heard.news("[further text is not kept]"), ["[further text is not kept]"]);
        assert_eq!(heard.news("a\nb\n"), [""; 0]);
    }

    #[test]
    fn lines_have_no_control_characters() {
        let shown: Vec<String> = lines("a\u{1b}[2Jb\r\nc\u{202e}d\n\n").collect();
        assert_eq!(shown, ["a\\u{1b}[2Jb", "c\\u{202e}d", ""]);
    }
}
