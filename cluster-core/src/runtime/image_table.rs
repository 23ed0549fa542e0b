//! The images that are known: one row an image. Those that a cluster's objects declare are rows of the same type.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::agnhost;
use super::files::{Files, Node};
use super::programs::{Does, Exit, OnTerm, Program, Site, exits};
use crate::clock::Time;

/// A place for what is temporary.
pub static PLAIN_FILES: LazyLock<Files> = LazyLock::new(|| {
    let temporary = Node { mode: 0o1777, ..Node::folder(Time::ZERO) };
    [("/tmp".to_owned(), temporary)].into_iter().collect()
});

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

/// What a server takes while it waits, and for a request, if nothing is known of it.
const USUAL: (u64, u64) = (1, 2000);

fn server(
    image: &'static str,
    newest: (u32, u32),
    mib: u64,
    binary: &'static str,
    port: u16,
    site: Site,
    greeting: &[&'static str],
) -> Program {
    let greeting = greeting.iter().map(|line| Cow::Borrowed(*line)).collect();
    let (size_bytes, does) = (mib * MIB, Does::Serve(vec![port], site));
    Program { image, newest, size_bytes, does, binary, greeting, ..Program::default() }.costing(USUAL)
}

/// A server of one page at the root of its documents.
fn web_server(
    image: &'static str,
    newest: (u32, u32),
    mib: u64,
    binary: &'static str,
    (root, index): (&'static str, &'static str),
    greeting: &[&'static str],
) -> Program {
    server(image, newest, mib, binary, 80, Site::Documents { root }, greeting)
        .with(root.to_owned(), Node::folder(Time::ZERO))
        .with(format!("{root}/index.html"), Node::file(index, 0o644, Time::ZERO))
}

impl Program {
    fn costing(self, (idle_millicores, request_micros): (u64, u64)) -> Program {
        Program { idle_millicores, request_micros, ..self }
    }

    fn with(mut self, path: String, node: Node) -> Program {
        self.files.set(path, node);
        self
    }
}

fn tool(image: &'static str, newest: (u32, u32), mib: u64) -> Program {
    Program {
        image,
        newest,
        size_bytes: mib * MIB,
        does: Does::Command,
        on_term: OnTerm::Ignores,
        ..Program::default()
    }
}

/// It prints some lines and ends.
fn ends(image: &'static str, code: i32, lines: &[&'static str]) -> Program {
    let greeting = lines.iter().map(|line| Cow::Borrowed(*line)).collect();
    let exit = Some(Exit { code, after: Duration::ZERO });
    Program { does: Does::Wait, exit, greeting, ..tool(image, (1, 0), 1) }
}

/// Every image that is known.
pub static TABLE: LazyLock<Vec<Arc<Program>>> = LazyLock::new(|| {
    let (certificate_path, certificate) = agnhost::CERTIFICATE;
    let rows = [
        web_server("nginx", (1, 29), 69, "nginx", ("/usr/share/nginx/html", NGINX_PAGE), NGINX_LINES).costing((0, 200)),
        web_server(
            "httpd",
            (2, 4),
            56,
            "httpd-foreground",
            ("/usr/local/apache2/htdocs", "<html><body><h1>It works!</h1></body></html>\n"),
            &["[mpm_event:notice] [pid 1] AH00489: Apache/2.4 (Unix) configured -- resuming normal operations"],
        )
        .costing((1, 300)),
        server("agnhost", (2, 63), 54, "/agnhost", 8080, Site::Netexec, &["Started HTTP server on port 8080"])
            .with(certificate_path.to_owned(), Node::file(certificate, 0o644, Time::ZERO)),
        server("http-echo", (1, 0), 4, "/http-echo", 5678, Site::Anything, &["[INFO] server is listening on :5678"])
            .costing((0, 100)),
        server("echoserver", (1, 10), 90, "", 8080, Site::Anything, &[]),
        // Each request has it draw a million square roots.
        web_server(
            "hpa-example",
            (1, 0),
            146,
            "apache2-foreground",
            ("/var/www/html", "OK!"),
            &["[mpm_prefork:notice] [pid 1] AH00163: Apache/2.4.10 (Debian) PHP/5.6.14 configured -- resuming \
normal operations"],
        )
        .costing((1, 10_000)),
        server("hello-app", (2, 0), 10, "", 8080, Site::Anything, &["Server listening on port 8080"]).costing((0, 200)),
        server(
            "redis",
            (8, 4),
            45,
            "redis-server",
            6379,
            Site::NotHttp,
            &["1:M * Server initialized", "1:M * Ready to accept connections tcp"],
        )
        .costing((2, 50)),
        server("memcached", (1, 6), 32, "memcached", 11211, Site::NotHttp, &[]).costing((1, 50)),
        server(
            "postgres",
            (18, 99),
            150,
            "postgres",
            5432,
            Site::NotHttp,
            &["LOG:  database system is ready to accept connections"],
        )
        .costing((3, 2000)),
        server(
            "mysql",
            (9, 99),
            240,
            "mysqld",
            3306,
            Site::NotHttp,
            &["[System] [MY-010931] [Server] /usr/sbin/mysqld: ready for connections."],
        )
        .costing((6, 2000)),
        server("mariadb", (12, 99), 110, "mariadbd", 3306, Site::NotHttp, &["[Note] mariadbd: ready for connections."])
            .costing((5, 2000)),
        server("mongo", (8, 99), 260, "mongod", 27017, Site::NotHttp, &["Waiting for connections"]).costing((8, 2000)),
        tool("busybox", (1, 37), 2),
        Program { binary: "/nnp", ..tool("nonewprivs", (1, 99), 7) },
        tool("jessie-dnsutils", (1, 99), 160),
        tool("alpine", (3, 23), 4),
        tool("debian", (13, 99), 47),
        tool("ubuntu", (26, 10), 29),
        tool("bash", (5, 99), 6),
        tool("perl", (5, 99), 330),
        tool("python", (3, 14), 45),
        tool("node", (25, 99), 50),
        tool("curl", (8, 99), 10),
        Program {
            does: Does::Wait,
            binary: "stress",
            greeting: vec!["stress: info: [1] dispatching hogs: 0 cpu, 0 io, 1 vm, 0 hdd".into()],
            on_term: exits(143, 5),
            ..tool("stress", (1, 0), 4)
        },
        Program { does: Does::Wait, on_term: exits(0, 5), ..tool("pause", (3, 10), 1) },
        ends(
            "hello-world",
            0,
            &[
                "",
                "Hello from Docker!",
                "This message shows that your installation appears to be working correctly.",
                "",
            ],
        ),
        ends("crash", 1, &["panic: something went wrong"]),
    ];
    rows.map(Arc::new).into()
});

/// An image that the table does not know: it starts and stays up, and listens on the ports that its manifest names. Told
/// to stop, it first finishes what it is at.
pub static UNKNOWN: LazyLock<Arc<Program>> = LazyLock::new(|| {
    let does = Does::Serve(Vec::new(), Site::Anything);
    let program = Program { size_bytes: 48 * MIB, does, on_term: exits(0, 1500), ..Program::default() };
    Arc::new(program.costing(USUAL))
});

/// Another command than the image's own, or a shell at which somebody sits.
pub static UNKNOWN_COMMAND: LazyLock<Arc<Program>> = LazyLock::new(|| Arc::new(tool("", (0, 0), 0)));

pub fn by_image(short_name: &str) -> Option<&'static Arc<Program>> {
    TABLE.iter().find(|program| program.image == short_name)
}

/// What an image of this name does.
pub fn of_image(short_name: &str) -> Arc<Program> {
    by_image(short_name).unwrap_or(&UNKNOWN).clone()
}

/// The program that a command line calls by its path or name.
pub fn by_binary(binary: &str) -> Option<&'static Arc<Program>> {
    let name = binary.rsplit('/').next().unwrap_or(binary);
    TABLE.iter().find(|program| !program.binary.is_empty() && program.binary.trim_start_matches('/') == name)
}
