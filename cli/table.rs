//! Formats tables and values for people.

pub(crate) use tessera_protocol::names::printable;

/// Lines of a table with this head; empty where there is no row.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for row in all() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// A count of bytes with a binary unit.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// A number with a decimal unit: `1.2 M`.
pub(crate) fn count(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e3 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0} "),
    }
}

/// `1 device`, `3 devices`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A span of time: `42 s`, `3 min`, `5 h`, `2 d`.
pub(crate) fn span(secs: u64) -> String {
    match secs {
        0..120 => format!("{secs} s"),
        120..7200 => format!("{} min", secs / 60),
        7200..172_800 => format!("{} h", secs / 3600),
        _ => format!("{} d", secs / 86_400),
    }
}

/// Text of several lines from elsewhere, safe for a terminal: as [`printable`], with its line ends
/// and tabs.
pub(crate) fn printable_lines(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(printable).collect::<Vec<_>>().join("\t");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = vec![
            vec!["a".into(), "long".into(), "x".into()],
            vec!["abc".into(), "b".into(), String::new()],
        ];
        assert_eq!(table(&["I", "J", "K"], &rows), "I    J     K\na    long  x\nabc  b\n");
        assert_eq!(table(&["I"], &[]), "");
    }

    #[test]
    fn lines_keep_their_ends_and_nothing_else() {
        assert_eq!(printable_lines("a\r\n\tb\u{1b}c\u{200f}\n"), "a \n\tb\\u{1b}c\\u{200f}\n");
    }

    #[test]
    fn counts_have_their_plural() {
        assert_eq!((counted(1, "unit"), counted(0, "unit")), ("1 unit".into(), "0 units".into()));
    }

    #[test]
    fn quantities_have_units() {
        assert_eq!((bytes(1023), bytes(1536)), ("1023 B".into(), "1.5 KiB".into()));
        assert_eq!((count(999.0), count(2.5e6)), ("999 ".into(), "2.50 M".into()));
        assert_eq!((span(119), span(7300)), ("119 s".into(), "2 h".into()));
    }
}
