//! Prices, groups and budgets, as an admin sets them.

use super::amount::Amount;
use crate::limits::NAME_MAX;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::{BTreeMap, BTreeSet};

/// Most prices.
pub const PRICES_MAX: usize = 256;
/// Most budgets.
pub const BUDGETS_MAX: usize = 256;
/// Most groups.
pub const GROUPS_MAX: usize = 256;
/// Most members of all groups together.
pub const MEMBERS_MAX: usize = 4096;
/// Most characters of the currency's name.
const CURRENCY_MAX: usize = 8;
/// Largest factor.
const FACTOR_MOST: f64 = 100.0;
/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// What device time costs, who belongs together, and what may be spent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostRules {
    /// Name of the currency, such as `EUR`; empty where nothing has a price.
    #[serde(default)]
    pub currency: String,
    /// Factor on every price, for what belongs to no device: power, rooms, people. None is 1; at
    /// most 100.
    #[serde(default)]
    pub factor: Option<f64>,
    /// Minutes by which the clock of [`Hours`] is ahead of UTC, -1440 to 1440.
    #[serde(default)]
    pub utc_offset_minutes: i16,
    /// Prices of an hour of a device. The first one that fits counts; where none fits, the time is
    /// counted and costs nothing.
    #[serde(default, rename = "price")]
    pub prices: Vec<Price>,
    /// Price of a gigabyte of finished frames for 30 days, before the factor. 0 counts no space.
    #[serde(default)]
    pub storage_gb_month: Amount,
    /// Names of owners by the name of their group.
    #[serde(default, rename = "group")]
    pub groups: BTreeMap<String, Vec<String>>,
    /// What may be spent.
    #[serde(default, rename = "budget")]
    pub budgets: Vec<Budget>,
}

/// The price of an hour of the devices that fit all its conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Pattern of the device's product name: `*` is any text, `?` one character. None fits all.
    #[serde(default)]
    pub device: Option<String>,
    /// Pool of the device's node. None fits all.
    #[serde(default)]
    pub pool: Option<String>,
    /// Pattern of the node's name. None fits all.
    #[serde(default)]
    pub node: Option<String>,
    /// Hours of the day. None fits all.
    #[serde(default)]
    pub hours: Option<Hours>,
    /// Price of an hour.
    pub per_hour: Amount,
}

/// A time of the day: from a minute up to, and without, another. It may go over midnight.
/// As text it is `22:00-06:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// First minute of the day, 0 to 1439.
    pub from_minute: u16,
    /// Minute of the day after the last, 0 to 1440.
    pub to_minute: u16,
}

impl Hours {
    /// Whether a minute of the day is within.
    pub fn hold(self, minute: u16) -> bool {
        match self.from_minute <= self.to_minute {
            true => (self.from_minute..self.to_minute).contains(&minute),
            false => minute >= self.from_minute || minute < self.to_minute,
        }
    }
}

impl std::fmt::Display for Hours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [from, to] = [self.from_minute, self.to_minute];
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

impl std::str::FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let minute = |text: &str| {
            let (hours, minutes) = text.trim().split_once(':')?;
            let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
            (hours <= 24 && minutes < 60).then_some(hours * 60 + minutes)
        };
        let parts = text.split_once('-');
        let both = parts.and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
        let hours = both.map(|(from_minute, to_minute)| Self { from_minute, to_minute });
        hours.ok_or_else(|| "hours are written as `22:00-06:00`".to_owned())
    }
}

impl Serialize for Hours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => (self.from_minute, self.to_minute).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Hours {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return String::deserialize(deserializer)?.parse().map_err(de::Error::custom);
        }
        let (from_minute, to_minute) = Deserialize::deserialize(deserializer)?;
        Ok(Self { from_minute, to_minute })
    }
}

/// Who spends together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// All owners together.
    Farm,
    /// The owners of a group together.
    Group(String),
    /// One owner: the name, or `#` and the number of the identity.
    Owner(String),
}

