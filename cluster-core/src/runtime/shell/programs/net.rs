//! Programs that look up names and try ports: `nslookup`, `dig`, `getent`, `nc`, `ping`, `redis-cli`.

use std::time::Duration;

use super::{Call, Outcome, duration};
use crate::network::connect::Options;
use crate::network::datagram::Datagram;
use crate::network::dns::Record;
use crate::network::question::{Answer, Question};
use crate::network::reply::Failure;

/// How long nc waits where a real one would wait for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the files of a container say of names: `/etc/hosts` and `/etc/resolv.conf`.
pub struct Names {
    hosts: String,
    pub server: String,
    searches: Vec<String>,
    ndots: usize,
}

impl Names {
    pub fn of(call: &Call<'_, '_>) -> Names {
        let read = |path: &str| call.around.files.read(path).unwrap_or_default().to_owned();
        let configuration = read("/etc/resolv.conf");
        let values = |word: &str| {
            let line = configuration.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
            line.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).unwrap_or_default()
        };
        let ndots = values("options").iter().find_map(|option| option.strip_prefix("ndots:")?.parse().ok());
        Names {
            hosts: read("/etc/hosts"),
            server: values("nameserver").into_iter().next().unwrap_or_else(|| "127.0.0.1".into()),
            searches: values("search"),
            ndots: ndots.unwrap_or(1),
        }
    }

    /// The address of a name that the hosts file has.
    pub fn in_hosts(&self, name: &str) -> Option<String> {
        let lines = self.hosts.lines().filter_map(|line| line.split('#').next());
        let mut found = lines.filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = words.next()?;
            (address.contains('.') && words.any(|known| known == name)).then(|| address.to_owned())
        });
        found.next()
    }

    /// The domains that a name is tried with, one after the other; the empty one is the name itself.
    fn searched(&self, name: &str) -> Vec<String> {
        let own = [String::new()];
        if name.ends_with('.') {
            return own.into();
        }
        let all = self.searches.iter().cloned();
        if name.matches('.').count() >= self.ndots {
            own.into_iter().chain(all).collect()
        } else {
            all.chain(own).collect()
        }
    }
}

/// The records of a name, or how the program ends that does not have them yet.
fn find(call: &Call<'_, '_>, name: &str, searched: Vec<String>) -> Result<Result<Vec<Record>, Failure>, Outcome> {
    match call.kept.answers.first() {
        Some(Answer::Found { records, .. }) => Ok(records.clone()),
        _ => Err(Outcome::Asks(Question::Find { name: name.to_owned(), searched }.into())),
    }
}

/// `10.96.0.5` as the name under which its own name is kept.
fn reverse(address: &str) -> Option<String> {
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    let [a, b, c, d] = address.octets();
    Some(format!("{d}.{c}.{b}.{a}.in-addr.arpa"))
}

/// As BusyBox prints it.
pub fn nslookup(call: &mut Call<'_, '_>) -> Outcome {
    let words: Vec<&str> = call.args.iter().copied().filter(|arg| !arg.starts_with('-')).collect();
    let Some(name) = words.first().copied() else { return call.fail(1, "usage: nslookup HOST [DNS_SERVER]") };
    let names = Names::of(call);
    let reversed = reverse(name);
    let asked = reversed.as_deref().unwrap_or(name);
    let searched = if reversed.is_some() { vec![String::new()] } else { names.searched(name) };
    let records = match find(call, asked, searched) {
        Ok(records) => records,
        Err(outcome) => return outcome,
    };
    let server = words.get(1).copied().unwrap_or(&names.server);
    call.out.text(format!("Server:\t\t{server}\nAddress:\t{server}:53\n\n"));
    match records {
        Err(_) => {
            call.out.line(";; connection timed out; no servers could be reached\n");
            Outcome::Done(1)
        }
        Ok(records) if records.is_empty() => {
            call.out.error_line(&format!("** server can't find {asked}: NXDOMAIN\n"));
            Outcome::Done(1)
        }
        Ok(records) => {
            for record in &records {
                match record {
                    Record::A { name, address } => call.out.line(&format!("Name:\t{name}\nAddress: {address}")),
                    Record::Cname { name, target } => call.out.line(&format!("{name}\tcanonical name = {target}")),
                    Record::Srv { name, port, target } => {
                        call.out.line(&format!("{name}\tservice = 0 100 {port} {target}"));
                    }
                    Record::Ptr { name, target } => call.out.line(&format!("{name}\tname = {target}")),
                }
            }
            call.out.line("");
            Outcome::Done(0)
        }
    }
}

