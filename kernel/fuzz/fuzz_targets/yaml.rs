//! Any text is a manifest or refused, at a place that it has.
#![no_main]

use kernetes::yaml;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match yaml::read(text) {
        Ok(documents) => {
            for document in documents {
                let printed = yaml::print(&document.value);
                let again = yaml::first(&printed).expect("what is printed can be read");
                assert_eq!(again.map(|again| again.value), Some(document.value));
            }
        }
        Err(error) => assert!(error.span.line >= 1 && error.span.column >= 1),
    }
    let _ = yaml::first(text).map_err(|error| error.in_go_words());
});
