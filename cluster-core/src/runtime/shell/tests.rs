//! What a person sees who types at a container's shell.

use super::input::Stream;
use super::*;

/// A script in a container of a pod named web-1.
pub fn script(text: &str) -> Script {
    let words = ["sh", "-c", text].map(str::to_owned);
    let home = Home { hostname: "web-1".into(), ..Home::default() };
    Script::new(&words, &[("GREETING".into(), "hello".into())], home, "/")
}

/// What a script prints, how long it sleeps, and how it ends; `None` if it does not.
fn run(text: &str) -> (Vec<String>, u64, Option<i32>) {
    let mut script = script(text);
    let (mut out, mut slept, mut files) = (Output::default(), Duration::ZERO, Files::default());
    let mut end = None;
    for _ in 0..20 {
        match script.run(&mut Surroundings::new(Time::ZERO + slept, &mut files), &mut out) {
            Turn::Sleeps(time, _) => slept += time,
            Turn::Ends(code) => {
                end = Some(code);
                break;
            }
            Turn::Serves | Turn::Becomes(_) | Turn::Asks(..) => break,
        }
    }
    let text: String = out.0.into_iter().map(|(_, text)| text).collect();
    (text.lines().map(str::to_owned).collect(), slept.as_secs(), end)
}

pub fn prints(text: &str) -> String {
    run(text).0.join("|")
}

#[test]
fn a_shell_can_become_a_server() {
    let mut script = script("sleep 5; exec nginx -g 'daemon off;'");
    let mut files = Files::default();
    let mut turn = |now| script.run(&mut Surroundings::new(Time::from_secs(now), &mut files), &mut Output::default());
    assert_eq!(turn(0), Turn::Sleeps(Duration::from_secs(5), Class::Work));
    assert_eq!(turn(5), Turn::Becomes("nginx"));
}

#[test]
fn a_server_may_run_in_the_background() {
    let mut script = script("nginx & sleep 1; echo up; wait");
    let (mut files, mut out) = (Files::default(), Output::default());
    for now in 0..3 {
        script.run(&mut Surroundings::new(Time::from_secs(now), &mut files), &mut out);
    }
    assert_eq!((script.server(), out.0.len()), (Some("nginx"), 1));
}

#[test]
fn sequences_end_with_their_last_status() {
    assert_eq!(run("echo a; sleep 5; exit 3"), (vec!["a".into()], 5, Some(3)));
    assert_eq!(run("true && echo yes || echo no; false"), (vec!["yes".into()], 0, Some(1)));
    assert_eq!(prints("false && echo yes || echo no"), "no");
    assert_eq!(prints("! false && echo turned"), "turned");
    assert_eq!(run("set -e; false || echo kept; false; echo lost"), (vec!["kept".into()], 0, Some(1)));
}

#[test]
fn an_unknown_command_is_not_found() {
    assert_eq!(run("foo"), (vec!["sh: foo: not found".into()], 0, Some(127)));
}

#[test]
fn loops_and_conditions() {
    for (text, expected) in [
        ("for i in 1 2 3; do echo n$i; done", "n1|n2|n3"),
        ("i=0; while [ $i -lt 2 ]; do echo $i; i=$((i+1)); done", "0|1"),
        ("if [ -f /x ]; then echo there; else echo gone; fi", "gone"),
        ("while true; do echo once; break; done; echo out", "once|out"),
        ("for i in $(seq 1 2); do if [ $i = 1 ]; then continue; fi; echo $i; done", "2"),
        ("case web-1 in db-*) echo db;; web-[0-9]|x) echo web;; *) echo other;; esac", "web"),
        ("case x in a) echo a;; esac; echo $?", "0"),
        ("f() { echo \"$1-$#\"; return 3; }; f a b; echo $?", "a-2|3"),
        ("while true; do { echo a; break; break; break; } > /f; break; done; cat /f", "a"),
    ] {
        assert_eq!(prints(text), expected, "{text}");
    }
    let (lines, slept, end) = run("while true; do echo tick; sleep 10; done");
    assert_eq!((lines.len(), slept, end), (20, 200, None));
}

