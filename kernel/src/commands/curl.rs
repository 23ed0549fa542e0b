//! `curl`: HTTP requests that travel over one connection, from outside of the cluster or, typed in a node's shell, from that node.
//! <https://curl.se/docs/manpage.html>

use std::time::Duration;

use cluster_core::network::connect::{Options, Origin, Session};

use super::{Context, Program};

pub struct Curl;

const USAGE: &str = "usage: curl [-s] [-S] [-i] [-I] [-o /dev/null] [-w FORMAT] [-H 'Host: NAME'] [-H 'Connection: close'] [--resolve HOST:PORT:ADDRESS] [--max-time SECONDS] [--rate COUNT/s|m|h] URL...";

/// How many requests one line may make.
const REQUESTS_MAX: usize = 1000;

/// What the line asks for.
#[derive(Debug, Default, PartialEq)]
struct Wish {
    urls: Vec<String>,
    silent: bool,
    show_errors: bool,
    headers: bool,
    headers_only: bool,
    discard: bool,
    write_out: String,
    max_time: Option<Duration>,
    /// From the beginning of one request to that of the next, at least.
    interval: Duration,
    /// The `Host` header that it names.
    host: Option<String>,
    /// It asks for the end of the connection after each request (`Connection: close`).
    closes: bool,
    /// `HOST:PORT:ADDRESS`: where a name is to be found.
    resolve: Option<String>,
}

impl Program for Curl {
    fn name(&self) -> &'static str {
        "curl"
    }

    fn about(&self) -> &'static str {
        "makes an HTTP request"
    }

    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32 {
        let origin = context.node.as_deref().map_or(Origin::Outside, |node| Origin::Node(node.into()));
        request(args, &origin, context)
    }
}

/// Makes the requests that a curl line asks for, from a place; the last one decides on the exit code.
pub fn request(args: &[String], origin: &Origin, context: &mut Context<'_>) -> i32 {
    let wish = match parse(args) {
        Ok(wish) => wish,
        Err(problem) => {
            context.error_line(format!("curl: {problem}\n{USAGE}"));
            return 2;
        }
    };
    let mut session = Session::default();
    let mut code = 0;
    let mut next = context.api.now();
    for url in &wish.urls {
        let pause = next.since(context.api.now());
        if let Some(cluster) = context.api.cluster().filter(|_| !pause.is_zero()) {
            cluster.advance(pause, |_| true);
        }
        next = context.api.now() + wish.interval;
        if wish.closes {
            session = Session::default();
        }
        code = fetch(url, &wish, &mut session, origin, context);
    }
    code
}

