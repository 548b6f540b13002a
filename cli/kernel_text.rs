//! What a user's kernel printed, and what compilers said of it: asked for, and shown without what
//! could take over a terminal.

use crate::client::Farm;
use crate::table::printable;
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

/// Shows the text of a job's kernel on standard error.
pub(crate) async fn show(farm: &Farm, job: JobId) {
    show_lines(&of(farm, job).await);
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
    fn lines_have_no_control_characters() {
        let shown: Vec<String> = lines("a\u{1b}[2Jb\r\nc\u{202e}d\n\n").collect();
        assert_eq!(shown, ["a [2Jb", "c d", ""]);
    }
}
