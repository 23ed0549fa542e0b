//! Images: how their names are read, which of them can be pulled, and what a registry answers if one can't.
//!
//! The rule: a name is pulled unless there is a reason why not, which is one of
//! - its registry is none that is known here;
//! - a part of the name or the tag says itself that it does not exist (`nosuch`, `nope`, `missing` …);
//! - the name is one slip of the finger away from an image of the table (`ngnix`);
//! - the tag is a version of an image of the table that was never published (`nginx:1.161`).
//!
//! Before the rule comes what the cluster's objects of kind Image declare.
//!
//! <https://kubernetes.io/docs/concepts/containers/images/>

use std::sync::Arc;
use std::time::Duration;

use super::image_table;
use super::programs::Program;
use crate::api::Name;

/// An image on the disk of a machine.
#[derive(Clone, Debug)]
pub struct Image {
    /// `docker.io/library/nginx@sha256:…`
    pub id: Name,
    pub size_bytes: u64,
    pub program: Arc<Program>,
}

/// What was declared about an image.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The full name, or, for all tags of a repository, what stands before the tag.
    pub name: Name,
    /// `None`: the registry says that there is none.
    pub program: Option<Arc<Program>>,
    /// How long it takes to fetch; `None` for the usual time.
    pub pull_takes: Option<Duration>,
    /// The same for the same content.
    pub digest: String,
}

/// What the machines pull from: what was declared, and what the rule knows.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// By the name of the object that declares it.
    declared: imbl::OrdMap<Name, Arc<Declared>>,
}

impl Registry {
    pub fn declare(&mut self, object: Name, image: Declared) {
        self.declared.insert(object, Arc::new(image));
    }

    pub fn withdraw(&mut self, object: &Name) {
        self.declared.remove(object);
    }

    /// A tag's own declaration goes before that of its repository.
    pub fn declared(&self, reference: &str) -> Option<&Declared> {
        let of = |wanted: &str| self.declared.values().find(|declared| *declared.name == *wanted);
        of(reference).or_else(|| of(split(reference).0)).map(|declared| &**declared)
    }

    /// What the registry has under a full name, or containerd's words about why it has nothing.
    pub fn lookup(&self, reference: &str) -> Result<Image, Name> {
        let Some(declared) = self.declared(reference) else { return lookup(reference) };
        match &declared.program {
            None => Err(refusal(reference, "NotFound", &format!("{reference}: not found"))),
            Some(program) => Ok(Image {
                id: Name::from(format!("{}@sha256:{}", split(reference).0, declared.digest)),
                size_bytes: program.size_bytes,
                program: program.clone(),
            }),
        }
    }
}

/// The name that an Image declares, as the registry compares it: with a tag the full name, else the repository.
pub fn declared_name(image: &str) -> Name {
    let full = reference(image);
    let tagged = has_tag(image.split_once('/').filter(|(host, _)| is_host(host)).map_or(image, |(_, rest)| rest));
    if tagged || image.contains('@') { full } else { Name::from(split(&full).0) }
}

/// containerd's words about a name that it could not resolve.
fn refusal(reference: &str, code: &str, why: &str) -> Name {
    Name::from(format!(
        "rpc error: code = {code} desc = failed to pull and unpack image \"{reference}\": failed to resolve reference \
         \"{reference}\": {why}"
    ))
}

const REGISTRIES: &[&str] = &[
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "k8s.gcr.io",
    "mcr.microsoft.com",
    "public.ecr.aws",
    "quay.io",
    "registry.gitlab.com",
    "registry.k8s.io",
];

const SAYS_NO: &[&str] = &[
    "404",
    "bad",
    "broken",
    "does-not-exist",
    "doesnotexist",
    "invalid",
    "missing",
    "no-such",
    "non-existent",
    "nonexistent",
    "nope",
    "nosuch",
    "not-found",
    "notfound",
    "typo",
    "wrong",
];

/// The full name of an image as containerd writes it: `nginx` is `docker.io/library/nginx:latest`.
pub fn reference(image: &str) -> Name {
    let (registry, rest) = match image.split_once('/') {
        Some((host, rest)) if is_host(host) => (host, rest),
        _ => ("docker.io", image),
    };
    let library = if registry == "docker.io" && !rest.contains('/') { "library/" } else { "" };
    let tag = if has_tag(rest) || rest.contains('@') { "" } else { ":latest" };
    Name::from(format!("{registry}/{library}{rest}{tag}"))
}

