//! Tokens of ServiceAccounts: signed claims about who bears them, good until they expire or what they are bound to goes.
//! <https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens>

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, Pod, Secret, ServiceAccount};
use serde_json::{Map, Value, json};

use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::{Answer, Request, Response};
use crate::api::status::{Cause, Status};
use crate::api::user::{User, service_account_name};
use crate::apiserver::{ApiServer, Moment, decode, read};
use crate::clock::Time;

pub const ISSUER: &str = "https://kubernetes.default.svc";
/// The issuer of tokens that are kept in Secrets.
const SECRET_ISSUER: &str = "kubernetes/serviceaccount";
const EXPIRATION_SECONDS: i64 = 3600;
const EXPIRATION_SECONDS_MIN: i64 = 600;
const EXPIRATION_SECONDS_MAX: i64 = 1 << 32;
/// What kubelets ask for. Such a token lives for a year and warns after the time that was asked for.
const KUBELET_SECONDS: i64 = 3607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;
/// Clocks may differ by so much.
const LEEWAY_SECONDS: i64 = 60;

/// The key of the issuer. The same message gives the same signature.
pub trait TokenSigner: fmt::Debug + Send + Sync {
    fn sign(&self, message: &[u8]) -> Vec<u8>;

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool;

    /// The public half as a JSON Web Key, with `alg` and `kid`.
    fn public_key(&self) -> Value;
}

/// `serviceaccounts/NAME/token`: issues a token.
pub fn issue(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let body = Request { kind: TokenRequest::kind().clone(), ..request.clone() };
    let (mut asked, warnings) = decode::body(&body)?;
    let account = read::existing(server, request)?;
    let name = &account.key.name;
    check_place(&asked, &account)?;
    if !asked.uid().is_empty() && asked.uid() != account.uid() {
        let detail = format!(
            "the UID in the token request ({}) does not match the UID of the service account ({})",
            asked.uid(),
            account.uid()
        );
        return Err(Status::precondition_failed(TokenRequest::kind(), name, &detail));
    }
    let spec = asked.spec_mut::<TokenRequest>();
    if spec.audiences.as_ref().is_none_or(Vec::is_empty) {
        spec.audiences = Some(vec![ISSUER.into()]);
    }
    let seconds = *spec.expiration_seconds.get_or_insert(EXPIRATION_SECONDS);
    check_expiration(seconds)?;
    let spec = spec.clone();
    let bound = bound_objects(server, name, &account.key.namespace, &spec)?;

    let now = moment.now.timestamp().as_second();
    let of_kubelet = seconds == KUBELET_SECONDS && bound.iter().any(|(field, _)| *field == "pod");
    let own_audience = spec.audiences.as_deref().is_some_and(|audiences| audiences.iter().any(|one| one == ISSUER));
    let mut private = Map::from_iter([
        ("namespace".to_owned(), json!(&*account.key.namespace)),
        ("serviceaccount".to_owned(), json!({"name": &**name, "uid": account.uid()})),
    ]);
    private.extend(bound.into_iter().map(|(field, reference)| (field.to_owned(), reference)));
    let lifetime = if of_kubelet && own_audience {
        private.insert("warnafter".into(), (now + seconds).into());
        EXTENDED_SECONDS
    } else {
        seconds
    };
    let claims = json!({
        "iss": ISSUER, "aud": spec.audiences, "sub": service_account_name(&account.key.namespace, name),
        "iat": now, "nbf": now, "exp": now + lifetime, "jti": moment.random.uuid(), "kubernetes.io": private,
    });
    let signer = server.signer.as_ref().ok_or_else(|| Status::internal("there is no key to sign tokens with"))?;
    let status = asked.status_mut::<TokenRequest>();
    status.token = Some(sign(&**signer, &claims));
    status.expiration_timestamp = Some((moment.now + Duration::from_secs(seconds.unsigned_abs())).to_meta());
    asked.rename(account.key.clone());
    asked.metadata_mut().uid = account.metadata().uid.clone();
    asked.metadata_mut().creation_timestamp = Some(moment.now.to_meta());
    Ok(Response::Object(Answer { object: asked, created: true, deleted: false, warnings: warnings.into() }))
}

