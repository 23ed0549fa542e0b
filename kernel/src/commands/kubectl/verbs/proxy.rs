//! `kubectl proxy`: a port of this machine on which the API is served without TLS and tokens.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/http-proxy-access-api/>

use regex::Regex;

use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{duration, integer, switch, text};
use super::super::verb::{Call, Verb};
use crate::commands::api::{Filter, Proxy};

pub const VERB: Verb = Verb {
    name: "proxy",
    aliases: &[],
    flags: &[
        text("address"),
        integer("port").short('p'),
        text("unix-socket").short('u'),
        text("api-prefix"),
        text("www").short('w'),
        text("www-prefix").short('P'),
        text("accept-hosts"),
        text("accept-paths"),
        text("reject-paths"),
        text("reject-methods"),
        switch("disable-filter"),
        duration("keepalive"),
    ],
    run,
};

const HOSTS: &str = r"^localhost$,^127\.0\.0\.1$,^\[::1\]$";
const REJECTED_PATHS: &str = "^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach";
const PORT: i64 = 8001;

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let parsed = &call.parsed;
    let or = |flag: &str, usual: &str| parsed.text(flag).unwrap_or(usual).to_owned();
    let filter = match parsed.switch("disable-filter") {
        true => None,
        false => Some(Filter {
            hosts: patterns(&or("accept-hosts", HOSTS))?,
            paths: patterns(&or("accept-paths", "^.*"))?,
            rejected_paths: patterns(&or("reject-paths", REJECTED_PATHS))?,
            rejected_methods: patterns(&or("reject-methods", "^$"))?,
        }),
    };
    let port = parsed.integer("port").unwrap_or(PORT);
    let Ok(port) = u16::try_from(port) else { return message(format!("listen tcp: address {port}: invalid port")) };
    let proxy = Proxy {
        address: or("address", "127.0.0.1"),
        port,
        socket: parsed.text("unix-socket").filter(|path| !path.is_empty()).map(str::to_owned),
        prefix: between_slashes(&or("api-prefix", "/")),
        folder: parsed.text("www").filter(|folder| !folder.is_empty()).map(str::to_owned),
        folder_prefix: between_slashes(&or("www-prefix", "/static/")),
        filter,
    };
    if proxy.filter.is_none() && proxy.socket.is_none() {
        call.context
            .error_line("Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious");
    }
    call.context.with_output(|api, write| api.proxy(&proxy, write)).map_err(|status| Failure::Message(status.message))
}

fn between_slashes(prefix: &str) -> String {
    match prefix.trim_matches('/') {
        "" => "/".to_owned(),
        inner => format!("/{inner}/"),
    }
}

/// Regular expressions with commas between them.
fn patterns(text: &str) -> Result<Vec<Regex>, Failure> {
    let compile = |pattern: &str| {
        Regex::new(pattern).map_err(|error| {
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Failure::Message(format!("Error compiling re: error parsing regexp: {why}: `{pattern}`"))
        })
    };
    text.split(',').filter(|pattern| !pattern.is_empty()).map(compile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controls::testing::session;
    use crate::output::{CellError, Output, Sink};

    fn filter(paths: &str) -> Filter {
        Filter {
            hosts: patterns(HOSTS).unwrap(),
            paths: patterns(paths).unwrap(),
            rejected_paths: patterns(REJECTED_PATHS).unwrap(),
            rejected_methods: patterns("^POST$").unwrap(),
        }
    }

    #[test]
    fn requests_pass_by_host_path_and_method() {
        let passes = |host: &str, path: &str, method: &str| filter("^.*").passes(method, host, path);
        assert!(passes("127.0.0.1:8001", "/version", "GET"));
        assert!(passes("[::1]:8001", "/version", "GET") && passes("localhost", "/", "DELETE"));
        assert!(!passes("evil.example", "/version", "GET"));
        assert!(!passes("localhost", "/api/v1/namespaces/default/pods/web/exec", "GET"));
        assert!(!passes("localhost", "/version", "POST"));
        assert!(!filter("^/api/.*").passes("GET", "localhost", "/version"));
        assert!(!filter("").passes("GET", "localhost", "/version"));
        assert!(patterns("^a,(").is_err());
    }

    #[test]
    fn a_cell_is_told_what_to_do_instead() {
        struct Told(String);
        impl Sink for Told {
            fn put(&mut self, output: Output) {
                if let Output::Stderr(text) | Output::Stdout(text) = output {
                    self.0 += &text;
                }
            }
        }
        let mut told = Told(String::new());
        let failed: Result<(), CellError> = session().execute("kubectl proxy --port=0", &mut told);
        assert!(failed.is_err() && told.0.contains("kubectl get --raw"), "{}", told.0);
    }
}
