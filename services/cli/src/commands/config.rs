//! `lastunit config`.

use serde_json::{Map, Value, json};
use shared::config::{Config, SETTINGS};

use crate::args::ConfigArgs;
use crate::output;

pub(crate) fn run(config: &Config, args: ConfigArgs) -> anyhow::Result<()> {
    match (args.reference, args.output.json) {
        (false, false) => output::pairs(config.shown()),
        (false, true) => {
            let shown = config.shown().into_iter();
            let values = shown.map(|(path, value)| (path.to_owned(), Value::String(value)));
            output::json(&values.collect::<Map<_, _>>())
        }
        (true, false) => output::table(
            ["setting", "environment variable", "default", "meaning"],
            SETTINGS
                .iter()
                .map(|setting| {
                    [setting.path, &setting.variable(), setting.default, setting.help]
                        .map(str::to_owned)
                })
                .collect(),
        ),
        (true, true) => output::json(
            &SETTINGS
                .iter()
                .map(|setting| {
                    json!({
                        "setting": setting.path,
                        "variable": setting.variable(),
                        "default": setting.default,
                        "help": setting.help,
                    })
                })
                .collect::<Vec<_>>(),
        ),
    }
}
