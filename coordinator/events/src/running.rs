//! The thread of events: follows the coordinator, gives each event to the targets that want it, and
//! keeps what is not delivered. Ends with the coordinator.

use crate::config::{EventsConfig, RecipientConfig, WebhookConfig};
use crate::courier;
use crate::event::{Asked, BudgetFacts, Event, EventKind};
use crate::kept::{self, Queues};
use crate::mail::Mailer;
use crate::queue::AGE_MAX;
use crate::target::{Target, Way};
use crate::tracker::{Memory, Tracker};
use crate::webhook::Webhook;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tessera_coordinator::api::{Api, EventTargets, TargetFigures, Tested};
use tessera_http::outward::{NoAuthority, Trusting};
use tessera_protocol::JobId;
use tessera_protocol::client::RequestError;
use tessera_protocol::status::JobSummary;
use tokio::sync::watch;

/// How often quarantines, budgets and waits are looked at, and what changed is kept.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Ends of so many seconds before a start are told where nothing is kept of what was told, and are
/// told again where another coordinator may have told them.
const TOLD_AGAIN_SECS: u64 = 600;
/// How long the thread may take to end.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Why no events are told.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No server could be known.
    #[error("webhooks cannot be sent")]
    Authority(#[from] NoAuthority),
    /// The server for mails cannot be spoken to.
    #[error("mails cannot be sent: {0}")]
    Mail(String),
    /// The system has no threads.
    #[error("cannot start the thread of events")]
    Thread(#[source] std::io::Error),
}

/// Where a coordinator keeps its things.
#[derive(Clone, Copy, Debug)]
pub struct Home<'a> {
    /// Data folder, where what is not delivered is kept.
    pub data: &'a Path,
    /// Whether other coordinators may lead the same farm.
    pub is_shared: bool,
}

/// Tells events while it exists.
pub struct Events {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}

/// All targets.
struct Targets {
    api: Api,
    all: Vec<Arc<Target>>,
}

impl EventTargets for Targets {
    fn figures(&self) -> Vec<TargetFigures> {
        self.all.iter().map(|target| target.figures()).collect()
    }

    fn on_request(&self) -> Vec<String> {
        let asked = self.all.iter().filter(|target| target.is_on_request());
        asked.map(|target| target.name.clone()).collect()
    }

    fn test(&self, name: &str) -> Option<Tested> {
        let target = self.all.iter().find(|target| target.name == name)?.clone();
        let now = self.api.now_secs();
        Some(Box::pin(async move {
            let event = Arc::new(Event::of_test(&target.name, now));
            target.send((&[event], 0), now).await
        }))
    }
}

impl Targets {
    fn tell(&self, event: Event) {
        let event = Arc::new(event);
        self.all.iter().for_each(|target| target.offer(&event));
    }

    fn queues(&self) -> Queues {
        self.all.iter().map(|target| (target.name.clone(), target.waiting())).collect()
    }
}

impl Events {
    /// Checks that everything is there to tell events: the authorities of this machine.
    pub fn check(config: &EventsConfig) -> Result<(), StartError> {
        targets(config, Queues::new()).map(drop)
    }

    /// Begins to tell events of a coordinator that leads, from a thread of its own.
    pub fn start(config: &EventsConfig, api: &Api, home: Home<'_>) -> Result<Self, StartError> {
        let path = home.data.join(kept::FILE);
        let now = api.now_secs();
        let horizon = now.saturating_sub(TOLD_AGAIN_SECS);
        let (mut memory, queues) = kept::read(&path)
            .unwrap_or_else(|error| {
                tracing::error!(%error, path = %path.display(), "what was not delivered is lost");
                None
            })
            .unwrap_or_else(|| (Memory { horizon, ..Memory::default() }, Queues::new()));
        // What ended before is too old to be delivered. Where others may have led since the file
        // was written, they have told what ended then.
        let oldest = if home.is_shared { TOLD_AGAIN_SECS } else { AGE_MAX };
        memory.horizon = memory.horizon.max(now.saturating_sub(oldest));
        let tracker = Tracker::new(config.patience.as_secs(), memory, now);
        let all = targets(config, queues)?;
        let targets = Arc::new(Targets { api: api.clone(), all });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let (stop, stopped) = watch::channel(false);
        let mut follower = Follower { api: api.clone(), targets: targets.clone(), tracker, path };
        let run = move || {
            runtime.block_on(follower.run(stopped));
            follower.keep();
            runtime.shutdown_timeout(END_WITHIN);
        };
        let thread = std::thread::Builder::new().name("events".into()).spawn(run);
        let thread = Some(thread.map_err(StartError::Thread)?);
        api.tell_events_by(targets);
        Ok(Self { stop, thread })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of events has failed");
        }
    }
}

