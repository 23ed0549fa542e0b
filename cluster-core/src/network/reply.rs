//! What a client gets back: an HTTP reply, or the reason why there is none.

use std::fmt;

use crate::clock::Time;
use crate::runtime::container::Container;
use crate::runtime::http::Answer;
use crate::runtime::images::short_name;

/// An HTTP/1.1 reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: u16,
    /// Names and values, in the order in which they are sent.
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Reply {
    pub(crate) fn of(container: &Container, answer: Answer, now: Time) -> Reply {
        let mut headers = Vec::new();
        if let Some(server) = server(&container.identity.image) {
            headers.push(("Server", server));
        }
        let html = answer.body.starts_with('<');
        headers.push(("Date", now.timestamp().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()));
        headers.push(("Content-Type", if html { "text/html" } else { "text/plain; charset=utf-8" }.into()));
        headers.push(("Content-Length", answer.body.len().to_string()));
        headers.push(("Connection", "keep-alive".into()));
        Reply { status: answer.status, headers, body: answer.body }
    }

    /// A plain text.
    pub(crate) fn text(status: u16, text: &str, now: Time) -> Reply {
        let headers = vec![
            ("Date", now.timestamp().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()),
            ("Content-Type", "text/plain; charset=utf-8".into()),
            ("Content-Length", text.len().to_string()),
        ];
        Reply { status, headers, body: text.to_owned() }
    }

    /// What nginx says of itself where it has nothing else to say.
    pub(super) fn page(status: u16, now: Time) -> Reply {
        let title = format!("{status} {}", nginx_title(status));
        let head =
            format!("<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n");
        let body = head + "<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";
        let headers = vec![
            ("Date", now.timestamp().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()),
            ("Content-Type", "text/html".into()),
            ("Content-Length", body.len().to_string()),
            ("Connection", "keep-alive".into()),
        ];
        Reply { status, headers, body }
    }

    /// `HTTP/1.1 200 OK`.
    pub fn status_line(&self) -> String {
        format!("HTTP/1.1 {} {}", self.status, reason(self.status))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// How a web server names itself: with the version of its image, as far as the tag tells.
fn server(image: &str) -> Option<String> {
    let name = match short_name(image) {
        "nginx" => "nginx",
        "httpd" => "Apache",
        _ => return None,
    };
    let tag = image.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/')).unwrap_or_default();
    let version: String = tag.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    Some(if version.is_empty() { name.to_owned() } else { format!("{name}/{version}") })
}

/// Its own words for some of the reasons.
fn nginx_title(status: u16) -> &'static str {
    match status {
        503 => "Service Temporarily Unavailable",
        504 => "Gateway Time-out",
        status => reason(status),
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        418 => "I'm a teapot",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

/// Why a connection came to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The URL can't be read, with the reason.
    Malformed(String),
    /// Nothing runs where the connection was to be opened, with what is missing.
    NoOrigin(String),
    /// No address for this host name.
    Unresolved(String),
    /// Nobody listens there, or a rule rejects it.
    Refused,
    /// Nothing has that address.
    NoRoute,
    /// No answer, ever.
    TimedOut,
    /// The other side speaks another protocol than HTTP.
    NotHttp,
    /// The other side does not speak TLS.
    NotTls,
}

impl Failure {
    /// The exit code of curl. <https://curl.se/libcurl/c/libcurl-errors.html>
    pub fn curl_exit_code(&self) -> i32 {
        match self {
            Failure::NotHttp => 1,
            Failure::Malformed(_) => 3,
            Failure::Unresolved(_) => 6,
            Failure::NoOrigin(_) | Failure::Refused | Failure::NoRoute => 7,
            Failure::TimedOut => 28,
            Failure::NotTls => 35,
        }
    }
}

/// In the words of the system or of curl.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Malformed(why) | Failure::NoOrigin(why) => f.write_str(why),
            Failure::Unresolved(host) => write!(f, "Could not resolve host: {host}"),
            Failure::Refused => f.write_str("Connection refused"),
            Failure::NoRoute => f.write_str("No route to host"),
            Failure::TimedOut => f.write_str("Connection timed out"),
            Failure::NotHttp => f.write_str("Received HTTP/0.9 when not allowed"),
            Failure::NotTls => f.write_str("TLS connect error: wrong version number"),
        }
    }
}
