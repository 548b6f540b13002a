//! The order of steps: each after those that it waits for. Circles are refused with their names.

use super::error::{self, TemplateError};
use super::file::{File, Step};
use std::collections::BTreeMap;
use tessera_protocol::job::{AfterText, Until};

/// A step that another one waits for: its place in the file, and what has to happen to it.
pub(super) type Edge = (usize, Until);

/// The steps that each step waits for, and an order in which each comes after those.
pub(super) fn order(file: &File) -> Result<(Vec<usize>, Vec<Vec<Edge>>), TemplateError> {
    let places: BTreeMap<&str, usize> =
        file.steps.iter().enumerate().map(|(at, step)| (step.name.as_str(), at)).collect();
    let edges = file
        .steps
        .iter()
        .map(|step| edges(step, &places).map_err(|error| error.at(error::step(&step.name))))
        .collect::<Result<Vec<_>, _>>()?;
    let mut order = Vec::new();
    let mut is_placed = vec![false; file.steps.len()];
    while order.len() < file.steps.len() {
        // The first in the file whose edges are all placed: the order is the file's where it can.
        let ready =
            |at: &usize| !is_placed[*at] && edges[*at].iter().all(|(before, _)| is_placed[*before]);
        let Some(next) = (0..file.steps.len()).find(ready) else {
            return Err(circle(file, &edges, &is_placed));
        };
        is_placed[next] = true;
        order.push(next);
    }
    Ok((order, edges))
}

fn edges(step: &Step, places: &BTreeMap<&str, usize>) -> Result<Vec<Edge>, TemplateError> {
    let mut found: Vec<Edge> = Vec::new();
    let by_success = step.after.iter().map(|text| {
        let AfterText { job, by_frames } = text.parse().map_err(TemplateError::new)?;
        Ok((job, if by_frames { Until::Frames } else { Until::Success }))
    });
    let by_end = step.after_any.iter().map(|job| Ok((job.clone(), Until::End)));
    for one in by_success.chain(by_end) {
        let (name, until) = one.map_err(|error: TemplateError| error.at("after"))?;
        let Some(place) = places.get(name.as_str()) else {
            return Err(TemplateError::new(format!("after: there is no step `{name}`")));
        };
        if found.iter().any(|(before, _)| before == place) {
            return Err(TemplateError::new(format!("after: `{name}` is named twice")));
        }
        found.push((*place, until));
    }
    Ok(found)
}

/// Follows steps that are not placed to one that was met before.
fn circle(file: &File, edges: &[Vec<Edge>], is_placed: &[bool]) -> TemplateError {
    let mut path: Vec<usize> = Vec::new();
    let mut at = is_placed.iter().position(|placed| !placed).unwrap_or_default();
    while !path.contains(&at) {
        path.push(at);
        let next = edges[at].iter().map(|(before, _)| *before).find(|before| !is_placed[*before]);
        at = next.unwrap_or(at);
    }
    let begin = path.iter().position(|place| *place == at).unwrap_or_default();
    let names = path[begin..].iter().chain([&at]).map(|place| file.steps[*place].name.as_str());
    let names: Vec<&str> = names.collect();
    TemplateError::new(format!("steps wait for each other in a circle: {}", names.join(" → ")))
}
