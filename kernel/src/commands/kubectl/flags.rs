//! kubectl's argument grammar: flags in any position, `--name value`, `--name=value`, `-n value`, `-nvalue`, `-Af file`,
//! and `--`, behind which everything is an argument.

use std::time::Duration;

/// A flag that a verb takes.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub long: &'static str,
    pub short: Option<char>,
    pub takes: Takes,
    /// What to use instead.
    pub deprecated: Option<&'static str>,
}

/// What stands behind a flag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Takes {
    /// Nothing, or `=true`, `=false`.
    Switch,
    Text,
    Integer,
    Duration,
    /// `=value`, or nothing, which means this.
    Optional(&'static str),
}

const fn flag(long: &'static str, takes: Takes) -> Flag {
    Flag { long, short: None, takes, deprecated: None }
}

pub const fn switch(long: &'static str) -> Flag {
    flag(long, Takes::Switch)
}

pub const fn text(long: &'static str) -> Flag {
    flag(long, Takes::Text)
}

pub const fn integer(long: &'static str) -> Flag {
    flag(long, Takes::Integer)
}

pub const fn duration(long: &'static str) -> Flag {
    flag(long, Takes::Duration)
}

pub const fn optional(long: &'static str, value: &'static str) -> Flag {
    flag(long, Takes::Optional(value))
}

impl Flag {
    pub const fn short(self, short: char) -> Flag {
        Flag { short: Some(short), ..self }
    }

    /// It is still understood, with a warning that says what to use instead.
    pub const fn deprecated(self, instead: &'static str) -> Flag {
        Flag { deprecated: Some(instead), ..self }
    }
}

/// Flags that every verb takes.
pub const GLOBAL: &[Flag] = &[
    text("namespace").short('n'),
    text("kubeconfig"),
    text("context"),
    text("cluster"),
    text("user"),
    text("server").short('s'),
    text("token"),
    text("as"),
    text("as-group"),
    text("as-uid"),
    text("request-timeout"),
    text("cache-dir"),
    text("certificate-authority"),
    text("tls-server-name"),
    switch("disable-compression"),
    switch("match-server-version"),
    switch("insecure-skip-tls-verify"),
    switch("warnings-as-errors"),
    integer("v").short('v'),
    switch("help").short('h'),
];

/// A command line, taken apart.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    pub args: Vec<String>,
    /// How many of the arguments stand before `--`.
    pub before_dash: Option<usize>,
    values: Vec<(&'static str, String)>,
}

impl Parsed {
    /// The last value of a flag.
    pub fn text(&self, long: &str) -> Option<&str> {
        self.values.iter().rev().find(|(name, _)| *name == long).map(|(_, value)| value.as_str())
    }

    /// All values of a flag that may be given several times.
    pub fn all<'a>(&'a self, long: &'a str) -> impl Iterator<Item = &'a str> {
        self.values.iter().filter(move |(name, _)| *name == long).map(|(_, value)| value.as_str())
    }

    /// Objects are named by files or a kustomization.
    pub fn names_files(&self) -> bool {
        self.has("filename") || self.has("kustomize")
    }

    /// The values of a list flag, which may also stand in one with commas between them.
    pub fn list<'a>(&'a self, long: &'a str) -> impl Iterator<Item = &'a str> {
        self.all(long).flat_map(|value| value.split(','))
    }

    /// The last value of a flag, which then counts as not given.
    pub fn take(&mut self, long: &str) -> Option<String> {
        let value = self.text(long).map(str::to_owned);
        self.values.retain(|(name, _)| *name != long);
        value
    }

    pub fn switch(&self, long: &str) -> bool {
        self.text(long).is_some_and(|value| parse_bool(value) == Some(true))
    }

    /// A switch that is on unless it is turned off.
    pub fn switch_or_on(&self, long: &str) -> bool {
        self.text(long).and_then(parse_bool).unwrap_or(true)
    }

    pub fn integer(&self, long: &str) -> Option<i64> {
        self.text(long).and_then(|text| text.parse().ok())
    }

