//! Device time and money as people read them.

use super::amount::Amount;

/// Device time from milliseconds: `42.5 s`, `3 min 20 s`, `5 h 12 min`.
pub fn device_time(millis: u64) -> String {
    let secs = millis / 1000;
    match secs {
        0..60 => format!("{secs}.{} s", millis % 1000 / 100),
        60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        _ => format!("{} h {} min", secs / 3600, secs / 60 % 60),
    }
}

/// Space over time from bytes × hours: `350.0 MB h`, `12.5 GB h`, `3.0 TB h`.
pub fn space_time(byte_hours: u64) -> String {
    let of = |unit: u64| byte_hours as f64 / unit as f64;
    match byte_hours {
        0..1_000_000_000 => format!("{:.1} MB h", of(1_000_000)),
        1_000_000_000..1_000_000_000_000 => format!("{:.1} GB h", of(1_000_000_000)),
        _ => format!("{:.1} TB h", of(1_000_000_000_000)),
    }
}

/// An amount with its currency; None where nothing has a price.
pub fn money(amount: Amount, currency: &str) -> Option<String> {
    let is_free = currency.is_empty() && amount == Amount(0);
    (!is_free).then(|| format!("{amount} {currency}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_amounts_are_read_by_people() {
        let times = [4500, 200_000, 18_720_000].map(device_time);
        assert_eq!(times, ["4.5 s", "3 min 20 s", "5 h 12 min"]);
        assert_eq!(money(Amount(1_250_000), "EUR").as_deref(), Some("1.25 EUR"));
        assert_eq!(money(Amount(1_250_000), "").as_deref(), Some("1.25"));
        assert_eq!(money(Amount(0), ""), None);
        let spaces = [350_000_000, 12_500_000_000, 3_000_000_000_000].map(space_time);
        assert_eq!(spaces, ["350.0 MB h", "12.5 GB h", "3.0 TB h"]);
    }
}
