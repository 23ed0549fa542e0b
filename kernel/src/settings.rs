//! What a session is set to: language, seed, number of nodes, and whether somebody sits before it.

/// The language of the kernel's own words. kubectl's and Kubernetes' texts stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    #[default]
    Ja,
    En,
}

impl Language {
    /// Its ISO 639-1 code.
    pub fn code(self) -> &'static str {
        match self {
            Language::Ja => "ja",
            Language::En => "en",
        }
    }

    /// `ja`, `en`, or a locale such as `ja_JP.UTF-8`.
    pub fn parse(text: &str) -> Option<Language> {
        match text.split(['_', '-', '.']).next()? {
            "ja" => Some(Language::Ja),
            "en" | "C" | "POSIX" => Some(Language::En),
            _ => None,
        }
    }

    /// The language of the locale that the process was started in.
    pub fn of_locale() -> Language {
        let set = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
        set.filter(|locale| !locale.is_empty()).find_map(|locale| Language::parse(&locale)).unwrap_or(Language::En)
    }

    pub fn is_japanese(self) -> bool {
        self == Language::Ja
    }

    /// One of two texts.
    pub fn say<'a>(self, japanese: &'a str, english: &'a str) -> &'a str {
        if self.is_japanese() { japanese } else { english }
    }
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub language: Language,
    pub seed: u64,
    pub nodes: usize,
    /// A person runs the cells one by one. A session that is not interactive replays a notebook (`kernetes run`,
    /// `kernetes grade`, the committed lessons), which must come to the same bytes each time.
    pub interactive: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { language: Language::En, seed: 1, nodes: 3, interactive: false }
    }
}
