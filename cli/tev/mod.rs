//! Shows a job's live tiles in tev, the picture viewer, while the job is rendered. What is lost on
//! the way is lost: frames are made from results, never from live tiles.

mod viewer;

use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::live_pictures::Pictures;
use crate::table::printable;
use std::time::Duration;
use tessera_protocol::JobId;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::{JobKind, RenderSpec};
use tessera_protocol::live::Watched;
use tessera_protocol::status::JobDetail;
pub(crate) use viewer::Viewer;

/// Wait before a stream that ended is asked for again, while the job goes on.
const AGAIN: Duration = Duration::from_secs(1);

/// A job that is shown in a viewer.
#[derive(Debug)]
pub(crate) struct Shown {
    job: JobId,
    name: String,
    render: RenderSpec,
    viewer: Viewer,
}

impl Shown {
    /// Connects to the viewer for a job.
    pub(crate) async fn begin(detail: &JobDetail, address: &str) -> Result<Self, CliError> {
        let JobKind::Render(render) = &detail.spec.kind else {
            let message = "a compute job has no picture that tev could show";
            return Err(CliError::new(Status::Usage, message)
                .hint("leave --tev away; `tessera fetch` gets the job's results"));
        };
        let viewer = Viewer::connect(address).await?;
        let name = printable(&detail.summary.name);
        Ok(Self { job: detail.summary.job, name, render: render.clone(), viewer })
    }

    /// Sends live tiles until the job has ended, or until the viewer is gone, which is said once.
    pub(crate) async fn run(self, farm: &Farm) {
        if let Err(error) = self.show(farm).await {
            tracing::warn!(%error, "no more tiles are sent to tev; the job is followed on");
        }
    }

    async fn show(&self, farm: &Farm) -> Result<(), CliError> {
        let mut pictures = Pictures::new(&self.render);
        loop {
            farm.persist(async |client| {
                let mut tiles = client.live(Watched { job: self.job, frame: None }).await?;
                while let Some(tile) = tiles.next().await? {
                    let Some(patch) = pictures.add(&tile) else { continue };
                    let name = format!("{}.{:04}", self.name, tile.lease.unit.frame.0);
                    self.viewer.send(name, pictures.size(), patch).await?;
                }
                Ok(())
            })
            .await?;
            // The coordinator may have stopped, and starts again.
            if self.is_over(farm).await {
                return self.viewer.end().await;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn is_over(&self, farm: &Farm) -> bool {
        match farm.ask(&Request::Job(self.job)).await {
            Ok(Response::Job(detail)) => detail.summary.state.is_final(),
            _ => false,
        }
    }
}
