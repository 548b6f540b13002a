//! Templates that a coordinator reads for its pages and its API: in a process that has limits, no
//! network and no other files than those beside the template.
//!
//! ```text
//! coordinator ─ order ─► child: confines itself, reads ─ answer ─► coordinator
//! ```

mod child;
mod parent;

pub(crate) use child::{COMMAND, main};
pub(crate) use parent::{Found, ask};

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tessera_http::{BatchAsked, TemplateAsked, TemplateOutline, TemplatePlan};
use tessera_node::Sandbox;

/// What a child is to do.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    /// The process that waits for the answer.
    parent: u32,
    sandbox: Sandbox,
    /// The folder of the template, which alone it can read.
    folder: PathBuf,
    asked: TemplateAsked,
    /// The submission; None asks for the outline.
    batch: Option<BatchAsked>,
}

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Outline(Box<TemplateOutline>),
    Plan(TemplatePlan),
    /// What is wrong, in words.
    Refused(String),
}