#[test]
fn pipes_and_outputs() {
    for (text, expected) in [
        ("echo a b c | cut -d' ' -f2", "b"),
        ("printf '3\\n1\\n2\\n' | sort | head -n 2 | tail -1", "2"),
        ("seq 10 | grep -c 1; seq 3 | wc -l", "2|3"),
        ("echo one | grep -q two || echo none", "none"),
        ("echo \"$(echo \"$(hostname)\" | tr a-z A-Z)\"", "WEB-1"),
        ("yes | head -n 2", "y|y"),
        ("printf 'a 1\\nb 2\\n' | while read name number; do echo $number$name; done", "1a|2b"),
        ("echo x | tee /t >/dev/null; cat /t", "x"),
        ("echo 'a b' | xargs -n 1 echo got", "got a|got b"),
        ("(cd /tmp; pwd); pwd", "/tmp|/"),
        ("x=1; echo 2 | read x; echo $x", "1"),
        ("ls /gone 2>&1 | wc -l; ls /gone 2>/dev/null; echo $?", "1|1"),
        ("cat <<END\n$GREETING $((1+1))\nEND", "hello 2"),
        ("cat <<'END' | wc -c\n$GREETING\nEND", "10"),
        ("echo a > /d/x; echo b > /d/y; cat < /d/y; echo /d/*", "b|/d/x /d/y"),
        ("echo -n a > /n; echo b >> /n; cat /n", "ab"),
    ] {
        assert_eq!(prints(text), expected, "{text}");
    }
    assert_eq!(run("while true; do echo tick; sleep 1; done | tee /log").0.len(), 20);
    assert_eq!(run("true | false").2, Some(1));
}

#[test]
fn variables_and_quotes() {
    for (text, expected) in [
        ("echo \"$GREETING  from $HOSTNAME\" 'and $X'", "hello  from web-1 and $X"),
        ("echo ${X:-default} ${X} ${GREETING:+set} ${#GREETING}", "default set 5"),
        ("F=/a/b.txt; echo ${F##*/} ${F%.txt} ${F%/*} ${F#/}", "b.txt /a/b /a a/b.txt"),
        ("X='a  b'; echo $X; echo \"$X\"", "a b|a  b"),
        ("set -- a 'b c'; for x in \"$@\"; do echo $x; done; shift; echo $# $1", "a|b c|1 b c"),
        (": ${Y:=1}; echo $Y; echo ${Z?gone}; echo lost", "1|sh: Z: gone"),
        ("X=1 env | grep ^X; Y=2; env | grep ^Y; export Y; env | grep ^Y", "X=1|Y=2"),
        ("echo a\\ b \"c\\\"d\" 'e'\\''f'", "a b c\"d e'f"),
        ("N=7; if [ $(expr ${N} % 2) -ne 0 ]; then echo odd; fi; expr 2 \\* 3", "odd|6"),
    ] {
        assert_eq!(prints(text), expected, "{text}");
    }
    assert_eq!(
        prints("echo one > /tmp/a; echo two >> /tmp/a; cat /tmp/a; rm /tmp/a; cat /tmp/a"),
        "one|two|cat: can't open '/tmp/a': No such file or directory"
    );
}

#[test]
fn programs_run_at_the_same_time() {
    assert_eq!(run("(sleep 3; echo late) & sleep 1; echo early; wait; echo end").0, ["early", "late", "end"]);
    assert_eq!(run("sleep 5 & sleep 5 & wait"), (vec![], 5, Some(0)));
    assert_eq!(run("timeout 2 sleep 10; echo $?"), (vec!["143".into()], 2, Some(0)));
    assert_eq!(run("sleep 100 & kill $!; wait; echo done"), (vec!["done".into()], 0, Some(0)));
}

#[test]
fn nothing_hangs_or_panics() {
    for text in [
        "while true; do :; done",
        "while",
        "if true",
        "echo 'open",
        "a |",
        "$(",
        "for",
        "echo $((",
        "&",
        "done",
        "(((",
        "${",
        "echo ${00}",
        "case x in",
        "f() { f; }; f",
        "cat <<",
        "cat <<E",
        "while true; do break | cat; done",
        "while true; do (while true; do :; done); done",
        "[ ",
        "sort -k0 -t: | cut -f0 | head -n x | tail -c",
        ". /x",
        "eval eval eval",
    ] {
        run(text);
    }
    for part in ["exec ", "$(", "! ", "(", "if true; then ", "[ ! ", "${a:-", "((", "{ ", "eval "] {
        run(&part.repeat(5000));
    }
    run(&format!("echo {}date{}", "$(".repeat(5000), ")".repeat(5000)));
    assert_eq!(run("if"), (vec!["sh: syntax error: unexpected end of file".into()], 0, Some(2)));
}

#[test]
fn a_trap_answers_sigterm() {
    let mut waiting = script("trap 'echo bye; exit 5' TERM; while true; do sleep 1; done");
    let (mut files, mut out) = (Files::default(), Output::default());
    assert!(!waiting.signal());
    waiting.run(&mut Surroundings::new(Time::ZERO, &mut files), &mut out);
    assert!(waiting.signal());
    let mut turn = |now| waiting.run(&mut Surroundings::new(Time::from_secs(now), &mut files), &mut out);
    assert!(matches!(turn(0), Turn::Sleeps(..)), "the sleep comes to its end");
    assert_eq!(turn(1), Turn::Ends(5));
    assert_eq!(out.0, [(Stream::Out, "bye\n".to_owned())]);
}
