//! What a file of events may say, and how it is refused.

use crate::config::{EventsConfig, Tls};
use crate::event::EventKind;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const WHOLE: &str = r#"
allow = ["127.0.0.1:9000", "10.0.0.0/8", "hooks.studio"]
waiting-secs = 5

[[webhook]]
name = "studio"
url = "https://hooks.example.org/tessera?key=path-secret"
secret-file = "studio.secret"
events = ["done", "failed", "cancelled", "waiting", "quarantine", "budget"]

[[webhook]]
name = "ada"
url = "http://127.0.0.1:9000/ada"
secret-file = "studio.secret"
events = ["done"]
owner = "ada"
job = "shot_*"
batch = "film"

[mail]
server = "[::1]:2525"
tls = "none"
from = "Tessera <farm@example.org>"
user = "farm"
password-file = "studio.secret"
gather-secs = 2

[[mail.to]]
name = "wranglers"
to = ["Ada <ada@example.org>", "bob@example.org"]
events = ["failed"]
"#;

const SECRET: &str = "a-secret-of-the-studio";

fn read(folder: &Path, text: &str) -> Result<EventsConfig, String> {
    let secret = folder.join("studio.secret");
    fs::write(&secret, format!("{SECRET}\n")).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let path = folder.join("events.toml");
    fs::write(&path, text).unwrap();
    EventsConfig::read(&path).map_err(|error| error.to_string())
}

#[test]
fn a_whole_file_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let config = read(folder.path(), WHOLE).unwrap();
    assert_eq!(config.patience.as_secs(), 5);
    let [studio, ada] = config.webhooks.as_slice() else { panic!("two webhooks") };
    let url = &studio.url;
    assert_eq!((url.is_tls, url.host.as_str(), url.port), (true, "hooks.example.org", 443));
    assert_eq!((url.path.as_str(), studio.secret.text()), ("/tessera?key=path-secret", SECRET));
    assert_eq!(studio.wanted.kinds, EventKind::ASKED.into_iter().collect());
    assert_eq!((ada.url.is_tls, ada.url.port), (false, 9000));
    assert_eq!(ada.wanted.job.as_deref(), Some("shot_*"));
    let mail = config.mail.unwrap();
    assert_eq!((mail.host.as_str(), mail.port, mail.tls), ("::1", 2525, Tls::None));
    assert_eq!((mail.gather.as_secs(), mail.to[0].to.len()), (2, 2));
}

#[test]
fn secrets_are_not_in_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let printed = format!("{:?}", read(folder.path(), WHOLE).unwrap());
    assert!(printed.contains("hooks.example.org") && printed.contains("wranglers"));
    assert!(!printed.contains(SECRET) && !printed.contains("path-secret"), "{printed}");
}

#[test]
fn a_wrong_value_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to, said) in [
        ("waiting-secs = 5", "waiting-secs = 0", "line 3: waiting-secs is 0"),
        ("\"hooks.studio\"", "\"http://x\"", "line 2: `http://x` in `allow`"),
        ("name = \"ada\"", "name = \"studio\"", "line 11: two targets have the name `studio`"),
        ("\"done\"]\nowner", "\"dune\"]\nowner", "line 11: webhook `ada`: no event is `dune`"),
        ("\"done\"]\nowner", "]\nowner", "webhook `ada`: `events` is empty"),
        ("events = [\"done\"]", "events = [\"quarantine\"]", "`quarantine` is about nodes"),
        ("events = [\"done\"]", "events = [\"budget\"]", "`budget` is about owners"),
        ("127.0.0.1:9000/ada", "127.0.0.1:9001/ada", "webhook `ada`: http:// to 127.0.0.1:9001"),
        ("https://hooks", "ftp://hooks", "line 5: webhook `studio`: its url is not"),
        ("https://hooks", "https://me@hooks", "has a user"),
        ("tls = \"none\"", "tls = \"ssl\"", "line 20: mail: tls is `ssl`"),
        ("[::1]:2525", "mail.example.org:25", "not a loopback address"),
        ("[::1]:2525", "localhost:25", "localhost is not a loopback address"),
        ("[::1]:2525", "::1", "server is `::1`"),
        ("user = \"farm\"\n", "", "user goes with"),
        ("Tessera <farm@example.org>", "Tessera", "`Tessera` is no mail address"),
        ("bob@example.org", "bob", "line 28: mail to `wranglers`: `bob` is no mail address"),
        ("name = \"wranglers\"", "name = \"\"", "line 28"),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        let error = read(folder.path(), &WHOLE.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(said), "{to}: {error}");
    }
}

#[test]
fn unknown_keys_and_missing_targets_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = read(folder.path(), &WHOLE.replacen("owner =", "owners =", 1)).unwrap_err();
    assert!(error.contains("owners") && error.contains("line 16"), "{error}");
    let error = read(folder.path(), "allow = []\n").unwrap_err();
    assert!(error.contains("it has no target"), "{error}");
}

#[test]
fn a_secret_that_others_can_read_or_guess_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.secret");
    fs::write(&other, "a-secret-that-everybody-reads\n").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    let open = WHOLE.replacen("studio.secret", "other.secret", 1);
    let error = read(folder.path(), &open).unwrap_err();
    assert!(error.contains("secret-file"), "{error}");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    read(folder.path(), &open).unwrap();
    fs::write(&other, "short\n").unwrap();
    let error = read(folder.path(), &open).unwrap_err();
    assert!(error.contains("shorter than 16 bytes"), "{error}");
    for (to, said) in [
        ("secret-env = \"A_SECRET_THAT_IS_NOT_SET\"", "is not set"),
        ("", "it has no secret"),
        ("secret-file = \"none\"", "secret-file"),
    ] {
        let text = WHOLE.replacen("secret-file = \"studio.secret\"", to, 1);
        let error = read(folder.path(), &text).unwrap_err();
        assert!(error.contains(said), "{to}: {error}");
    }
}