fn targets(config: &EventsConfig, mut kept: Queues) -> Result<Vec<Arc<Target>>, StartError> {
    let allow = Arc::new(config.allow.clone());
    let has_tls = config.webhooks.iter().any(|webhook| webhook.url.is_tls);
    let tls = if has_tls { Some(Trusting::of_machine()?) } else { None };
    let mut all = Vec::new();
    let mut waiting = |name: &str| kept.remove(name).unwrap_or_default();
    for config in &config.webhooks {
        let WebhookConfig { name, url, wanted, .. } = config;
        let tls = tls.clone().filter(|_| url.is_tls);
        let way = Way::Webhook(Webhook::new(config, allow.clone(), tls));
        all.push(Target::new(name.clone(), (wanted.clone(), way), waiting(name)));
    }
    if let Some(mail) = &config.mail {
        for to in &mail.to {
            let RecipientConfig { name, wanted, .. } = to;
            let way = Way::Mail(Mailer::new(mail, to).map_err(StartError::Mail)?);
            all.push(Target::new(name.clone(), (wanted.clone(), way), waiting(name)));
        }
    }
    for (target, events) in kept.into_iter().filter(|(_, events)| !events.is_empty()) {
        let count = events.len();
        tracing::warn!(target, count, "events are given up: the target is no longer listed");
    }
    Ok(all.into_iter().map(Arc::new).collect())
}

/// Follows the coordinator.
struct Follower {
    api: Api,
    targets: Arc<Targets>,
    tracker: Tracker,
    path: PathBuf,
}

impl Follower {
    async fn run(&mut self, mut stopped: watch::Receiver<bool>) {
        for target in &self.targets.all {
            tokio::spawn(courier::run(target.clone(), self.api.clone()));
        }
        tokio::select! {
            // The coordinator stops.
            _ = self.follow() => {}
            _ = stopped.changed() => {}
        }
    }

    async fn follow(&mut self) -> Result<(), RequestError> {
        let mut news = self.api.follow_jobs(self.tracker.horizon()).await?;
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                next = news.next() => {
                    let Some(next) = next else { return Ok(()) };
                    for job in &next.jobs {
                        self.see(job).await?;
                    }
                    next.gone.into_iter().for_each(|job| self.tracker.forget(job));
                }
                _ = look.tick() => self.look().await?,
            }
        }
    }

    /// Takes a job as it is now. Its end counts as told only with the event, so that none is lost
    /// where the coordinator stops in between.
    async fn see(&mut self, job: &JobSummary) -> Result<(), RequestError> {
        let ended = self.tracker.new_end(job).zip(EventKind::of_end(job.state));
        let event = match ended {
            Some((ended, kind)) => Some(self.event_of(kind, job, ended).await?),
            None => None,
        };
        self.tracker.see_job(job, self.api.now_secs());
        event.into_iter().for_each(|event| self.targets.tell(event));
        Ok(())
    }

    /// Looks at what no change of a job says.
    async fn look(&mut self) -> Result<(), RequestError> {
        let now = self.api.now_secs();
        for (job, began) in self.tracker.due(now) {
            let event = self.event_of(EventKind::Waiting, &job, began).await?;
            self.tracker.wait_told(job.job);
            self.targets.tell(event);
        }
        let quarantines = self.api.quarantines().await?;
        for found in self.tracker.see_quarantines(quarantines, now) {
            self.targets.tell(Event::of_quarantine(&found, now));
        }
        let (budgets, currency) = self.api.budgets().await?;
        let said = budgets.iter().filter_map(|budget| BudgetFacts::of(budget, &currency)).collect();
        for budget in self.tracker.see_budgets(said, now) {
            self.targets.tell(Event::of_budget(budget, now));
        }
        self.keep();
        Ok(())
    }

    async fn event_of(
        &self,
        kind: EventKind,
        job: &JobSummary,
        at: u64,
    ) -> Result<Event, RequestError> {
        let asked = self.asked_of(job.job).await?;
        Ok(Event::of_job(kind, (job, asked), at))
    }

    async fn asked_of(&self, job: JobId) -> Result<Asked, RequestError> {
        let detail = self.api.job_detail(job).await?;
        let asked = detail.map(|detail| {
            let spec = detail.spec;
            Asked { batch: spec.batch, notify: spec.notify }
        });
        Ok(asked.unwrap_or_default())
    }

    /// Keeps what has changed. It is a small file, and nobody waits for this thread.
    fn keep(&self) {
        let mut changed = false;
        for target in &self.targets.all {
            changed |= target.take_changed();
        }
        if !changed {
            return;
        }
        if let Err(error) = kept::write(&self.path, self.tracker.memory(), self.targets.queues()) {
            tracing::warn!(%error, path = %self.path.display(), "events that wait are not kept");
        }
    }
}
