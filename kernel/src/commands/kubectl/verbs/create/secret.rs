//! `kubectl create secret`

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::super::super::failure::Outcome;
use super::super::super::flags::{switch, text};
use super::super::super::verb::{Call, Verb};
use super::sources::{self, FROM_ENV_FILE, FROM_FILE, FROM_LITERAL};
use super::{create_flags, generated, name_of};

pub const GENERIC: Verb = Verb {
    name: "create secret",
    aliases: &[],
    about: "Create a secret using a specified subcommand",
    usage: "create secret generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1] [--dry-run=server|client|none] [options]",
    flags: create_flags![
        FROM_LITERAL,
        FROM_FILE,
        FROM_ENV_FILE,
        switch("append-hash"),
        text("type"),
        text("docker-server"),
        text("docker-username"),
        text("docker-password"),
        text("docker-email"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let sort = if call.parsed.args.is_empty() { String::new() } else { call.parsed.args.remove(0) };
    call.command = format!("kubectl create secret {sort}");
    match sort.as_str() {
        "generic" => generic(call),
        "docker-registry" => docker_registry(call),
        _ => Err(super::super::super::failure::Failure::Raw(format!(
            "error: unknown command {sort:?}\nSee 'kubectl create secret -h' for help and examples"
        ))),
    }
}

fn encoded(text: &str) -> Value {
    serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap_or_default()
}

fn generic(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call).map_err(|failure| pointed_at(failure, "generic"))?;
    let data = sources::data(call, &format!("Secret {name:?}"))?;
    let mut secret = json!({"metadata": {"name": name}});
    if !data.is_empty() {
        secret["data"] = data.iter().map(|(key, value)| (key.clone(), encoded(value))).collect();
    }
    if let Some(type_) = call.parsed.text("type") {
        secret["type"] = type_.into();
    }
    generated::<Secret>(call, secret, "failed to create secret ")
}

fn docker_registry(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call).map_err(|failure| pointed_at(failure, "docker-registry"))?;
    let text = |flag: &str| call.parsed.text(flag).unwrap_or_default().to_owned();
    let (user, password, email) = (text("docker-username"), text("docker-password"), text("docker-email"));
    let server = call.parsed.text("docker-server").unwrap_or("https://index.docker.io/v1/");
    let authorization = encoded(&format!("{user}:{password}"));
    let field = |name: &str, value: Value| format!("{name:?}:{value}");
    let mut fields = vec![field("username", user.into()), field("password", password.into())];
    if !email.is_empty() {
        fields.push(field("email", email.into()));
    }
    fields.push(field("auth", authorization));
    let config = format!("{{\"auths\":{{{server:?}:{{{}}}}}}}", fields.join(","));
    let secret = json!({
        "metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": encoded(&config)},
    });
    generated::<Secret>(call, secret, "failed to create secret ")
}

/// The help that is pointed to is that of the word under `secret`.
fn pointed_at(failure: super::super::super::failure::Failure, word: &str) -> super::super::super::failure::Failure {
    use super::super::super::failure::Failure;
    match failure {
        Failure::Usage(text) => {
            Failure::Message(format!("{text}\nSee 'kubectl create secret {word} -h' for help and examples"))
        }
        other => other,
    }
}
