//! Rust cells as a learner meets them. They need `kernel/rust-cells` built and take a minute:
//! `cargo test -p kernetes --test rust_cells -- --ignored`

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cluster_core::api::request::{Body, Request, Verb};
use cluster_core::{Cluster, Config};
use kernetes::output::{CellError, Output, Sink};
use kernetes::rust_cells::{RemoteController, RustCells};
use kernetes_controller::wire::Ask;
use kernetes_controller::{Key, Object as _, Time, Value, json};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Notes what a cell says, and can press interrupt after a while.
#[derive(Default)]
struct Screen {
    outputs: Vec<Output>,
    interrupt_at: Option<Instant>,
}

impl Screen {
    fn stdout(&self) -> String {
        let text = |output: &Output| match output {
            Output::Stdout(text) => Some(text.clone()),
            _ => None,
        };
        self.outputs.iter().filter_map(text).collect()
    }

    fn stderr(&self) -> String {
        let text = |output: &Output| match output {
            Output::Stderr(text) => Some(text.clone()),
            _ => None,
        };
        self.outputs.iter().filter_map(text).collect()
    }

    fn displays(&self) -> Vec<Value> {
        let data = |output: &Output| match output {
            Output::Display { data, .. } => Some(json!(data)),
            _ => None,
        };
        self.outputs.iter().filter_map(data).collect()
    }
}

impl Sink for Screen {
    fn put(&mut self, output: Output) {
        self.outputs.push(output);
    }

    fn interrupted(&self) -> bool {
        self.interrupt_at.is_some_and(|at| Instant::now() >= at)
    }
}

/// Runs a cell and prints how long it took.
fn run(cells: &mut RustCells, code: &str) -> (Result<Vec<RemoteController>, CellError>, Screen) {
    let (mut screen, start) = (Screen::default(), Instant::now());
    let result = cells.evaluate(code, &mut screen);
    println!("{:>6} ms  {}", start.elapsed().as_millis(), code.trim().lines().next().unwrap_or_default());
    (result, screen)
}

fn fails(cells: &mut RustCells, code: &str) -> CellError {
    match run(cells, code) {
        (Err(error), _) => error,
        (Ok(_), screen) => panic!("{code} succeeded: {:?}", screen.outputs),
    }
}

fn succeeds(cells: &mut RustCells, code: &str) -> Screen {
    match run(cells, code) {
        (Ok(_), screen) => screen,
        (Err(error), _) => panic!("{}", error.traceback.join("\n")),
    }
}

fn reconcile(controller: &RemoteController, objects: &[Value]) -> Result<String, String> {
    let objects: Vec<_> = objects.iter().cloned().map(Arc::new).collect();
    let mut answer = |ask: &Ask| Ok(ask.among(&objects).cloned().collect());
    let plan = controller.reconcile(Key::new("shop", "web"), Time(0), &mut answer)?;
    Ok(plan.to_string())
}

const POOL: &str = r#"
use kernetes_controller::*;

struct PoolController;

impl Controller for PoolController {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Pool").owns("v1", "Pod")
    }

    fn reconcile(&self, key: &Key, view: &View, _now: Time) -> Plan {
        let Some(pool) = view.get("example.com/v1", "Pool", key) else { return Plan::done() };
        println!("looking at {key}");
        let mut plan = Plan::new();
        for n in view.owned("v1", "Pod", &pool).len()..pool.spec()["replicas"].as_u64().unwrap() as usize {
            let name = format!("{}-{n}", pool.name());
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]}});
            plan.create(child_of(&pool, pod), "too few Pods");
        }
        plan.requeue_after(Duration::from_secs(30))
    }
}

run("pool-controller", PoolController);
"#;

fn endless(name: &str) -> String {
    format!(
        r#"
struct Endless;
impl Controller for Endless {{
    fn watches(&self) -> Watches {{ Watches::of("v1", "Node") }}
    fn reconcile(&self, _: &Key, _: &View, _: Time) -> Plan {{ loop {{ std::hint::spin_loop() }} }}
}}
run("{name}", Endless);
"#
    )
}

