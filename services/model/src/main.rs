//! `model`: searches the scenarios and says what it found. `model --help` says how.

use std::process::ExitCode;
use std::time::Instant;

use model::protections::{Protection, Protections};
use model::scenario::Scenario;
use model::search::search;
use model::{report, scenarios, shown};

const HELP: &str = "\
Usage: model [--scenario NAME] [--without RULE[,RULE]] [--rules] [--singles] [--pairs] [--list]
             [--faults N] [--losses N]

  --scenario NAME   search only this scenario
  --without RULES   switch rules off and show the shortest history that goes wrong
  --rules           for each rule that is needed, the shortest history that shows why
  --singles         switch each rule off alone, in every scenario
  --pairs           of the rules that no scenario misses alone, switch off every two
  --list            name the scenarios and the rules
  --faults N        let this many faults happen, instead of what the scenario says
  --losses N        let Redis be lost this often";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |flag: &str| {
        let at = args.iter().position(|arg| arg == flag)?;
        args.get(at + 1).cloned()
    };
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let wanted = value("--scenario");
    let number = |flag: &str| value(flag).and_then(|text| text.parse().ok());
    let chosen: Vec<Scenario> = scenarios::ALL
        .iter()
        .chain([&scenarios::ALONE])
        .filter(|scenario| match &wanted {
            Some(name) => scenario.name == name,
            None => *scenario != &scenarios::ALONE,
        })
        .map(|scenario| Scenario {
            most_faults: number("--faults").unwrap_or(scenario.most_faults),
            losses: number("--losses").unwrap_or(scenario.losses),
            ..*scenario
        })
        .collect();
    if has("--help") {
        println!("{HELP}");
    } else if has("--list") {
        list();
    } else if has("--rules") {
        rules();
    } else if has("--singles") {
        singles(&chosen);
    } else if has("--pairs") {
        pairs(&chosen);
    } else {
        let mut protections = Protections::ALL;
        for name in value("--without").iter().flat_map(|names| names.split(',')) {
            let Some(rule) = Protection::ALL.iter().find(|rule| rule.to_string() == name) else {
                eprintln!("there is no rule {name}; --list names them");
                return ExitCode::FAILURE;
            };
            protections = protections.without(*rule);
        }
        let wrong = chosen.iter().filter(|scenario| !is_right(scenario, protections)).count();
        return if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    ExitCode::SUCCESS
}

fn list() {
    for scenario in scenarios::ALL.iter().chain([&scenarios::ALONE]) {
        println!("{:<20} {}", scenario.name, scenario.about);
    }
    for rule in Protection::ALL {
        println!("{:<20} {}", rule.to_string(), rule.rule());
    }
}

fn is_right(scenario: &Scenario, protections: Protections) -> bool {
    let began = Instant::now();
    let outcome = search(scenario, protections);
    println!("{}", report::line(scenario, &outcome, began.elapsed().as_secs_f64()));
    if let Some(finding) = &outcome.finding {
        print!("{}", report::history(scenario, finding));
    }
    outcome.finding.is_none()
}

fn rules() {
    for shown in shown::ALL {
        println!("without {:?}", shown.without);
        if let Some(finding) = shown.search().finding {
            print!("{}", report::history(shown.scenario, &finding));
        }
    }
}

fn singles(chosen: &[Scenario]) {
    for rule in Protection::ALL {
        println!("without {rule}:");
        show(chosen, Protections::ALL.without(*rule));
    }
}

/// Two rules of which each is dispensable alone, and which are not together.
fn pairs(chosen: &[Scenario]) {
    let wrong =
        |protections| chosen.iter().any(|scenario| search(scenario, protections).finding.is_some());
    let spare: Vec<Protection> = Protection::ALL
        .iter()
        .copied()
        .filter(|rule| !wrong(Protections::ALL.without(*rule)))
        .collect();
    println!("dispensable alone: {spare:?}");
    for (at, one) in spare.iter().enumerate() {
        for other in &spare[at + 1..] {
            println!("without {one} and {other}:");
            show(chosen, Protections::ALL.without(*one).without(*other));
        }
    }
}

/// The first scenario that misses the rules, smallest first.
fn show(chosen: &[Scenario], protections: Protections) {
    let found = chosen.iter().find_map(|scenario| {
        let finding = search(scenario, protections).finding?;
        Some((scenario, finding))
    });
    match found {
        Some((scenario, finding)) => print!("{}", report::history(scenario, &finding)),
        None => println!("  nothing goes wrong"),
    }
}
