//! Programs that tell of the machine, and the files that its kernel makes up.

use jiff::tz::TimeZone;

use super::{Call, Outcome, letters};

/// The kernel that nodes say they have.
const KERNEL: &str = "6.8.0";

/// Memory and disk of a machine, as programs in containers see them.
const MEMORY_KIB: u64 = 16 << 20;
const DISK_KIB: u64 = 100 << 20;

pub fn date(call: &mut Call<'_, '_>) -> Outcome {
    let (mut format, mut moment) = (None, call.around.now.timestamp());
    let mut rest = call.args.iter().copied();
    while let Some(arg) = rest.next() {
        match arg {
            "-d" | "--date" => {
                let text = rest.next().unwrap_or_default();
                let seconds = text.strip_prefix('@').and_then(|seconds| seconds.parse().ok());
                match seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok()).or(text.parse().ok()) {
                    Some(parsed) => moment = parsed,
                    None => return call.fail(1, &format!("invalid date '{text}'")),
                }
            }
            "-Iseconds" | "--iso-8601=seconds" => format = Some("%Y-%m-%dT%H:%M:%S%:z"),
            "-I" => format = Some("%Y-%m-%d"),
            "-R" => format = Some("%a, %d %b %Y %H:%M:%S %z"),
            arg if arg.starts_with('+') => format = Some(&arg[1..]),
            _ => {}
        }
    }
    let zoned = moment.to_zoned(TimeZone::UTC);
    let text = match jiff::fmt::strtime::format(
        format.unwrap_or("%a %b %e %H:%M:%S UTC %Y").replace("%N", &format!("{:09}", moment.subsec_nanosecond())),
        &zoned,
    ) {
        Ok(text) => text,
        Err(_) => return call.fail(1, "invalid format"),
    };
    call.out.line(&text);
    Outcome::Done(0)
}

/// Where the kernel shows a parameter.
pub fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// `sysctl [-n] NAME…`: parameters of the kernel, which a container can read.
pub fn sysctl(call: &mut Call<'_, '_>) -> Outcome {
    let (flags, names): (Vec<&str>, Vec<&str>) = call.args.iter().partition(|arg| arg.starts_with('-'));
    let mut failed = false;
    for name in names {
        let (name, is_set) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
        let value = call.around.files.read(&sysctl_path(name)).map(|text| text.trim_end().to_owned());
        failed |= is_set || value.is_none();
        match value {
            None => call.out.error_line(&format!("sysctl: error: '{name}' is an unknown key")),
            Some(_) if is_set => {
                call.out.error_line(&format!("sysctl: error setting key '{name}': Read-only file system"));
            }
            Some(value) if flags.contains(&"-n") => call.out.line(&value),
            Some(value) => call.out.line(&format!("{name} = {value}")),
        }
    }
    Outcome::Done(i32::from(failed))
}

pub fn hostname(call: &mut Call<'_, '_>) -> Outcome {
    let name = call.script.home.hostname.clone();
    let found = |column: usize| {
        let hosts = call.around.files.read("/etc/hosts")?;
        let own = hosts.lines().find(|line| line.split_whitespace().skip(1).any(|host| host == name))?;
        own.split_whitespace().nth(column).map(str::to_owned)
    };
    let shown = match call.args.first() {
        Some(&("-i" | "-I")) => found(0).unwrap_or_default(),
        Some(&("-f" | "--fqdn")) => found(1).unwrap_or(name),
        Some(&"-d") => {
            found(1).and_then(|full| full.split_once('.').map(|(_, rest)| rest.to_owned())).unwrap_or_default()
        }
        Some(&"-s") => name.split('.').next().unwrap_or_default().to_owned(),
        _ => name,
    };
    call.out.line(&shown);
    Outcome::Done(0)
}

fn user_name(id: i64) -> String {
    match id {
        0 => "root".to_owned(),
        65534 => "nobody".to_owned(),
        id => id.to_string(),
    }
}

/// `id`, `whoami`, `groups`
pub fn id(call: &mut Call<'_, '_>) -> Outcome {
    let home = call.script.home.clone();
    let user = &home.user;
    let mut groups = vec![user.gid];
    groups.extend(user.groups.iter().filter(|group| **group != user.gid));
    let numbers = || groups.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    if call.name == "whoami" {
        if user_name(user.uid) == user.uid.to_string() {
            return call.fail(1, &format!("unknown uid {}", user.uid));
        }
        call.out.line(&user_name(user.uid));
        return Outcome::Done(0);
    }
    let (flags, _) = letters(call.args);
    let text = match flags.as_str() {
        _ if call.name == "groups" => numbers(),
        "u" => user.uid.to_string(),
        "g" => user.gid.to_string(),
        "G" => numbers(),
        "un" | "nu" => user_name(user.uid),
        "gn" | "ng" => user_name(user.gid),
        _ => {
            let named = |id: i64| match user_name(id) {
                name if name == id.to_string() => name,
                name => format!("{id}({name})"),
            };
            let all = groups.iter().map(|group| named(*group)).collect::<Vec<_>>().join(",");
            let more = if groups == [0] && user.uid != 0 { String::new() } else { format!(" groups={all}") };
            format!("uid={} gid={}{more}", named(user.uid), named(user.gid))
        }
    };
    call.out.line(&text);
    Outcome::Done(0)
}

