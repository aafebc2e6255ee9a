//! Lets faults happen, and undoes each when its time is over.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::time::{sleep, sleep_until, timeout};

use crate::faults::{Backend, Deletion, Fault, Planned, Trouble};
use crate::grounds::Grounds;
use crate::line::Service;
use crate::meddler::Meddler;
use crate::processes::{Fleet, Process};
use crate::proxy::Proxy;

/// What faults happen to.
pub struct Site {
    pub grounds: Arc<Grounds>,
    pub fleet: Fleet,
    pub meddler: Meddler,
    pub namespace: String,
    /// The partition of the item on sale.
    pub partition: u16,
}

impl Site {
    /// Lets everything happen as planned; returns what could not be done.
    pub async fn suffer(&self, planned: &[Planned], begun: Instant) -> Vec<String> {
        let all = planned.iter().map(|one| async move {
            sleep_until((begun + one.at).into()).await;
            let began = self.begin(one.fault).await;
            match one.fault {
                // Enough are found, or time is up.
                Fault::AskBack(holds) => {
                    let _ = timeout(one.lasts, self.meddler.ask_back(holds)).await;
                }
                _ => sleep(one.lasts).await,
            }
            let ended = self.end(one.fault).await;
            let told = |error| format!("the fault `{}` could not be injected: {error}", one.fault);
            began.and(ended).err().map(told)
        });
        join_all(all).await.into_iter().flatten().collect()
    }

    /// Everything as it should be. What a fault broke for its time is whole again already.
    pub async fn heal(&self) {
        self.fleet.every(|process| process.heal()).await;
    }

    async fn delete(&self, deletion: Deletion) -> Result<(), String> {
        let (namespace, partition) = (self.namespace.clone(), self.partition);
        let delete = move |grounds: &Grounds| grounds.delete(&namespace, partition, deletion);
        self.grounds.does(delete).await.map_err(told)
    }

    async fn consumers(&self, act: fn(&Process)) {
        let act = move |process: &Process| {
            if process.member.service == Service::Consumer {
                act(process);
            }
        };
        self.fleet.every(act).await;
    }

    async fn begin(&self, fault: Fault) -> Result<(), String> {
        let Self { grounds, fleet, .. } = self;
        match fault {
            Fault::Kill(member) => fleet.find(member).does(|process| process.kill()).await,
            Fault::Freeze(member) => fleet.find(member).does(|process| process.freeze()).await,
            Fault::Terminate(member) => fleet.find(member).does(|process| process.stop()).await,
            Fault::CrashAt(member, point, times) => {
                let crash_at = Some(format!("{point}:{times}"));
                fleet.find(member).does(|process| (process.kill(), process.start(crash_at))).await;
            }
            Fault::Wire(member, backend, trouble) => {
                disturb(fleet.find(member).wire(backend), backend, trouble);
            }
            Fault::KillBackend(backend) => {
                return grounds.does(move |grounds| grounds.kill(backend)).await.map_err(told);
            }
            Fault::PauseBackend(backend) => grounds.does(move |g| g.pause(backend)).await,
            Fault::Delete(Deletion::OrderQueue) | Fault::AskBack(_) => {
                self.consumers(|consumer| consumer.freeze()).await;
            }
            Fault::Delete(deletion) => return self.delete(deletion).await,
            Fault::Alarm => return grounds.does(|grounds| grounds.alarm(true)).await.map_err(told),
        }
        Ok(())
    }

    async fn end(&self, fault: Fault) -> Result<(), String> {
        let Self { grounds, fleet, .. } = self;
        match fault {
            Fault::Freeze(member) => fleet.find(member).does(|process| process.thaw()).await,
            Fault::Kill(member) | Fault::Terminate(member) | Fault::CrashAt(member, ..) => {
                fleet.find(member).does(|process| process.start(None)).await;
            }
            Fault::Wire(member, backend, trouble) => {
                settle(fleet.find(member).wire(backend), backend, trouble);
            }
            Fault::KillBackend(backend) => {
                return grounds.does(move |grounds| grounds.restart(backend)).await.map_err(told);
            }
            Fault::PauseBackend(backend) => grounds.does(move |g| g.resume(backend)).await,
            Fault::Delete(Deletion::OrderQueue) => {
                let deleted = self.delete(Deletion::OrderQueue).await;
                self.consumers(|consumer| consumer.thaw()).await;
                return deleted;
            }
            Fault::Delete(_) => {}
            Fault::AskBack(_) => self.consumers(|consumer| consumer.thaw()).await,
            Fault::Alarm => {
                return grounds.does(|grounds| grounds.alarm(false)).await.map_err(told);
            }
        }
        Ok(())
    }
}

fn disturb(wire: &Proxy, backend: Backend, trouble: Trouble) {
    match trouble {
        Trouble::Cut => wire.cut(),
        Trouble::Refuse => wire.refuse(),
        Trouble::Delay(delay) => wire.delay(delay),
        Trouble::Silence => wire.fall_silent(),
        Trouble::LoseAnswers(times, loss) => wire.lose_answers(effect(backend), times, loss),
    }
}

fn settle(wire: &Proxy, backend: Backend, trouble: Trouble) {
    wire.recover();
    if let Trouble::LoseAnswers(_, loss) = trouble {
        wire.lose_answers(effect(backend), 0, loss);
        // Redis and RabbitMQ are given up when they stay silent. The ledger's time limits are the
        // server's, so its wire ends, as TCP does sooner or later when the other side is gone.
        if backend == Backend::Ledger {
            wire.cut();
        }
    }
}

/// What a call that has an effect looks like on the wire.
fn effect(backend: Backend) -> &'static str {
    match backend {
        Backend::Redis => "EVALSHA",
        Backend::RabbitMq => "reservations.placed.v1",
        Backend::Ledger => "COMMIT",
    }
}

fn told(error: impl ToString) -> String {
    error.to_string()
}
