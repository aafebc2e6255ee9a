//! The backends of a soak, which its rounds share and may kill, freeze and meddle with.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::devstack::{Endpoints, Postgres, RabbitMq, Redis, Stack, StackError};
use tokio::task::spawn_blocking;

use crate::faults::{Backend, Deletion};

/// Its methods block; see [`Grounds::does`].
pub struct Grounds {
    pub endpoints: Endpoints,
    redis: Mutex<Redis>,
    rabbitmq: Mutex<RabbitMq>,
    postgres: Mutex<Postgres>,
}

type Done = Result<(), StackError>;

impl Grounds {
    pub fn start(dir: &Path) -> Result<Self, StackError> {
        let stack = Stack::start(dir, &|_| ())?;
        // What Redis forgets when it is killed while the disk is busy is another trial.
        stack.redis.write_before_answering()?;
        let endpoints = stack.endpoints().clone();
        let Stack { redis, rabbitmq, postgres, .. } = stack;
        let (redis, rabbitmq) = (Mutex::new(redis), Mutex::new(rabbitmq));
        Ok(Self { endpoints, redis, rabbitmq, postgres: Mutex::new(postgres) })
    }

    /// Does something that blocks, on a thread for such things.
    pub async fn does<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        let grounds = Arc::clone(self);
        spawn_blocking(move || act(&grounds)).await.expect("no panic around a backend")
    }

    pub fn kill(&self, backend: Backend) -> Done {
        match backend {
            Backend::Redis => own(&self.redis).kill(),
            Backend::RabbitMq => {
                let mut rabbitmq = own(&self.rabbitmq);
                // See the known limits in docs/PIPELINE.md: a young queue would be lost for good.
                rabbitmq.persist_queue_names()?;
                rabbitmq.kill()
            }
            Backend::Ledger => own(&self.postgres).kill(),
        }
    }

    pub fn restart(&self, backend: Backend) -> Done {
        match backend {
            Backend::Redis => own(&self.redis).restart(),
            Backend::RabbitMq => own(&self.rabbitmq).restart(),
            Backend::Ledger => own(&self.postgres).restart(),
        }
    }

    pub fn pause(&self, backend: Backend) {
        match backend {
            Backend::Redis => own(&self.redis).pause(),
            Backend::RabbitMq => own(&self.rabbitmq).pause(),
            Backend::Ledger => own(&self.postgres).pause(),
        }
    }

    pub fn resume(&self, backend: Backend) {
        match backend {
            Backend::Redis => own(&self.redis).resume(),
            Backend::RabbitMq => own(&self.rabbitmq).resume(),
            Backend::Ledger => own(&self.postgres).resume(),
        }
    }

    /// The broker believes to be out of memory, or not.
    pub fn alarm(&self, on: bool) -> Done {
        let fraction = if on { "0.000001" } else { "0.4" };
        own(&self.rabbitmq).ctl(&["set_vm_memory_high_watermark", fraction]).map(drop)
    }

    /// Deletes something of a namespace, whether or not somebody uses it.
    pub fn delete(&self, namespace: &str, partition: u16, deletion: Deletion) -> Done {
        let queue = |name: &str| format!("DeleteQueue(<<\"{namespace}.{name}\">>)");
        let orders = format!("orders.{partition}");
        let act = match deletion {
            Deletion::OrderQueue => queue(&orders),
            Deletion::OrderBinding => format!(
                "rabbit_binding:remove({{binding, Resource(exchange, <<\"{namespace}.reservations\">>), \
                 <<\"{partition}\">>, Resource(queue, <<\"{namespace}.{orders}\">>), []}}, <<\"trial\">>)"
            ),
            Deletion::Reservations => format!(
                "rabbit_exchange:delete(Resource(exchange, <<\"{namespace}.reservations\">>), \
                 false, <<\"trial\">>)"
            ),
            Deletion::Compensations => queue("compensations"),
            Deletion::DeadLetters => queue("dead"),
        };
        self.eval(&act)
    }

    /// Deletes every queue of every round, so that the broker stays as quick as it was.
    pub fn tidy_up(&self) -> Done {
        self.eval("[Delete(Queue) || Queue <- rabbit_amqqueue:list()]")
    }

    /// Lets the backends say goodbye.
    pub fn stop(&self) -> Done {
        let stopped =
            [own(&self.redis).stop(), own(&self.rabbitmq).stop(), own(&self.postgres).stop()];
        stopped.into_iter().collect()
    }

    fn eval(&self, act: &str) -> Done {
        let program = format!(
            "Resource = fun(Kind, Name) -> rabbit_misc:r(<<\"/\">>, Kind, Name) end, \
             Delete = fun(Queue) -> rabbit_amqqueue:delete(Queue, false, false, <<\"trial\">>) end, \
             DeleteQueue = fun(Name) -> case rabbit_amqqueue:lookup(Resource(queue, Name)) of \
               {{ok, Queue}} -> Delete(Queue); \
               Gone -> Gone \
             end end, \
             {{Resource, DeleteQueue, {act}}}."
        );
        own(&self.rabbitmq).ctl(&["eval", &program]).map(drop)
    }
}

fn own<T>(backend: &Mutex<T>) -> MutexGuard<'_, T> {
    backend.lock().unwrap_or_else(PoisonError::into_inner)
}
