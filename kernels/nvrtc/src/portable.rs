//! PTX for older drivers than the compiler's own. Compiles nothing.

/// Lowers the version that a PTX text asks for to 7.0 (CUDA 11.0), which every driver that can use
/// a GPU of compute capability 7.5 with C++17 code accepts, and drops the pragmas that only newer
/// ones know. A driver refuses PTX of a newer version than its own, however little of it is used;
/// what a newer instruction needs is still checked when it is loaded.
pub fn portable_ptx(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        let code = line.trim_start();
        if code.starts_with(".pragma \"used_bytes_mask") {
            continue;
        }
        text.push_str(if is_newer_version(code) { ".version 7.0" } else { line });
        text.push('\n');
    }
    text
}

fn is_newer_version(code: &str) -> bool {
    let version = code.strip_prefix(".version ").and_then(|version| version.split('.').next());
    version.and_then(|major| major.trim().parse::<u32>().ok()).is_some_and(|major| major >= 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_version_and_the_pragmas_change() {
        let ptx = ".version 9.5\n.target sm_75\n\t.pragma \"used_bytes_mask 0x7\";\n\tret;\n";
        assert_eq!(portable_ptx(ptx), ".version 7.0\n.target sm_75\n\tret;\n");
        assert_eq!(portable_ptx(".version 6.3\n"), ".version 6.3\n");
    }
}
