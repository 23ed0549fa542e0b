//! `nc`: datagrams from outside of the cluster, from a node or a container; or whether somebody accepts connections.
//! <https://man.openbsd.org/nc.1>

use std::time::Duration;

use cluster_core::network::connect::{Options, Origin};
use cluster_core::network::datagram::Datagram;
use cluster_core::network::reply::Failure;

use super::{Context, Program};

pub struct Nc;

const USAGE: &str = "usage: echo TEXT | nc -u [-v] [-w SECONDS] HOST PORT, nc -z [-v] [-w SECONDS] HOST PORT";

/// How long nc waits where a real one would wait for ever.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Default, PartialEq)]
struct Wish {
    udp: bool,
    scan: bool,
    verbose: bool,
    patience: Option<Duration>,
    host: String,
    port: u16,
}

impl Program for Nc {
    fn name(&self) -> &'static str {
        "nc"
    }

    fn about(&self) -> &'static str {
        "sends a datagram, or tries whether a port is open"
    }

    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32 {
        let origin = context.node.as_deref().map_or(Origin::Outside, |node| Origin::Node(node.into()));
        let text = std::mem::take(&mut context.stdin);
        send(args, &origin, text, context)
    }
}

/// Does what an nc line asks for, from a place, with this text on its input.
pub fn send(args: &[String], origin: &Origin, text: String, context: &mut Context<'_>) -> i32 {
    let wish = match parse(args) {
        Ok(wish) => wish,
        Err(problem) => {
            context.error_line(format!("nc: {problem}\n{USAGE}"));
            return 1;
        }
    };
    let Some(cluster) = context.api.cluster() else {
        context.error_line("nc: packets travel only in the simulated cluster");
        return 1;
    };
    let (Wish { host, port, .. }, patience) = (&wish, wish.patience.unwrap_or(PATIENCE));
    let (answer, took) = if wish.udp {
        let datagram = Datagram { host: host.clone(), port: *port, text, patience };
        let sent = cluster.datagram(origin, &datagram);
        (sent.result, sent.took)
    } else {
        let options = Options { timeout: Some(patience), ..Options::default() };
        let tried = cluster.connect(origin, &format!("http://{host}:{port}"), &options);
        let accepted = match tried.result {
            Ok(_) | Err(Failure::NotHttp | Failure::NotTls) => Ok(String::new()),
            Err(failure) => Err(failure),
        };
        (accepted, tried.took)
    };
    cluster.advance(took, |_| true);
    match answer {
        Ok(answer) => {
            if wish.verbose {
                context.error_line(format!("{host} ({host}:{port}) open"));
            }
            context.print(answer);
            0
        }
        // Who sends a datagram learns nothing of its fate, but that nobody listens.
        Err(Failure::TimedOut) if wish.udp => 0,
        Err(Failure::Unresolved(_)) => {
            context.error_line(format!("nc: bad address '{host}'"));
            1
        }
        Err(failure) => {
            context.error_line(format!("nc: {host} ({host}:{port}): {failure}"));
            1
        }
    }
}

fn parse(args: &[String]) -> Result<Wish, String> {
    let mut wish = Wish::default();
    let mut places = Vec::new();
    let mut rest = args.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            places.push(word);
            continue;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'u' => wish.udp = true,
                'z' => wish.scan = true,
                'v' => wish.verbose = true,
                'n' => {}
                'w' | 'q' => {
                    let behind = &word[at + 2..];
                    let value = if behind.is_empty() { rest.next().unwrap_or_default() } else { behind };
                    let seconds: u64 = value.parse().map_err(|_| format!("invalid number '{value}'"))?;
                    if letter == 'w' {
                        wish.patience = Some(Duration::from_secs(seconds));
                    }
                    break;
                }
                letter => return Err(format!("invalid option -- '{letter}'")),
            }
        }
    }
    let [host, port] = places[..] else { return Err("expected a host and a port".into()) };
    if !wish.udp && !wish.scan {
        return Err("expected -u or -z: a stream needs somebody at both ends".into());
    }
    wish.host = host.to_owned();
    wish.port = port.parse().map_err(|_| format!("bad port '{port}'"))?;
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controls::testing::{run, session};

    #[test]
    fn options_stand_together_or_alone() {
        let words = |line: &str| parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let wish =
            Wish { udp: true, patience: Some(Duration::from_secs(2)), host: "web".into(), port: 53, ..Wish::default() };
        assert_eq!(words("-u -w 2 web 53"), Ok(wish));
        assert!(words("-uvw1 web 53").is_ok_and(|wish| wish.verbose && wish.patience == Some(Duration::from_secs(1))));
        assert!(words("-u web").unwrap_err().contains("a port"));
        assert!(words("web 80").unwrap_err().contains("-u or -z"));
        assert!(words("-x web 80").unwrap_err().contains("'x'"));
    }

    #[test]
    fn a_container_sends_datagrams_to_a_service() {
        let mut session = session();
        let agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.57";
        run(
            &mut session,
            &format!(
                "kubectl run web --image={agnhost} -- netexec\nkubectl run client --image=busybox --command -- sleep 3600"
            ),
        );
        run(&mut session, "kubectl expose pod web --port=53 --target-port=8081 --protocol=UDP");
        let asked = run(&mut session, "echo echo hello | kubectl exec -i client -- nc -u -w 1 web 53");
        assert_eq!(asked, "hello");
        let refused = run(&mut session, "kubectl exec client -- nc -z -w 1 web 53");
        assert_eq!(refused, "CommandFailed: exit code 1");
    }
}