/// `dig +short +search NAME TYPE`, `dig -x ADDRESS`
pub fn dig(call: &mut Call<'_, '_>) -> Outcome {
    let (mut name, mut kind, mut server) = (None, "A", None);
    let has = |option: &str| call.args.contains(&option);
    let mut words = call.args.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-x" => (name, kind) = (words.next().and_then(reverse), "PTR"),
            "-t" => kind = words.next().unwrap_or("A"),
            "A" | "AAAA" | "SRV" | "CNAME" | "PTR" | "TXT" | "ANY" | "a" | "srv" | "cname" | "ptr" => kind = word,
            word if word.starts_with('@') => server = Some(&word[1..]),
            word if word.starts_with(['+', '-']) => {}
            word => name = Some(word.to_owned()),
        }
    }
    let Some(name) = name else { return Outcome::Done(0) };
    let kind = kind.to_uppercase();
    let names = Names::of(call);
    let searched = if has("+search") { names.searched(&name) } else { vec![String::new()] };
    let records = match find(call, &name, searched) {
        Ok(Ok(records)) => records,
        Ok(Err(_)) => {
            call.out.line(";; connection timed out; no servers could be reached");
            return Outcome::Done(9);
        }
        Err(outcome) => return outcome,
    };
    let wanted = |record: &&Record| match record {
        Record::A { .. } => kind == "A" || kind == "ANY",
        Record::Cname { .. } => kind != "SRV" && kind != "PTR",
        Record::Srv { .. } => kind == "SRV" || kind == "ANY",
        Record::Ptr { .. } => kind == "PTR" || kind == "ANY",
    };
    let shown: Vec<String> = records.iter().filter(wanted).map(|record| told(record, has("+short"))).collect();
    if has("+short") || has("+noall") {
        shown.iter().for_each(|line| call.out.line(line));
        return Outcome::Done(0);
    }
    let status = if records.is_empty() { "NXDOMAIN" } else { "NOERROR" };
    let server = server.unwrap_or(&names.server);
    call.out.line(&format!("\n; <<>> DiG 9.18 <<>> {}\n;; Got answer:", call.args.join(" ")));
    call.out.line(&format!(
        ";; ->>HEADER<<- opcode: QUERY, status: {status}, id: 4711\n;; flags: qr aa rd; QUERY: 1, ANSWER: {}, AUTHORITY: 0, ADDITIONAL: 1\n",
        shown.len()
    ));
    call.out.line(&format!(";; QUESTION SECTION:\n;{}.\t\tIN\t{kind}\n", name.trim_end_matches('.')));
    if !shown.is_empty() {
        call.out.line(&format!(";; ANSWER SECTION:\n{}\n", shown.join("\n")));
    }
    call.out.line(&format!(";; SERVER: {server}#53({server})"));
    Outcome::Done(0)
}

/// A record as dig shows it.
fn told(record: &Record, short: bool) -> String {
    let (name, kind, value) = match record {
        Record::A { name, address } => (name, "A", address.to_string()),
        Record::Cname { name, target } => (name, "CNAME", format!("{target}.")),
        Record::Srv { name, port, target } => (name, "SRV", format!("0 100 {port} {target}.")),
        Record::Ptr { name, target } => (name, "PTR", format!("{target}.")),
    };
    if short { value } else { format!("{name}.\t30\tIN\t{kind}\t{value}") }
}

/// `getent hosts NAME`
pub fn getent(call: &mut Call<'_, '_>) -> Outcome {
    let ["hosts" | "ahosts" | "ahostsv4", name] = call.args else { return Outcome::Done(2) };
    let names = Names::of(call);
    if let Some(address) = names.in_hosts(name) {
        call.out.line(&format!("{address:<15} {name}"));
        return Outcome::Done(0);
    }
    match find(call, name, names.searched(name)) {
        Ok(records) => {
            let found = records.unwrap_or_default().into_iter().find_map(|record| match record {
                Record::A { name, address } => Some(format!("{:<15} {name}", address.to_string())),
                _ => None,
            });
            let Some(line) = found else { return Outcome::Done(2) };
            call.out.line(&line);
            Outcome::Done(0)
        }
        Err(outcome) => outcome,
    }
}