impl std::fmt::Display for Whose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Farm => f.write_str("the farm"),
            Self::Group(name) => write!(f, "group `{name}`"),
            Self::Owner(name) => write!(f, "`{name}`"),
        }
    }
}

/// What may be spent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Who spends it.
    #[serde(rename = "of")]
    pub whose: Whose,
    /// Amount that may be spent.
    pub amount: Amount,
    /// Time in which it may be spent.
    #[serde(default)]
    pub period: Period,
    /// What happens once it is spent.
    #[serde(default)]
    pub at_limit: AtLimit,
    /// Part of the amount from which on it is said, in percent, 1 to 100.
    #[serde(default = "warn_percent")]
    pub warn_percent: u8,
}

fn warn_percent() -> u8 {
    80
}

/// Time in which a budget may be spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// A month of the calendar, in UTC.
    #[default]
    Month,
    /// All time.
    Total,
}

/// What happens once a budget is spent. No unit that runs is ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// It is said, and nothing else.
    Warn,
    /// New jobs are refused.
    Refuse,
    /// New jobs are refused, and no unit of the others begins.
    #[default]
    Pause,
}

impl CostRules {
    /// Checks names, numbers and lengths, which come from outside. `Err` says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.check_counts()?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "€$£¥".contains(c);
        if self.currency.chars().count() > CURRENCY_MAX || !self.currency.chars().all(is_plain) {
            return Err(format!(
                "currency: not at most {CURRENCY_MAX} letters, digits or €, $, £, ¥"
            ));
        }
        if self.factor.is_some_and(|factor| !(0.0..=FACTOR_MOST).contains(&factor)) {
            return Err(format!("factor: not in 0 to {FACTOR_MOST}"));
        }
        if self.utc_offset_minutes.unsigned_abs() > DAY {
            return Err(format!("utc_offset_minutes: not in -{DAY} to {DAY}"));
        }
        if self.storage_gb_month > Amount::MOST {
            return Err("storage_gb_month: above 1000000000".to_owned());
        }
        for (index, price) in self.prices.iter().enumerate() {
            price.check().map_err(|problem| format!("price {}: {problem}", index + 1))?;
        }
        let mut members = BTreeSet::new();
        for (name, owners) in &self.groups {
            check_name(name).map_err(|problem| format!("group: {problem}"))?;
            for owner in owners {
                check_name(owner).map_err(|problem| format!("group {name}: {problem}"))?;
                if !members.insert(owner) {
                    return Err(format!("group {name}: `{owner}` is in a group already"));
                }
            }
        }
        self.budgets.iter().enumerate().try_for_each(|(index, budget)| {
            let checked = self.check_budget(index, budget);
            checked.map_err(|problem| format!("budget {}: {problem}", index + 1))
        })
    }

    fn check_counts(&self) -> Result<(), String> {
        let members = self.groups.values().map(Vec::len).sum::<usize>();
        let counts = [
            (self.prices.len(), PRICES_MAX, "prices"),
            (self.groups.len(), GROUPS_MAX, "groups"),
            (members, MEMBERS_MAX, "members of groups"),
            (self.budgets.len(), BUDGETS_MAX, "budgets"),
        ];
        match counts.iter().find(|(count, most, _)| count > most) {
            Some((count, most, what)) => Err(format!("{count} {what}; at most {most} are kept")),
            None => Ok(()),
        }
    }

    fn check_budget(&self, index: usize, budget: &Budget) -> Result<(), String> {
        match &budget.whose {
            Whose::Group(name) if !self.groups.contains_key(name) => {
                return Err(format!("there is no group `{name}`"));
            }
            Whose::Owner(name) => check_name(name)?,
            Whose::Farm | Whose::Group(_) => {}
        }
        let same = |other: &&Budget| other.whose == budget.whose && other.period == budget.period;
        if self.budgets[..index].iter().any(|other| same(&other)) {
            return Err(format!("{} has a budget for that time already", budget.whose));
        }
        if budget.amount > Amount::MOST || !(1..=100).contains(&budget.warn_percent) {
            return Err("amount above 1000000000, or warn_percent not in 1 to 100".to_owned());
        }
        Ok(())
    }

    /// Whether an owner, with the number of its identity, is one of those who spend together.
    pub fn includes(&self, whose: &Whose, owner: &str, owner_id: u64) -> bool {
        let is_named = |name: &str| match name.strip_prefix('#') {
            Some(number) => number.parse() == Ok(owner_id),
            None => name == owner,
        };
        match whose {
            Whose::Farm => true,
            Whose::Owner(name) => is_named(name),
            Whose::Group(name) => {
                let members = self.groups.get(name).into_iter().flatten();
                members.into_iter().any(|member| is_named(member))
            }
        }
    }

    /// Returns the group of an owner; None if it is in none.
    pub fn group_of(&self, owner: &str, owner_id: u64) -> Option<&str> {
        let mut names = self.groups.keys();
        let name =
            names.find(|name| self.includes(&Whose::Group((*name).clone()), owner, owner_id))?;
        Some(name)
    }

    /// Returns what an hour of a device costs at a time, in seconds since the Unix epoch, with the
    /// factor; nothing where no price fits.
    pub fn price_of(&self, device: &str, (pool, node): (Option<&str>, &str), secs: u64) -> Amount {
        let offset = i64::from(self.utc_offset_minutes);
        let minute = ((secs / 60) as i64 + offset).rem_euclid(i64::from(DAY)) as u16;
        let fits = |price: &&Price| price.fits(device, (pool, node), minute);
        let an_hour = self.prices.iter().find(fits).map_or(Amount(0), |price| price.per_hour);
        self.with_factor(an_hour)
    }

    /// Returns what a gigabyte of finished frames costs for 30 days, with the factor.
    pub fn storage_price(&self) -> Amount {
        self.with_factor(self.storage_gb_month)
    }

    fn with_factor(&self, price: Amount) -> Amount {
        Amount((price.0 as f64 * self.factor.unwrap_or(1.0)).round() as u64)
    }
}

