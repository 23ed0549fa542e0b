//! What the programs in images do: one row an image.

use std::sync::Arc;
use std::time::Duration;

use super::container::Config;
use super::files::Files;
use super::images::short_name;
use super::shell::{self, Script};
use crate::clock::{Class, Time};

/// From a program's last instruction to the runtime's knowing of it.
pub const EXIT_LATENCY: Duration = Duration::from_millis(10);

/// One image's program.
#[derive(Debug)]
pub struct Program {
    /// The last part of the repository's name.
    pub image: &'static str,
    /// The newest version that was published, major and minor.
    pub newest: (u32, u32),
    pub size_bytes: u64,
    pub does: Does,
    /// What a process of this name in a command line is: the same program.
    pub binary: &'static str,
    /// What it prints when it starts.
    pub greeting: &'static [&'static str],
    pub on_term: OnTerm,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Does {
    /// It serves on these ports until it is told to stop.
    Serve(&'static [u16], Site),
    /// It ends at once.
    Exit(i32),
    /// It runs what its command line says, in a shell if there is none.
    Command,
    /// It waits for the end.
    Wait,
}

/// What a server answers over HTTP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Site {
    /// One page at `/`, 404 elsewhere; if a volume is mounted at the root of its documents, what the volume holds.
    Page { root: &'static str, index: &'static str },
    /// agnhost's netexec: `/hostname`, `/healthz`, `/clientip`, `/echo?msg=`.
    Netexec,
    /// Anything is there, said by the container's name.
    Anything,
    /// It speaks another protocol.
    NotHttp,
}

/// What the first process of a container does about SIGTERM. One that has no handler does nothing: the kernel spares
/// process 1 the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OnTerm {
    Exits { code: i32, after: Duration },
    Ignores,
}

const fn exits(code: i32, after_ms: u64) -> OnTerm {
    OnTerm::Exits { code, after: Duration::from_millis(after_ms) }
}

const MIB: u64 = 1 << 20;

const NGINX_PAGE: &str = "<!DOCTYPE html>
<html>
<head>
<title>Welcome to nginx!</title>
</head>
<body>
<h1>Welcome to nginx!</h1>
<p>If you see this page, nginx is successfully installed and working.
Further configuration is required for the web server.</p>
</body>
</html>
";

const NGINX_LINES: &[&str] = &[
    "/docker-entrypoint.sh: /docker-entrypoint.d/ is not empty, will attempt to perform configuration",
    "/docker-entrypoint.sh: Configuration complete; ready for start up",
    "[notice] 1#1: using the \"epoll\" event method",
    "[notice] 1#1: start worker processes",
];

const fn server(
    image: &'static str,
    newest: (u32, u32),
    mib: u64,
    binary: &'static str,
    ports: &'static [u16],
    site: Site,
    greeting: &'static [&'static str],
) -> Program {
    let does = Does::Serve(ports, site);
    Program { image, newest, size_bytes: mib * MIB, does, binary, greeting, on_term: exits(0, 50) }
}

const fn tool(image: &'static str, newest: (u32, u32), mib: u64, does: Does) -> Program {
    let on_term = OnTerm::Ignores;
    Program { image, newest, size_bytes: mib * MIB, does, binary: "", greeting: &[], on_term }
}

