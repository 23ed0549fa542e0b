//! A text in both languages.

use serde::{Deserialize, Serialize};

use crate::settings::Language;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    pub ja: String,
    pub en: String,
}

impl Words {
    pub fn new(ja: impl Into<String>, en: impl Into<String>) -> Words {
        Words { ja: ja.into(), en: en.into() }
    }

    /// What needs no translation: names, lists of names.
    pub fn same(text: impl Into<String>) -> Words {
        let text = text.into();
        Words { ja: text.clone(), en: text }
    }

    /// This, and something more about it: `scale to 2: done`.
    pub fn and(&self, more: &Words) -> Words {
        Words::new(format!("{}: {}", self.ja, more.ja), format!("{}: {}", self.en, more.en))
    }

    pub fn say(&self, language: Language) -> &str {
        language.say(&self.ja, &self.en)
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Words {
        Words::same(text)
    }
}

/// Japanese and English.
impl From<(&str, &str)> for Words {
    fn from((ja, en): (&str, &str)) -> Words {
        Words::new(ja, en)
    }
}
