//! Lengths of time as options spell them: `90s`, `30m`, `24h`, `7d`.

/// Seconds of `90s`, `30m`, `24h` or `7d`.
pub fn parse_ttl(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a time; write 90s, 30m, 24h or 7d, up to 365d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let digits = &text[..text.len() - 1];
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let secs = digits
        .parse::<u64>()
        .ok()
        .filter(|_| is_number)
        .and_then(|value| value.checked_mul(factor));
    secs.filter(|secs| (1..=365 * 86_400).contains(secs)).ok_or_else(wrong)
}

/// The same, and nothing: `0s`.
pub fn parse_grace(text: &str) -> Result<u64, String> {
    if text == "0s" { Ok(0) } else { parse_ttl(text) }
}

#[cfg(test)]
mod tests {
    use super::{parse_grace, parse_ttl};

    #[test]
    fn a_grace_may_be_zero() {
        assert_eq!((parse_grace("0s"), parse_grace("2m")), (Ok(0), Ok(120)));
        assert!(parse_grace("0").is_err());
    }

    #[test]
    fn times_have_units_and_bounds() {
        let good = [("90s", 90), ("30m", 1800), ("24h", 86_400), ("365d", 31_536_000)];
        good.iter().for_each(|(text, secs)| assert_eq!(parse_ttl(text), Ok(*secs)));
        for text in ["", "s", "0s", "5", "366d", "-1h", "1h30m", "1µ", "99999999999999999999d"] {
            assert!(parse_ttl(text).is_err(), "{text}");
        }
    }
}