/// Every image that is known.
pub static TABLE: &[Program] = &[
    server(
        "nginx",
        (1, 29),
        69,
        "nginx",
        &[80],
        Site::Page { root: "/usr/share/nginx/html", index: NGINX_PAGE },
        NGINX_LINES,
    ),
    server(
        "httpd",
        (2, 4),
        56,
        "httpd-foreground",
        &[80],
        Site::Page { root: "/usr/local/apache2/htdocs", index: "<html><body><h1>It works!</h1></body></html>\n" },
        &["[mpm_event:notice] [pid 1] AH00489: Apache/2.4 (Unix) configured -- resuming normal operations"],
    ),
    server("agnhost", (2, 57), 54, "/agnhost", &[8080], Site::Netexec, &["Started HTTP server on port 8080"]),
    server("http-echo", (1, 0), 4, "/http-echo", &[5678], Site::Anything, &["[INFO] server is listening on :5678"]),
    server("echoserver", (1, 10), 90, "", &[8080], Site::Anything, &[]),
    server(
        "hpa-example",
        (1, 0),
        146,
        "apache2-foreground",
        &[80],
        Site::Page { root: "/var/www/html", index: "OK!" },
        &[
            "[mpm_prefork:notice] [pid 1] AH00163: Apache/2.4.10 (Debian) PHP/5.6.14 configured -- resuming normal operations",
        ],
    ),
    server("hello-app", (2, 0), 10, "", &[8080], Site::Anything, &["Server listening on port 8080"]),
    server(
        "redis",
        (8, 4),
        45,
        "redis-server",
        &[6379],
        Site::NotHttp,
        &["1:M * Server initialized", "1:M * Ready to accept connections tcp"],
    ),
    server("memcached", (1, 6), 32, "memcached", &[11211], Site::NotHttp, &[]),
    server(
        "postgres",
        (18, 99),
        150,
        "postgres",
        &[5432],
        Site::NotHttp,
        &["LOG:  database system is ready to accept connections"],
    ),
    server(
        "mysql",
        (9, 99),
        240,
        "mysqld",
        &[3306],
        Site::NotHttp,
        &["[System] [MY-010931] [Server] /usr/sbin/mysqld: ready for connections."],
    ),
    server("mariadb", (12, 99), 110, "mariadbd", &[3306], Site::NotHttp, &["[Note] mariadbd: ready for connections."]),
    server("mongo", (8, 99), 260, "mongod", &[27017], Site::NotHttp, &["Waiting for connections"]),
    tool("busybox", (1, 37), 2, Does::Command),
    tool("alpine", (3, 23), 4, Does::Command),
    tool("debian", (13, 99), 47, Does::Command),
    tool("ubuntu", (26, 10), 29, Does::Command),
    tool("bash", (5, 99), 6, Does::Command),
    tool("perl", (5, 99), 330, Does::Command),
    tool("python", (3, 14), 45, Does::Command),
    tool("node", (25, 99), 50, Does::Command),
    tool("curl", (8, 99), 10, Does::Command),
    Program {
        binary: "stress",
        greeting: &["stress: info: [1] dispatching hogs: 0 cpu, 0 io, 1 vm, 0 hdd"],
        on_term: exits(143, 5),
        ..tool("stress", (1, 0), 4, Does::Wait)
    },
    Program { on_term: exits(0, 5), ..tool("pause", (3, 10), 1, Does::Wait) },
    Program {
        greeting: &[
            "",
            "Hello from Docker!",
            "This message shows that your installation appears to be working correctly.",
            "",
        ],
        ..tool("hello-world", (1, 0), 1, Does::Exit(0))
    },
    Program { greeting: &["panic: something went wrong"], ..tool("crash", (1, 0), 1, Does::Exit(1)) },
];

/// An image that the table does not know: it starts and stays up, and listens on the ports that its manifest names. Told
/// to stop, it first finishes what it is at.
static UNKNOWN: Program = Program { on_term: exits(0, 1500), ..server("", (0, 0), 48, "", &[], Site::Anything, &[]) };

pub fn by_image(short_name: &str) -> Option<&'static Program> {
    TABLE.iter().find(|program| program.image == short_name)
}

/// The program that a command line calls by its path or name.
pub fn by_binary(binary: &str) -> Option<&'static Program> {
    let name = binary.rsplit('/').next().unwrap_or(binary);
    TABLE.iter().find(|program| !program.binary.is_empty() && program.binary.trim_start_matches('/') == name)
}

/// What a program wants next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// Nothing, until it is told to stop.
    Serves,
    Sleeps(Duration, Class),
    Ends(i32),
    /// It goes on as the program of this name (`exec`).
    Becomes(&'static str),
}

/// The first process of a container.
#[derive(Clone, Debug)]
pub struct Process {
    program: &'static Program,
    /// What its command line comes to, if that is not the program itself.
    script: Option<Arc<Script>>,
    /// It ends at once with this code.
    exit: Option<i32>,
    /// The memory that it takes beside what every process does.
    pub memory_bytes: u64,
    /// So many CPUs it keeps busy.
    pub cores: u64,
    /// It took the place of a shell, and has said its greeting then.
    replaced: bool,
}