/// Fetches one URL, over the connection that is still open if it leads there.
fn fetch(url: &str, wish: &Wish, session: &mut Session, origin: &Origin, context: &mut Context<'_>) -> i32 {
    let Some(cluster) = context.api.cluster() else {
        context.error_line("curl: connections travel only in the simulated cluster");
        return 7;
    };
    let (reached, host) = wish.resolved(url);
    let connection = cluster.connect_again(session, origin, &reached, &Options { timeout: wish.max_time, host });
    cluster.advance(connection.took, |_| true);
    let mut text = String::new();
    let code = match &connection.result {
        Ok(reply) => {
            if wish.headers || wish.headers_only {
                text += &format!("{}\r\n", reply.status_line());
                text.extend(reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
                text += "\r\n";
            }
            if !wish.discard && !wish.headers_only {
                text += &reply.body;
            }
            0
        }
        Err(failure) => {
            if !wish.silent || wish.show_errors {
                let code = failure.curl_exit_code();
                let (host, port) = place(url);
                let took = connection.took.as_millis();
                let words = match code {
                    7 => format!("Failed to connect to {host} port {port} after {took} ms: {failure}"),
                    28 => format!("Connection timed out after {took} milliseconds"),
                    _ => failure.to_string(),
                };
                context.error_line(format!("curl: ({code}) {words}"));
            }
            failure.curl_exit_code()
        }
    };
    let status = connection.result.as_ref().map_or(0, |reply| reply.status);
    text += &wish.write_out.replace("\\n", "\n").replace("%{http_code}", &format!("{status:03}"));
    context.print(text);
    code
}

impl Wish {
    /// The URL with the address in place of a name that `--resolve` tells of, and the host that the request names.
    fn resolved(&self, url: &str) -> (String, Option<String>) {
        let (host, port) = place(url);
        let place = format!("{host}:{port}:");
        match self.resolve.as_deref().and_then(|told| told.strip_prefix(place.as_str())) {
            Some(address) => {
                let named = self.host.clone().unwrap_or_else(|| host.to_owned());
                (url.replacen(host, address, 1), Some(named))
            }
            None => (url.to_owned(), self.host.clone()),
        }
    }
}

/// Host and port of a URL, for messages.
fn place(url: &str) -> (&str, &str) {
    let secure = url.starts_with("https://");
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    authority.split_once(':').unwrap_or((authority, if secure { "443" } else { "80" }))
}

fn parse(args: &[String]) -> Result<Wish, String> {
    let mut wish = Wish::default();
    let mut rest = args.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("option {word}: requires parameter"));
        match word {
            "--silent" => wish.silent = true,
            "--show-error" => wish.show_errors = true,
            "--include" => wish.headers = true,
            "--head" => wish.headers_only = true,
            "-o" | "--output" => wish.discard = value()? == "/dev/null",
            "-w" | "--write-out" => wish.write_out = value()?.to_owned(),
            "-m" | "--max-time" | "--connect-timeout" => {
                let seconds: f64 =
                    value()?.parse().map_err(|_| format!("option {word}: expected a proper numerical parameter"))?;
                wish.max_time = Duration::try_from_secs_f64(seconds).ok();
            }
            "-H" | "--header" => {
                let (name, value) = value()?.split_once(':').unwrap_or_default();
                if name.eq_ignore_ascii_case("host") {
                    wish.host = Some(value.trim().to_owned());
                } else if name.eq_ignore_ascii_case("connection") {
                    wish.closes = value.trim().eq_ignore_ascii_case("close");
                }
            }
            "--rate" => wish.interval = interval(value()?).ok_or("unsupported --rate unit")?,
            "--resolve" => wish.resolve = Some(value()?.to_owned()),
            "--insecure" | "--location" | "--fail" | "--verbose" => {}
            word if word.starts_with("--") => return Err(format!("option {word}: is unknown")),
            word if word.starts_with('-') && word.len() > 1 => {
                for letter in word[1..].chars() {
                    match letter {
                        's' => wish.silent = true,
                        'S' => wish.show_errors = true,
                        'i' => wish.headers = true,
                        'I' => wish.headers_only = true,
                        'L' | 'k' | 'f' | 'v' => {}
                        letter => return Err(format!("option -{letter}: is unknown")),
                    }
                }
            }
            url => wish.urls.extend(each(url)?),
        }
    }
    match wish.urls.len() {
        0 => Err("no URL specified".into()),
        count if count > REQUESTS_MAX => Err(too_many()),
        _ => Ok(wish),
    }
}

/// How far apart requests of a rate are: `10/s` every 100 ms; without a unit it is by the hour.
fn interval(rate: &str) -> Option<Duration> {
    let (count, unit) = rate.split_once('/').unwrap_or((rate, "h"));
    let count = count.parse::<u32>().ok().filter(|count| *count > 0)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some(Duration::from_secs(seconds) / count)
}

/// The URLs that one with a range `[FIRST-LAST]` stands for.
fn each(url: &str) -> Result<Vec<String>, String> {
    let range = url.split_once('[').and_then(|(before, rest)| {
        let (range, after) = rest.split_once(']')?;
        let (first, last) = range.split_once('-')?;
        Some((before, first.parse::<usize>().ok()?, last.parse::<usize>().ok()?, after))
    });
    match range {
        None => Ok(vec![url.to_owned()]),
        Some((_, first, last, _)) if last < first => Err("bad range in URL".into()),
        Some((_, first, last, _)) if last - first >= REQUESTS_MAX => Err(too_many()),
        Some((before, first, last, after)) => {
            Ok((first..=last).map(|number| format!("{before}{number}{after}")).collect())
        }
    }
}