fn check_place(asked: &Object, account: &Object) -> Result<(), Status> {
    let metadata = asked.metadata();
    let differs = |said: &Option<String>, is: &str| said.as_deref().is_some_and(|said| !said.is_empty() && said != is);
    let refused = |field: &str, said: &Option<String>, detail: &str| {
        let cause = Cause::invalid(field, said.clone(), detail);
        Err(Status::invalid(TokenRequest::kind(), &account.key.name, vec![cause]))
    };
    if differs(&metadata.name, &account.key.name) {
        return refused("metadata.name", &metadata.name, "must match the service account name if specified");
    }
    if differs(&metadata.namespace, &account.key.namespace) {
        let detail = "must match the service account namespace if specified";
        return refused("metadata.namespace", &metadata.namespace, detail);
    }
    Ok(())
}

fn check_expiration(seconds: i64) -> Result<(), Status> {
    let detail = if seconds < EXPIRATION_SECONDS_MIN {
        "may not specify a duration less than 10 minutes"
    } else if seconds > EXPIRATION_SECONDS_MAX {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let cause = Cause::invalid("spec.expirationSeconds", seconds, detail);
    Err(Status::invalid(TokenRequest::kind(), "", vec![cause]))
}

/// What the token lives and dies with: the fields of its claims.
fn bound_objects(
    server: &ApiServer,
    account: &str,
    namespace: &str,
    spec: &TokenRequestSpec,
) -> Result<Vec<(&'static str, Value)>, Status> {
    let Some(reference) = &spec.bound_object_ref else { return Ok(Vec::new()) };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (version, kind, name) = (text(&reference.api_version), text(&reference.kind), text(&reference.name));
    let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
    let mut bound = Vec::new();
    let object = match (group, kind.as_str()) {
        ("", "Pod") => {
            let pod = existing::<Pod>(server, namespace, &name)?;
            let runs_as = pod.spec::<Pod>().service_account_name.as_deref().unwrap_or_default();
            if runs_as != account {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                )));
            }
            if let Some(node) = &pod.spec::<Pod>().node_name {
                let known = server.store.get(KindRef::of::<Node>(), &Key::cluster(node.as_str()));
                let uid = known.map(|node| node.uid().to_owned());
                bound.push(("node", json!({"name": node, "uid": uid})));
            }
            bound.push(("pod", claim(pod)));
            pod
        }
        ("", "Secret") => {
            let secret = existing::<Secret>(server, namespace, &name)?;
            bound.push(("secret", claim(secret)));
            secret
        }
        ("", "Node") => {
            let node = existing::<Node>(server, "", &name)?;
            bound.push(("node", claim(node)));
            node
        }
        _ => {
            let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(Status::bad_request(message));
        }
    };
    match reference.uid.as_deref() {
        Some(uid) if !uid.is_empty() && uid != object.uid() => {
            let detail = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            let mut status = Status::conflict(&object.kind, &name, &detail);
            // The conflict speaks of the kind where others name the resource.
            let resource = object.kind.resource.to_string();
            status.message = status.message.replacen(&resource, &kind, 1);
            status.details.get_or_insert_default().kind = kind;
            Err(status)
        }
        _ => Ok(bound),
    }
}

fn existing<'a, K: Resource>(server: &'a ApiServer, namespace: &str, name: &str) -> Result<&'a Object, Status> {
    let found = server.store.get(KindRef::of::<K>(), &Key::new(namespace, name));
    found.ok_or_else(|| Status::not_found(KindRef::of::<K>(), name))
}

fn claim(object: &Object) -> Value {
    json!({"name": &*object.key.name, "uid": object.uid()})
}

