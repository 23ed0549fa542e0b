//! How far a rolling update may go above and below the wanted number of pods.

use k8s_openapi::api::apps::v1::DeploymentSpec;

use crate::controllers::share::scaled;

/// How many pods more than wanted there may be. Percentages are rounded up.
pub fn max_surge(spec: &DeploymentSpec) -> i32 {
    limits(spec).0
}

/// How many pods fewer than wanted may be available. Percentages are rounded down; one, if nothing else may move.
pub fn max_unavailable(spec: &DeploymentSpec) -> i32 {
    limits(spec).1
}

fn limits(spec: &DeploymentSpec) -> (i32, i32) {
    let replicas = spec.replicas.unwrap_or(1);
    let Some(strategy) = spec.strategy.as_ref().filter(|strategy| strategy.type_.as_deref() != Some("Recreate")) else {
        return (0, 0);
    };
    let update = strategy.rolling_update.clone().unwrap_or_default();
    let surge = scaled(update.max_surge.as_ref(), replicas, true);
    let unavailable = scaled(update.max_unavailable.as_ref(), replicas, false);
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    (surge, unavailable.min(replicas))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{DeploymentStrategy, RollingUpdateDeployment};
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

    use super::*;

    fn spec(replicas: i32, surge: &str, unavailable: &str) -> DeploymentSpec {
        let value = |text: &str| Some(text.parse().map_or(IntOrString::String(text.into()), IntOrString::Int));
        let update = RollingUpdateDeployment { max_surge: value(surge), max_unavailable: value(unavailable) };
        let strategy = DeploymentStrategy { type_: Some("RollingUpdate".into()), rolling_update: Some(update) };
        DeploymentSpec { replicas: Some(replicas), strategy: Some(strategy), ..DeploymentSpec::default() }
    }

    #[test]
    fn surge_rounds_up_and_unavailable_rounds_down() {
        for (replicas, surge, unavailable, expected) in [
            (3, "25%", "25%", (1, 0)),
            (10, "25%", "25%", (3, 2)),
            (2, "0", "25%", (0, 1)),
            (5, "0", "0", (0, 1)),
            (2, "100%", "5", (2, 2)),
            (0, "25%", "25%", (0, 0)),
        ] {
            let spec = spec(replicas, surge, unavailable);
            assert_eq!((max_surge(&spec), max_unavailable(&spec)), expected, "{replicas} {surge} {unavailable}");
        }
    }
}
