//! Deleting jobs that have ended: at a user's request, or by age at the shell's. The shell deletes
//! their frames.

use crate::books::Books;
use crate::input::Caller;
use crate::journal::Record;
use crate::requests::job_of;
use crate::state::job::Job;
use crate::time::Moment;
use tessera_protocol::client::RequestError;
use tessera_protocol::ids::JobId;

/// Deletes a job that has ended.
pub(crate) fn forget(books: &mut Books, id: JobId, caller: &Caller) -> Result<(), RequestError> {
    forgets(job_of(books, id, caller)?)?;
    books.record(Record::JobForgotten { job: id });
    Ok(())
}

/// Checks that a job has ended.
pub(crate) fn forgets(job: &Job) -> Result<(), RequestError> {
    match job.is_final() {
        true => Ok(()),
        false => {
            let id = job.id();
            let text = format!("job {id} has not ended; `tessera cancel {id}` ends it");
            Err(RequestError::Invalid(text))
        }
    }
}

/// Deletes every job that ended before a moment.
pub(crate) fn on_forget_ended(books: &mut Books, before: Moment) {
    let old = |id: &JobId| {
        let end = books.farm().job(*id).and_then(|job| job.end());
        end.is_some_and(|end| end.at < before)
    };
    let old: Vec<JobId> = books.farm().order().filter(old).collect();
    for job in old {
        books.record(Record::JobForgotten { job });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Core;
    use crate::input::{Input, RequestId};
    use crate::settings::Settings;
    use tessera_protocol::client::Response;
    use tessera_protocol::ids::{BlobHash, Epoch};
    use tessera_protocol::job::{AssetFile, JobKind, JobSpec, RenderSpec};
    use tessera_protocol::selection::{JobChange, JobSelection};
    use uuid::Uuid;

    fn accepted(number: u128) -> Record {
        let (hash, length) = (BlobHash([1; 32]), 1);
        let file = AssetFile { path: "a.gltf".to_owned(), hash, length };
        let render = RenderSpec::new("a.gltf", vec![file]);
        let spec = Box::new(JobSpec::new("a", JobKind::Render(render)));
        let (owner, owner_id) = ("ada".to_owned(), id_of("ada"));
        Record::JobAccepted { job: id(number), spec, owner, owner_id, at: Moment(0) }
    }

    /// Number of a user of the tests.
    fn id_of(name: &str) -> u64 {
        name.bytes().map(u64::from).sum()
    }

    fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn farm(jobs: u128) -> (Core, Vec<Record>) {
        let mut records = vec![Record::EpochsReserved { up_to: Epoch(10) }];
        records.extend((1..=jobs).map(accepted));
        let core = Core::replay(Settings::default(), [], records.clone(), Moment(0)).unwrap();
        (core, records)
    }

    /// Handles an input; why it was refused, with the records that came of it put behind the
    /// others.
    fn refused(
        core: &mut Core,
        records: &mut Vec<Record>,
        input: Input,
        at: u64,
    ) -> Option<RequestError> {
        core.handle(input, Moment(at));
        let step = core.take_step();
        core.verify().unwrap();
        records.extend(step.records);
        let problems = Core::audit([], records.clone()).problems;
        assert!(problems.is_empty(), "{problems:?}");
        step.actions.into_iter().find_map(|action| match action {
            crate::Action::Reply { response: Response::Changed(changed), .. } => {
                changed.refusals.into_iter().next().map(|refusal| refusal.why)
            }
            _ => None,
        })
    }

    fn change(change: JobChange, number: u128, caller: Caller) -> Input {
        let selection = Box::new(JobSelection::of_job(id(number)).into());
        Input::ChangeJobs { request: RequestId(1), change, selection, dry_run: false, caller }
    }

    fn forget(number: u128, name: &str) -> Input {
        let caller = Caller { name: name.to_owned(), id: id_of(name), admin: false };
        change(JobChange::Forget, number, caller)
    }

    fn cancel(number: u128) -> Input {
        let caller = Caller { name: "root".to_owned(), id: 1, admin: true };
        change(JobChange::Cancel { reason: String::new() }, number, caller)
    }

    #[test]
    fn a_job_is_forgotten_by_its_owner_after_its_end_and_no_sooner() {
        let (mut core, mut records) = farm(2);
        let open = refused(&mut core, &mut records, forget(1, "ada"), 1);
        assert!(matches!(open, Some(RequestError::Invalid(_))), "{open:?}");
        assert_eq!(refused(&mut core, &mut records, cancel(1), 2), None);
        let foreign = refused(&mut core, &mut records, forget(1, "eve"), 3);
        assert!(matches!(foreign, Some(RequestError::NotAllowed(_))), "{foreign:?}");
        assert_eq!(refused(&mut core, &mut records, forget(1, "ada"), 4), None);
        let gone = refused(&mut core, &mut records, forget(1, "ada"), 5);
        assert!(matches!(gone, Some(RequestError::NotFound(_))), "{gone:?}");
        assert_eq!(core.job_ids().collect::<Vec<_>>(), [id(2)]);

        // Replayed, from the records and from a snapshot, it is still forgotten; a job that comes
        // later has its own place.
        let replayed = Core::replay(Settings::default(), [], records, Moment(9)).unwrap();
        assert_eq!(replayed.job_ids().collect::<Vec<_>>(), [id(2)]);
        let mut again =
            Core::replay(Settings::default(), replayed.snapshot(), [accepted(3)], Moment(9))
                .unwrap();
        assert_eq!(again.job_ids().collect::<Vec<_>>(), [id(2), id(3)]);
        again.handle(Input::Tick, Moment(10));
        again.verify().unwrap();
    }

    #[test]
    fn jobs_that_ended_long_ago_are_forgotten_and_others_are_not() {
        let (mut core, mut records) = farm(3);
        refused(&mut core, &mut records, cancel(1), 1000);
        refused(&mut core, &mut records, cancel(2), 5000);
        refused(&mut core, &mut records, Input::ForgetEnded { before: Moment(5000) }, 9000);
        assert_eq!(core.job_ids().collect::<Vec<_>>(), [id(2), id(3)]);
        assert_eq!(core.named_blobs().len(), core.job(id(3)).unwrap().spec.kind.files().len());
    }

    #[test]
    fn a_record_that_forgets_an_open_job_is_refused() {
        let (_, mut records) = farm(1);
        records.push(Record::JobForgotten { job: id(1) });
        assert!(Core::replay(Settings::default(), [], records.clone(), Moment(0)).is_err());
        assert!(!Core::audit([], records).problems.is_empty());
    }
}
