//! The desk behind a lock, with the one task that wakes at its next deadline.

use std::sync::{Arc, Mutex, PoisonError};

use tabwarden_domain::Desk;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::events::Feed;

/// The desk as everybody here gets at it. Each visit is short and never spans an `await`.
#[derive(Clone)]
pub(crate) struct DeskRoom(Arc<Room>);

struct Room {
    desk: Mutex<Desk>,
    /// A visit brought the next deadline forward.
    sooner: Notify,
    feed: Feed,
}

impl DeskRoom {
    pub fn new(feed: Feed) -> Self {
        Self(Arc::new(Room { desk: Mutex::new(Desk::new()), sooner: Notify::new(), feed }))
    }

    /// Does something with the desk. What happened goes out before the lock is given back, so that events keep the
    /// order of what they tell.
    pub fn visit<R>(&self, deed: impl FnOnce(&mut Desk) -> R) -> R {
        // A panic during a visit leaves the desk as whole as any single change of it: go on with it.
        let mut desk = self.0.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let result = deed(&mut desk);
        for event in desk.take_events() {
            self.0.feed.publish(|| event);
        }
        result
    }

    /// Marks a principal's sessions as lost from now on.
    pub fn connection_lost(&self, principal: tabwarden_domain::PrincipalId) {
        self.visit(|desk| desk.connection_lost(principal, Instant::now().into_std()));
        self.0.sooner.notify_one();
    }

    /// Ends what runs out, at its time, until `stop`.
    pub async fn keep_time(self, stop: CancellationToken) {
        loop {
            let next = self.visit(|desk| {
                desk.expire(Instant::now().into_std());
                desk.next_deadline()
            });
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(Instant::from_std(at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = due => {}
                () = self.0.sooner.notified() => {}
            }
        }
    }
}
