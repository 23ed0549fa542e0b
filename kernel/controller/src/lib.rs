//! Write a Kubernetes controller in a notebook cell.
//!
//! A controller is a function from what it sees to what it wants written: `reconcile(key, view, now) -> Plan`. The
//! [`View`] answers from the controller's informers, so it may lag behind the API server; the [`Plan`] is an ordered list
//! of writes, each with a reason, which the cluster carries out one at a time as one more client of the API server.
//!
//! ```no_run
//! use kernetes_controller::*;
//!
//! /// Keeps `spec.replicas` Pods for every Pool.
//! struct PoolController;
//!
//! impl Controller for PoolController {
//!     fn watches(&self) -> Watches {
//!         Watches::of("example.com/v1", "Pool").owns("v1", "Pod")
//!     }
//!
//!     fn reconcile(&self, key: &Key, view: &View, _now: Time) -> Plan {
//!         let Some(pool) = view.get("example.com/v1", "Pool", key) else { return Plan::done() };
//!         if pool.deleting() {
//!             return Plan::done();
//!         }
//!         let wanted = pool["spec"]["replicas"].as_u64().unwrap_or(1) as usize;
//!         let pods = view.owned("v1", "Pod", &pool);
//!         let mut plan = Plan::new();
//!         for name in (0..wanted).map(|n| format!("{}-{n}", pool.name())) {
//!             if !pods.iter().any(|pod| pod.name() == name) {
//!                 let pod = json!({
//!                     "apiVersion": "v1",
//!                     "kind": "Pod",
//!                     "metadata": {"name": name},
//!                     "spec": {"containers": [{"name": "web", "image": "nginx"}]},
//!                 });
//!                 plan.create(child_of(&pool, pod), "too few Pods");
//!             }
//!         }
//!         for pod in pods.iter().skip(wanted) {
//!             plan.delete(pod, "too many Pods");
//!         }
//!         let status = json!({"replicas": pods.len()});
//!         if pool.status() != &status {
//!             plan.update_status(&pool, status, "the number of Pods changed");
//!         }
//!         plan
//!     }
//! }
//!
//! run("pool-controller", PoolController); // joins the cluster; the same name again replaces the old one
//! ```
//!
//! Where there is nothing to keep, a function is enough:
//!
//! ```no_run
//! use kernetes_controller::*;
//!
//! fn greet(map: &Value, _view: &View, _now: Time) -> Plan {
//!     let mut plan = Plan::new();
//!     if map.label("greeted").is_none() {
//!         plan.patch(map, json!({"metadata": {"labels": {"greeted": "yes"}}}), "nobody has greeted it");
//!     }
//!     plan
//! }
//!
//! Watches::of("v1", "ConfigMap").run("greeter", greet);
//! ```
//!
//! A controller can be tried without a cluster, on objects of one's own:
//!
//! ```
//! # use kernetes_controller::*;
//! # struct Quiet;
//! # impl Controller for Quiet {
//! #     fn watches(&self) -> Watches { Watches::of("v1", "Pod") }
//! #     fn reconcile(&self, _: &Key, _: &View, _: Time) -> Plan { Plan::done() }
//! # }
//! let view = View::from([json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}})]);
//! println!("{}", Quiet.reconcile(&Key::new("default", "web"), &view, Time::default()));
//! ```

mod controller;
mod object;
mod plan;
mod run;
mod time;
mod view;

#[doc(hidden)]
pub mod cell;
#[doc(hidden)]
pub mod wire;

pub use std::time::Duration;

pub use serde_json::{Value, json};

pub use controller::{Controller, Key, Watches};
pub use object::{Object, child_of, set_condition};
pub use plan::{Plan, Verb, Write};
pub use run::run;
pub use time::Time;
pub use view::View;