#[test]
#[ignore = "compiles Rust cells"]
fn a_notebook_of_rust_cells() {
    let _one_at_a_time = ONE_AT_A_TIME.lock();
    let mut cells = RustCells::new();
    let start = Instant::now();
    cells.start();

    let screen = succeeds(&mut cells, "let a = 6;\nprintln!(\"hello, world\");\nprint!(\"no end\");\na * 7");
    println!("{:>6} ms  from the start to the first cell", start.elapsed().as_millis());
    assert_eq!(screen.stdout(), "hello, world\nno end");
    assert_eq!(screen.displays(), [json!({"text/plain": "42"})]);

    let screen = succeeds(&mut cells, "eprintln!(\"careful\"); println!(\"out\");");
    assert_eq!((screen.stdout().as_str(), screen.stderr().as_str()), ("out\n", "careful\n"));

    let error = fails(&mut cells, "let b = 1;\nlet c: i32 = \"x\";\nb");
    println!("{}", error.traceback.join("\n"));
    assert_eq!(error.ename, "CompileError");
    assert!(error.traceback[0].contains("error[E0308]: mismatched types"), "{error:?}");
    assert!(error.traceback[0].contains("cell:2:"), "{error:?}");
    assert!(!error.traceback[0].contains("lib.rs"), "{error:?}");

    let error = fails(&mut cells, "struct Bad { x: Missing }\n\nfn f() -> u8 {\n    300u8 + \"\"\n}");
    println!("{}", error.traceback.join("\n"));

    let error = fails(&mut cells, "let v = vec![1];\nlet index = 5 * a;\nv[index as usize];");
    println!("{}", error.traceback.join("\n"));
    assert_eq!((error.ename.as_str(), error.evalue.contains("index out of bounds")), ("Panic", true));
    assert_eq!(error.traceback.last().map(String::as_str), Some("  at cell:3: v[index as usize];"));

    let error = fails(&mut cells, "let number: i32 = \"five\".parse()?;\nnumber");
    assert_eq!((error.ename.as_str(), error.evalue.as_str()), ("Error", "invalid digit found in string"));

    assert_eq!(succeeds(&mut cells, "a").displays(), [json!({"text/plain": "6"})], "a survived the errors");

    let (controllers, screen) = run(&mut cells, POOL);
    let pool = controllers.expect("a controller").remove(0);
    assert_eq!(screen.outputs, []);
    assert_eq!(pool.watches.to_string(), "example.com/v1 Pool, owns v1 Pod");
    let objects = [json!({"apiVersion": "example.com/v1", "kind": "Pool",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"}, "spec": {"replicas": 2}})];
    let wanted = "create Pod shop/web-0: too few Pods\ncreate Pod shop/web-1: too few Pods\nlook again after 30s\n";
    assert_eq!(reconcile(&pool, &objects).as_deref(), Ok(wanted));
    let begin = Instant::now();
    for _ in 0..1000 {
        reconcile(&pool, &objects).expect("a plan");
    }
    println!("{:>6} µs  a reconcile", begin.elapsed().as_micros() / 1000);
    assert_eq!(reconcile(&pool, &[]).as_deref(), Ok("nothing to write\n"));
    let mut screen = Screen::default();
    cells.drain(&mut screen);
    assert_eq!(screen.stdout(), "looking at shop/web\n".repeat(1001));

    let broken = [json!({"apiVersion": "example.com/v1", "kind": "Pool",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"}, "spec": {}})];
    let error = reconcile(&pool, &broken).expect_err("a panic");
    assert!(error.contains("its reconcile panicked: called `Option::unwrap()`"), "{error}");
    assert_eq!(reconcile(&pool, &objects).as_deref(), Ok(wanted), "a panic harms only its own reconcile");

    let mut refused = |_: &Ask| Err("this controller does not watch v1 Pod".to_owned());
    let error = pool.reconcile(Key::new("shop", "web"), Time(0), &mut refused).expect_err("a question refused");
    assert!(error.contains("does not watch v1 Pod"), "{error}");

    let (controllers, _) = run(&mut cells, &POOL.replace("too few", "not enough"));
    let replaced = controllers.expect("a controller").remove(0);
    assert_eq!(reconcile(&replaced, &objects), Ok(wanted.replace("too few", "not enough")));

    cells.drain(&mut Screen::default());

    // An endless loop in a cell is interrupted; the controller and the variables live on.
    let mut screen = Screen { interrupt_at: Some(Instant::now() + Duration::from_secs(2)), ..Screen::default() };
    let error = cells.evaluate("print!(\"going\");\nloop {}", &mut screen).expect_err("an interrupt");
    let late = screen.interrupt_at.map(|at| at.elapsed()).unwrap_or_default();
    println!("{:>6} ms  from the interrupt to the error", late.as_millis());
    assert!(late < Duration::from_millis(200), "{late:?}");
    assert_eq!((error.ename.as_str(), screen.stdout().as_str()), ("Interrupted", "going"));
    assert_eq!(succeeds(&mut cells, "a + 1").displays(), [json!({"text/plain": "7"})]);
    assert_eq!(reconcile(&replaced, &objects), Ok(wanted.replace("too few", "not enough")));

    // So is one in a reconcile, by itself or by hand.
    let (controllers, _) = run(&mut cells, &endless("endless"));
    let controller = controllers.expect("a controller").remove(0);
    let error = reconcile(&controller, &[]).expect_err("no end");
    assert!(error.contains("did not end within 5 seconds"), "{error}");
    let begin = Instant::now();
    assert_eq!(reconcile(&replaced, &objects), Ok(wanted.replace("too few", "not enough")));
    println!("{:>6} ms  until the other controller answers again", begin.elapsed().as_millis());
    let error = reconcile(&controller, &[]).expect_err("stopped");
    assert!(error.contains("is not running"), "{error}");

    let (controllers, _) = run(&mut cells, &endless("endless"));
    let controller = controllers.expect("a controller").remove(0);
    let stopper = cells.stopper();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        stopper.stop();
    });
    let begin = Instant::now();
    let error = reconcile(&controller, &[]).expect_err("no end");
    assert!(error.contains("was interrupted") && begin.elapsed() < Duration::from_millis(700), "{error}");

    let error = fails(&mut cells, "std::process::exit(3);");
    assert_eq!(error.ename, "Terminated");
    assert!(error.evalue.contains("exit status: 3"), "{error:?}");

    succeeds(&mut cells, "a");
    let completion = cells.complete("let x = Plan::", 14);
    assert!(completion.matches.iter().any(|one| one.text.starts_with("requeue_after")), "{completion:?}");
    println!("{:?}", cells.inspect("Plan::new()", 3));
}

#[test]
#[ignore = "compiles Rust cells"]
fn a_controller_joins_the_cluster() {
    let _one_at_a_time = ONE_AT_A_TIME.lock();
    let mut cluster = Cluster::new(Config::default());
    let settle = |cluster: &mut Cluster| cluster.settle(Duration::from_secs(60), |_| true);
    let create = |cluster: &mut Cluster, object: Value| {
        let kind = cluster.kind(object.api_version(), object.kind()).expect("a kind that is served").clone();
        let key = cluster_core::api::Key::new(object.namespace(), "");
        let mut request = Request::new(&"kubectl".into(), Verb::Create, &kind, key);
        request.body = Body::Json(object);
        cluster.request(request).expect("created");
        settle(cluster);
    };
    let pods = |cluster: &Cluster| {
        let kind = cluster.kind("v1", "Pod").expect("Pods");
        cluster.list_of(kind, "shop").map(|pod| pod.key.name.to_string()).collect::<Vec<_>>()
    };
    create(&mut cluster, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));

    let mut cells = RustCells::new();
    let (controllers, _) = run(&mut cells, POOL);
    let controller = controllers.expect("a controller").remove(0);
    let error = controller.clone().client(cluster.kinds()).err().expect("no CustomResourceDefinition yet");
    assert!(error.evalue.contains("apply its CustomResourceDefinition"), "{}", error.evalue);

    create(
        &mut cluster,
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "pools.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Pool", "plural": "pools", "singular": "pool", "listKind": "PoolList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        }),
    );
    cluster.join(controller.client(cluster.kinds()).expect("Pool is served now"));
    let pool = json!({"apiVersion": "example.com/v1", "kind": "Pool",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 3}});
    create(&mut cluster, pool);
    assert_eq!(pods(&cluster), ["web-0", "web-1", "web-2"]);
    let writer = cluster.controllers().map(|(name, on)| format!("{name} {on}")).last();
    assert_eq!(writer.as_deref(), Some("pool-controller true"));
    let mut screen = Screen::default();
    cells.drain(&mut screen);
    assert!(screen.stdout().starts_with("looking at shop/web\n"), "{}", screen.stdout());
}

#[test]
#[ignore = "compiles Rust cells"]
fn after_a_clear_nothing_is_known_but_the_process_is_kept() {
    let _alone = ONE_AT_A_TIME.lock();
    let mut cells = RustCells::new();
    succeeds(&mut cells, "let one = 1;\nstruct Own;");
    cells.clear();
    let error = fails(&mut cells, "println!(\"{}\", one);");
    assert!(error.evalue.contains("one"), "{}", error.evalue);
    let begun = Instant::now();
    let screen = succeeds(&mut cells, "struct Own { two: u8 }\nprintln!(\"{}\", Own { two: 2 }.two);");
    assert_eq!(screen.stdout(), "2\n");
    assert!(begun.elapsed() < Duration::from_secs(8), "it was not started anew: {:?}", begun.elapsed());
    // So it is after a process that a cell has ended.
    fails(&mut cells, "std::process::exit(3);");
    cells.clear();
    assert_eq!(succeeds(&mut cells, "println!(\"{}\", 3);").stdout(), "3\n");
}

#[test]
#[ignore = "compiles Rust cells"]
fn nothing_is_left_behind() {
    let _one_at_a_time = ONE_AT_A_TIME.lock();
    let left = || {
        let prefix = format!("kernetes-{}-", std::process::id());
        let folders = std::fs::read_dir(std::env::temp_dir()).expect("the temporary folder");
        folders.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
    };
    let mut cells = RustCells::new();
    succeeds(&mut cells, "1");
    assert_eq!(left(), 1);
    drop(cells);
    assert_eq!(left(), 0);
    let cells = RustCells::new();
    cells.start();
    std::thread::sleep(Duration::from_millis(500));
    drop(cells);
    assert_eq!(left(), 0, "not even if it is closed while it starts");
}
