//! What all pages have: head, navigation, who is signed in.

use super::assets;
use crate::auth::Signed;
use maud::{DOCTYPE, Markup, html};
use tessera_coordinator::api::Standing;
use tessera_protocol::client::Role;

/// A whole page.
pub(super) fn page(signed: Option<&Signed>, title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Tessera" }
                link rel="icon" href=(assets::address("icon.svg")) type="image/svg+xml";
                link rel="stylesheet" href=(assets::address("style.css"));
                @if signed.is_some() {
                    script type="module" src=(assets::address("live.js")) {}
                }
            }
            body {
                a.skip href="#main" { "To the content" }
                (header(signed, title))
                @if let Some(standing) = signed.and_then(|signed| signed.standing.as_ref()) {
                    (stands_by(standing))
                }
                main #main tabindex="-1" { (body) }
                div #told.visually-hidden role="status" {}
            }
        }
    }
}

fn header(signed: Option<&Signed>, title: &str) -> Markup {
    let Some(signed) = signed else {
        return html! { header.bar { span.brand { "Tessera" } } };
    };
    let caller = signed.caller();
    let here = |name: &str| (title == name).then_some("page");
    html! {
        header.bar {
            a.brand href="/jobs" { "Tessera" }
            nav aria-label="Pages" {
                a href="/jobs" aria-current=[here("Jobs")] { "Jobs" }
                @if may(signed, Role::Artist) {
                    a href="/submit" aria-current=[here("New job")] { "New job" }
                }
                a href="/nodes" aria-current=[here("Nodes")] { "Nodes" }
                a href="/costs" aria-current=[here("Costs")] { "Costs" }
                a href="/access" aria-current=[here("Access")] { "Access" }
            }
            span #link-state.link-state hidden { "not connected" }
            form.out method="post" action="/sign-out" {
                span { bdi { (caller.name()) } " (" (caller.role()) ")" }
                button.quiet { "Sign out" }
            }
        }
    }
}

/// Says that another coordinator leads, and how old the page is.
fn stands_by(standing: &Standing) -> Markup {
    let secs = standing.seen.elapsed().as_secs();
    html! {
        p.stands-by role="note" {
            "This coordinator stands by; the leader is " bdi { (standing.leader.owner) }
            ". What is shown is " (secs) " s old, without what only the leader knows: why jobs \
             wait, and how long they take. Changes are passed on to it."
        }
    }
}

/// Whether somebody may do what this role may.
pub(super) fn may(signed: &Signed, role: Role) -> bool {
    signed.caller().role().covers(role)
}
