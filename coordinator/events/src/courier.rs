//! A courier: takes the events of one target to it, again and again until it has them. Each target
//! has one, so that none waits for another.

use crate::backoff::pause;
use crate::target::Target;
use std::sync::Arc;
use tessera_coordinator::api::Api;

/// Delivers events for as long as it runs.
pub(crate) async fn run(target: Arc<Target>, api: Api) {
    loop {
        target.wait().await;
        tokio::time::sleep(target.gather()).await;
        deliver(&target, &api).await;
    }
}

/// Delivers the oldest events; ends once they are taken or too old.
async fn deliver(target: &Target, api: &Api) {
    for failed in 1.. {
        target.expire(api.now_secs());
        let Some((events, dropped)) = target.begin() else { return };
        match target.send((&events, dropped), api.now_secs()).await {
            Ok(()) => return target.delivered((&events, dropped)),
            Err(problem) => {
                let pause = pause(failed);
                target.failed(&problem, (failed, pause));
                tokio::time::sleep(pause).await;
            }
        }
    }
}
