//! The page about metrics, the dashboard and the alerts name what there is.

use super::page::Page;
use crate::farm::Farm;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DOCUMENT: &str = include_str!("../../../../../docs/metrics.md");
pub(crate) const DASHBOARD: &str = include_str!("../../../../../deploy/grafana/tessera.json");
const RULES: &str = include_str!("../../../../../deploy/prometheus/tessera.rules.yml");
const RULES_TEST: &str = include_str!("../../../../../deploy/prometheus/tessera.rules.test.yml");

/// A page of a farm with nobody in it. It has every family.
async fn page() -> Page {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let page = farm.scrape(&farm.scraper().await).await;
    farm.coordinator.shutdown().await.unwrap();
    page
}

/// Names of metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("tessera_")).map(str::to_owned).collect()
}

/// Expressions of all panels and variables, wherever they are.
pub(crate) fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| match value.as_str() {
            Some(text) if ["expr", "query", "definition"].contains(&name.as_str()) => {
                found.push(text.to_owned());
            }
            _ => expressions(value, found),
        }),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_and_the_alerts_name_what_there_is() {
    let names = page().await.names();
    let mut found = Vec::new();
    expressions(&serde_json::from_str(DASHBOARD).unwrap(), &mut found);
    let shown = named(&found.join("\n"));
    assert!(shown.len() > 40, "{shown:?}");
    for (of, used) in [("dashboard", shown), ("rules", named(RULES)), ("tests", named(RULES_TEST))]
    {
        let unknown: Vec<_> = used.difference(&names).collect();
        assert!(!used.is_empty() && unknown.is_empty(), "the {of}: no metric is {unknown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_metrics_is_what_is_served() {
    let page = page().await;
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `tessera_"));
    let documented: BTreeMap<String, (String, BTreeSet<String>)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            let name = format!("tessera_{}", cells[0].trim_end_matches('`'));
            let labels = cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect();
            (name, (cells[1].to_owned(), labels))
        })
        .collect();
    let served: BTreeSet<&String> = page.kinds.keys().collect();
    assert_eq!(documented.keys().collect::<BTreeSet<_>>(), served);
    for (name, (kind, labels)) in &documented {
        assert_eq!(page.kinds.get(name), Some(kind), "{name}");
        if let Some(found) = page.labels(name) {
            assert_eq!(found, *labels, "{name}");
        }
    }
}