impl Default for Process {
    fn default() -> Process {
        Process { program: &UNKNOWN, script: None, exit: None, replaced: false, memory_bytes: 0, cores: 0 }
    }
}

impl Process {
    pub fn new(config: &Config) -> Process {
        let program = by_image(short_name(&config.identity.image)).unwrap_or(&UNKNOWN);
        if config.exit.is_some() {
            return Process { exit: config.exit, ..Process::default() };
        }
        let (command, args) = (&config.command, &config.args);
        let words: Vec<String> = command.iter().chain(args).cloned().collect();
        let runs_itself = match program.does {
            // Arguments alone go to the image's own entrypoint.
            Does::Serve(..) | Does::Exit(_) | Does::Wait => command.is_empty(),
            Does::Command => false,
        };
        let (memory_bytes, cores) = (memory_asked_for(&words), cores_asked_for(&words));
        let itself = |program| Process { program, memory_bytes, cores, ..Process::default() };
        if runs_itself {
            let exit = if let Does::Exit(code) = program.does { Some(code) } else { None };
            return Process { exit, ..itself(program) };
        }
        if let Some(named) = words.first().and_then(|word| by_binary(word)) {
            return itself(named);
        }
        if program.image.is_empty() && !words.first().is_some_and(|word| shell::is_known(word)) {
            return itself(program);
        }
        if config.stdin && words.get(1).is_none() && words.first().is_none_or(|word| shell::is_shell(word)) {
            return itself(&UNKNOWN_COMMAND);
        }
        let script = Arc::new(Script::new(&words, &config.environment, &config.hostname, &config.working_folder));
        let program = if matches!(program.does, Does::Serve(..)) { &UNKNOWN_COMMAND } else { program };
        Process { program, script: Some(script), ..Process::default() }
    }

    /// It reads files, and variables.
    pub fn is_script(&self) -> bool {
        self.script.is_some()
    }

    /// What it prints first, whoever looks.
    pub fn greeting(&self) -> &'static [&'static str] {
        if self.script.is_some() || self.replaced { &[] } else { self.program.greeting }
    }

    pub fn on_term(&self) -> OnTerm {
        match (&self.script, self.exit) {
            (Some(script), _) => script.on_term(),
            (None, Some(code)) => exits(code, 0),
            (None, None) => self.program.on_term,
        }
    }

    /// What it serves, and where; `None` if nothing.
    pub fn site(&self) -> Option<(&'static [u16], Site)> {
        match self.program.does {
            Does::Serve(ports, site) if self.script.is_none() && self.exit.is_none() => Some((ports, site)),
            _ => None,
        }
    }

    /// Goes on from where it was.
    pub fn run(&mut self, now: Time, files: &mut Files, print: &mut dyn FnMut(String)) -> Turn {
        if let Some(code) = self.exit {
            return Turn::Ends(code);
        }
        match &mut self.script {
            Some(script) => match Arc::make_mut(script).run(now, files, print) {
                Turn::Becomes(binary) => {
                    let program = by_binary(binary).unwrap_or(&UNKNOWN);
                    program.greeting.iter().for_each(|line| print((*line).to_owned()));
                    *self = Process { program, replaced: true, ..Process::default() };
                    Turn::Serves
                }
                turn => turn,
            },
            None => Turn::Serves,
        }
    }
}

/// What `stress --vm N --vm-bytes SIZE` takes.
/// <https://kubernetes.io/docs/tasks/configure-pod-container/assign-memory-resource/>
fn memory_asked_for(words: &[String]) -> u64 {
    let after = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        shell::files::size(words.get(at + 1)?)
    };
    after("--vm-bytes").map_or(0, |size_bytes| size_bytes.saturating_mul(after("--vm").unwrap_or(1)))
}

/// What `stress --cpu N` keeps busy, of whichever program of that name.
/// <https://kubernetes.io/docs/tasks/configure-pod-container/assign-cpu-resource/>
fn cores_asked_for(words: &[String]) -> u64 {
    let at = words.iter().position(|word| matches!(word.as_str(), "--cpu" | "-cpus"));
    at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(0)
}

/// Another command than the image's own, or a shell at which somebody sits.
static UNKNOWN_COMMAND: Program = tool("", (0, 0), 0, Does::Command);