    pub fn duration(&self, long: &str) -> Option<Duration> {
        self.text(long).and_then(parse_duration)
    }

    /// Warnings of flags that will go.
    pub fn deprecations<'a>(&'a self, flags: &'a [Flag]) -> impl Iterator<Item = String> + 'a {
        flags.iter().filter(|flag| self.has(flag.long)).filter_map(|flag| {
            flag.deprecated.map(|instead| format!("Flag --{} has been deprecated, {instead}", flag.long))
        })
    }

    pub fn has(&self, long: &str) -> bool {
        self.text(long).is_some()
    }
}

/// Takes words apart by the flags that are known; the error is pflag's.
pub fn parse(words: &[String], flags: &[Flag]) -> Result<Parsed, String> {
    let mut parsed = Parsed::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if parsed.before_dash.is_some() || !word.starts_with('-') || word == "-" {
            parsed.args.push(word.clone());
        } else if word == "--" {
            parsed.before_dash = Some(parsed.args.len());
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if name.is_empty() || name.starts_with('-') {
                return Err(format!("bad flag syntax: {word}"));
            }
            let flag = known(flags, |flag| flag.long == name).ok_or_else(|| format!("unknown flag: --{name}"))?;
            let value = match (value, flag.takes) {
                (Some(value), _) => value.to_owned(),
                (None, Takes::Switch) => "true".to_owned(),
                (None, Takes::Optional(value)) => value.to_owned(),
                (None, _) => rest.next().cloned().ok_or_else(|| format!("flag needs an argument: --{name}"))?,
            };
            check(flag, &value)?;
            parsed.values.push((flag.long, value));
        } else {
            shorthands(&word[1..], flags, &mut rest, &mut parsed)?;
        }
    }
    Ok(parsed)
}

/// The flags of every verb that stand before `--`, whatever else does: they say which server is meant. `own` are the
/// verb's flags, of which some have such a name but mean something else.
pub fn global(words: &[String], own: &[Flag]) -> Parsed {
    let mut parsed = Parsed::default();
    let mut rest = words.iter().take_while(|word| *word != "--");
    while let Some(word) = rest.next() {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let is = |flag: &&Flag| match name.strip_prefix("--") {
            Some(long) => flag.long == long,
            None => flag.short.is_some_and(|short| name.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4]))),
        };
        if own.iter().any(|flag| is(&flag)) {
            continue;
        }
        let Some(flag) = GLOBAL.iter().find(is) else { continue };
        let value = match (value, flag.takes) {
            (Some(value), _) => value.to_owned(),
            (None, Takes::Switch) => "true".to_owned(),
            (None, _) => rest.next().cloned().unwrap_or_default(),
        };
        parsed.values.push((flag.long, value));
    }
    parsed
}

fn known(flags: &[Flag], is: impl Fn(&Flag) -> bool) -> Option<&Flag> {
    flags.iter().chain(GLOBAL).find(|flag| is(flag))
}

/// `-A`, `-Af file`, `-ffile`, `-o=yaml`.
fn shorthands<'a>(
    letters: &str,
    flags: &[Flag],
    rest: &mut impl Iterator<Item = &'a String>,
    parsed: &mut Parsed,
) -> Result<(), String> {
    for (index, letter) in letters.char_indices() {
        let flag = known(flags, |flag| flag.short == Some(letter))
            .ok_or_else(|| format!("unknown shorthand flag: '{letter}' in -{letters}"))?;
        let tail = &letters[index + letter.len_utf8()..];
        let value = match (tail.strip_prefix('='), flag.takes) {
            (Some(value), _) => Some(value.to_owned()),
            (None, Takes::Switch) => {
                parsed.values.push((flag.long, "true".into()));
                None
            }
            (None, Takes::Optional(value)) => {
                parsed.values.push((flag.long, value.into()));
                None
            }
            (None, _) if !tail.is_empty() => Some(tail.to_owned()),
            (None, _) => {
                let missing = || format!("flag needs an argument: '{letter}' in -{letters}");
                Some(rest.next().cloned().ok_or_else(missing)?)
            }
        };
        if let Some(value) = value {
            check(flag, &value)?;
            parsed.values.push((flag.long, value));
            return Ok(());
        }
    }
    Ok(())
}

