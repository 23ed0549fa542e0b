//! What a cluster has from its first moment on.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Service};
use serde_json::json;

use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::apiserver::access::bootstrap;
use crate::certificates;
use crate::controllers::root_ca;
use crate::random::Random;
use crate::trace::Actor;
use crate::world::World;

/// What a new cluster has before anybody uses it.
pub(super) fn fill(world: &mut World, seed: u64) {
    // Their uids are drawn apart, so that adding one changes nothing else of a run.
    let mut random = Random::new(!seed);
    for object in bootstrap::objects(world.now, &mut random) {
        world.apiserver.store.seed(object);
    }
    for mut object in told_by_apiserver(world) {
        let metadata = object.metadata_mut();
        metadata.uid = Some(random.uuid());
        metadata.creation_timestamp = Some(world.now.to_meta());
        world.apiserver.store.seed(object);
    }
    let actor: Actor = "kube-apiserver".into();
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let namespace = Object::new::<Namespace>("", name, Default::default());
        // A new store refuses nothing.
        let _ = world.request(Request::create(&actor, namespace).because("every cluster has it"));
    }
    let service = json!({
        "metadata": {"name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
    });
    if let Ok(service) = Object::from_json(KindRef::of::<Service>(), service) {
        let _ = world.request(Request::create(&actor, service).because("pods reach the API through it"));
    }
    debug_assert_eq!(world.apiserver.store.list(KindRef::of::<Node>(), "").count(), 0);
}

/// What kube-apiserver tells other components about itself: whose certificates it trusts, and since when it has noted the
/// use of ServiceAccount tokens that do not expire.
fn told_by_apiserver(world: &World) -> [Object; 2] {
    let authority = world.apiserver.authority.as_deref().map(certificates::authority);
    let authority = authority.map_or_else(|| root_ca::CERTIFICATE.to_owned(), |der| certificates::pem(&der));
    let today = world.now.timestamp().strftime("%Y-%m-%d").to_string();
    let map = |name: &str, field: &str, value: String| {
        let data = Some([(field.to_owned(), value)].into());
        Object::new::<ConfigMap>("kube-system", name, ConfigMap { data, ..ConfigMap::default() })
    };
    [
        map("extension-apiserver-authentication", "client-ca-file", authority),
        map("kube-apiserver-legacy-service-account-token-tracking", "since", today),
    ]
}