pub fn uname(call: &mut Call<'_, '_>) -> Outcome {
    let (flags, _) = letters(call.args);
    let host = call.script.home.hostname.clone();
    let all = flags.contains('a');
    let parts = [
        ('s', "Linux"),
        ('n', host.as_str()),
        ('r', KERNEL),
        ('v', "#1 SMP PREEMPT_DYNAMIC"),
        ('m', "x86_64"),
        ('o', if all { "GNU/Linux" } else { "Linux" }),
    ];
    let wanted = |letter: char| all || flags.contains(letter) || flags.is_empty() && letter == 's';
    let shown: Vec<&str> = parts.iter().filter(|(letter, _)| wanted(*letter)).map(|(_, text)| *text).collect();
    call.out.line(&shown.join(" "));
    Outcome::Done(0)
}

pub fn nproc(call: &mut Call<'_, '_>) -> Outcome {
    call.out.line("4");
    Outcome::Done(0)
}

pub fn getconf(call: &mut Call<'_, '_>) -> Outcome {
    match call.args.first() {
        Some(&("_NPROCESSORS_ONLN" | "_NPROCESSORS_CONF")) => call.out.line("4"),
        Some(&("PAGESIZE" | "PAGE_SIZE")) => call.out.line("4096"),
        _ => return call.fail(1, "unknown variable"),
    }
    Outcome::Done(0)
}

pub fn free(call: &mut Call<'_, '_>) -> Outcome {
    let (flags, _) = letters(call.args);
    let unit = if flags.contains('m') {
        1024
    } else if flags.contains('g') {
        1 << 20
    } else {
        1
    };
    let (total, used) = (MEMORY_KIB / unit, MEMORY_KIB / 8 / unit);
    let free = total - used;
    call.out.line("              total        used        free      shared  buff/cache   available");
    call.out.line(&format!("Mem:    {total:>11} {used:>11} {free:>11} {:>11} {:>11} {free:>11}", 0, 0));
    call.out.line(&format!("Swap:   {:>11} {:>11} {:>11}", 0, 0, 0));
    Outcome::Done(0)
}

pub fn df(call: &mut Call<'_, '_>) -> Outcome {
    let (flags, paths) = letters(call.args);
    let human = flags.contains('h');
    let shown = |kib: u64| if human { format!("{:.1}G", kib as f64 / f64::from(1 << 20)) } else { kib.to_string() };
    call.out.line(if human {
        "Filesystem                Size      Used Available Use% Mounted on"
    } else {
        "Filesystem           1K-blocks      Used Available Use% Mounted on"
    });
    let home = call.script.home.clone();
    let mut rows = vec![("overlay", "/", DISK_KIB), ("tmpfs", "/dev", 64 << 10)];
    rows.extend(home.mounts.iter().map(|mount| ("/dev/sda1", mount.path.as_str(), DISK_KIB)));
    for (device, path, total) in rows {
        let below = |wanted: &&str| wanted.trim_end_matches('/') == path.trim_end_matches('/');
        if !paths.is_empty() && !paths.iter().any(below) {
            continue;
        }
        let used = call.around.files.below(path.trim_end_matches('/')).size_bytes().div_ceil(1024).min(total);
        let free = total - used;
        let percent = used * 100 / total.max(1);
        let line =
            format!("{device:<20} {:>9} {:>9} {:>9} {percent:>3}% {path}", shown(total), shown(used), shown(free));
        call.out.line(&line);
    }
    Outcome::Done(0)
}

fn mounts(call: &Call<'_, '_>) -> String {
    let home = &call.script.home;
    let mode = |read_only: bool| if read_only { "ro" } else { "rw" };
    let mut text =
        String::from("overlay / overlay rw,relatime 0 0\nproc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n");
    for mount in home.mounts.iter() {
        text.push_str(&format!("/dev/sda1 {} ext4 {},relatime 0 0\n", mount.path, mode(mount.read_only)));
    }
    text
}

pub fn mount(call: &mut Call<'_, '_>) -> Outcome {
    if !call.args.is_empty() {
        return call.fail(1, "permission denied (are you root?)");
    }
    for line in mounts(call).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let [device, path, kind, options, ..] = words[..] {
            call.out.line(&format!("{device} on {path} type {kind} ({options})"));
        }
    }
    Outcome::Done(0)
}

