//! Letters, as they are shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::{DateTime, SecondsFormat, Utc};
use reconciler::letters::{Judge, Judged};
use serde_json::{Map, Value, json};
use shared::config::Config;
use shared::ledger::{KeptLetter, Ledger};
use shared::stock::Stock;

/// A letter, and its judgement unless Redis is away.
pub(crate) struct Shown {
    pub(crate) letter: KeptLetter,
    pub(crate) judged: Option<Judged>,
}

/// Judges letters to show them. Letters can be looked at while Redis is away; nothing is known of
/// their stock then.
pub(crate) struct Judging {
    judge: Judge,
    told: bool,
}

impl Judging {
    pub(crate) async fn open(config: &Config, ledger: &Ledger) -> anyhow::Result<Self> {
        let stock = Stock::connect(&config.redis, &config.namespace)?;
        Ok(Self { judge: Judge::open(ledger, &stock).await?, told: false })
    }

    pub(crate) async fn judge(&mut self, letters: Vec<KeptLetter>) -> Vec<Shown> {
        match self.judge.judge(letters.clone()).await {
            Ok(judged) => judged
                .into_iter()
                .map(|judged| Shown { letter: judged.letter.clone(), judged: Some(judged) })
                .collect(),
            Err(error) => {
                if !self.told {
                    eprintln!("lastunit: letters are shown without their class: {error}");
                    self.told = true;
                }
                letters.into_iter().map(|letter| Shown { letter, judged: None }).collect()
            }
        }
    }
}

impl Shown {
    pub(crate) fn class(&self) -> &'static str {
        self.judged.as_ref().map_or("-", |judged| judged.class.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        let Self { letter, judged } = self;
        let subject = letter.subject.as_ref();
        json!({
            "id": letter.letter_id.to_string(),
            "state": letter.state.as_str(),
            "kind": letter.kind.as_str(),
            "class": judged.as_ref().map(|judged| judged.class.as_str()),
            "would": judged.as_ref().map(|judged| judged.effect.to_string()),
            "reason": letter.reason,
            "error": letter.error,
            "fingerprint": letter.fingerprint,
            "source": letter.source,
            "environment": subject.map(|subject| subject.environment.to_string()),
            "item": subject.map(|subject| subject.item.to_string()),
            "buyer": subject.map(|subject| subject.buyer.to_string()),
            "request_id": subject.map(|subject| subject.request_id.to_string()),
            "reservation_id": subject.map(|subject| subject.reservation_id.to_string()),
            "attempts": letter.attempts,
            "first_died_at": rfc3339(letter.first_died_at),
            "last_died_at": rfc3339(letter.last_died_at),
            "settled_at": letter.settled_at.map(rfc3339),
            "edited": letter.original.is_some(),
        })
    }
}

pub(crate) fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Bytes under `name` as text, or under `name_base64` when they are none.
pub(crate) fn put_bytes(into: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => into.insert(name.to_owned(), text.into()),
        Err(_) => into.insert(format!("{name}_base64"), BASE64.encode(bytes).into()),
    };
}
