//! The variables of a container.
//! <https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/>

use k8s_openapi::api::core::v1::{Container as ContainerSpec, EnvVarSource, Pod, Service};

use super::payload::{self, Data};
use super::{Turn, fields};
use crate::api::Name;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::runtime::volumes::VolumeId;

/// Variables in the order in which they are set: a later one of the same name has taken the place of an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Variables(Vec<(String, String)>);

impl Variables {
    pub fn set(&mut self, name: String, value: String) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }

    /// A text in which `$(NAME)` is what the variable says, if there is one, and `$$` is `$`.
    /// <https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/>
    pub fn expand(&self, text: &str) -> String {
        let (mut out, mut left) = (String::new(), text);
        while let Some(at) = left.find('$') {
            out.push_str(&left[..at]);
            left = &left[at + 1..];
            if let Some(after) = left.strip_prefix('$') {
                out.push('$');
                left = after;
            } else if let Some((name, after)) = left.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
                match self.get(name) {
                    Some(value) => out.push_str(value),
                    None => out.push_str(&format!("$({name})")),
                }
                left = after;
            } else {
                out.push('$');
            }
        }
        out + left
    }
}

/// What the container's spec says, behind `known`; the error says what is missing.
pub fn of_container(
    spec: &ContainerSpec,
    pod: &Object,
    mut known: Variables,
    turn: &mut Turn<'_>,
) -> Result<Variables, String> {
    for source in spec.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let data = if let Some(reference) = &source.config_map_ref {
            payload::config_map(pod, &reference.name, reference.optional == Some(true), turn)?
        } else if let Some(reference) = &source.secret_ref {
            payload::secret(pod, &reference.name, reference.optional == Some(true), turn)?
        } else {
            continue;
        };
        data.into_iter().for_each(|(name, value)| known.set(format!("{prefix}{name}"), value));
    }
    for variable in spec.env.iter().flatten() {
        let value = match &variable.value_from {
            None => Some(known.expand(variable.value.as_deref().unwrap_or_default())),
            Some(source) => from_source(source, spec, pod, turn)?,
        };
        if let Some(value) = value {
            known.set(variable.name.clone(), value);
        }
    }
    Ok(known)
}

fn from_source(
    source: &EnvVarSource,
    spec: &ContainerSpec,
    pod: &Object,
    turn: &mut Turn<'_>,
) -> Result<Option<String>, String> {
    let namespace = &pod.key.namespace;
    if let Some(reference) = &source.config_map_key_ref {
        let optional = reference.optional == Some(true);
        let data = payload::config_map(pod, &reference.name, optional, turn)?;
        return key(data, &reference.key, optional, || format!("ConfigMap {namespace}/{}", reference.name));
    }
    if let Some(reference) = &source.secret_key_ref {
        let optional = reference.optional == Some(true);
        let data = payload::secret(pod, &reference.name, optional, turn)?;
        return key(data, &reference.key, optional, || format!("Secret {namespace}/{}", reference.name));
    }
    if let Some(reference) = &source.file_key_ref {
        let volume = VolumeId::of_pod(&Name::from(pod.uid()), &reference.volume_name);
        let text = turn.runtime.volume(&volume).and_then(|files| files.read(&reference.path));
        let optional = reference.optional == Some(true);
        let lines = text.unwrap_or_default().lines().filter_map(|line| line.trim().split_once('='));
        let data = lines.map(|(name, value)| (name.to_owned(), value.trim_matches(['\'', '"']).to_owned())).collect();
        return key(data, &reference.key, optional, || format!("file {}", reference.path));
    }
    if let Some(selector) = &source.resource_field_ref {
        return Ok(Some(fields::of_container(spec, selector, turn)));
    }
    Ok(source.field_ref.as_ref().and_then(|field| fields::of_pod(pod, &field.field_path, turn)))
}

fn key(data: Data, key: &str, optional: bool, place: impl Fn() -> String) -> Result<Option<String>, String> {
    match data.into_iter().find(|(known, _)| known == key) {
        Some((_, value)) => Ok(Some(value)),
        None if optional => Ok(None),
        None => Err(format!("couldn't find key {key} in {}", place())),
    }
}

/// How the Services of the pod's namespace are told to its containers, and the apiserver's own.
/// <https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables>
pub fn of_services(pod: &Object, turn: &mut Turn<'_>) -> Variables {
    let mut variables = Variables::default();
    let spec = pod.spec::<Pod>();
    let mut services = Vec::new();
    if spec.enable_service_links != Some(false) && *pod.key.namespace != *"default" {
        services.extend(services_in(&pod.key.namespace, turn));
    }
    let all = spec.enable_service_links != Some(false) && *pod.key.namespace == *"default";
    services.extend(services_in("default", turn).into_iter().filter(|one| all || *one.key.name == *"kubernetes"));
    for service in services {
        let of = service.spec::<Service>();
        let Some(ip) = of.cluster_ip.as_deref().filter(|ip| !matches!(*ip, "" | "None")) else { continue };
        let upper = |text: &str| text.to_uppercase().replace(['-', '.'], "_");
        let name = upper(&service.key.name);
        for (index, port) in of.ports.iter().flatten().enumerate() {
            let number = port.port;
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let (word, url) = (protocol.to_lowercase(), format!("{}://{ip}:{number}", protocol.to_lowercase()));
            if index == 0 {
                variables.set(format!("{name}_SERVICE_HOST"), ip.to_owned());
                variables.set(format!("{name}_SERVICE_PORT"), number.to_string());
                variables.set(format!("{name}_PORT"), url.clone());
            }
            if let Some(port_name) = port.name.as_deref().filter(|name| !name.is_empty()) {
                variables.set(format!("{name}_SERVICE_PORT_{}", upper(port_name)), number.to_string());
            }
            let prefix = format!("{name}_PORT_{number}_{protocol}");
            variables.set(prefix.clone(), url);
            variables.set(format!("{prefix}_PROTO"), word);
            variables.set(format!("{prefix}_PORT"), number.to_string());
            variables.set(format!("{prefix}_ADDR"), ip.to_owned());
        }
    }
    variables
}

fn services_in(namespace: &str, turn: &mut Turn<'_>) -> Vec<Object> {
    let answer = turn.world.request(Request::list::<Service>(turn.actor, namespace));
    answer.map(|answer| answer.items()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_may_refer_to_those_before_them() {
        let mut variables = Variables::default();
        variables.set("HOST".into(), "db".into());
        assert_eq!(variables.expand("http://$(HOST):$(PORT)/$$(HOST) $x"), "http://db:$(PORT)/$(HOST) $x");
        variables.set("HOST".into(), "other".into());
        assert_eq!(variables.expand("$(HOST)$"), "other$");
    }
}
