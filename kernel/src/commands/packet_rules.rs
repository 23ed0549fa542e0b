//! `iptables-save`, `ipvsadm` and `nft`: the rules that kube-proxy has left in the kernel of a node, as the tools of each of
//! its modes print them. Typed in a node's shell: `node-1$ iptables-save -t nat`.
//! <https://kubernetes.io/docs/reference/networking/virtual-ips/>

use cluster_core::clock::Time;
use cluster_core::network::proxy::Proxy;
use cluster_core::network::{iptables, ipvs, nftables};

use super::{Context, Program};

/// A tool that prints what a node's kernel holds.
pub struct Tool {
    name: &'static str,
    about: &'static str,
    /// What it prints for the words behind its name, or why it can't.
    print: fn(&[&str], &Proxy, Time) -> Result<String, String>,
}

pub const IPTABLES_SAVE: Tool =
    Tool { name: "iptables-save", about: "prints the iptables rules of a node", print: iptables_save };
pub const IPVSADM: Tool = Tool { name: "ipvsadm", about: "prints the virtual servers of a node", print: ipvsadm };
pub const NFT: Tool = Tool { name: "nft", about: "prints the nftables rules of a node", print: nft };

impl Program for Tool {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32 {
        let name = self.name;
        let node = context.node.clone().unwrap_or_default();
        let now = context.api.now();
        let machine = context.api.cluster().and_then(|cluster| cluster.machine(&node));
        let Some(machine) = machine.filter(|machine| machine.powered) else {
            context.error_line(match node.as_str() {
                "" => format!("{name}: this runs on a node; write its name before the command: node-1$ {name}"),
                node => format!("{name}: node {node:?} can't be reached"),
            });
            return 1;
        };
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        match (self.print)(&words, &machine.proxy, now) {
            Ok(text) => {
                context.print(text);
                0
            }
            Err(problem) => {
                context.error_line(problem);
                1
            }
        }
    }
}

fn iptables_save(words: &[&str], proxy: &Proxy, now: Time) -> Result<String, String> {
    let tables = match words {
        [] => iptables::TABLES.to_vec(),
        ["-t" | "--table", table] => vec![*table],
        [word] if word.starts_with("--table=") => vec![&word["--table=".len()..]],
        _ => return Err("usage: iptables-save [-t filter|nat]".into()),
    };
    let save = |table: &str| {
        let unknown = || format!("iptables-save: kube-proxy has no rules in table {table:?}: expected filter or nat");
        iptables::save(proxy, table, now).ok_or_else(unknown)
    };
    tables.into_iter().map(save).collect()
}

fn ipvsadm(words: &[&str], proxy: &Proxy, _: Time) -> Result<String, String> {
    let is_list = |word: &str| matches!(word, "-L" | "-l" | "--list" | "-Ln" | "-ln");
    let is_known = |word: &str| is_list(word) || matches!(word, "-n" | "--numeric");
    let lists = words.is_empty() || words.iter().any(|word| is_list(word));
    if !lists || !words.iter().all(|word| is_known(word)) {
        return Err("usage: ipvsadm -Ln".into());
    }
    Ok(ipvs::list(proxy))
}

fn nft(words: &[&str], proxy: &Proxy, _: Time) -> Result<String, String> {
    let table = nftables::list(proxy);
    match words {
        ["list", "ruleset"] | ["list", "ruleset", "ip"] => Ok(table.unwrap_or_default()),
        ["list", "tables"] => Ok(table.map(|_| "table ip kube-proxy\n".to_owned()).unwrap_or_default()),
        ["list", "table", "ip", "kube-proxy"] | ["list", "table", "kube-proxy"] => table.ok_or_else(|| {
            "Error: No such file or directory\nlist table ip kube-proxy\n              ^^^^^^^^^^".into()
        }),
        ["list", what @ ("chain" | "map" | "set"), "ip", "kube-proxy", name] => {
            let part = table.as_deref().and_then(|table| part(table, &format!("\t{what} {name} {{")));
            part.ok_or_else(|| format!("Error: No such file or directory\nlist {what} ip kube-proxy {name}"))
        }
        _ => Err("usage: nft list ruleset | tables | table ip kube-proxy | chain|map|set ip kube-proxy NAME".into()),
    }
}

/// One chain, map or set of a table, within the table's braces.
fn part(table: &str, head: &str) -> Option<String> {
    let begin = table.lines().position(|line| line == head)?;
    let lines: Vec<&str> = table.lines().skip(begin).collect();
    let end = lines.iter().position(|line| *line == "\t}")?;
    Some(format!("table ip kube-proxy {{\n{}\n}}\n", lines[..=end].join("\n")))
}

#[cfg(test)]
mod tests {
    use cluster_core::network::rules::Mode;
    use cluster_core::{Cluster, Config};

    use super::super::shell;
    use super::*;
    use crate::commands::files::Memory;

    fn run(cluster: &mut Cluster, code: &str) -> String {
        let mut files = Memory::default();
        let mut context = Context::new(cluster, &mut files);
        let mut screen = String::new();
        shell::run(code, &mut context, &mut |_, text| screen.push_str(&text)).unwrap();
        screen
    }

    #[test]
    fn each_mode_has_its_tool() {
        let mut cluster = Cluster::new(Config { nodes: 1, ..Config::default() });
        run(
            &mut cluster,
            "kubectl create deployment web --image=nginx:1.27\nkubectl expose deployment web --port=80\n\
             kubectl wait --for=condition=Available deployment/web",
        );
        cluster.advance(std::time::Duration::from_secs(5), |_| true);
        let saved = run(&mut cluster, "node-1$ iptables-save -t nat | grep 'default/web ->'");
        assert!(saved.starts_with("-A KUBE-SVC-LOLE4ISW44XBNF3G -m comment"), "{saved}");
        assert_eq!(run(&mut cluster, "node-1$ nft list ruleset"), "");
        cluster.set_proxy_mode(Mode::Ipvs);
        cluster.advance(std::time::Duration::from_secs(5), |_| true);
        assert!(run(&mut cluster, "node-1$ ipvsadm -Ln").contains(":80 rr\n  -> 10.244.1."));
        cluster.set_proxy_mode(Mode::Nftables);
        cluster.advance(std::time::Duration::from_secs(5), |_| true);
        let map = run(&mut cluster, "node-1$ nft list map ip kube-proxy service-ips");
        assert!(map.contains(" . tcp . 80 : goto service-"), "{map}");
        assert!(run(&mut cluster, "node-1$ nft list tables").contains("table ip kube-proxy"));
        assert!(run(&mut cluster, "iptables-save").contains("write its name before the command"));
        assert!(run(&mut cluster, "node-1$ iptables-save -t raw").contains("expected filter or nat"));
    }
}