/// The first process, and this one.
pub fn ps(call: &mut Call<'_, '_>) -> Outcome {
    let home = call.script.home.clone();
    let user = user_name(home.user.uid);
    call.out.line("PID   USER     TIME  COMMAND");
    call.out.line(&format!("{:>5} {user:<8}  0:00 {}", 1, home.program));
    call.out.line(format!("{:>5} {user:<8}  0:00 ps {}", 7, call.args.join(" ")).trim_end());
    Outcome::Done(0)
}

pub fn uptime(call: &mut Call<'_, '_>) -> Outcome {
    let time = call.around.now.timestamp().strftime("%H:%M:%S").to_string();
    call.out.line(&format!(" {time} up 0 min,  0 users,  load average: 0.00, 0.00, 0.00"));
    Outcome::Done(0)
}

pub fn umask(call: &mut Call<'_, '_>) -> Outcome {
    if call.args.is_empty() {
        call.out.line("0022");
    }
    Outcome::Done(0)
}

pub fn ulimit(call: &mut Call<'_, '_>) -> Outcome {
    call.out.line(if call.args.contains(&"-n") { "1048576" } else { "unlimited" });
    Outcome::Done(0)
}

pub fn tty(call: &mut Call<'_, '_>) -> Outcome {
    call.out.line("not a tty");
    Outcome::Done(1)
}

/// A file that the kernel makes up, or that every image has.
pub(super) fn made_up(path: &str, call: &Call<'_, '_>) -> Option<String> {
    let home = &call.script.home;
    let user = &home.user;
    Some(match path {
        "/proc/mounts" | "/proc/self/mounts" | "/etc/mtab" => mounts(call),
        "/proc/meminfo" => format!("MemTotal:       {MEMORY_KIB} kB\nMemFree:        {} kB\n", MEMORY_KIB / 8 * 7),
        "/proc/cpuinfo" => (0..4).map(|number| format!("processor\t: {number}\n\n")).collect(),
        "/proc/version" => format!("Linux version {KERNEL}\n"),
        "/proc/self/status" | "/proc/1/status" => {
            let groups: Vec<String> = user.groups.iter().map(i64::to_string).collect();
            let four = |id: i64| format!("{id}\t{id}\t{id}\t{id}");
            format!(
                "Name:\t{}\nPid:\t1\nUid:\t{}\nGid:\t{}\nGroups:\t{} \n",
                home.program.split_whitespace().next().unwrap_or_default(),
                four(user.uid),
                four(user.gid),
                groups.join(" ")
            )
        }
        "/proc/1/cmdline" => home.program.replace(' ', "\0"),
        "/proc/uptime" => "100.00 100.00\n".to_owned(),
        "/etc/passwd" => "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n".to_owned(),
        "/etc/group" => "root:x:0:\nnobody:x:65534:\n".to_owned(),
        "/etc/os-release" => "NAME=\"BusyBox\"\nID=busybox\n".to_owned(),
        _ => return None,
    })
}

/// `ip addr`, and that nothing may be added without privileges.
pub fn ip(call: &mut Call<'_, '_>) -> Outcome {
    let words: Vec<&str> = call.args.iter().copied().filter(|arg| !arg.starts_with('-')).collect();
    if words.iter().any(|word| matches!(*word, "add" | "del" | "set" | "delete")) {
        if call.script.home.user.is_privileged {
            return Outcome::Done(0);
        }
        return call.fail(2, "RTNETLINK answers: Operation not permitted");
    }
    let name = call.script.home.hostname.clone();
    let hosts = call.around.files.read("/etc/hosts").unwrap_or_default();
    let own = hosts.lines().find(|line| line.split_whitespace().skip(1).any(|host| host == name));
    let address = own.and_then(|line| line.split_whitespace().next()).unwrap_or("127.0.0.1").to_owned();
    if words.first().is_some_and(|word| word.starts_with('r')) {
        let gateway = address.rsplit_once('.').map_or(address.clone(), |(range, _)| format!("{range}.1"));
        call.out.line(&format!("default via {gateway} dev eth0"));
        return Outcome::Done(0);
    }
    call.out.line("1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue qlen 1000");
    call.out.line("    inet 127.0.0.1/8 scope host lo");
    call.out.line("2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue");
    call.out.line(&format!("    inet {address}/24 brd {address} scope global eth0"));
    Outcome::Done(0)
}

/// A program that belongs to root and becomes root where it may (setuid).
pub fn effective_user(call: &mut Call<'_, '_>) -> Outcome {
    let home = call.script.home.clone();
    let uid = if home.user.no_new_privileges { home.user.uid } else { 0 };
    call.out.line(&format!("Effective uid: {uid}"));
    Outcome::Done(0)
}
