//! `wget` as BusyBox has it, and `curl`.

use std::time::Duration;

use super::net::Names;
use super::{Call, Outcome, duration, files};
use crate::network::connect::{Connection, Options};
use crate::network::question::{Answer, Question};
use crate::network::reply::Failure;
use crate::network::url::Url;

/// How long BusyBox waits for an answer.
const WGET_PATIENCE: Duration = Duration::from_secs(900);

/// What was got, or how the program ends that can't have it yet.
fn get(call: &mut Call<'_, '_>, url: &str, options: Options) -> Result<Connection, Outcome> {
    if let Some(Answer::Got(connection)) = call.kept.answers.first() {
        return Ok((**connection).clone());
    }
    // What the files of the container know, the resolver does not ask for.
    let mut asked = Options { ..options };
    let mut place = url.to_owned();
    if let Ok(parsed) = Url::parse(url)
        && let Some(address) = Names::of(call).in_hosts(&parsed.host)
    {
        place = url.replacen(&parsed.host, &address, 1);
        asked.host.get_or_insert(parsed.host);
    }
    Err(Outcome::Asks(Question::Get { url: place, options: asked }.into()))
}

pub fn wget(call: &mut Call<'_, '_>) -> Outcome {
    let (mut quiet, mut spider, mut target, mut timeout, mut host, mut urls) =
        (false, false, None, None, None, Vec::new());
    let mut words = call.args.iter().copied();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            match name {
                "quiet" => quiet = true,
                "spider" => spider = true,
                "timeout" => timeout = value.or_else(|| words.next()).and_then(duration),
                "output-document" => target = value.or_else(|| words.next()),
                "header" => host = host_header(value.or_else(|| words.next()).unwrap_or_default()).or(host),
                "tries" | "post-data" | "user-agent" => _ = value.or_else(|| words.next()),
                _ => {}
            }
            continue;
        }
        let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) else {
            urls.push(word);
            continue;
        };
        for (at, letter) in short.char_indices() {
            if "OTtPUYo".contains(letter) {
                let behind = &short[at + 1..];
                let value = if behind.is_empty() { words.next() } else { Some(behind) };
                match letter {
                    'O' => target = value,
                    'T' => timeout = value.and_then(duration),
                    _ => {}
                }
                break;
            }
            quiet |= letter == 'q';
        }
    }
    let Some(url) = urls.first().copied() else { return call.fail(1, "missing URL") };
    let options = Options { timeout: Some(timeout.unwrap_or(WGET_PATIENCE)), host };
    let connection = match get(call, url, options) {
        Ok(connection) => connection,
        Err(outcome) => return outcome,
    };
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?']).next().unwrap_or(url);
    if let Some((address, port)) = connection.address.filter(|_| !quiet) {
        call.out.error_line(&format!("Connecting to {authority} ({address}:{port})"));
    }
    let reply = match connection.result {
        Ok(reply) => reply,
        Err(failure) => {
            let address = connection.address.map(|(address, _)| address.to_string()).unwrap_or_default();
            let problem = match failure {
                Failure::Unresolved(host) => format!("bad address '{host}'"),
                Failure::TimedOut if timeout.is_some() => "download timed out".to_owned(),
                failure @ (Failure::Refused | Failure::NoRoute | Failure::TimedOut) => {
                    let why = match failure {
                        Failure::NoRoute => "Host is unreachable".to_owned(),
                        failure => failure.to_string(),
                    };
                    format!("can't connect to remote host ({address}): {why}")
                }
                Failure::NotHttp => "error getting response".to_owned(),
                Failure::NotTls => "TLS error from peer".to_owned(),
                failure => failure.to_string(),
            };
            return call.fail(1, &problem);
        }
    };
    if reply.status >= 400 {
        return call.fail(1, &format!("server returned error: {}", reply.status_line()));
    }
    if spider {
        if !quiet {
            call.out.error_line("remote file exists");
        }
        return Outcome::Done(0);
    }
    let path = url.split_once("://").map_or(url, |(_, rest)| rest).split_once('/').map_or("", |(_, path)| path);
    let own = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("index.html");
    let name = target.unwrap_or(own);
    let shown = if name == "-" { "stdout".to_owned() } else { format!("'{name}'") };
    if !quiet {
        let verb = if name == "-" { "writing" } else { "saving" };
        call.out.error_line(&format!("{verb} to {shown}"));
    }
    let length = reply.body.len();
    if name == "-" {
        call.out.text(reply.body);
    } else {
        let place = files::absolute(&call.script.folder, name);
        if place != "/dev/null"
            && let Err(why) = call.around.files.write(&place, reply.body, call.around.now)
        {
            return call.fail(1, &format!("can't open '{name}': {why}"));
        }
    }
    if !quiet {
        let stars = "*".repeat(32);
        call.out.error_line(&format!(
            "{:<20} 100% |{stars}| {length:>5}  0:00:00 ETA",
            &name[..name.floor_char_boundary(20)]
        ));
        call.out.error_line(&if name == "-" { "written to stdout".to_owned() } else { format!("{shown} saved") });
    }
    Outcome::Done(0)
}

