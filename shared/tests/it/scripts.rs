//! The headers of `lua/` are contracts: each is compared with what its script does and with what the
//! Rust side reads.
//!
//! The scripts are simple enough to be read as text: every string outside a call of Redis, a
//! comparison or a field of a record is a word of a reply.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const NO_RETURN: &str =
    "-- Point of no return: everything above only read, everything below only writes.";
const READING: &[&str] = &[
    "GET",
    "MGET",
    "HGET",
    "HMGET",
    "HGETALL",
    "HSCAN",
    "INFO",
    "PTTL",
    "SCAN",
    "TIME",
    "ZCARD",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZSCAN",
    "ZSCORE",
];
const WRITING: &[&str] = &[
    "HDEL",
    "HINCRBY",
    "HSET",
    "MSET",
    "PEXPIRE",
    "PEXPIREAT",
    "SET",
    "UNLINK",
    "ZADD",
    "ZREM",
    "ZREMRANGEBYSCORE",
];

/// Which file of the stock room reads the replies of each script.
const READ_BY: &[(&str, &str)] = &[
    ("bind_store", "store.rs"),
    ("claim_overdue", "claim_overdue.rs"),
    ("confirm", "confirm.rs"),
    ("correct", "correct.rs"),
    ("find_hold", "find_hold.rs"),
    ("find_holds", "find_holds.rs"),
    ("next_look", "next_look.rs"),
    ("forget_holds", "warm.rs"),
    ("forget_lock", "retire.rs"),
    ("freeze", "freeze.rs"),
    ("lock_acquire", "lock_scripts.rs"),
    ("lock_release", "lock_scripts.rs"),
    ("lock_renew", "lock_scripts.rs"),
    ("lock_show", "lock_scripts.rs"),
    ("open", "warm.rs"),
    ("probe", "mod.rs"),
    ("read_holds", "read_holds.rs"),
    ("read_records", "read_records.rs"),
    ("read_totals", "totals.rs"),
    ("read_transfers", "transfer.rs"),
    ("reserve", "reserve.rs"),
    ("restore", "restore.rs"),
    ("retire", "retire.rs"),
    ("scan_confirmed", "scan_confirmed.rs"),
    ("scan_totals", "totals.rs"),
    ("snapshot", "snapshot.rs"),
    ("stamp", "correct.rs"),
    ("terms", "terms.rs"),
    ("thaw", "freeze.rs"),
    ("store", "store.rs"),
    ("transfer_back", "transfer.rs"),
    ("transfer_done", "transfer.rs"),
    ("transfer_in", "transfer.rs"),
    ("transfer_out", "transfer.rs"),
    ("transfer_void", "transfer.rs"),
    ("warm", "warm.rs"),
    ("warm_page", "warm.rs"),
];

struct Script {
    name: String,
    /// The comment lines below the first line, without their dashes.
    header: Vec<String>,
    first_line: String,
    body: String,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn scripts() -> Vec<Script> {
    let entries = fs::read_dir(workspace().join("lua")).expect("the scripts");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let is_script = |path: &PathBuf| {
        path.extension().is_some_and(|ext| ext == "lua") && !path.ends_with("record.lua")
    };
    paths.iter().filter(|path| is_script(path)).map(|path| Script::parse(path)).collect()
}

impl Script {
    fn parse(path: &Path) -> Self {
        let text = read(path);
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let (first_line, rest) = text.split_once('\n').expect("lines");
        let header: Vec<String> = rest
            .lines()
            .map_while(|line| line.strip_prefix("-- "))
            .map(ToOwned::to_owned)
            .collect();
        let body = rest.lines().skip(header.len()).collect::<Vec<_>>().join("\n");
        Self { name, header, first_line: first_line.to_owned(), body }
    }

    /// The header's lines of one kind, without the kind: `KEYS[`, `ARGV[`, `HEAD `, `REPLY `.
    fn entries(&self, kind: &str) -> Vec<&str> {
        self.header.iter().filter_map(|line| line.strip_prefix(kind)).collect()
    }

    fn header_words(&self) -> BTreeSet<String> {
        let entries = self.entries("HEAD ").into_iter().chain(self.entries("REPLY "));
        entries.map(|entry| first_word(entry.split(':').next().expect("a part"))).collect()
    }

    /// The code without comments.
    fn code(&self) -> String {
        let without = |line: &str| line.split("--").next().unwrap_or_default().to_owned();
        self.body.lines().map(without).collect::<Vec<_>>().join("\n")
    }

