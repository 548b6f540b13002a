//! The hours in which a node works, by the clock on its wall. Owns no node.

use crate::local_time::{self, WallTime, wall_time};
use std::fmt;
use std::str::FromStr;
use tessera_protocol::cost::Hours;

/// What the farm is told of a node whose hours are over, at the beginning.
pub(crate) const OVER: &str = "its hours are over";
/// Most spans of one list.
const SPANS_MAX: usize = 32;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// All bits of [`Span::days`].
const EVERY_DAY: u8 = 0x7f;

/// Spans of time that come again every week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkHours {
    spans: Vec<Span>,
    /// As it was written.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    /// Days on which it begins: bit 0 is Monday.
    days: u8,
    hours: Hours,
}

/// A moment by the clock of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// 0 is Monday.
    day: u8,
    /// Minute of the day.
    minute: u16,
}

impl Local {
    /// Now, in the time zone of this machine or of `TZ`.
    pub(crate) fn now() -> Self {
        let WallTime { civil, weekday } = wall_time(local_time::now());
        Self { day: weekday, minute: (civil.second / 60) as u16 }
    }
}

impl WorkHours {
    /// Whether a moment is within one of the spans.
    pub(crate) fn hold(&self, at: Local) -> bool {
        self.spans.iter().any(|span| span.holds(at))
    }
}

impl Span {
    fn holds(self, at: Local) -> bool {
        let begins = |day: u8| self.days >> (day % 7) & 1 == 1;
        if !self.hours.hold(at.minute) {
            return false;
        }
        // One that goes over midnight began the day before.
        let is_after_midnight =
            self.hours.from_minute > self.hours.to_minute && at.minute < self.hours.to_minute;
        begins(if is_after_midnight { at.day + 6 } else { at.day })
    }
}

impl fmt::Display for WorkHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for WorkHours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let spans: Vec<Span> = text.split(',').map(span).collect::<Result<_, _>>()?;
        match spans.len() {
            0..=SPANS_MAX => Ok(Self { spans, text: text.trim().to_owned() }),
            more => Err(format!("{more} spans are more than {SPANS_MAX}")),
        }
    }
}

/// Reads `20:00-07:00`, or with the days on which it begins `mon-fri 20:00-07:00`.
fn span(text: &str) -> Result<Span, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (days, hours) = match words[..] {
        [hours] => (EVERY_DAY, hours),
        [days, hours] => (days_of(days)?, hours),
        _ => return Err(form()),
    };
    let hours: Hours = hours.parse().map_err(|_| form())?;
    let is_in_day = hours.from_minute < 24 * 60 && hours.to_minute <= 24 * 60;
    if !is_in_day || hours.from_minute == hours.to_minute {
        return Err(form());
    }
    Ok(Span { days, hours })
}

fn form() -> String {
    "write 20:00-07:00, or with days mon-fri 20:00-07:00; several with commas between them; \
        00:00-24:00 is a whole day"
        .to_owned()
}

fn days_of(text: &str) -> Result<u8, String> {
    let place = |name: &str| {
        let name = name.to_ascii_lowercase();
        DAYS.iter()
            .position(|day| *day == name)
            .ok_or_else(|| format!("`{name}` is no day; they are {}", DAYS.join(", ")))
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (place(first)?, place(last)?);
    let count = (last + 7 - first) % 7;
    Ok((0..=count).map(|step| 1 << ((first + step) % 7)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: u8, hour: u16, minute: u16) -> Local {
        Local { day, minute: hour * 60 + minute }
    }

    #[test]
    fn hours_go_over_midnight_into_the_next_day() {
        let nights: WorkHours = "mon-fri 20:00-07:00, sat-sun 00:00-24:00".parse().unwrap();
        for (day, hour, works) in [
            (0, 6, false),
            (0, 7, false),
            (0, 20, true),
            (1, 6, true),
            (4, 23, true),
            (5, 6, true),
            (6, 12, true),
            (6, 23, true),
        ] {
            assert_eq!(nights.hold(at(day, hour, 59)), works, "{day} {hour}");
        }
        let always: WorkHours = "22:30-06:15".parse().unwrap();
        assert!((0..7).all(|day| always.hold(at(day, 22, 30)) && always.hold(at(day, 6, 14))));
        assert!((0..7).all(|day| !always.hold(at(day, 22, 29)) && !always.hold(at(day, 6, 15))));
        assert_eq!(nights.to_string(), "mon-fri 20:00-07:00, sat-sun 00:00-24:00");
    }

    #[test]
    fn days_may_go_over_the_end_of_a_week() {
        let long: WorkHours = "Sat-Mon 00:00-24:00".parse().unwrap();
        let days: Vec<u8> = (0..7).filter(|day| long.hold(at(*day, 12, 0))).collect();
        assert_eq!(days, [0, 5, 6]);
        let one: WorkHours = "sun 23:00-01:00".parse().unwrap();
        assert!(one.hold(at(6, 23, 30)) && one.hold(at(0, 0, 30)) && !one.hold(at(6, 0, 30)));
    }

    #[test]
    fn what_is_no_time_is_refused_with_the_form() {
        for text in
            ["", "20-7", "20:00", "20:00-20:00", "25:00-26:00", "24:00-01:00", "mon", "a b c"]
        {
            let error = text.parse::<WorkHours>().unwrap_err();
            assert!(error.contains("20:00-07:00"), "{text}: {error}");
        }
        assert!("someday 20:00-07:00".parse::<WorkHours>().unwrap_err().contains("no day"));
        let many = ["20:00-21:00"; SPANS_MAX + 1].join(",");
        assert!(many.parse::<WorkHours>().unwrap_err().contains("33 spans"));
    }

    #[test]
    fn the_clock_on_the_wall_is_read() {
        let now = Local::now();
        assert!(now.day < 7 && now.minute < 24 * 60, "{now:?}");
    }
}
