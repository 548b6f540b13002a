//! `web`: signs a browser in.

use crate::args::web::WebArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tessera_protocol::client::{Request, Response};

/// `tessera web`.
pub(crate) async fn run(args: WebArgs) -> Result<Status, CliError> {
    let Response::WebLink(link) = Farm::of(&args.farm)?.ask(&Request::WebLink).await? else {
        return Err(unexpected());
    };
    if args.json {
        json::print(&json!({ "link": link }))?;
        return Ok(Status::Done);
    }
    if !args.print && std::io::stdout().is_terminal() && has_screen() {
        match open(&link) {
            Ok(()) => {
                eprintln!("a browser opens; `tessera web --print` prints the link instead");
                return Ok(Status::Done);
            }
            Err(error) => tracing::debug!(%error, "no browser opens"),
        }
    }
    json::line(&link)?;
    eprintln!("open this link within two minutes; it works once");
    Ok(Status::Done)
}

/// Whether a browser could show something here.
fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Opens a browser on a page that leads to the link. The link itself stands in no command line,
/// where other users of the machine would see it.
fn open(link: &str) -> std::io::Result<()> {
    let page = page(link)?;
    let opener = Command::new("xdg-open")
        .arg(&page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    match opener.success() {
        true => Ok(()),
        false => Err(std::io::Error::other("xdg-open has failed")),
    }
}

/// Writes a page that only this user can read. It is written over by the next one.
fn page(link: &str) -> std::io::Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = runtime.filter(|path| path.is_absolute());
    let folder = folder.ok_or_else(|| std::io::Error::other("no XDG_RUNTIME_DIR"))?;
    let path = folder.join("tessera-web.html");
    write(&path, link).map(|()| path)
}

fn write(path: &Path, link: &str) -> std::io::Result<()> {
    // Another mode would stay: the file is made anew.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // The link has letters, digits and a few signs: it needs no escapes.
    write!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><title>Tessera</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\"><a href=\"{link}\">Sign in</a>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_page_is_for_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        std::fs::write(&path, "old").unwrap();
        write(&path, "http://127.0.0.1:1/sign-in#tsb1_x").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(std::fs::read_to_string(&path).unwrap().contains("url=http://127.0.0.1:1/"));
    }
}