fn is_host(text: &str) -> bool {
    text.contains(['.', ':']) || text == "localhost"
}

fn has_tag(rest: &str) -> bool {
    rest.rsplit('/').next().is_some_and(|last| last.contains(':'))
}

/// Repository and tag of a full name.
fn split(reference: &str) -> (&str, &str) {
    let (repository, digest) = reference.split_once('@').unwrap_or((reference, ""));
    let slash = repository.rfind('/').unwrap_or(0);
    match repository[slash..].find(':') {
        Some(colon) => (&repository[..slash + colon], &repository[slash + colon + 1..]),
        None => (repository, digest),
    }
}

/// The name by which the table of programs knows an image: the last part of its repository.
pub fn short_name(image: &str) -> &str {
    let repository = split(image).0;
    repository.rsplit('/').next().unwrap_or(repository)
}

/// What a registry has by the rule.
fn lookup(reference: &str) -> Result<Image, Name> {
    let (repository, tag) = split(reference);
    let (host, path) = repository.split_once('/').unwrap_or(("docker.io", repository));
    let failed = |code: &str, why: String| Err(refusal(reference, code, &why));
    if !REGISTRIES.contains(&host) {
        let bare = host.split(':').next().unwrap_or(host);
        let why = format!(
            "failed to do request: Head \"https://{host}/v2/{path}/manifests/{tag}\": dial tcp: lookup {bare}: no such host"
        );
        return failed("Unknown", why);
    }
    let name = short_name(repository);
    let known = image_table::by_image(name);
    if path.split('/').any(says_no) || known.is_none() && is_slip(name) {
        let why = "pull access denied, repository does not exist or may require authorization: server message: \
                   insufficient_scope: authorization failed";
        return failed("Unknown", why.to_owned());
    }
    if says_no(tag) || known.is_some_and(|program| is_unpublished(tag, program.newest)) {
        return failed("NotFound", format!("{reference}: not found"));
    }
    let size_bytes = known.map_or(50_000_000, |program| program.size_bytes) + mix(reference, 0) % 9999;
    let id = Name::from(format!("{repository}@sha256:{}", digest(reference)));
    Ok(Image { id, size_bytes, program: image_table::of_image(name) })
}

/// Why a name can't be that of an image, in the kubelet's words.
pub fn is_invalid(image: &str) -> Option<String> {
    let repository = split(image).0;
    let rest = match repository.split_once('/') {
        Some((host, rest)) if is_host(host) => rest,
        _ => repository,
    };
    let why = if rest.chars().any(char::is_uppercase) {
        let library = if repository.contains('/') { "" } else { "library/" };
        format!("repository name ({library}{repository}) must be lowercase")
    } else if rest.chars().any(|c| !(c.is_ascii_alphanumeric() || "._-/".contains(c))) || rest.is_empty() {
        String::new()
    } else {
        return None;
    };
    let colon = if why.is_empty() { "" } else { ": " };
    Some(format!(
        "Failed to apply default image tag \"{image}\": couldn't parse image name \"{image}\": invalid reference \
         format{colon}{why}"
    ))
}

/// The programs of the table run as root; of others nothing is known.
pub fn runs_as_root(image: &str) -> bool {
    image_table::by_image(short_name(image)).is_some()
}

fn says_no(text: &str) -> bool {
    SAYS_NO.iter().any(|no| {
        text.match_indices(no).any(|(at, _)| {
            let letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            let bytes = text.as_bytes();
            !letter(at.checked_sub(1).and_then(|at| bytes.get(at))) && !letter(bytes.get(at + no.len()))
        })
    })
}

/// One letter too many, too few, other, or two swapped.
fn is_slip(name: &str) -> bool {
    name.len() >= 5
        && image_table::TABLE.iter().any(|program| program.image.len() >= 5 && one_slip(name, program.image))
}

fn one_slip(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let front = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[front..], &b[front..]);
    match (a, b) {
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([_, a @ ..], b) | (b, [_, a @ ..]) if a == b => true,
        (a, [_, b @ ..]) if a == b => true,
        ([a0, a1, a @ ..], [b0, b1, b @ ..]) => a0 == b1 && a1 == b0 && a == b,
        _ => false,
    }
}

