//! Names and other short texts with a syntax: what is wrong with one, as a list of details (empty: nothing).
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>

const DNS_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
     for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
     with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
     or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const HTTP_HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex \
     used for validation is '[-A-Za-z0-9]+')";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
     regex used for validation is '[0-9]+%')";
const DNS_SUBDOMAIN_UNDERSCORE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
     '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
     validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const ENV_NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const LABEL_KEY: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and \
     end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
     'example.com/MyName')";

const LABEL_LENGTH_MAX: usize = 63;
const SUBDOMAIN_LENGTH_MAX: usize = 253;

type Details = Vec<String>;

fn at_most(length_max: usize, unit: &str) -> String {
    format!("must be no more than {length_max} {unit}")
}

fn is_alphanumeric(byte: u8, lower: bool) -> bool {
    byte.is_ascii_digit() || byte.is_ascii_lowercase() || !lower && byte.is_ascii_uppercase()
}

/// Alphanumeric characters, and inside of them some others.
fn is_word(text: &str, lower: bool, also: &[u8]) -> bool {
    let ends = [text.bytes().next(), text.bytes().last()];
    ends.iter().all(|byte| byte.is_some_and(|byte| is_alphanumeric(byte, lower)))
        && text.bytes().all(|byte| is_alphanumeric(byte, lower) || also.contains(&byte))
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|part| is_word(part, true, b"-"))
}

/// An RFC 1123 label, such as the name of a namespace or a container.
pub fn dns_label(name: &str) -> Details {
    let mut details = Details::new();
    if name.len() > LABEL_LENGTH_MAX {
        details.push(at_most(LABEL_LENGTH_MAX, "characters"));
    }
    if !is_word(name, true, b"-") {
        details.push(if is_subdomain(name) { "must not contain dots".into() } else { DNS_LABEL.into() });
    }
    details
}

/// A beginning of a name, such as `generateName`, made into one that can be checked: something stands behind its dash.
pub fn as_prefix(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(stem) if !stem.is_empty() => {
            let mut letters = stem.chars();
            letters.next_back();
            format!("{}a", letters.as_str())
        }
        _ => prefix.to_owned(),
    }
}

/// An RFC 1035 label, which does not start with a digit.
pub fn dns_1035_label(name: &str) -> Details {
    let mut details = Details::new();
    if name.len() > LABEL_LENGTH_MAX {
        details.push(at_most(LABEL_LENGTH_MAX, "characters"));
    }
    if !is_word(name, true, b"-") || !name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        details.push(DNS_1035_LABEL.into());
    }
    details
}

/// An RFC 1123 subdomain, such as the names of most objects.
pub fn dns_subdomain(name: &str) -> Details {
    let mut details = Details::new();
    if name.len() > SUBDOMAIN_LENGTH_MAX {
        details.push(at_most(SUBDOMAIN_LENGTH_MAX, "characters"));
    }
    if !is_subdomain(name) {
        details.push(DNS_SUBDOMAIN.into());
    }
    details
}

/// A name that only has to fit into a URL, such as that of a Role.
pub fn path_segment(name: &str) -> Details {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].into_iter().filter(|part| name.contains(part)).map(|part| format!("may not contain '{part}'")).collect()
}

/// The value of a label.
pub fn label_value(value: &str) -> Details {
    let mut details = Details::new();
    if value.len() > LABEL_LENGTH_MAX {
        details.push(at_most(LABEL_LENGTH_MAX, "bytes"));
    }
    if !value.is_empty() && !is_word(value, false, b"-_.") {
        details.push(LABEL_VALUE.into());
    }
    details
}