/// The value of a header `Host: …`.
fn host_header(header: &str) -> Option<String> {
    let (name, value) = header.split_once(':')?;
    name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
}

/// What a line of curl asks for.
#[derive(Default)]
struct Wish<'a> {
    url: Option<&'a str>,
    silent: bool,
    shows_errors: bool,
    fails: bool,
    verbose: bool,
    headers: bool,
    only_headers: bool,
    output: Option<&'a str>,
    own_name: bool,
    write_out: String,
    timeout: Option<Duration>,
    host: Option<String>,
}

fn wish<'a>(args: &[&'a str]) -> Result<Wish<'a>, String> {
    let mut wish = Wish::default();
    let mut words = args.iter().copied();
    while let Some(word) = words.next() {
        let mut options: Vec<(String, Option<&'a str>)> = Vec::new();
        if let Some(long) = word.strip_prefix("--") {
            options.push((long.to_owned(), None));
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            for (at, letter) in short.char_indices() {
                let takes = "omwXHduAebTFcCrUEKtxyYz".contains(letter);
                let behind = &short[at + letter.len_utf8()..];
                options.push((letter.to_string(), (takes && !behind.is_empty()).then_some(behind)));
                if takes {
                    break;
                }
            }
        } else {
            wish.url = Some(word);
            continue;
        }
        for (option, behind) in options {
            let mut value = || behind.or_else(|| words.next()).ok_or(format!("option {word}: requires parameter"));
            let time = |text: &str| {
                duration(text).ok_or_else(|| format!("option {word}: expected a proper numerical parameter"))
            };
            match option.as_str() {
                "s" | "silent" => wish.silent = true,
                "S" | "show-error" => wish.shows_errors = true,
                "f" | "fail" | "fail-with-body" => wish.fails = true,
                "v" | "verbose" => wish.verbose = true,
                "i" | "include" => wish.headers = true,
                "I" | "head" => wish.only_headers = true,
                "O" | "remote-name" => wish.own_name = true,
                "o" | "output" => wish.output = Some(value()?),
                "w" | "write-out" => wish.write_out = value()?.to_owned(),
                "m" | "max-time" | "connect-timeout" => {
                    let time = time(value()?)?;
                    wish.timeout = Some(wish.timeout.map_or(time, |known| known.min(time)));
                }
                "H" | "header" => wish.host = host_header(value()?).or(wish.host.take()),
                "X" | "request" | "d" | "data" | "u" | "user" | "A" | "user-agent" | "e" | "b" | "cookie" | "T"
                | "F" | "retry" | "retry-delay" | "cacert" | "cert" | "key" | "interface" | "data-raw" | "url"
                | "c" | "retry-max-time" | "keepalive-time" | "local-port" => {
                    let value = value()?;
                    if option == "url" {
                        wish.url = Some(value);
                    }
                }
                "k" | "insecure" | "L" | "location" | "g" | "globoff" | "q" | "4" | "ipv4" | "6" | "N"
                | "no-buffer" | "compressed" | "no-progress-meter" | "retry-connrefused" | "retry-all-errors"
                | "http1.1" | "#" | "progress-bar" | "no-keepalive" | "tcp-nodelay" | "get" | "G" => {}
                _ if word.starts_with("--") => return Err(format!("option {word}: is unknown")),
                option => return Err(format!("option -{option}: is unknown")),
            }
        }
    }
    Ok(wish)
}

