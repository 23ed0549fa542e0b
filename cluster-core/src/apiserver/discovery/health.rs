//! The checks behind `/healthz`, `/livez` and `/readyz`. All of them pass: a server that answers has started as a whole.
//! <https://kubernetes.io/docs/reference/using-api/health-checks/>

use std::fmt::Write;

/// The paths that tell of health.
pub const ROOTS: &[&str] = &["healthz", "livez", "readyz"];

/// kube-apiserver's checks in their order; those with a path of their own are for that one alone.
const CHECKS: &[(&str, &[&str])] = &[
    ("ping", ROOTS),
    ("log", ROOTS),
    ("etcd", ROOTS),
    ("etcd-readiness", &["readyz"]),
    ("informer-sync", &["readyz"]),
    ("poststarthook/start-apiserver-admission-initializer", ROOTS),
    ("poststarthook/generic-apiserver-start-informers", ROOTS),
    ("poststarthook/priority-and-fairness-config-consumer", ROOTS),
    ("poststarthook/priority-and-fairness-filter", ROOTS),
    ("poststarthook/storage-object-count-tracker-hook", ROOTS),
    ("poststarthook/start-apiextensions-informers", ROOTS),
    ("poststarthook/start-apiextensions-controllers", ROOTS),
    ("poststarthook/crd-informer-synced", ROOTS),
    ("poststarthook/start-system-namespaces-controller", ROOTS),
    ("poststarthook/start-cluster-authentication-info-controller", ROOTS),
    ("poststarthook/start-kube-apiserver-identity-lease-controller", ROOTS),
    ("poststarthook/start-kube-apiserver-identity-lease-garbage-collector", ROOTS),
    ("poststarthook/start-legacy-token-tracking-controller", ROOTS),
    ("poststarthook/start-service-ip-repair-controllers", ROOTS),
    ("poststarthook/rbac/bootstrap-roles", ROOTS),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", ROOTS),
    ("poststarthook/priority-and-fairness-config-producer", ROOTS),
    ("poststarthook/bootstrap-controller", ROOTS),
    ("poststarthook/start-kubernetes-service-cidr-controller", ROOTS),
    ("poststarthook/aggregator-reload-proxy-client-cert", ROOTS),
    ("poststarthook/start-kube-aggregator-informers", ROOTS),
    ("poststarthook/apiservice-status-local-available-controller", ROOTS),
    ("poststarthook/apiservice-status-remote-available-controller", ROOTS),
    ("poststarthook/apiservice-registration-controller", ROOTS),
    ("poststarthook/apiservice-discovery-controller", ROOTS),
    ("poststarthook/kube-apiserver-autoregistration", ROOTS),
    ("autoregister-completion", ROOTS),
    ("poststarthook/apiservice-openapi-controller", ROOTS),
    ("poststarthook/apiservice-openapiv3-controller", ROOTS),
    ("shutdown", &["readyz"]),
];

/// The names of the checks of `healthz`, `livez` or `readyz`.
pub fn checks(root: &str) -> impl Iterator<Item = &'static str> {
    CHECKS.iter().filter(move |(_, roots)| roots.contains(&root)).map(|(name, _)| *name)
}

/// What one of the paths answers: a word, or a line a check.
pub fn report(root: &str, verbose: bool, excluded: &[&str]) -> String {
    if !verbose {
        return "ok".into();
    }
    let mut report = String::new();
    for name in checks(root) {
        let note = if excluded.contains(&name) { " excluded:" } else { "" };
        let _ = writeln!(report, "[+]{name}{note} ok");
    }
    let mut unknown: Vec<String> = excluded
        .iter()
        .filter(|name| !checks(root).any(|known| known == **name))
        .map(|name| format!("{name:?}"))
        .collect();
    unknown.sort();
    unknown.dedup();
    if !unknown.is_empty() {
        let _ = writeln!(report, "warn: some health checks cannot be excluded: no matches for {}", unknown.join(","));
    }
    let _ = writeln!(report, "{root} check passed");
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_each_check() {
        assert_eq!(report("livez", false, &[]), "ok");
        let told = report("livez", true, &["etcd", "moon"]);
        assert!(told.starts_with("[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n[+]poststarthook/"), "{told}");
        let end = "warn: some health checks cannot be excluded: no matches for \"moon\"\nlivez check passed\n";
        assert!(told.ends_with(end), "{told}");
        assert!(report("readyz", true, &[]).ends_with("[+]shutdown ok\nreadyz check passed\n"));
    }
}
