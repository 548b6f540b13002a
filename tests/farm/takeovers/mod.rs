//! Coordinators that take over from each other while jobs run: the state on a real PostgreSQL, the
//! files on a real S3 server, three coordinators with folders of their own, two nodes. Leaders are
//! killed, stopped and continued, cut off, and stopped inside a commit. Every picture has the bits
//! of one process's, and a client holds all answers against each other.
//!
//! `TESSERA_TAKEOVERS=KILLS,STOPS,CUTS,POINTS` says how many: cuts of each kind, and visits of each
//! point. `TESSERA_TAKEOVER_SEED` repeats a run's chance.

mod client;
mod faults;
mod gate;
mod stand;
mod times;

use crate::farm::kills::Chance;
use client::Commands;
use faults::From;
use gate::Point;
use stand::Stand;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use times::Times;

/// How many of each.
struct Counts {
    kills: u32,
    stops: u32,
    cuts: u32,
    points: u32,
}

impl Counts {
    fn of_environment() -> Self {
        let text = std::env::var("TESSERA_TAKEOVERS").unwrap_or("2,1,1,1".into());
        let counts: Vec<u32> = text.split(',').filter_map(|count| count.parse().ok()).collect();
        let [kills, stops, cuts, points] = counts[..] else { panic!("four counts: {text}") };
        println!("TESSERA_TAKEOVERS={text}");
        Self { kills, stops, cuts, points }
    }
}

/// Lets the client end, also where the test fails.
struct AtEnd<'a> {
    stop: &'a AtomicBool,
    abandon: &'a AtomicBool,
}

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.abandon.store(std::thread::panicking(), Relaxed);
        self.stop.store(true, Relaxed);
    }
}

/// All faults, one after the other.
fn strike(stand: &mut Stand, counts: &Counts, times: &mut Times, is_well: &dyn Fn() -> bool) {
    let seed = std::env::var("TESSERA_TAKEOVER_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(20_261);
    println!("TESSERA_TAKEOVER_SEED={seed}");
    let mut chance = Chance::new(seed);
    for number in (0..counts.kills).take_while(|_| is_well()) {
        println!("kill {number}");
        faults::kill(stand, &mut chance, times);
    }
    for number in (0..counts.stops).take_while(|_| is_well()) {
        println!("stop {number}");
        faults::stop(stand, &mut chance, times);
    }
    for number in (0..counts.cuts).take_while(|_| is_well()) {
        for from in From::ALL {
            println!("cut {number}: {from:?}");
            faults::cut(stand, from, &mut chance, times);
        }
    }
    for number in (0..counts.points).take_while(|_| is_well()) {
        for (index, point) in Point::ALL.into_iter().enumerate() {
            let stops = (number as usize + index) % 2 == 1;
            println!("point {number}: {point:?}, {}", if stops { "stopped" } else { "killed" });
            faults::at_point(stand, (point, stops), times);
        }
    }
}

// promise: P1, P2, P3, P5
#[test]
fn takeovers_during_jobs_change_no_bit_and_lose_nothing() {
    let what = "takeovers_during_jobs_change_no_bit_and_lose_nothing";
    let Some(mut stand) = Stand::start(what) else { return };
    let counts = Counts::of_environment();
    let (stop, abandon) = (AtomicBool::new(false), AtomicBool::new(false));
    let (farm, mut times) = (&stand.farm, Times::default());
    let identity = farm.data().join("admin");
    let commands = Commands::new(farm.folder(), identity, stand.addresses());
    let worked = std::thread::scope(|scope| {
        let client = scope.spawn(|| client::work(&commands, (&stop, &abandon)));
        let end = AtEnd { stop: &stop, abandon: &abandon };
        strike(&mut stand, &counts, &mut times, &|| !client.is_finished());
        stand.revive_all();
        drop(end);
        client.join()
    });
    let worked = worked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    times.print();
    println!(
        "{} jobs with the bits of one process, {} answers that agree; {} attempts met nobody",
        worked.jobs, worked.answers, worked.unanswered
    );
    stand.nodes_lost_nothing();
    stand.end();
}
