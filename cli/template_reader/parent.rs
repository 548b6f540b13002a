//! The coordinator's side: starts a child, gives it its order, and waits for its answer, which is
//! bounded in time and length.

use super::{Answer, COMMAND, Order};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tessera_http::{BatchAsked, TemplateAsked, TemplateOutline, TemplatePlan};
use tessera_node::Sandbox;
use tessera_protocol::limits::MESSAGE_BYTES_MAX;

/// Longest time for a template with its scenes.
const TIME: Duration = Duration::from_secs(60);

/// What is read of a template.
pub(crate) enum Found {
    Outline(TemplateOutline),
    Plan(TemplatePlan),
}

/// A child that does not outlive this value.
struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a template whose files are in a folder. With `batch` its jobs are made. Blocks.
pub(crate) fn ask(
    folder: &Path,
    asked: &TemplateAsked,
    batch: Option<&BatchAsked>,
) -> Result<Found, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the template cannot be read: {error}");
    let folder = folder.canonicalize().map_err(|error| failed(&error))?;
    let sandbox = Sandbox::of_environment();
    let order = Order {
        parent: std::process::id(),
        sandbox,
        folder: folder.clone(),
        asked: asked.clone(),
        batch: batch.cloned(),
    };
    let order = tessera_protocol::encode(&order).map_err(|error| failed(&error))?;
    // The file that runs, even where another one has taken its name since.
    let child = Command::new("/proc/self/exe")
        .arg(COMMAND)
        .current_dir(&folder)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut reader = Reader(child.map_err(|error| failed(&error))?);
    let (Some(mut input), Some(output)) = (reader.0.stdin.take(), reader.0.stdout.take()) else {
        return Err(failed(&"it has no pipes"));
    };
    let (tell, told) = mpsc::channel();
    // Both ends at once: neither side waits for the other with a full pipe.
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A child that has ended says so by its answer.
            let _ = input.write_all(&order);
        });
        scope.spawn(move || {
            let mut bytes = Vec::new();
            let read = output.take(MESSAGE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
            let _ = tell.send(read.map(|_| bytes));
        });
        let answer = told.recv_timeout(TIME);
        // Ends the threads as well, where it did not answer.
        drop(reader);
        let bytes = match answer {
            Ok(read) => read.map_err(|error| failed(&error))?,
            Err(_) => {
                let secs = TIME.as_secs();
                return Err(format!("the template and its scenes take more than {secs} s to read"));
            }
        };
        match tessera_protocol::decode(&bytes) {
            Ok(Answer::Outline(outline)) => Ok(Found::Outline(*outline)),
            Ok(Answer::Plan(plan)) => Ok(Found::Plan(plan)),
            Ok(Answer::Refused(text)) => Err(text),
            Err(_) => Err(failed(&"the reader ended; a scene of it may need too much memory")),
        }
    })
}
