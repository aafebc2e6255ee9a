//! `lastunit migrate`.

use serde_json::json;
use shared::config::Config;
use shared::ledger::Ledger;

use crate::args::Output;
use crate::output;

pub(crate) async fn run(config: &Config, output: Output) -> anyhow::Result<()> {
    let environment = Ledger::connect(&config.ledger)?.migrate().await?;
    if output.json {
        output::json(&json!({ "environment": environment.to_string() }))
    } else {
        output::print(&format!("The ledger is up to date. It is environment {environment}."))
    }
}
