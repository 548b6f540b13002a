//! Which requests a coordinator that stands by answers itself.

use axum::http::Method;

/// Whether a path has nothing of the farm: scripts and styles, and how to sign in.
pub(super) fn is_for_anybody(path: &str) -> bool {
    matches!(path, "/" | "/sign-in" | "/favicon.ico" | "/ready") || path.starts_with("/assets/")
}

/// Whether a request reads what is in the journal, or in the bucket where that can be read.
pub(super) fn is_read(method: &Method, path: &str, reads_files: bool) -> bool {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return false;
    }
    let parts: Vec<&str> = path.strip_prefix('/').unwrap_or_default().split('/').collect();
    match parts.as_slice() {
        ["metrics"] | ["jobs"] | ["jobs", _] | ["jobs", _, "frames", _] => true,
        ["api", "v1", "me" | "jobs" | "events"] | ["api", "v1", "jobs", _] => true,
        ["api", "v1", "jobs", _, "frames"] => true,
        ["api", "v1", "jobs", _, "frames", _, "files", _] => reads_files,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_journal_is_read_here_and_nothing_else() {
        let read = |path| is_read(&Method::GET, path, true);
        for path in [
            "/jobs",
            "/jobs/1",
            "/jobs/1/frames/3",
            "/metrics",
            "/api/v1/me",
            "/api/v1/jobs",
            "/api/v1/jobs/1",
            "/api/v1/jobs/1/frames",
            "/api/v1/jobs/1/frames/3/files/exr",
            "/api/v1/events",
        ] {
            assert!(read(path), "{path}");
            assert!(!is_read(&Method::POST, path, true) && !is_for_anybody(path), "{path}");
        }
        assert!(!is_read(&Method::GET, "/api/v1/jobs/1/frames/3/files/exr", false));
        for path in [
            "/nodes",
            "/costs",
            "/access",
            "/api/v1/nodes",
            "/api/v1/jobs/1/live",
            "/api/v1/jobs/1/explain",
            "/api/v1/jobs/1/logs",
            "/api/v1/audit",
            "/api/v1/blobs/00",
            "/oidc/begin",
            "//jobs",
            "/api/v1/jobs/1/",
            "jobs",
            "",
        ] {
            assert!(!read(path), "{path}");
        }
        for path in ["/sign-in", "/assets/0/style.css", "/"] {
            assert!(is_for_anybody(path), "{path}");
        }
    }
}
