//! A private PostgreSQL: loopback only, password only, fully durable as in production.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use super::ports::{self, Port};
use super::postgres_account::Account;
use super::{Backend, Home, Process, Recipe, StackError, credentials, programs};

pub type Postgres = Backend<PostgresRecipe>;

const DATABASE: &str = "lastunit";
const INITIALISED: &str = "initialised";

pub struct PostgresRecipe {
    /// The folder of postgres, initdb and psql.
    bin: PathBuf,
    account: Account,
    data: PathBuf,
    port: Port,
    password: String,
}

impl Recipe for PostgresRecipe {
    const NAME: &'static str = "postgres";

    fn prepare(home: &Home) -> Result<Self, StackError> {
        let bin = programs::folder_of("postgres", &["initdb", "psql"], "postgresql")?;
        let password = credentials::password(home)?;
        let [port] = ports::claim(home)?;
        let recipe =
            Self { bin, account: Account::choose()?, data: home.file("data"), port, password };
        // Written last, so what an interrupted initdb left is thrown away and made again.
        if !home.file(INITIALISED).exists() {
            let _ = fs::remove_dir_all(&recipe.data);
            recipe.init(home)?;
            home.write(INITIALISED, "")?;
        }
        // `Home::open` made sure that no server of ours is left; without this, a pid that was
        // recycled since (after a reboot, say) would keep PostgreSQL from starting.
        let _ = fs::remove_file(recipe.data.join("postmaster.pid"));
        Ok(recipe)
    }

    fn launch(&self, home: &mut Home, processes: &mut Vec<Process>) -> Result<(), StackError> {
        let mut command = self.account.command(&self.bin.join("postgres"));
        command.arg("-D").arg(&self.data).current_dir(&self.data);
        command.arg("-p").arg(self.port.number().to_string());
        // 200: every service keeps its own small pool, and a trial runs many services at once.
        let settings =
            ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
        for setting in settings {
            command.args(["-c", setting]);
        }
        // SIGINT is its "fast" shutdown: it does not wait for clients to leave.
        processes.push(Process::spawn(home, Self::NAME, Signal::SIGINT, command)?);
        Ok(())
    }

    fn answers(&self) -> Result<(), String> {
        // Cheap, and keeps psql from being started for nothing while the server comes up.
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port.number())).map_err(|e| e.to_string())?;
        let query = |database: &str, sql: &str| {
            programs::run("asking it", &mut self.psql(database, sql)).map_err(|e| e.to_string())
        };
        let known = format!("SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'");
        if query("postgres", &known)?.trim().is_empty() {
            query("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
        }
        query(DATABASE, "SELECT 1").map(drop)
    }

    fn url(&self) -> String {
        let (user, port) = (credentials::USER, self.port.number());
        format!("postgres://{user}:{}@127.0.0.1:{port}/{DATABASE}", self.password)
    }

    fn port(&self) -> u16 {
        self.port.number()
    }
}

impl PostgresRecipe {
    /// `--no-sync`: only a machine that crashes in the same second could notice, and then the
    /// cluster is made again.
    fn init(&self, home: &Home) -> Result<(), StackError> {
        fs::create_dir_all(&self.data).map_err(StackError::file("creating", &self.data))?;
        self.account.give(&self.data)?;
        let password_file = home.write("initdb-password", &self.password)?;
        self.account.give(&password_file)?;
        let mut command = self.account.command(&self.bin.join("initdb"));
        command.arg("-D").arg(&self.data).current_dir(&self.data);
        command.args(["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8"]);
        command.args(["-U", credentials::USER, "--locale", locale()]);
        command.arg("--pwfile").arg(&password_file);
        let done = programs::run("initdb", &mut command);
        let _ = fs::remove_file(&password_file);
        done.map(drop)
    }

    fn psql(&self, database: &str, sql: &str) -> Command {
        let mut command = programs::command(&self.bin.join("psql"));
        command.args(["-X", "-A", "-t", "-q", "-h", "127.0.0.1", "-U", credentials::USER]);
        command.arg("-p").arg(self.port.number().to_string());
        command.args(["-d", database, "-c", sql]);
        command.env("PGPASSWORD", &self.password).env("PGCONNECT_TIMEOUT", "2");
        command
    }
}

/// Sorts by code point everywhere it exists; `C` does the same for ASCII and exists everywhere.
fn locale() -> &'static str {
    let list = programs::run("listing locales", programs::command(Path::new("locale")).arg("-a"));
    let has_utf8 = |list: String| list.lines().any(|l| matches!(l, "C.utf8" | "C.UTF-8"));
    if list.is_ok_and(has_utf8) { "C.UTF-8" } else { "C" }
}
