//! Where a connection is to go, as a person writes it.

/// `http://HOST:PORT/PATH`; the scheme, the port and the path may be left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Url {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    /// With its query, from the first slash on.
    pub path: String,
    /// What the request names as its host: that of the URL, if the client says nothing else.
    pub host_header: String,
}

impl Url {
    /// The error says what is wrong, as curl says it.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            other => return Err(format!("Protocol \"{other}\" not supported")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let cut = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(cut);
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, digits)) => {
                let port = digits.parse().ok().filter(|port| *port > 0);
                (host, port.ok_or("URL rejected: Port number was not a decimal number between 0 and 65535")?)
            }
            None => (authority, if tls { 443 } else { 80 }),
        };
        if host.is_empty() {
            return Err("URL rejected: No host part in the URL".into());
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Url { tls, host: host.to_owned(), port, path, host_header: host.to_owned() })
    }
}

/// The value of a parameter in a query, without its escapes.
pub fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| unescape(value))
}

/// `%20` and `+` as blanks, and so on.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        let code = code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        plain.push(code.unwrap_or(if byte == b'+' { b' ' } else { byte }));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_its_default() {
        let url = |tls, host: &str, port, path: &str| {
            let (host, path) = (host.to_owned(), path.to_owned());
            Url { tls, host_header: host.clone(), host, port, path }
        };
        assert_eq!(Url::parse("web"), Ok(url(false, "web", 80, "/")));
        assert_eq!(Url::parse("localhost:8080/a?b=c#d"), Ok(url(false, "localhost", 8080, "/a?b=c")));
        assert_eq!(Url::parse("https://kubernetes?x"), Ok(url(true, "kubernetes", 443, "/?x")));
        assert!(Url::parse("ftp://web").unwrap_err().contains("ftp"));
        assert!(Url::parse("http://:80").is_err());
        assert!(Url::parse("web:99999").is_err());
    }

    #[test]
    fn parameters_are_read_without_their_escapes() {
        assert_eq!(parameter("a=1&msg=x%20y+z%", "msg"), Some("x y z%".into()));
        assert_eq!(parameter("a=1", "b"), None);
    }
}