    /// Words of replies in the code.
    fn code_words(&self) -> BTreeSet<String> {
        let code = without_calls(&self.code());
        let mut words = BTreeSet::new();
        let mut parts = code.split('\'');
        let mut before = parts.next().expect("a part").to_owned();
        while let (Some(literal), Some(after)) = (parts.next(), parts.next()) {
            let compared = before.ends_with("== ") || before.ends_with("~= ");
            let field = before.ends_with("state = ") || before.ends_with("verdict = ");
            let word = first_word(literal);
            if !compared && !field && word.chars().any(|letter| letter.is_ascii_lowercase()) {
                words.insert(word);
            }
            before = after.to_owned();
        }
        words
    }

    /// Values of the constants of the code, such as `FIRST_HOLD`.
    fn constants(&self) -> BTreeMap<String, usize> {
        let mut constants = BTreeMap::new();
        for line in self.body.lines() {
            let Some((names, values)) =
                line.strip_prefix("local ").and_then(|line| line.split_once(" = "))
            else {
                continue;
            };
            for (name, value) in names.split(", ").zip(values.split(", ")) {
                if let (true, Ok(value)) = (is_constant(name), value.parse()) {
                    constants.insert(name.to_owned(), value);
                }
            }
        }
        constants
    }
}

fn is_constant(name: &str) -> bool {
    name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

fn first_word(text: &str) -> String {
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// The code without `redis.call(…)` and `write_new(…)`, whose strings are commands, fields and states.
fn without_calls(code: &str) -> String {
    without_calls_of("write_new(", &without_calls_of("redis.call(", code))
}

fn without_calls_of(function: &str, code: &str) -> String {
    let mut left = String::new();
    let mut rest = code;
    while let Some((before, after)) = rest.split_once(function) {
        left.push_str(before);
        let mut depth = 1;
        let end = after.find(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            depth == 0
        });
        rest = &after[end.expect("a call that ends") + 1..];
    }
    left + rest
}

/// The commands that some code sends to Redis.
fn commands(code: &str) -> Vec<String> {
    let calls = code.split("redis.call('").skip(1);
    calls.map(|call| call.split('\'').next().expect("a command").to_owned()).collect()
}

fn is_writing(command: &str) -> bool {
    assert!(
        READING.contains(&command) || WRITING.contains(&command),
        "{command} is new here: is it one that reads or one that writes?"
    );
    WRITING.contains(&command)
}

#[test]
fn every_header_says_who_it_is_in_one_sentence_and_what_stays_true() {
    for script in scripts() {
        let Script { name, header, first_line, .. } = &script;
        let flags = ["#!lua", "#!lua flags=allow-oom", "#!lua flags=no-writes"];
        assert!(flags.contains(&first_line.as_str()), "{name}: {first_line}");
        let is_entry = |line: &&String| {
            !["KEYS[", "ARGV[", "HEAD ", "REPLY ", "INVARIANT "].iter().any(|k| line.starts_with(k))
        };
        let summary: Vec<_> = header.iter().take_while(is_entry).map(String::as_str).collect();
        let summary = summary.join(" ");
        let sentence = summary.strip_prefix(&format!("{name}: "));
        let sentence = sentence.unwrap_or_else(|| panic!("{name}: its header begins {summary:?}"));
        assert_eq!(sentence.find('.'), Some(sentence.len() - 1), "{name}: one sentence");
        assert_eq!(script.entries("INVARIANT ").len(), 1, "{name}: one invariant");
        assert!(!script.entries("REPLY ").is_empty(), "{name}: what does it answer?");
    }
}

#[test]
fn keys_and_arguments_are_those_of_the_header() {
    for script in scripts() {
        for kind in ["KEYS[", "ARGV["] {
            let what = format!("{}: {kind}", script.name);
            let mut documented = Vec::new();
            let mut list = None;
            for entry in script.entries(kind) {
                let (index, meaning) = entry.split_once("] ").expect("an index and a meaning");
                assert_eq!(list, None, "{what}: nothing comes after a list");
                match index.strip_suffix("..") {
                    Some(first) => {
                        list = Some((first.parse::<usize>().expect("a number"), meaning))
                    }
                    None => documented.push(index.parse::<usize>().expect("a number")),
                }
            }
            let in_order: Vec<usize> = (1..=documented.len()).collect();
            assert_eq!(documented, in_order, "{what}: one line each, in order");
            if let Some((first, _)) = list {
                assert_eq!(first, documented.len() + 1, "{what}: the list follows the others");
            }

            let code = script.code();
            let fixed: Vec<usize> = code
                .split(kind)
                .skip(1)
                .filter_map(|rest| rest.split(']').next().and_then(|index| index.parse().ok()))
                .collect();
            assert_eq!(fixed, documented, "{what}: each is named once, in a local, in order");
            assert_eq!(list.map(|(first, _)| first), list_in(&script, kind), "{what} as a list");
            if let (Some((_, meaning)), "ARGV[") = (list, kind) {
                let (_, fields) = meaning.split_once(": ").expect("`for each …: its fields`");
                // `the buyer's confirmed total` has no comma of its own.
                let width = fields.split(", ").count();
                let constants = script.constants();
                let widths: Vec<_> =
                    constants.iter().filter(|(name, _)| name.ends_with("_WIDTH")).collect();
                assert_eq!(widths.len(), 1, "{what}: one width");
                assert_eq!(*widths[0].1, width, "{what}: {fields}");
                let field = |n: &usize| match n {
                    0 => code.contains("ARGV[at]"),
                    n => code.contains(&format!("ARGV[at + {n}]")),
                };
                let last = (0..width).rev().find(field);
                assert_eq!(last, Some(width - 1), "{what}: every field is used, none beyond");
                assert!(!code.contains(&format!("at + {width}")), "{what}: none beyond");
            }
        }
    }
}

/// Where the code begins to use keys or arguments as a list.
fn list_in(script: &Script, kind: &str) -> Option<usize> {
    let code = script.code();
    let (array, first) = match kind {
        "KEYS[" => ("KEYS", &["FIRST_HOLD"][..]),
        _ => ("ARGV", &["FIRST_REQUEST", "FIRST_ORDER", "FIRST_BUYER"][..]),
    };
    let used = code.contains(&format!("unpack({array}"))
        || code.contains(&format!("#{array}"))
        || code.split(kind).skip(1).any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    let constants = script.constants();
    used.then(|| {
        let constant = first.iter().find_map(|name| constants.get(*name));
        *constant.unwrap_or_else(|| panic!("{}: {array} from where?", script.name))
    })
}

#[test]
fn reply_words_are_the_same_in_header_and_code() {
    for script in scripts() {
        assert_eq!(script.header_words(), script.code_words(), "{}", script.name);
    }
}

#[test]
fn the_rust_side_reads_exactly_the_words_of_the_headers() {
    let mut words: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for script in scripts() {
        let read_by = READ_BY.iter().find(|(name, _)| *name == script.name);
        let (_, file) = read_by.unwrap_or_else(|| panic!("who reads {}?", script.name));
        words.entry(file).or_default().extend(script.header_words());
    }
    assert_eq!(words.len(), READ_BY.iter().map(|(_, file)| file).collect::<BTreeSet<_>>().len());
    for (file, words) in words {
        let source = read(&workspace().join("shared/src/stock").join(file));
        let mut arms = match_arms(&source);
        if source.contains("layouts::{AtHome, at_home}") {
            // It leaves the first element of the reply to that function.
            arms.extend(match_arms(&read(&workspace().join("shared/src/stock/layouts.rs"))));
        }
        assert_eq!(arms, words, "{file}");
    }
}

/// Strings that are patterns of a `match`.
fn match_arms(source: &str) -> BTreeSet<String> {
    let mut arms = BTreeSet::new();
    for line in source.lines() {
        let Some((patterns, _)) = line.split_once(" =>") else { continue };
        for pattern in patterns.trim().split(" | ") {
            let quoted = pattern.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            arms.extend(quoted.map(ToOwned::to_owned));
        }
    }
    arms
}

#[test]
fn checks_stand_above_the_point_of_no_return_and_writes_below() {
    let record = read(&workspace().join("lua/record.lua"));
    let reading_functions: Vec<String> = record
        .split("local function ")
        .skip(1)
        .filter(|function| function.contains("redis.call("))
        .map(|function| function.split('(').next().expect("a name").to_owned() + "(")
        .collect();
    assert_eq!(
        reading_functions,
        ["now_ms(", "incarnation("],
        "the shared functions that ask Redis"
    );

    for script in scripts() {
        let name = &script.name;
        let (above, below) = match script.body.split_once(NO_RETURN) {
            Some((above, below)) => (above, below),
            None => (script.body.as_str(), ""),
        };
        assert!(!below.contains("no return"), "{name}: there is one such point");
        for command in commands(above) {
            assert!(!is_writing(&command), "{name}: {command} writes above the point of no return");
        }
        for command in commands(below) {
            assert!(is_writing(&command), "{name}: {command} reads below the point of no return");
        }
        for function in &reading_functions {
            assert!(!below.contains(function), "{name}: {function}) reads below the point");
        }
        assert_eq!(below.is_empty(), commands(below).is_empty(), "{name}: what is it for?");
        let only_reads = script.first_line.contains("no-writes");
        assert!(!only_reads || below.is_empty(), "{name} writes, its first line denies it");
    }
}
