//! What may be changed of a job that was submitted.

use super::error::SpecError;
use super::{JobSpec, check_name, check_place, check_start};
use crate::utc::utc;
use serde::{Deserialize, Serialize};

/// A change of a job that was submitted. None leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEdit {
    /// New name of the job and of its files.
    pub name: Option<String>,
    /// New priority.
    pub priority: Option<u8>,
    /// New pool; an inner None allows any node.
    pub pool: Option<Option<String>>,
    /// New bound on the nodes that work on the job at a time; an inner None is no bound.
    pub max_nodes: Option<Option<u32>>,
    /// New time before which no unit begins, in seconds since the Unix epoch; an inner None lets
    /// the job begin at once.
    pub not_before: Option<Option<u64>>,
}

impl JobEdit {
    /// Checks every field that is changed.
    pub fn check(self) -> Result<Self, SpecError> {
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        let pool = self.pool.as_ref().and_then(Option::as_deref);
        check_place(self.priority.unwrap_or_default(), pool, self.max_nodes.flatten())?;
        check_start(self.not_before.flatten())?;
        Ok(self)
    }

    /// Returns whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the change. Returns the change that undoes it, and leaves out what stays as it was.
    pub fn apply(self, spec: &mut JobSpec) -> Self {
        fn set<T: PartialEq>(field: &mut T, new: Option<T>) -> Option<T> {
            new.filter(|new| new != field).map(|new| std::mem::replace(field, new))
        }
        Self {
            name: set(&mut spec.name, self.name),
            priority: set(&mut spec.priority, self.priority),
            pool: set(&mut spec.pool, self.pool),
            max_nodes: set(&mut spec.max_nodes, self.max_nodes),
            not_before: set(&mut spec.not_before, self.not_before),
        }
    }

    /// Adds what undoes a later change. What is known already is older, and stays.
    pub fn merge(&mut self, later: Self) {
        fn keep<T>(older: &mut Option<T>, later: Option<T>) {
            if older.is_none() {
                *older = later;
            }
        }
        keep(&mut self.name, later.name);
        keep(&mut self.priority, later.priority);
        keep(&mut self.pool, later.pool);
        keep(&mut self.max_nodes, later.max_nodes);
        keep(&mut self.not_before, later.not_before);
    }

    /// Describes the change in one line, as the options of `job set`.
    pub fn words(&self) -> String {
        let name = self.name.as_ref().map(|name| format!("name {name:?}"));
        let priority = self.priority.map(|priority| format!("priority {priority}"));
        let pool = self.pool.as_ref().map(|pool| match pool {
            Some(pool) => format!("pool {pool}"),
            None => "any pool".to_owned(),
        });
        let nodes = self.max_nodes.map(|nodes| match nodes {
            Some(1) => "at most 1 node".to_owned(),
            Some(nodes) => format!("at most {nodes} nodes"),
            None => "any number of nodes".to_owned(),
        });
        let start = self.not_before.map(|start| match start {
            Some(secs) => format!("not before {}", utc(secs)),
            None => "at once".to_owned(),
        });
        let words = [priority, pool, nodes, start, name];
        let words: Vec<String> = words.into_iter().flatten().collect();
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobKind, RenderSpec};

    fn spec() -> JobSpec {
        JobSpec::new("film", JobKind::Render(RenderSpec::new("a.gltf", Vec::new())))
    }

    #[test]
    fn a_change_is_undone_by_what_it_returns() {
        let (mut changed, original) = (spec(), spec());
        let change = JobEdit {
            name: Some("take 2".into()),
            priority: Some(50),
            pool: Some(Some("gpu".into())),
            max_nodes: Some(Some(3)),
            not_before: Some(Some(60)),
        };
        let mut undo = change.apply(&mut changed);
        assert_eq!((changed.name.as_str(), changed.max_nodes), ("take 2", Some(3)));
        assert_eq!(undo.priority, None, "it stays as it was");
        let again = JobEdit { name: Some("take 3".into()), pool: Some(None), ..JobEdit::default() };
        undo.merge(again.apply(&mut changed));
        assert_eq!((changed.name.as_str(), &changed.pool), ("take 3", &None));
        undo.apply(&mut changed);
        assert_eq!(changed, original);
    }

    #[test]
    fn wrong_changes_are_refused_by_the_field() {
        let none = JobEdit::default;
        let wrong = [
            ("name", JobEdit { name: Some("a/b".into()), ..none() }),
            ("priority", JobEdit { priority: Some(101), ..none() }),
            ("pool", JobEdit { pool: Some(Some("a b".into())), ..none() }),
            ("max-nodes", JobEdit { max_nodes: Some(Some(0)), ..none() }),
            ("not-before", JobEdit { not_before: Some(Some(u64::MAX)), ..none() }),
        ];
        for (field, change) in wrong {
            assert_eq!(change.check().unwrap_err().field, field);
        }
        let fits = JobEdit { pool: Some(None), max_nodes: Some(None), ..none() };
        assert_eq!(fits.words(), "any pool, any number of nodes");
        let one = JobEdit { max_nodes: Some(Some(1)), not_before: Some(None), ..none() };
        assert_eq!(one.words(), "at most 1 node, at once");
        let late = JobEdit { not_before: Some(Some(1_795_289_405)), ..none() };
        assert_eq!(late.words(), "not before 2026-11-21 19:30:05Z");
        assert!(fits.check().is_ok() && none().is_empty());
    }
}