/// A JSON Web Token (RFC 7519).
fn sign(signer: &dyn TokenSigner, claims: &Value) -> String {
    let key = signer.public_key();
    let header = json!({"alg": key["alg"], "kid": key["kid"]});
    let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let message = format!("{}.{}", part(&header), part(claims));
    let signature = BASE64URL_NOPAD.encode(&signer.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

/// The token that a Secret of the type `kubernetes.io/service-account-token` keeps for the account that its annotations
/// name. It is good as long as both are there.
pub fn of_secret(signer: &dyn TokenSigner, secret: &Object) -> String {
    let account = secret.annotation("kubernetes.io/service-account.name").unwrap_or_default();
    let claims = json!({
        "iss": SECRET_ISSUER,
        "sub": service_account_name(&secret.key.namespace, account),
        "kubernetes.io/serviceaccount/namespace": &*secret.key.namespace,
        "kubernetes.io/serviceaccount/secret.name": &*secret.key.name,
        "kubernetes.io/serviceaccount/service-account.name": account,
        "kubernetes.io/serviceaccount/service-account.uid": secret.annotation("kubernetes.io/service-account.uid"),
    });
    sign(signer, &claims)
}

/// A token that holds: who bears it and whom it is meant for.
pub struct Bearer {
    pub user: User,
    pub audiences: Vec<String>,
}

/// Finds out who bears a token, now. `audiences`: of whom one must be meant; the API server itself if there are none.
///
/// # Errors
/// Why it does not hold.
pub fn authenticate(server: &ApiServer, token: &str, audiences: &[String], now: Time) -> Result<Bearer, String> {
    let claims = server.signer.as_deref().and_then(|signer| verified(signer, token));
    let claims = claims.ok_or("invalid bearer token")?;
    let invalid = |reason: &str| format!("[invalid bearer token, {reason}]");
    if claims["iss"] == SECRET_ISSUER {
        let user = bearer_of_secret(server, &claims, token).map_err(|reason| invalid(&reason))?;
        return Ok(Bearer { user, audiences: audiences.to_vec() });
    } else if claims["iss"] != ISSUER {
        return Err("invalid bearer token".into());
    }
    let meant: Vec<String> = serde_json::from_value(claims["aud"].clone()).unwrap_or_default();
    let own = [ISSUER.to_owned()];
    let wanted = if audiences.is_empty() { &own } else { audiences };
    let audiences: Vec<String> = wanted.iter().filter(|audience| meant.contains(audience)).cloned().collect();
    if audiences.is_empty() {
        let reason = format!("token audiences {meant:?} is invalid for the target audiences {wanted:?}");
        return Err(invalid(&reason.replace("\", \"", "\" \"")));
    }
    let now = now.timestamp().as_second();
    let second = |claim: &str| claims[claim].as_i64().unwrap_or(i64::MIN);
    if now - LEEWAY_SECONDS > second("exp") {
        return Err(invalid("service account token has expired"));
    }
    if now + LEEWAY_SECONDS < second("nbf") {
        return Err(invalid("service account token is not valid yet"));
    }
    bearer(server, &claims).map(|user| Bearer { user, audiences }).map_err(|reason| invalid(&reason))
}

/// The claims of a token that was signed by this key.
fn verified(signer: &dyn TokenSigner, token: &str) -> Option<Value> {
    let (message, signature) = token.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    let part = |text: &str| serde_json::from_slice::<Value>(&BASE64URL_NOPAD.decode(text.as_bytes()).ok()?).ok();
    let (header, key) = (part(header)?, signer.public_key());
    let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?;
    let right = header["alg"] == key["alg"] && signer.verifies(message.as_bytes(), &signature);
    right.then(|| part(claims)).flatten()
}

/// The user of claims whose ServiceAccount and bound objects are still those.
fn bearer(server: &ApiServer, claims: &Value) -> Result<User, String> {
    let claimed = |path: &str| claims["kubernetes.io"].pointer(path).and_then(Value::as_str).unwrap_or_default();
    let namespace = claimed("/namespace");
    let name = claimed("/serviceaccount/name");
    let account = existing::<ServiceAccount>(server, namespace, name).map_err(|status| status.message)?;
    let uid = claimed("/serviceaccount/uid");
    if account.uid() != uid {
        return Err(format!("service account UID ({}) does not match claim ({uid})", account.uid()));
    }
    let bound = [
        ("pod", existing::<Pod>(server, namespace, claimed("/pod/name"))),
        ("secret", existing::<Secret>(server, namespace, claimed("/secret/name"))),
    ];
    for (field, found) in bound {
        if claims["kubernetes.io"].get(field).is_none() {
            continue;
        }
        let object = found.map_err(|_| "service account token has been invalidated")?;
        let uid = claimed(&format!("/{field}/uid"));
        if object.uid() != uid {
            let shown = if field == "pod" { "pod" } else { "secret" };
            return Err(format!(
                "{shown} UID ({}) does not match service account {shown} ref claim ({uid})",
                object.uid()
            ));
        }
    }
    // A token for a node alone goes with it; that of a pod outlives a node's return under its name.
    if claims["kubernetes.io"].get("pod").is_none() && claims["kubernetes.io"].get("node").is_some() {
        let node = existing::<Node>(server, "", claimed("/node/name"));
        let node = node.map_err(|_| "service account token has been invalidated")?;
        let uid = claimed("/node/uid");
        if node.uid() != uid {
            return Err(format!("node UID ({}) does not match service account node ref claim ({uid})", node.uid()));
        }
    }
    let mut user = User { uid: uid.to_owned(), ..User::service_account(namespace, name) };
    let jti = claims["jti"].as_str().map(|jti| format!("JTI={jti}")).unwrap_or_default();
    let known = [
        ("credential-id", jti.as_str()),
        ("node-name", claimed("/node/name")),
        ("node-uid", claimed("/node/uid")),
        ("pod-name", claimed("/pod/name")),
        ("pod-uid", claimed("/pod/uid")),
    ];
    for (key, value) in known.into_iter().filter(|(_, value)| !value.is_empty()) {
        user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
    }
    Ok(user)
}

/// The user of a token that a Secret still keeps, for an account that is still that one.
fn bearer_of_secret(server: &ApiServer, claims: &Value, token: &str) -> Result<User, String> {
    let claimed = |name: &str| claims[format!("kubernetes.io/serviceaccount/{name}")].as_str().unwrap_or_default();
    let (namespace, name) = (claimed("namespace"), claimed("service-account.name"));
    let invalidated = || "service account token has been invalidated".to_owned();
    let secret = existing::<Secret>(server, namespace, claimed("secret.name")).map_err(|_| invalidated())?;
    let kept = secret.spec::<Secret>().data.as_ref().and_then(|data| data.get("token"));
    if secret.is_terminating() || kept.is_none_or(|kept| kept.0 != token.as_bytes()) {
        return Err(invalidated());
    }
    let account = existing::<ServiceAccount>(server, namespace, name).map_err(|status| status.message)?;
    let uid = claimed("service-account.uid");
    if account.is_terminating() || account.uid() != uid {
        return Err(format!("service account UID ({}) does not match claim ({uid})", account.uid()));
    }
    Ok(User { uid: uid.to_owned(), ..User::service_account(namespace, name) })
}

/// What tells others how to check tokens: the discovery document of OpenID Connect, and its keys.
pub fn openid_configuration(server: &ApiServer, keys_url: &str) -> Value {
    let key = server.signer.as_deref().map(TokenSigner::public_key).unwrap_or_default();
    json!({
        "issuer": ISSUER, "jwks_uri": keys_url, "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": [key["alg"]],
    })
}

pub fn keys(server: &ApiServer) -> Value {
    let keys: Vec<Value> = server.signer.iter().map(|signer| signer.public_key()).collect();
    json!({"keys": keys})
}

/// A signer that others can hold, too.
pub type SharedSigner = Arc<dyn TokenSigner>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::request::{Body, Verb};
    use crate::{Cluster, Config};

    /// Signs nothing away.
    #[derive(Debug)]
    struct Echo;

    impl TokenSigner for Echo {
        fn sign(&self, message: &[u8]) -> Vec<u8> {
            message.to_vec()
        }

        fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
            message == signature
        }

        fn public_key(&self) -> Value {
            json!({"alg": "echo", "kid": "1"})
        }
    }

    #[test]
    fn a_token_request_is_answered_with_the_account_that_it_is_about() {
        let mut cluster = Cluster::new(Config { nodes: 0, signer: Some(Arc::new(Echo)), ..Config::default() });
        let actor = "kubectl".into();
        let account =
            Object::from_json(ServiceAccount::kind(), json!({"metadata": {"name": "a", "namespace": "default"}}));
        let account = cluster.request(Request::create(&actor, account.unwrap())).unwrap().object().unwrap();
        let mut ask = |metadata: Value| {
            let key = Key::new("default", "a");
            let mut request = Request::new(&actor, Verb::Create, ServiceAccount::kind(), key);
            request.subresource = "token";
            request.body = Body::Json(json!({"metadata": metadata, "spec": {}}));
            cluster.request(request).map(|response| response.object().unwrap().to_json())
        };
        let answer = ask(json!({})).unwrap();
        assert_eq!(answer["metadata"]["uid"], account.uid());
        assert_eq!(answer["spec"], json!({"audiences": [ISSUER], "boundObjectRef": null, "expirationSeconds": 3600}));
        let refused = ask(json!({"uid": "other"})).unwrap_err();
        assert_eq!(
            refused.message,
            format!(
                "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"a\": the UID in the token request \
                 (other) does not match the UID of the service account ({})",
                account.uid()
            )
        );
    }
}
