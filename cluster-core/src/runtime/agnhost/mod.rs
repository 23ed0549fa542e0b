//! agnhost, the image that tests of Kubernetes use: its first argument chooses the program.
//! <https://github.com/kubernetes/kubernetes/tree/master/test/images/agnhost>

mod webhook;

use std::sync::Arc;

use super::programs::{Does, Program, Site};
pub use webhook::Reviewer;

/// The certificate in the root of the image. Tests of Kubernetes ask `test-webserver` for it, and move it away.
pub const CERTIFICATE: (&str, &str) = ("/localhost.crt", include_str!("localhost.crt"));

/// The program that a command line chooses, behind the name of the binary; the image's own if it is none that differs.
pub fn program(whole: &Arc<Program>, args: &[String]) -> Arc<Program> {
    let Some((name, flags)) = args.split_first() else { return whole.clone() };
    let port = |name: &str, default: u16| flag(flags, name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (port, site, greeting) = match name.as_str() {
        "netexec" => {
            let port = port("http-port", 8080);
            (port, Site::Netexec, vec![format!("Started HTTP server on port {port}")])
        }
        "serve-hostname" => {
            let port = port("port", 9376);
            (port, Site::Hostname, vec![format!("Serving on port {port}.")])
        }
        "test-webserver" => (port("port", 80), Site::Files, Vec::new()),
        "webhook" | "crd-conversion-webhook" => {
            (port("port", 443), Site::Reviews(Arc::new(Reviewer::new(name, flags))), Vec::new())
        }
        _ => return whole.clone(),
    };
    let greeting = greeting.into_iter().map(Into::into).collect();
    Arc::new(Program { does: Does::Serve(vec![port], site), greeting, ..Program::clone(whole) })
}

/// The value of a flag, `--name=value` or `--name value`.
pub fn flag<'a, S: AsRef<str>>(args: &'a [S], name: &str) -> Option<&'a str> {
    args.iter().map(AsRef::as_ref).enumerate().find_map(|(index, arg)| {
        let rest = arg.trim_start_matches('-').strip_prefix(name).filter(|_| arg.starts_with('-'))?;
        if rest.is_empty() { args.get(index + 1).map(AsRef::as_ref) } else { rest.strip_prefix('=') }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::image_table::by_image;

    #[test]
    fn arguments_choose_what_is_served_and_where() {
        let whole = by_image("agnhost").unwrap();
        let serves = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let Does::Serve(ports, site) = program(whole, &words).does.clone() else { panic!("{line} serves") };
            (ports, site)
        };
        assert_eq!(serves("netexec --http-port=80"), (vec![80], Site::Netexec));
        assert_eq!(serves("serve-hostname"), (vec![9376], Site::Hostname));
        assert_eq!(serves("test-webserver --port 8080"), (vec![8080], Site::Files));
        assert_eq!(serves("pause"), (vec![8080], Site::Netexec));
    }
}
