//! A frame that is being rendered, as far as live tiles of it arrive within some time.

use super::{Area, Small};
use crate::client::Farm;
use crate::error::CliError;
use crate::live_pictures::Pictures;
use std::time::Duration;
use tessera_protocol::job::RenderSpec;
use tessera_protocol::live::Watched;
use tokio::time::{Instant, timeout_at};

/// R, G and B.
const COLORS: usize = 3;

/// What has arrived of a frame.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// The picture, black where nothing has arrived.
    pub(crate) picture: Small,
    /// Tiles of which something has arrived.
    pub(crate) tiles: u32,
}

/// Gathers live tiles until all of a frame have been there or the time is over.
pub(crate) async fn gather(
    farm: &Farm,
    (what, render): (Watched, &RenderSpec),
    size: (u32, u32),
    within: Duration,
) -> Result<Arrived, CliError> {
    let end = Instant::now() + within;
    let mut pictures = Pictures::new(render);
    let mut arrived = Arrived { picture: Small::new(pictures.size(), size), tiles: 0 };
    let mut seen = std::collections::BTreeSet::new();
    let all = render.tiles().count();
    let client = farm.connect().await?;
    let mut tiles = client.live(what).await?;
    while let Ok(next) = timeout_at(end, tiles.next()).await {
        let Some(tile) = next? else { break };
        let Some(patch) = pictures.add(&tile) else { continue };
        let color = |at: usize| {
            let values = patch.values.get(at * COLORS..(at + 1) * COLORS);
            values.map_or([0.0; COLORS], |values| [values[0], values[1], values[2]])
        };
        let (left, top, width, height) = (patch.left, patch.top, patch.width, patch.height);
        arrived.picture.put(&Area { left, top, width, height, color: &color });
        seen.insert((tile.tile.x, tile.tile.y));
        // A frame has fewer tiles than 2^32.
        arrived.tiles = seen.len() as u32;
        if arrived.tiles >= all {
            break;
        }
    }
    client.close().await;
    Ok(arrived)
}
