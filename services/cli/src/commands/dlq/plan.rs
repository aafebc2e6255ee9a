//! `lastunit dlq plan`.

use clap::Args;
use reconciler::letters::{ItemPlan, Plan, plan};
use serde_json::{Map, Value, json};
use shared::config::Config;
use shared::ledger::{Ledger, LetterFilter};
use shared::stock::Stock;

use super::filter::{DiedOf, Selection};
use super::list::States;
use crate::args::Output;
use crate::output;
use crate::progress::Progress;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    died_of: DiedOf,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(config: &Config, args: PlanArgs) -> anyhow::Result<()> {
    let ledger = Ledger::connect(&config.ledger)?;
    let stock = Stock::connect(&config.redis, &config.namespace)?;
    let filter = args.selection.filter(&ledger, args.died_of.reason.as_deref()).await?;
    // Named letters are judged whatever became of them: an old copy may still be somewhere.
    let states = if args.selection.by_id() { States::Any } else { States::Open };
    let filter = LetterFilter { states: states.wanted(), ..filter };
    let letters = ledger.count_letters(&filter).await?;
    let mut progress = Progress::new();
    let bar = progress.count("judging letters", letters);
    let class = args.selection.narrowing.class;
    let plan = plan(&ledger, &stock, &filter, class, |seen| bar.set_position(seen)).await?;
    progress.done();
    if args.output.json { output::json(&as_json(&plan)) } else { print(&plan) }
}

fn as_json(plan: &Plan) -> Value {
    let counts = |counts: &mut dyn Iterator<Item = (String, u64)>| {
        counts.map(|(name, count)| (name, Value::from(count))).collect::<Map<_, _>>()
    };
    let item = |item: &ItemPlan| {
        json!({
            "letters": item.letters,
            "new_orders": item.new_orders,
            "units_sold": item.units_sold,
            "units_back": item.units_back,
            "units_not_held": item.units_not_held,
        })
    };
    let total = total(plan);
    json!({
        "letters": plan.letters,
        "classes": counts(&mut plan.by_class.iter().map(|(class, n)| (class.to_string(), *n))),
        "would": counts(&mut plan.by_effect.iter().map(|(effect, n)| (effect.clone(), *n))),
        "new_orders": total.new_orders,
        "units_sold": total.units_sold,
        "units_back": total.units_back,
        "units_not_held": total.units_not_held,
        "items": plan.items.iter().map(|(id, of)| (id.to_string(), item(of))).collect::<Map<_, _>>(),
    })
}

fn total(plan: &Plan) -> ItemPlan {
    plan.items.values().fold(ItemPlan::default(), |sum, item| ItemPlan {
        letters: sum.letters + item.letters,
        new_orders: sum.new_orders + item.new_orders,
        units_sold: sum.units_sold + item.units_sold,
        units_back: sum.units_back + item.units_back,
        units_not_held: sum.units_not_held + item.units_not_held,
    })
}

fn print(plan: &Plan) -> anyhow::Result<()> {
    let classes = plan.by_class.iter().map(|(class, n)| [class.to_string(), n.to_string()]);
    output::table(["class", "letters"], classes.collect())?;
    let effects = plan.by_effect.iter().map(|(effect, n)| [effect.clone(), n.to_string()]);
    output::table(["a replay would end as", "letters"], effects.collect())?;
    let row = |name: String, item: &ItemPlan| {
        [
            name,
            item.letters.to_string(),
            item.new_orders.to_string(),
            item.units_sold.to_string(),
            item.units_back.to_string(),
            item.units_not_held.to_string(),
        ]
    };
    let items = plan.items.iter().map(|(id, item)| row(id.to_string(), item));
    let rows = items.chain([row("together".to_owned(), &total(plan))]);
    output::table(
        ["item", "letters", "new orders", "units sold", "units back on sale", "sold, not held"],
        rows.collect(),
    )
}
