//! All three backends together: started in parallel, stopped in parallel, or left running.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::home::write_private;
use super::{
    Backend, Postgres, PostgresRecipe, RabbitMq, RabbitMqRecipe, Recipe, Redis, RedisRecipe,
    StackError,
};

/// Where the stack answers, with credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoints {
    pub redis_url: String,
    pub rabbitmq_url: String,
    pub ledger_url: String,
}

/// What [`Stack::down`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Down {
    /// The names of the processes that ran and are stopped now.
    Stopped(Vec<String>),
    NothingRan,
}

/// Dropping it kills what it started; [`Stack::stop`] lets the backends say goodbye.
pub struct Stack {
    pub redis: Redis,
    pub rabbitmq: RabbitMq,
    pub postgres: Postgres,
    dir: PathBuf,
    endpoints: Endpoints,
}

impl Stack {
    /// Returns when all three really answer. Progress is told on the caller's thread.
    pub fn start(dir: &Path, on_progress: &dyn Fn(&str)) -> Result<Self, StackError> {
        if Self::running(dir)?.is_some() {
            return Err(StackError::StillRunning {
                backend: "a stack".to_owned(),
                dir: dir.to_owned(),
            });
        }
        let (progress, told) = mpsc::channel();
        let (redis, rabbitmq, postgres) = thread::scope(|scope| {
            let rabbitmq = scope.spawn({
                let tell = progress.clone();
                || start_one::<RabbitMqRecipe>(dir, tell)
            });
            let postgres = scope.spawn({
                let tell = progress.clone();
                || start_one::<PostgresRecipe>(dir, tell)
            });
            let redis = scope.spawn(|| start_one::<RedisRecipe>(dir, progress));
            // Ends when the last of the three has dropped its sender.
            told.iter().for_each(|line| on_progress(&line));
            (redis.join(), rabbitmq.join(), postgres.join())
        });
        let (redis, rabbitmq, postgres) =
            (finished(redis)?, finished(rabbitmq)?, finished(postgres)?);
        let endpoints = Endpoints {
            redis_url: redis.url(),
            rabbitmq_url: rabbitmq.url(),
            ledger_url: postgres.url(),
        };
        Ok(Self { redis, rabbitmq, postgres, dir: dir.to_owned(), endpoints })
    }

    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// All three at once, each within its bound.
    pub fn stop(mut self) -> Result<(), StackError> {
        let (redis, rabbitmq, postgres) = thread::scope(|scope| {
            let redis = scope.spawn(|| self.redis.stop());
            let rabbitmq = scope.spawn(|| self.rabbitmq.stop());
            let postgres = scope.spawn(|| self.postgres.stop());
            (redis.join(), rabbitmq.join(), postgres.join())
        });
        finished(redis).and(finished(rabbitmq)).and(finished(postgres))
    }

    /// Lets it run on after this process ends. [`Stack::running`] and [`Stack::down`] find it again
    /// in the same directory.
    pub fn detach(self) -> Result<Endpoints, StackError> {
        let text = serde_json::to_string_pretty(&self.endpoints).unwrap_or_default();
        write_private(&stack_file(&self.dir), &text)?;
        self.redis.detach()?;
        self.rabbitmq.detach()?;
        self.postgres.detach()?;
        Ok(self.endpoints)
    }

    /// The endpoints of a stack that was left running in `dir` and runs completely. The file of one
    /// that is gone is removed.
    pub fn running(dir: &Path) -> Result<Option<Endpoints>, StackError> {
        let file = stack_file(dir);
        let Ok(text) = fs::read(&file) else { return Ok(None) };
        let runs = Redis::runs_detached(&dir.join(RedisRecipe::NAME))
            && RabbitMq::runs_detached(&dir.join(RabbitMqRecipe::NAME))
            && Postgres::runs_detached(&dir.join(PostgresRecipe::NAME));
        if let (true, Ok(endpoints)) = (runs, serde_json::from_slice(&text)) {
            return Ok(Some(endpoints));
        }
        fs::remove_file(&file).map_err(StackError::file("removing the stale", &file))?;
        Ok(None)
    }

    /// Stops what runs in `dir` without an owner: a stack that was left running, or the remains of
    /// an owner that died. Verified by start time, so a recycled pid is left alone.
    pub fn down(dir: &Path) -> Result<Down, StackError> {
        let (redis, rabbitmq, postgres) = thread::scope(|scope| {
            let redis = scope.spawn(|| Redis::down(&dir.join(RedisRecipe::NAME)));
            let rabbitmq = scope.spawn(|| RabbitMq::down(&dir.join(RabbitMqRecipe::NAME)));
            let postgres = scope.spawn(|| Postgres::down(&dir.join(PostgresRecipe::NAME)));
            (redis.join(), rabbitmq.join(), postgres.join())
        });
        let stopped = [finished(redis)?, finished(rabbitmq)?, finished(postgres)?].concat();
        let _ = fs::remove_file(stack_file(dir));
        Ok(if stopped.is_empty() { Down::NothingRan } else { Down::Stopped(stopped) })
    }
}

fn stack_file(dir: &Path) -> PathBuf {
    dir.join("stack.json")
}

fn start_one<R: Recipe>(dir: &Path, progress: Sender<String>) -> Result<Backend<R>, StackError> {
    let since = Instant::now();
    let backend = Backend::<R>::start(&dir.join(R::NAME))?;
    let (name, port, seconds) = (R::NAME, backend.port(), since.elapsed().as_secs_f32());
    // The receiver lives until all senders are gone.
    let _ = progress.send(format!("{name} answers on 127.0.0.1:{port} after {seconds:.1} s"));
    Ok(backend)
}

/// A panic in a backend's thread is a bug here: it goes on in the caller.
fn finished<T>(joined: thread::Result<Result<T, StackError>>) -> Result<T, StackError> {
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