/// <https://curl.se/docs/manpage.html>
pub fn curl(call: &mut Call<'_, '_>) -> Outcome {
    let wish = match wish(call.args) {
        Ok(wish) => wish,
        Err(problem) => {
            call.fail(2, &problem);
            call.out.error_line("curl: try 'curl --help' or 'curl --manual' for more information");
            return Outcome::Done(2);
        }
    };
    let Some(url) = wish.url else { return call.fail(2, "(2) no URL specified") };
    let connection = match get(call, url, Options { timeout: wish.timeout, host: wish.host.clone() }) {
        Ok(connection) => connection,
        Err(outcome) => return outcome,
    };
    let host = Url::parse(url).map(|url| (url.host, url.port, url.path)).unwrap_or_default();
    if wish.verbose
        && let Some((address, port)) = connection.address
    {
        call.out.error_line(&format!("*   Trying {address}:{port}..."));
        if let Ok(reply) = &connection.result {
            call.out.error_line(&format!("* Connected to {} ({address}) port {port}", host.0));
            call.out.error_line(&format!(
                "> GET {} HTTP/1.1\n> Host: {}\n> User-Agent: curl/8.7.1\n> Accept: */*\n>",
                host.2, host.0
            ));
            call.out.error_line(&format!("< {}", reply.status_line()));
            for (name, value) in &reply.headers {
                call.out.error_line(&format!("< {name}: {value}"));
            }
            call.out.error_line("<");
        }
    }
    let (mut code, mut text, mut told) = (0, String::new(), String::new());
    match &connection.result {
        Ok(reply) => {
            if wish.headers || wish.only_headers {
                text.push_str(&format!("{}\r\n", reply.status_line()));
                text.extend(reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
                text.push_str("\r\n");
            }
            if wish.fails && reply.status >= 400 {
                code = 22;
                told = format!("The requested URL returned error: {}", reply.status);
            } else if !wish.only_headers {
                text.push_str(&reply.body);
            }
        }
        Err(failure) => {
            code = failure.curl_exit_code();
            let took = connection.took.as_millis();
            told = match code {
                7 => format!("Failed to connect to {} port {} after {took} ms: {failure}", host.0, host.1),
                28 => format!("Connection timed out after {took} milliseconds"),
                _ => failure.to_string(),
            };
        }
    }
    if code != 0 && (!wish.silent || wish.shows_errors) {
        call.out.error_line(&format!("curl: ({code}) {told}"));
    }
    let own = host.2.rsplit('/').next().filter(|_| wish.own_name);
    match wish.output.or(own) {
        Some(path) if path != "-" => {
            let place = files::absolute(&call.script.folder, path);
            if place != "/dev/null" && code == 0 {
                let written = call.around.files.write(&place, text, call.around.now);
                if written.is_err() {
                    code = 23;
                    call.out.error_line("curl: (23) Failed writing received data to disk/application");
                }
            }
        }
        _ => call.out.text(text),
    }
    let status = connection.result.as_ref().map_or(0, |reply| reply.status);
    let length = connection.result.as_ref().map_or(0, |reply| reply.body.len());
    let address = connection.address.map(|(address, _)| address.to_string()).unwrap_or_default();
    let seconds = format!("{:.6}", connection.took.as_secs_f64());
    let told = super::builtins::unescape(&wish.write_out)
        .replace("%{http_code}", &format!("{status:03}"))
        .replace("%{response_code}", &format!("{status:03}"))
        .replace("%{remote_ip}", &address)
        .replace("%{size_download}", &length.to_string())
        .replace("%{time_total}", &seconds)
        .replace("%{time_connect}", &seconds)
        .replace("%{exitcode}", &code.to_string());
    call.out.text(told);
    Outcome::Done(code)
}
