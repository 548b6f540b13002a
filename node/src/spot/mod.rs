//! Notices of clouds that take a machine back: finds out whether this is such a machine, and waits
//! for its notice. Its owner ends the node.

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
/// Pause between two requests. The shortest notice is 30 s.
const PAUSE: Duration = Duration::from_secs(2);
/// Folder in which the kernel describes the machine.
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

/// Cloud whose notices the node waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spot {
    /// Wait for no notices.
    Off,
    /// Notices of the cloud that this machine seems to be in.
    #[default]
    Auto,
    /// Wait for the notices of this cloud.
    Cloud(Cloud),
}

/// The text does not name a cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a cloud whose notices are known; write `auto`, `off`, `aws`, `gcp` or `azure`"
)]
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

/// A notice that the machine will be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Text of the notice, for people.
    pub what: String,
    /// Whether it will certainly be taken back soon. Otherwise it is only likely.
    pub certain: bool,
}

impl Spot {
    /// Returns the cloud whose notices the node waits for, if there is one.
    pub fn cloud(self) -> Option<Cloud> {
        match self {
            Self::Off => None,
            Self::Auto => Cloud::of_machine(Path::new(MACHINE)),
            Self::Cloud(cloud) => Some(cloud),
        }
    }
}

impl Cloud {
    /// Returns the cloud of a machine, according to the files that firmware fills.
    fn of_machine(folder: &Path) -> Option<Self> {
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        match text("sys_vendor").trim() {
            "Amazon EC2" => Some(Self::Aws),
            "Google" => Some(Self::Gcp),
            // Microsoft's name is in its laptops too, but this tag is only in its cloud.
            "Microsoft Corporation"
                if text("chassis_asset_tag").trim() == "7783-7084-3265-9085-8269-3286-77" =>
            {
                Some(Self::Azure)
            }
            _ => None,
        }
    }

    /// Waits for a notice. After a likely notice, a repeated call can return a certain one.
    /// `metadata` is the address of the metadata service, `HOST:PORT`; None means that of the
    /// clouds. A service that does not answer is asked again without end, because a notice may
    /// still come.
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