/// A version with a minor number that is newer than the newest one.
fn is_unpublished(tag: &str, newest: (u32, u32)) -> bool {
    let mut parts = tag.trim_start_matches('v').split(['.', '-']);
    let (Some(major), Some(minor)) = (parts.next(), parts.next()) else { return false };
    let (Ok(major), Ok(minor)) = (major.parse::<u32>(), minor.parse::<u32>()) else { return false };
    (major, minor) > newest
}

fn mix(text: &str, round: u64) -> u64 {
    let folded = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64 ^ round, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let folded = (folded ^ (folded >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let folded = (folded ^ (folded >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    folded ^ (folded >> 31)
}

/// The same 64 hexadecimal digits for the same name.
pub fn digest(text: &str) -> String {
    (1..=4).map(|round| format!("{:016x}", mix(text, round))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed() {
        assert_eq!(&*reference("nginx"), "docker.io/library/nginx:latest");
        assert_eq!(&*reference("nginx:1.27"), "docker.io/library/nginx:1.27");
        assert_eq!(&*reference("team/app:1"), "docker.io/team/app:1");
        assert_eq!(&*reference("registry.k8s.io/pause:3.10"), "registry.k8s.io/pause:3.10");
        assert_eq!(&*reference("localhost:5000/app"), "localhost:5000/app:latest");
        assert_eq!(&*reference("nginx@sha256:00"), "docker.io/library/nginx@sha256:00");
        assert_eq!(short_name("registry.k8s.io/e2e-test-images/agnhost:2.53"), "agnhost");
    }

    #[test]
    fn what_is_declared_goes_before_the_rule() {
        let mut registry = Registry::default();
        let declare = |image: &str, program: Option<Program>| Declared {
            name: declared_name(image),
            program: program.map(Arc::new),
            pull_takes: None,
            digest: digest(image),
        };
        let mib = |mib: u64| Some(Program { size_bytes: mib << 20, ..Program::default() });
        registry.declare("any".into(), declare("ghost.example/shop", mib(1)));
        registry.declare("two".into(), declare("ghost.example/shop:2", mib(2)));
        registry.declare("none".into(), declare("nginx:1.27", None));
        let size = |image: &str| registry.lookup(&reference(image)).map(|image| image.size_bytes >> 20);
        assert_eq!(size("ghost.example/shop:1"), Ok(1));
        assert_eq!(size("ghost.example/shop:2"), Ok(2));
        assert!(size("nginx:1.27").unwrap_err().ends_with("docker.io/library/nginx:1.27: not found"));
        assert_eq!(size("nginx:1.28"), Ok(69));
        assert_eq!(&*declared_name("localhost:5000/app"), "localhost:5000/app");
    }

    #[test]
    fn what_can_be_pulled_follows_a_rule() {
        let pulls = |image: &str| lookup(&reference(image)).is_ok();
        for image in
            ["nginx", "nginx:1.27", "nginx:1.27-alpine", "busybox:1.36", "img:1", "team/app:v7", "python:3.12-slim"]
        {
            assert!(pulls(image), "{image}");
        }
        for image in [
            "nosuch",
            "nosuch/image:1",
            "nginx:nope",
            "web:does-not-exist",
            "ngnix",
            "nginx:1.161",
            "registry.example/app:1",
        ] {
            assert!(!pulls(image), "{image}");
        }
    }

    #[test]
    fn a_name_can_be_none() {
        let told = is_invalid("Nginx:1").unwrap();
        assert!(
            told.ends_with("invalid reference format: repository name (library/Nginx) must be lowercase"),
            "{told}"
        );
        assert!(is_invalid("my image").is_some());
        for image in ["nginx", "localhost:5000/a/b:V1", "nginx@sha256:00", "team_a/app.b-c:1"] {
            assert_eq!(is_invalid(image), None, "{image}");
        }
    }

    #[test]
    fn a_refusal_says_what_the_registry_said() {
        let message = lookup(&reference("nginx:nope")).unwrap_err();
        assert_eq!(
            &*message,
            "rpc error: code = NotFound desc = failed to pull and unpack image \"docker.io/library/nginx:nope\": failed \
             to resolve reference \"docker.io/library/nginx:nope\": docker.io/library/nginx:nope: not found"
        );
        assert!(lookup(&reference("ghost.example/a:1")).unwrap_err().contains("lookup ghost.example: no such host"));
    }
}
