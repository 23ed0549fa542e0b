use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::apiserver::strategies::testing::Api;

fn service(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn port(number: i32) -> Value {
    json!([{"port": number}])
}

#[test]
fn what_belongs_to_a_type_comes_and_goes_with_it() {
    let mut api = Api::new::<Service>();
    let first = api.create(service("web", json!({"ports": port(80)}))).unwrap();
    assert_eq!(first["spec"]["clusterIPs"], json!([first["spec"]["clusterIP"]]));
    assert_eq!(first["spec"]["internalTrafficPolicy"], "Cluster");
    let external = api.merge("web", json!({"spec": {"type": "ExternalName", "externalName": "x.io"}})).unwrap();
    assert_eq!(
        external["spec"],
        json!({
            "externalName": "x.io", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "sessionAffinity": "None", "type": "ExternalName",
        })
    );
    let back = api.merge("web", json!({"spec": {"type": "NodePort", "externalName": null}})).unwrap();
    assert!(back["spec"]["clusterIP"].is_string() && back["spec"]["ports"][0]["nodePort"].is_i64());
    let plain = api.merge("web", json!({"spec": {"type": "ClusterIP"}})).unwrap();
    assert_eq!(plain["spec"]["clusterIP"], back["spec"]["clusterIP"]);
    assert_eq!(plain["spec"].get("externalTrafficPolicy"), None);
    assert_eq!(plain["spec"]["ports"][0].get("nodePort"), None);
}

#[test]
fn addresses_and_ports_are_given_out_once_and_are_free_again() {
    let mut api = Api::new::<Service>();
    api.create(service("a", json!({"clusterIP": "10.96.0.77", "ports": port(80)}))).unwrap();
    let again = json!({"clusterIP": "10.96.0.77", "ports": port(80)});
    assert_eq!(
        api.refusal(service("b", again.clone())),
        [
            "spec.clusterIPs: Invalid value: [\"10.96.0.77\"]: failed to allocate IP 10.96.0.77: provided IP is already allocated"
        ]
    );
    assert_eq!(
        api.refusal(service("b", json!({"clusterIP": "10.1.0.1", "ports": port(80)}))),
        [
            "spec.clusterIPs: Invalid value: [\"10.1.0.1\"]: failed to allocate IP 10.1.0.1: the provided network does not \
          match the current range"
        ]
    );
    api.delete("a").unwrap();
    api.create(service("b", again)).unwrap();
    let ports = json!([{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]);
    let dns = api.create(service("dns", json!({"type": "NodePort", "ports": ports}))).unwrap();
    assert_eq!(dns["spec"]["ports"][0]["nodePort"], dns["spec"]["ports"][1]["nodePort"]);
    let low = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]});
    assert_eq!(
        api.refusal(service("c", low)),
        [
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is \
          30000-32767"
        ]
    );
}

#[test]
fn a_cluster_ip_stays_and_a_put_without_it_keeps_it() {
    let mut api = Api::new::<Service>();
    let made = api.create(service("a", json!({"type": "NodePort", "ports": port(80)}))).unwrap();
    let change = json!({"spec": {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}});
    assert_eq!(
        api.merge_refusal("a", change),
        ["spec.clusterIPs[0]: Invalid value: [\"10.96.0.9\"]: may not change once set"]
    );
    let put = api.put(service("a", json!({"type": "NodePort", "ports": port(81)}))).unwrap();
    for field in ["/spec/clusterIP", "/spec/ports/0/nodePort"] {
        assert_eq!(put.pointer(field), made.pointer(field), "{field}");
    }
}

#[test]
fn a_headless_service_without_selector_may_have_both_families() {
    let mut api = Api::new::<Service>();
    let made = api.create(service("a", json!({"clusterIP": "None"}))).unwrap();
    assert_eq!(made["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(made["spec"]["ipFamilyPolicy"], "RequireDualStack");
    let two = json!({"ipFamilyPolicy": "RequireDualStack", "ports": port(80)});
    assert_eq!(
        api.refusal(service("b", two)),
        [
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services"
        ]
    );
}

#[test]
fn wrong_ports_and_types_are_named() {
    let mut api = Api::new::<Service>();
    assert_eq!(api.refusal(service("a", json!({}))), ["spec.ports: Required value"]);
    let twice = json!({"ports": [{"name": "a", "port": 80}, {"name": "a", "port": 81}, {"name": "b", "port": 80}]});
    assert_eq!(
        api.refusal(service("a", twice)),
        [
            "spec.ports[1].name: Duplicate value: \"a\"",
            "spec.ports[2]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\
             \"TargetPort\":0,\"NodePort\":0}",
        ]
    );
    let local = json!({"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000, "ports": port(80)});
    assert_eq!(
        api.refusal(service("a", local)),
        [
            "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services",
            "spec.healthCheckNodePort: Invalid value: 31000: may only be set when `type` is 'LoadBalancer' and \
             `externalTrafficPolicy` is 'Local'",
        ]
    );
}