fn too_many() -> String {
    format!("at most {REQUESTS_MAX} requests in one line")
}

#[cfg(test)]
mod tests {
    use cluster_core::{Cluster, Config};

    use super::*;
    use crate::commands::files::Memory;

    #[test]
    fn failures_have_curls_words_and_codes() {
        let mut cluster = Cluster::new(Config { nodes: 1, ..Config::default() });
        let mut files = Memory::default();
        let mut context = Context::new(&mut cluster, &mut files);
        let mut curl = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let code = Curl.run(&args, &mut context);
            (code, context.take_written().into_iter().map(|(_, text)| text).collect::<String>())
        };
        assert_eq!(curl("http://no-such-name").0, 6);
        let (code, text) = curl("-s -m 2 -w %{http_code} http://10.244.1.99");
        assert_eq!((code, text.as_str()), (28, "000"));
        assert_eq!(curl("--frobnicate http://a").0, 2);
        assert_eq!(curl("-s").0, 2);
    }

    #[test]
    fn a_url_names_a_place() {
        assert_eq!(place("http://web:8080/x"), ("web", "8080"));
        assert_eq!(place("web"), ("web", "80"));
    }

    #[test]
    fn a_name_can_be_told_apart_from_the_address() {
        let wish = |line: &str| {
            let wish = parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).unwrap();
            wish.resolved(&wish.urls[0])
        };
        let told = wish("--resolve web.io:80:192.168.0.200 http://web.io/a");
        assert_eq!(told, ("http://192.168.0.200/a".to_owned(), Some("web.io".to_owned())));
        let header = ["-H", "Host: web.io", "192.168.0.200"].map(str::to_owned);
        assert_eq!(parse(&header).unwrap().resolved("192.168.0.200").1, Some("web.io".to_owned()));
    }

    #[test]
    fn a_rate_spaces_requests_out() {
        assert_eq!(interval("10/s"), Some(Duration::from_millis(100)));
        assert_eq!(interval("60"), Some(Duration::from_secs(60)));
        assert_eq!(interval("0/s").or(interval("1/d")), None);
        let mut cluster = Cluster::new(Config { nodes: 1, ..Config::default() });
        let before = cluster.now();
        let mut files = Memory::default();
        let mut context = Context::new(&mut cluster, &mut files);
        let args = ["-s", "--rate", "2/s", "http://no-such-name/[1-4]"].map(str::to_owned);
        assert_eq!(Curl.run(&args, &mut context), 6);
        let took = cluster.now().since(before);
        assert!((Duration::from_millis(1500)..Duration::from_millis(1600)).contains(&took), "{took:?}");
    }

    #[test]
    fn requests_of_one_line_share_a_connection_unless_it_is_closed() {
        let mut cluster = Cluster::new(Config { nodes: 2, ..Config::default() });
        let mut files = Memory::default();
        let mut run = |code: &str| {
            let mut context = Context::new(&mut cluster, &mut files);
            let mut screen = String::new();
            super::super::shell::run(code, &mut context, &mut |_, text| screen.push_str(&text)).unwrap();
            cluster.advance(Duration::from_secs(5), |_| true);
            screen
        };
        run("kubectl create deployment web --image=my-app:1.0 --replicas=3\nkubectl expose deployment web --port=80");
        let place = run("kubectl get service web -o jsonpath='{.spec.clusterIP}'");
        assert_eq!(run(&format!("node-1$ curl -s http://{place}/[1-30] | sort | uniq -c | wc -l")), "1\n");
        assert_eq!(
            run(&format!("node-1$ curl -s -H 'Connection: close' http://{place}/[1-30] | sort | uniq -c | wc -l")),
            "3\n"
        );
        assert!(run(&format!("node-1$ curl -s http://{place}/[3-1]")).starts_with("curl: bad range in URL"));
        assert!(run("curl -s http://web/[1-9999]").starts_with("curl: at most 1000 requests in one line"));
    }
}