/// `nc -zv HOST PORT`, `echo TEXT | nc -u HOST PORT`, `nc -l -p PORT`
pub fn nc(call: &mut Call<'_, '_>) -> Outcome {
    let (mut flags, mut patience, mut places) = (String::new(), None, Vec::new());
    let mut words = call.args.iter().copied();
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            places.push(word);
            continue;
        };
        for (at, letter) in letters.char_indices() {
            if "wqpsieX".contains(letter) {
                let behind = &letters[at + 1..];
                let value = if behind.is_empty() { words.next().unwrap_or_default() } else { behind };
                if letter == 'w' {
                    patience = duration(value);
                }
                break;
            }
            flags.push(letter);
        }
    }
    let has = |letter: char| flags.contains(letter);
    if has('l') {
        return Outcome::Waits;
    }
    let (host, port) = match places[..] {
        [host, port] => (host, port.parse::<u16>()),
        _ => return call.fail(1, "usage: nc [-zuv] [-w SEC] HOST PORT"),
    };
    let Ok(port) = port else { return call.fail(1, &format!("bad port '{}'", places[1])) };
    let names = Names::of(call);
    let known = names.in_hosts(host).unwrap_or_else(|| host.to_owned());
    let patience = patience.unwrap_or(PATIENCE);
    let udp = has('u');
    // What was read before it asked: by now the input is empty.
    let read = call.kept.memory.pop();
    let Some(text) = read.or_else(|| if has('z') { Some(String::new()) } else { call.input.take_all() }) else {
        return Outcome::Reads;
    };
    let (result, address) = match call.kept.answers.first() {
        Some(Answer::Heard(sent)) => (sent.result.clone(), sent.address),
        Some(Answer::Got(tried)) => {
            let answer = match &tried.result {
                // What is no request is refused by a web server.
                Ok(_) if !text.is_empty() => Ok("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; \
                                                charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
                    .to_owned()),
                Ok(_) | Err(Failure::NotHttp | Failure::NotTls) => Ok(String::new()),
                Err(failure) => Err(failure.clone()),
            };
            (answer, tried.address)
        }
        _ => {
            let question = match udp {
                true => Question::Send(Datagram { host: known, port, text: text.clone(), patience }),
                false => Question::Get {
                    url: format!("http://{known}:{port}/"),
                    options: Options { timeout: Some(patience), host: None },
                },
            };
            call.kept.memory.push(text);
            return Outcome::Asks(question.into());
        }
    };
    let address = address.map_or_else(|| host.to_owned(), |(address, _)| address.to_string());
    match result {
        Ok(answer) => {
            if has('v') {
                call.out.error_line(&format!("{host} ({address}:{port}) open"));
            }
            call.out.text(answer);
            Outcome::Done(0)
        }
        // Who sends a datagram learns nothing of its fate, but that nobody listens.
        Err(Failure::TimedOut) if udp => Outcome::Done(0),
        Err(Failure::Unresolved(_)) => call.fail(1, &format!("bad address '{host}'")),
        Err(failure) => call.fail(1, &format!("{host} ({address}:{port}): {failure}")),
    }
}

/// Whether somebody has an address: what answers on any port, or says that it does not, is there.
pub fn ping(call: &mut Call<'_, '_>) -> Outcome {
    let (mut count, mut patience, mut host) = (None, Duration::from_secs(10), None);
    let mut words = call.args.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-c" => count = words.next().and_then(|word| word.parse::<u32>().ok()),
            "-w" | "-W" => patience = words.next().and_then(duration).unwrap_or(patience),
            "-i" | "-s" | "-I" => _ = words.next(),
            word if word.starts_with("-c") => count = word[2..].parse().ok(),
            word if word.starts_with('-') => {}
            word => host = Some(word),
        }
    }
    let Some(host) = host else { return call.fail(1, "usage: ping [-c COUNT] [-w SEC] HOST") };
    let known = Names::of(call).in_hosts(host).unwrap_or_else(|| host.to_owned());
    let Some(Answer::Got(tried)) = call.kept.answers.first() else {
        let options = Options { timeout: Some(patience), host: None };
        return Outcome::Asks(Question::Get { url: format!("http://{known}:7/"), options }.into());
    };
    let (tried, count) = ((**tried).clone(), count.unwrap_or(4).min(100));
    if let Err(Failure::Unresolved(_)) = tried.result {
        return call.fail(1, &format!("bad address '{host}'"));
    }
    let address = tried.address.map_or(host.to_owned(), |(address, _)| address.to_string());
    let answers = tried.service.is_none() && !matches!(tried.result, Err(Failure::TimedOut | Failure::NoRoute));
    call.out.line(&format!("PING {host} ({address}): 56 data bytes"));
    let millis = tried.took.as_secs_f64() * 1000.0;
    for number in (0..count).filter(|_| answers) {
        call.out.line(&format!("64 bytes from {address}: seq={number} ttl=62 time={millis:.3} ms"));
    }
    let (received, lost) = if answers { (count, 0) } else { (0, 100) };
    call.out.line(&format!(
        "\n--- {host} ping statistics ---\n{count} packets transmitted, {received} packets received, {lost}% packet loss"
    ));
    if answers {
        call.out.line(&format!("round-trip min/avg/max = {millis:.3}/{millis:.3}/{millis:.3} ms"));
    }
    let left = if answers { count.saturating_sub(1) } else { count };
    Outcome::Sleeps(Duration::from_secs(left.into()), i32::from(!answers))
}
