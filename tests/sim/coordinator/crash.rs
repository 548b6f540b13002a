//! The coordinator ends, at any point of its way to the disk, and starts again from what the disk
//! has.

use crate::checks::leases::Watch;
use crate::checks::violation::{Checked, Violation, violated};
use crate::coordinator::bucket::Kept;
use crate::coordinator::places::Extents;
use crate::coordinator::{Pending, Process};
use crate::faults::Fault;
use crate::faults::planted::Planted;
use crate::leaders::leading::Leading;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::{Event, LinkId};
use tessera_coordinator::lost_spools;
use tessera_core::journal::Gone;
use tessera_core::{Core, Record, SnapshotPart};

impl World {
    /// The process ends now. What was being written may be there, or not, or by half.
    pub(crate) fn crash(&mut self) -> Checked {
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let count = process.syncing;
        let lost =
            process.pending.iter().skip(count).filter(|pending| pending.snapshot.is_some()).count();
        let group: Vec<Pending> = process.pending.drain(..count).collect();
        (0..lost).for_each(|_| self.tally.count(Fault::SnapshotLost));
        let put = |pending: &Pending| pending.results.iter().any(|of| of.sent.stored.is_some());
        sometimes!(self, PutNotCommitted, group.iter().any(put));
        if group.is_empty() {
            self.tally.count(Fault::CrashIdle);
        } else if self.leaders.is_none() {
            self.half_write(group)?;
        }
        self.end_process()
    }

    /// Results come first, then records in their order, then nothing else: a crash may cut this
    /// anywhere.
    fn half_write(&mut self, mut group: Vec<Pending>) -> Checked {
        let here = |kept: &&Kept| kept.sent.stored.is_none();
        let results = group.iter().flat_map(|pending| &pending.results).filter(here).count();
        let records: usize = group.iter().map(|pending| pending.records.len()).sum();
        match self.random.between(0, 4) {
            1 if results > 0 => {
                self.tally.count(Fault::CrashSpooled);
                let kept = self.random.between(1, results as u64) as usize;
                let all = group.iter().flat_map(|pending| &pending.results).filter(here);
                all.take(kept).for_each(|kept| self.disk.keep(kept));
            }
            2 | 3 if records > 1 => {
                self.tally.count(Fault::CrashHalfSynced);
                let mut kept = self.random.between(1, records as u64 - 1) as usize;
                for pending in &mut group {
                    if let Some(torn) = pending.records.get(kept) {
                        let share = self.random.between(0, 999);
                        if torn_reads_whole(torn, share)? {
                            return violated(format!(
                                "a part of {torn:?} is read as a whole record"
                            ));
                        }
                        self.tally.count(Fault::TornRecord);
                    }
                    // With what it says of objects, a step is there or not.
                    if pending.records.len() > kept && self.bucket.is_some() {
                        break;
                    }
                    pending.records.truncate(kept);
                    kept -= pending.records.len();
                    self.lose_snapshot(pending);
                    self.write(pending)?;
                }
                return Ok(());
            }
            4 => {
                self.tally.count(Fault::CrashUntold);
                for pending in &mut group {
                    if self.random.permille(500) {
                        self.lose_snapshot(pending);
                    }
                    self.write(pending)?;
                }
                return Ok(());
            }
            _ => self.tally.count(Fault::CrashUnsynced),
        }
        group.iter_mut().for_each(|pending| self.lose_snapshot(pending));
        Ok(())
    }

    fn lose_snapshot(&mut self, pending: &mut Pending) {
        if pending.snapshot.take().is_some() {
            self.tally.count(Fault::SnapshotLost);
        }
    }

    /// The store's checksums find a flipped bit. Where they did not, the core must still say so, or
    /// go on, and never panic.
    fn read_damaged(&mut self, parts: &[SnapshotPart], records: &[Record]) -> Checked {
        let Some(position) = (!records.is_empty()).then(|| self.random.index(records.len())) else {
            return Ok(());
        };
        let mut bytes = bytes_of(&records[position])?;
        let bit = self.random.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(flipped) = Record::from_bytes(&bytes) else { return Ok(()) };
        let mut damaged = records.to_vec();
        damaged[position] = flipped;
        let (settings, now) = (self.plan.settings.clone(), self.clock());
        let replayed = Core::replay(settings, parts.to_vec(), damaged.clone(), now);
        let report = Core::audit(parts.to_vec(), damaged);
        self.note(|| {
            format!("a flipped bit: {:?}, {} problems", replayed.err(), report.problems.len())
        });
        Ok(())
    }

    /// Everything that is not on the disk is gone.
    pub(crate) fn end_process(&mut self) -> Checked {
        let put = self.shell.process.as_ref().is_some_and(Process::has_put);
        sometimes!(self, PutNotCommitted, put);
        self.shell.process = None;
        self.ended_at = self.now;
        self.ledger.believed = self.ledger.durable.clone();
        let open: Vec<LinkId> = self
            .links
            .links
            .iter()
            .filter(|(_, link)| link.coordinator_open && link.incarnation == self.shell.incarnation)
            .map(|(id, _)| *id)
            .collect();
        for id in open {
            let notice = self.random.between(1, 10_000);
            self.hang_up(id, notice);
        }
        let long = self.chance(Fault::LongOutage);
        let away =
            if long { self.random.between(20_000, 60_000) } else { self.random.between(50, 4_000) };
        if self.leaders.is_some() {
            self.end_machine(self.shell.machine, away);
            return Ok(());
        }
        self.note(|| format!("the coordinator ends, for {away} ms"));
        self.after(away, Event::Restart);
        Ok(())
    }