impl Price {
    fn check(&self) -> Result<(), String> {
        let texts = [&self.device, &self.pool, &self.node];
        texts.into_iter().flatten().try_for_each(|text| check_name(text))?;
        let wrong = |hours: &Hours| {
            let (from, to) = (hours.from_minute, hours.to_minute);
            from >= DAY || to > DAY || from == to
        };
        if self.hours.as_ref().is_some_and(wrong) {
            return Err("hours: not two different minutes of a day".to_owned());
        }
        match self.per_hour > Amount::MOST {
            true => Err("per_hour: above 1000000000".to_owned()),
            false => Ok(()),
        }
    }

    fn fits(&self, device: &str, (pool, node): (Option<&str>, &str), minute: u16) -> bool {
        let fits = |pattern: &Option<String>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| crate::pattern::fits(pattern, text))
        };
        fits(&self.device, device)
            && fits(&self.node, node)
            && self.pool.as_deref().is_none_or(|of| pool == Some(of))
            && self.hours.is_none_or(|hours| hours.hold(minute))
    }
}

fn check_name(name: &str) -> Result<(), String> {
    match (1..=NAME_MAX).contains(&name.len()) && !name.chars().any(crate::names::is_control) {
        true => Ok(()),
        false => Err(format!("a name has 1 to {NAME_MAX} bytes, and no control characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(device: &str, pool: Option<&str>, per_hour: u64) -> Price {
        let (device, pool) = (Some(device.to_owned()), pool.map(str::to_owned));
        Price { device, pool, per_hour: Amount(per_hour), ..Price::default() }
    }

    fn rules() -> CostRules {
        let night = Hours { from_minute: 22 * 60, to_minute: 6 * 60 };
        CostRules {
            currency: "EUR".into(),
            factor: Some(1.15),
            utc_offset_minutes: 60,
            prices: vec![
                price("NVIDIA H*", Some("spot"), 1_000_000),
                Price { hours: Some(night), ..price("NVIDIA H*", None, 2_000_000) },
                price("NVIDIA H*", None, 4_000_000),
            ],
            storage_gb_month: Amount(20_000),
            groups: BTreeMap::from([("light".into(), vec!["ada".into(), "#7".into()])]),
            budgets: vec![Budget {
                whose: Whose::Group("light".into()),
                amount: Amount(100_000_000),
                period: Period::Month,
                at_limit: AtLimit::Pause,
                warn_percent: 80,
            }],
        }
    }

    #[test]
    fn the_first_price_that_fits_counts_with_the_factor() {
        let rules = rules();
        rules.check().unwrap();
        let of = |device: &str, pool: Option<&str>, hour: u64| {
            rules.price_of(device, (pool, "n"), hour * 3600).0
        };
        assert_eq!(of("NVIDIA H200", Some("spot"), 12), 1_150_000);
        assert_eq!(of("NVIDIA H200", None, 12), 4_600_000);
        // 21:00 UTC is 22:00 there, and 5:00 is 6:00.
        assert_eq!(
            [of("NVIDIA H200", None, 21), of("NVIDIA H200", None, 5)],
            [2_300_000, 4_600_000]
        );
        assert_eq!(of("AMD EPYC", None, 12), 0);
        assert_eq!(rules.storage_price(), Amount(23_000));
    }

    #[test]
    fn rules_are_the_same_as_text_and_as_bytes() {
        let rules = rules();
        let text = serde_json::to_string(&rules).unwrap();
        assert!(text.contains("\"22:00-06:00\"") && text.contains("\"group\":\"light\""), "{text}");
        assert_eq!(serde_json::from_str::<CostRules>(&text).unwrap(), rules);
        assert_eq!(crate::decode::<CostRules>(&crate::encode(&rules).unwrap()).unwrap(), rules);
        for wrong in ["22-6", "25:00-06:00", "22:60-06:00", "22:00", ""] {
            assert!(wrong.parse::<Hours>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn members_of_groups_are_names_or_numbers() {
        let rules = rules();
        let light = Whose::Group("light".into());
        let is = |name: &str, id| rules.includes(&light, name, id);
        assert!(is("ada", 1) && is("bob", 7) && !is("bob", 8));
        assert_eq!((rules.group_of("bob", 7), rules.group_of("bob", 8)), (Some("light"), None));
        assert!(rules.includes(&Whose::Farm, "eve", 9));
        assert!(!rules.includes(&Whose::Owner("ada".into()), "eve", 9));
    }

    #[test]
    fn rules_that_make_no_sense_are_refused_by_name() {
        let refused = |change: &dyn Fn(&mut CostRules)| {
            let mut rules = rules();
            change(&mut rules);
            rules.check().unwrap_err()
        };
        assert!(refused(&|rules| rules.currency = "a b".into()).starts_with("currency"));
        assert!(refused(&|rules| rules.factor = Some(f64::NAN)).starts_with("factor"));
        assert!(refused(&|rules| rules.utc_offset_minutes = 1441).starts_with("utc_offset"));
        assert!(
            refused(&|rules| rules.prices[1].device = Some(String::new())).starts_with("price 2")
        );
        let dear = Amount(Amount::MOST.0 + 1);
        assert!(refused(&|rules| rules.storage_gb_month = dear).starts_with("storage_gb_month"));
        let same = Hours { from_minute: 5, to_minute: 5 };
        assert!(refused(&|rules| rules.prices[0].hours = Some(same)).contains("hours"));
        assert!(refused(&|rules| rules.groups.clear()).contains("no group `light`"));
        assert!(refused(&|rules| rules.budgets.push(rules.budgets[0].clone())).contains("already"));
        let twice = |rules: &mut CostRules| {
            rules.groups.insert("other".into(), vec!["ada".into()]);
        };
        assert!(refused(&twice).contains("in a group already"));
        assert!(refused(&|rules| rules.budgets[0].warn_percent = 0).contains("warn_percent"));
        let many = |rules: &mut CostRules| rules.prices = vec![Price::default(); PRICES_MAX + 1];
        assert!(refused(&many).contains("257 prices"));
    }
}