fn check(flag: &Flag, value: &str) -> Result<(), String> {
    let quoted = || format!("{value:?}");
    let problem = match flag.takes {
        Takes::Switch if parse_bool(value).is_none() => {
            format!("strconv.ParseBool: parsing {}: invalid syntax", quoted())
        }
        Takes::Integer if value.parse::<i64>().is_err() => {
            format!("strconv.ParseInt: parsing {}: invalid syntax", quoted())
        }
        Takes::Duration if parse_duration(value).is_none() => match value.parse::<f64>() {
            Ok(_) => format!("time: missing unit in duration {}", quoted()),
            Err(_) => format!("time: invalid duration {}", quoted()),
        },
        _ => return Ok(()),
    };
    let name = match flag.short {
        Some(short) => format!("-{short}, --{}", flag.long),
        None => format!("--{}", flag.long),
    };
    Err(format!("invalid argument {} for \"{name}\" flag: {problem}", quoted()))
}

/// Go's `strconv.ParseBool`.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Go's `time.ParseDuration`: `1h30m`, `500ms`. A negative one counts as longer than anything waits.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').filter(|end| *end > 0)?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(rest.len());
        seconds += number
            * match &rest[..end] {
                "ns" => 1e-9,
                "us" | "µs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = &rest[end..];
    }
    if negative {
        return Some(FOREVER);
    }
    Duration::try_from_secs_f64(seconds).ok().map(|duration| duration.min(FOREVER))
}

/// What kubectl takes for a week of patience.
pub const FOREVER: Duration = Duration::from_secs(7 * 86_400);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FLAGS: &[Flag] = &[
        text("output").short('o'),
        switch("all-namespaces").short('A'),
        text("filename").short('f'),
        duration("timeout"),
    ];

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn flags_stand_anywhere() {
        let parsed = parse(&words("pods -Aoyaml web --filename=a -f b -- -x"), FLAGS).unwrap();
        assert_eq!(parsed.args, ["pods", "web", "-x"]);
        assert_eq!(parsed.before_dash, Some(2));
        assert_eq!(parsed.text("output"), Some("yaml"));
        assert!(parsed.switch("all-namespaces"));
        assert_eq!(parsed.all("filename").collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn which_server_is_meant_is_known_before_the_verb() {
        let parsed =
            global(&words("--kubeconfig=a get -o wide pods --context b -s c --user e -- --token d"), &[text("user")]);
        assert_eq!(
            ["kubeconfig", "context", "server"].map(|flag| parsed.text(flag)),
            [Some("a"), Some("b"), Some("c")]
        );
        assert!(!parsed.has("token") && !parsed.has("user"));
    }

    #[test]
    fn wrong_flags_are_told_as_pflag_tells_them() {
        for (line, message) in [
            ("--outptu=wide", "unknown flag: --outptu"),
            ("pods -o", "flag needs an argument: 'o' in -o"),
            ("-x", "unknown shorthand flag: 'x' in -x"),
            (
                "--all-namespaces=maybe",
                "invalid argument \"maybe\" for \"-A, --all-namespaces\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
            ("--timeout=5", "invalid argument \"5\" for \"--timeout\" flag: time: missing unit in duration \"5\""),
        ] {
            assert_eq!(parse(&words(line), FLAGS).unwrap_err(), message);
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse_duration("-1s"), Some(FOREVER));
        assert_eq!(parse_duration("5"), None);
        assert_eq!(parse_duration("s"), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(words in proptest::collection::vec("[-=a-zA-Z0-9é,.]{0,8}", 0..8)) {
            let _ = parse(&words, FLAGS);
        }
    }
}