/// A qualified name, which may have a prefix, such as the key of a label: `example.com/name`.
pub fn qualified_name(key: &str) -> Details {
    let mut details = Details::new();
    let mut parts = key.split('/');
    let name = match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        (name, None, _) => name,
        (prefix, Some(name), None) => {
            if prefix.is_empty() {
                details.push("prefix part must be non-empty".into());
            } else {
                if prefix.len() > SUBDOMAIN_LENGTH_MAX {
                    details.push(format!("prefix part {}", at_most(SUBDOMAIN_LENGTH_MAX, "bytes")));
                }
                if !is_subdomain(prefix) {
                    details.push(format!("prefix part {DNS_SUBDOMAIN}"));
                }
            }
            name
        }
        _ => return vec![LABEL_KEY.into()],
    };
    if name.is_empty() {
        details.push("name part must be non-empty".into());
    } else if name.len() > LABEL_LENGTH_MAX {
        details.push(format!("name part {}", at_most(LABEL_LENGTH_MAX, "bytes")));
    }
    if !is_word(name, false, b"-_.") {
        details.push(QUALIFIED_NAME.into());
    }
    details
}

/// A key of a ConfigMap or Secret, which is a file's name when it is mounted.
pub fn config_map_key(key: &str) -> Details {
    let mut details = Details::new();
    if key.len() > SUBDOMAIN_LENGTH_MAX {
        details.push(at_most(SUBDOMAIN_LENGTH_MAX, "characters"));
    }
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if key.is_empty() || !key.bytes().all(letters) {
        details.push(CONFIG_KEY.into());
    }
    details.extend(not_dots(key));
    details
}

/// The name of an environment variable.
pub fn env_var_name(name: &str) -> Details {
    let mut details = Details::new();
    if name.is_empty() {
        details.push("environment variable name must be non-empty".into());
    }
    if !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        details.push(ENV_NAME.into());
    }
    details
}

/// No file can be called `.` or `..`, or start with the latter.
fn not_dots(name: &str) -> Option<String> {
    match name {
        "." => Some("must not be '.'".into()),
        ".." => Some("must not be '..'".into()),
        name if name.starts_with("..") => Some("must not start with '..'".into()),
        _ => None,
    }
}

/// The name of a port: `http`, `web-1`.
pub fn port_name(name: &str) -> Details {
    let mut details = Details::new();
    if name.len() > 15 {
        details.push(at_most(15, "characters"));
    }
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(letters) {
        details.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        details.push("must contain at least one letter (a-z)".into());
    }
    if name.contains("--") {
        details.push("must not contain consecutive hyphens".into());
    }
    if name.starts_with('-') || name.ends_with('-') {
        details.push("must not begin or end with a hyphen".into());
    }
    details
}

/// A subdomain whose parts may also hold underscores, such as a search domain of a pod's DNS.
pub fn dns_subdomain_with_underscore(name: &str) -> Details {
    let mut details = Details::new();
    if name.len() > SUBDOMAIN_LENGTH_MAX {
        details.push(at_most(SUBDOMAIN_LENGTH_MAX, "characters"));
    }
    if !name.split('.').all(|part| is_word(part.strip_prefix('_').unwrap_or(part), true, b"-_")) {
        details.push(DNS_SUBDOMAIN_UNDERSCORE.into());
    }
    details
}

/// The name of a header of an HTTP probe.
pub fn http_header_name(name: &str) -> Details {
    let good = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if good { Details::new() } else { vec![HTTP_HEADER.into()] }
}

/// A share as text: `25%`.
pub fn percent(text: &str) -> Details {
    let digits = text.strip_suffix('%').unwrap_or_default();
    let good = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if good { Details::new() } else { vec![PERCENT.into()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_a_name_is_told() {
        assert_eq!(dns_label("web.a"), ["must not contain dots"]);
        assert_eq!(dns_label(&"A".repeat(64)), ["must be no more than 63 characters", DNS_LABEL]);
        assert_eq!(dns_subdomain("with.dots-and-1"), Details::new());
        assert_eq!(dns_1035_label("1web"), [DNS_1035_LABEL]);
        assert_eq!(path_segment("a/b%"), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(qualified_name("example.com/"), ["name part must be non-empty", QUALIFIED_NAME]);
        assert_eq!(qualified_name("a/b/c"), [LABEL_KEY]);
        assert_eq!(port_name("-8-"), ["must contain at least one letter (a-z)", "must not begin or end with a hyphen"]);
        assert_eq!(config_map_key(".."), ["must not be '..'"]);
    }
}
