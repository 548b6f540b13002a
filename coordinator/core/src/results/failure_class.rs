//! The classes of failures, and what follows from each, in one table.

use crate::journal::Ending;
use tessera_protocol::node::Failure;

/// Reason why a lease ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The node is gone, or was silent for too long.
    Lost,
    /// The node tried and failed.
    Failed,
    /// The device has too little memory for the unit.
    OutOfMemory,
    /// The unit took too long or made no progress.
    TimedOut,
    /// The node returned the unit before starting it.
    Refused,
    /// The coordinator revoked the lease: the node is not trusted, has another build, or the unit's
    /// other lease was first.
    Preempted,
    /// The node's build does not know an option of the job.
    Unable,
    /// An external resource is missing: a file, memory of the host.
    SharedShortage,
    /// The node cannot prepare the job.
    Unprepared,
    /// The job exceeds a limit of the node.
    Limited,
    /// The unit failed on the same node as the last time, while another may have it.
    Repeated,
    /// The node is connected, and began none of its units.
    Idle,
}

/// Cost of a class to its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// One of the unit's `attempts`.
    Attempt,
    /// One of the unit's `losses`.
    Loss,
    /// No attempt and no loss.
    Nothing,
}

/// Consequences of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Name for people, as in the documents.
    pub(crate) name: &'static str,
    pub(crate) cost: Cost,
    /// Whether the unit waits before it is leased again.
    pub(crate) backs_off: bool,
    /// Whether it counts against the node.
    pub(crate) doubts: bool,
}

/// Rules in the order of the classes.
const TABLE: [(Class, Rule); 12] = [
    (Class::Lost, rule("lost", Cost::Loss, false, false)),
    (Class::Failed, rule("failed", Cost::Attempt, true, true)),
    (Class::OutOfMemory, rule("out of memory", Cost::Nothing, false, false)),
    (Class::TimedOut, rule("timed out", Cost::Attempt, true, true)),
    (Class::Refused, rule("refused", Cost::Nothing, false, false)),
    (Class::Preempted, rule("preempted", Cost::Nothing, false, false)),
    (Class::Unable, rule("not able", Cost::Nothing, false, false)),
    (Class::SharedShortage, rule("shared shortage", Cost::Nothing, true, false)),
    (Class::Unprepared, rule("not prepared", Cost::Nothing, true, false)),
    (Class::Limited, rule("node's limit", Cost::Nothing, false, false)),
    (Class::Repeated, rule("failed again", Cost::Nothing, true, true)),
    (Class::Idle, rule("idle", Cost::Loss, false, true)),
];

const fn rule(name: &'static str, cost: Cost, backs_off: bool, doubts: bool) -> Rule {
    Rule { name, cost, backs_off, doubts }
}

impl Class {
    /// Returns the consequences of the class.
    pub(crate) const fn rule(self) -> Rule {
        TABLE[self as usize].1
    }

    /// Returns the class whose name the words of an ending begin with.
    pub(crate) fn named_in(words: &str) -> Option<Self> {
        let (name, _) = words.split_once(": ")?;
        TABLE.iter().find(|(_, rule)| rule.name == name).map(|(class, _)| *class)
    }

    /// Returns every class.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(class, _)| *class)
    }

    /// Returns the class of a failure that a node reports.
    pub(crate) fn of_failure(failure: &Failure) -> Self {
        match failure {
            Failure::Scene(_) | Failure::Program(_) => Self::Unprepared,
            Failure::Kernel(_) | Failure::Device(_) | Failure::Worker(_) => Self::Failed,
            Failure::Limit(_) => Self::Limited,
            Failure::OutOfMemory(_) => Self::OutOfMemory,
            Failure::TimedOut(_) => Self::TimedOut,
            Failure::Unable(_) => Self::Unable,
            Failure::Asset(_) => Self::SharedShortage,
        }
    }

    /// Returns the class of a recorded attempt.
    pub(crate) fn of_ending(ending: &Ending) -> Self {
        match ending {
            Ending::Failed(_) => Self::Failed,
            Ending::TimedOut(_) => Self::TimedOut,
            Ending::Expired | Ending::Lost => Self::Lost,
            Ending::Unprepared(_) => Self::Unprepared,
            Ending::Limited(_) => Self::Limited,
            Ending::Repeated(_) => Self::Repeated,
            Ending::Idle(_) => Self::Idle,
        }
    }
}

impl Ending {
    /// Describes the ending for people: its class and its reason.
    pub(crate) fn words(&self) -> String {
        let name = Class::of_ending(self).rule().name;
        match self {
            Self::Failed(reason)
            | Self::TimedOut(reason)
            | Self::Unprepared(reason)
            | Self::Limited(reason)
            | Self::Repeated(reason)
            | Self::Idle(reason) => format!("{name}: {reason}"),
            Self::Expired => format!("{name}: its lease was not renewed in time"),
            Self::Lost => format!("{name}: its node is gone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yes(truth: bool) -> &'static str {
        if truth { "yes" } else { "no" }
    }

    #[test]
    fn the_table_of_the_documents_is_this_one() {
        let text = include_str!("../../../../docs/operating.md");
        for (position, (class, rule)) in TABLE.into_iter().enumerate() {
            assert_eq!((class as usize, class.rule()), (position, rule));
            let Rule { name, cost, backs_off, doubts } = rule;
            let cost = match cost {
                Cost::Attempt => "an attempt",
                Cost::Loss => "a loss",
                Cost::Nothing => "nothing",
            };
            let row = format!("| {name} | {cost} | {} | {} |", yes(backs_off), yes(doubts));
            assert!(text.contains(&row), "docs/operating.md lacks `{row}`");
        }
    }

    // promise: P4
    #[test]
    fn documented_waits_and_settings_are_the_same() {
        let text = include_str!("../../../../docs/operating.md");
        let from = text.find("| wait | name |").expect("the table of waits");
        let table = text[from..].split("\n\n").next().expect("its end");
        let settings = format!("{:?}", crate::Settings::default());
        let named: Vec<&str> = table.split('`').skip(1).step_by(2).collect();
        let known = |name: &&str| settings.contains(&format!(" {name}: ")) || name.contains(' ');
        assert_eq!(
            named.iter().copied().find(|name| !known(name)),
            None,
            "no setting has this name"
        );
        let is_time =
            |field: &&str| field.contains(": ") && field.ends_with('s') && !field.contains('"');
        for field in
            settings.trim_end_matches(" }").split([',', '{']).map(str::trim).filter(is_time)
        {
            let name = field.split(':').next().expect("a field has a name");
            assert!(named.contains(&name), "docs/operating.md has no wait for `{name}`");
        }
    }
}
