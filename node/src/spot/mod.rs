//! Notices of clouds that take a machine back: whether this is such a machine, and waiting for its
//! notice. Ends no node; its owner does.

mod aws;
mod azure;
mod gcp;
mod http;
#[cfg(test)]
mod tests;

use http::Metadata;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// Address of the clouds' metadata services, the same on every machine.
const METADATA: &str = "169.254.169.254:80";
/// Pause between two questions. The shortest notice is 30 s.
const PAUSE: Duration = Duration::from_secs(2);
/// What the kernel says of the machine.
const MACHINE: &str = "/sys/class/dmi/id";

/// A cloud that takes machines back with a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// Amazon EC2: two minutes, by `spot/instance-action`; and `rebalance`, a recommendation.
    Aws,
    /// Google Compute Engine: 30 s by `preempted`, 60 s by `maintenance-event`.
    Gcp,
    /// Azure: 30 s and more, by Scheduled Events.
    Azure,
}

/// Which cloud's notices are waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spot {
    /// None's.
    Off,
    /// Notices of the cloud that this machine seems to be in.
    #[default]
    Auto,
    /// This one's.
    Cloud(Cloud),
}

/// A text that names no cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no cloud whose notices are known; write `auto`, `off`, `aws`, `gcp` or `azure`")]
pub struct SpotError(String);

impl FromStr for Spot {
    type Err = SpotError;
    fn from_str(text: &str) -> Result<Self, SpotError> {
        match text {
            "off" => Ok(Self::Off),
            "auto" => Ok(Self::Auto),
            "aws" => Ok(Self::Cloud(Cloud::Aws)),
            "gcp" => Ok(Self::Cloud(Cloud::Gcp)),
            "azure" => Ok(Self::Cloud(Cloud::Azure)),
            _ => Err(SpotError(text.to_owned())),
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::Cloud(Cloud::Aws) => "aws",
            Self::Cloud(Cloud::Gcp) => "gcp",
            Self::Cloud(Cloud::Azure) => "azure",
        })
    }
}

/// A machine is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What the cloud says, for people.
    pub what: String,
    /// It is certain, and soon; otherwise it is only likely.
    pub certain: bool,
}

impl Spot {
    /// The cloud whose notices are to be waited for, if any.
    pub fn cloud(self) -> Option<Cloud> {
        match self {
            Self::Off => None,
            Self::Auto => Cloud::of_machine(Path::new(MACHINE)),
            Self::Cloud(cloud) => Some(cloud),
        }
    }
}

impl Cloud {
    /// The cloud that a machine says it is of, in the files that firmware fills.
    fn of_machine(folder: &Path) -> Option<Self> {
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        match text("sys_vendor").trim() {
            "Amazon EC2" => Some(Self::Aws),
            "Google" => Some(Self::Gcp),
            // Microsoft's name stands in its laptops too; this tag only in its cloud.
            "Microsoft Corporation"
                if text("chassis_asset_tag").trim() == "7783-7084-3265-9085-8269-3286-77" =>
            {
                Some(Self::Azure)
            }
            _ => None,
        }
    }

    /// Waits for a notice. A certain one follows a likely one where this is called again.
    /// `metadata` is where the metadata service listens, `HOST:PORT`; None for the clouds' own. A
    /// service that does not answer is asked again, for ever: a notice may come yet.
    pub async fn notice(self, metadata: Option<&str>, told: Option<&Notice>) -> Notice {
        let mut service = Metadata::new(metadata.unwrap_or(METADATA));
        let mut complained = false;
        loop {
            let found = match self {
                Self::Aws => aws::look(&mut service).await,
                Self::Gcp => gcp::look(&service).await,
                Self::Azure => azure::look(&mut service).await,
            };
            match found {
                Ok(Some(notice)) if told.is_none_or(|told| notice.certain && !told.certain) => {
                    return notice;
                }
                Ok(_) => complained = false,
                Err(error) if !std::mem::replace(&mut complained, true) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "the cloud's metadata service does not say whether this machine is taken \
                            back"
                    );
                }
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