    /// A new process reads the disk: it must know exactly what is durable, whether from a snapshot
    /// or from the beginning.
    pub(crate) fn restart(&mut self) -> Checked {
        match self.shell.process.is_some() {
            true => Ok(()),
            false => self.restart_as(None),
        }
    }

    /// The same, for one that leads where the state is in a database.
    pub(crate) fn restart_as(&mut self, leading: Option<Leading>) -> Checked {
        self.incarnations += 1;
        self.shell.incarnation = self.incarnations;
        let (parts, mut records) = self.disk.load()?;
        sometimes!(self, RestartFromSnapshot, !parts.is_empty() && !records.is_empty());
        sometimes!(self, RestartOfLongJournal, records.len() >= 500);
        sometimes!(
            self,
            RestartAfterAck,
            self.acknowledged_at + 1_000 > self.ended_at && self.ended_at > 0
        );
        if self.chance(Fault::BitFlip) {
            self.read_damaged(&parts, &records)?;
        }
        if let Some(planted) = &mut self.planted {
            planted.on_replay(&mut records, &mut self.random);
        }
        let (settings, now) = (self.plan.settings.clone(), self.clock());
        let mut core = Core::replay(settings.clone(), parts, records, now)
            .map_err(|error| Violation(format!("the journal is refused: {error}")))?;
        let history = self.disk.history.iter().cloned();
        let reference = Core::replay(settings.clone(), [], history, now)
            .map_err(|error| Violation(format!("the history is refused: {error}")))?;
        let blind = self.planted.as_ref().is_some_and(Planted::is_left_to_others);
        if let Some(difference) = core.durable_difference(&reference).filter(|_| !blind) {
            return violated(format!(
                "snapshot and journal tell another farm than all records: {difference}"
            ));
        }
        sometimes!(
            self,
            ChangedRestart,
            self.ledger.durable.jobs.values().any(|book| book.changed)
        );
        let finishing = self.ledger.durable.jobs.values().any(|book| book.is_finishing());
        sometimes!(self, FinishingRestart, finishing);
        sometimes!(self, PausedRestart, self.ledger.durable.jobs.values().any(|book| book.paused));
        self.note_waits_at_start();
        let durable = &self.ledger.durable;
        let (left, lost) = (durable.some_gone(Gone::Left), durable.some_gone(Gone::Lost));
        let drained = !durable.drained.is_empty();
        sometimes!(self, LeftRestart, left);
        sometimes!(self, LostRestart, lost);
        sometimes!(self, DrainedRestart, drained);
        self.ledger.check_promises()?;
        let watch = Watch::new(settings, self.ledger.durable.reserved, now.0);
        let (known, finished) = self.find_results(&mut core, leading.as_ref())?;
        if leading.is_some() {
            self.begin_lead();
        }
        let mut process = Process { leading, known, ..Process::new(core, watch) };
        process.pending.extend(finished);
        self.shell.process = Some(process);
        self.take_step()?;
        self.start_sync()?;
        if let Some(process) = &self.shell.process {
            self.ledger.believed.compare(&process.core)?;
        }
        if self.chance(Fault::CrashAgain) { self.crash() } else { Ok(()) }
    }
}

impl World {
    /// Finds what is left of the results of frames in work; the others are rendered again. Gives
    /// what a process knows of their places, and what it has to remove.
    fn find_results(
        &mut self,
        core: &mut Core,
        leading: Option<&Leading>,
    ) -> Result<(Extents, Option<Pending>), Violation> {
        let now = self.clock();
        if self.bucket.is_none() {
            let durable = &self.ledger.durable;
            self.disk.cut_spools(|lease| durable.keeps_result(lease));
            if leading.is_some() {
                let gone = lost_spools::reopen(core, &self.disk.spool_keys(), now);
                sometimes!(self, SpoolsVoid, gone > 0);
            }
            return Ok((Extents::new(), None));
        }
        let known = self.open_places(core, leading.is_none_or(|leading| leading.continues))?;
        let gone = lost_spools::reopen(core, &known, now);
        sometimes!(self, SpoolsVoid, gone > 0);
        self.check_begun_anew(&known, leading.map(|leading| &leading.former))?;
        let finished = Self::ended_places(core, &known);
        let pending = Pending { finished, ..Pending::default() };
        Ok((known, (!pending.finished.is_empty()).then_some(pending)))
    }
}

fn bytes_of(record: &Record) -> Result<Vec<u8>, Violation> {
    record.to_bytes().map_err(|error| Violation(format!("record: {error}")))
}

/// Whether the first part of a record, of a thousand parts, is a record too.
fn torn_reads_whole(record: &Record, share: u64) -> Result<bool, Violation> {
    let bytes = bytes_of(record)?;
    let length = (bytes.len() as u64 * share / 1000) as usize;
    Ok(Record::from_bytes(&bytes[..length]).is_ok())
}
