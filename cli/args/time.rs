//! Times as options spell them: lengths such as `90s`, `30m`, `24h`, `7d`, and frame rates.

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

/// Rates of television and film, in frames per 1001 ms.
const BROADCAST: [f64; 5] = [24.0, 30.0, 48.0, 60.0, 120.0];

/// Frames per second of `25`, `24000/1001` or `29.97`. A rounded rate of television means the exact
/// one.
pub fn parse_fps(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is no frame rate; write 25, 29.97 or 24000/1001");
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    if let Some((count, per)) = text.split_once('/') {
        let rate = number(count).zip(number(per)).map(|(count, per)| count / per);
        return rate.filter(|rate| rate.is_finite()).ok_or_else(wrong);
    }
    let rate = number(text).ok_or_else(wrong)?;
    let decimals = text.split_once('.').map_or(0, |(_, digits)| digits.trim_end().len());
    let means = |exact: &f64| {
        let tens = 10f64.powi(decimals.min(9) as i32);
        decimals >= 2 && (exact * tens).round() == (rate * tens).round()
    };
    Ok(BROADCAST.map(|count| count * 1000.0 / 1001.0).into_iter().find(means).unwrap_or(rate))
}

#[cfg(test)]
mod tests {
    use super::{parse_fps, parse_grace, parse_ttl};

    #[test]
    fn rounded_rates_mean_the_exact_ones() {
        for (text, rate) in [
            ("24", 24.0),
            ("23.976", 24_000.0 / 1001.0),
            ("23.98", 24_000.0 / 1001.0),
            ("23.976024", 24_000.0 / 1001.0),
            ("29.97", 30_000.0 / 1001.0),
            ("59.94", 60_000.0 / 1001.0),
            ("24000/1001", 24_000.0 / 1001.0),
            ("12.5", 12.5),
            ("24.00", 24.0),
            ("23.9", 23.9),
        ] {
            assert_eq!(parse_fps(text), Ok(rate), "{text}");
        }
        for text in ["", "fast", "24/", "/2", "1/0", "0/0", "NaN", "inf", "24 fps", "1/2/3"] {
            assert!(parse_fps(text).is_err(), "{text}");
        }
    }

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
