//! `kubectl help` and `kubectl options`

use super::super::help;
use super::super::verb::Verb;

pub const HELP: Verb = Verb {
    name: "help",
    aliases: &[],
    flags: &[],
    run: |call| {
        let args = call.parsed.args.clone();
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        if let Some(text) = help::of(&words) {
            call.context.print(text);
            return Ok(());
        }
        let overview = help::of(&[]).unwrap_or_default();
        let usage = overview.split_once("\nBasic").map_or(String::new(), |(_, usage)| format!("\n\nBasic{usage}"));
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        call.context.error_line(format!("Unknown help topic [{}]", words.join(" ")));
        call.context.error_line(usage.trim_end_matches('\n'));
        Ok(())
    },
};

pub const OPTIONS: Verb = Verb {
    name: "options",
    aliases: &[],
    flags: &[],
    run: |call| {
        let options = help::global_options();
        let home = call.context.sink.and_then(|_| std::env::var("HOME").ok());
        call.context.print(home.map_or(options.clone(), |home| options.replace("$HOME", &home)));
        Ok(())
    },
};
