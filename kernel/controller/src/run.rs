use std::any::Any;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::wire::{Dialog, FromCell, Gone, SOCKET_VARIABLE, ToCell};
use crate::{Controller, View};

/// Starts the name of a controller's thread.
pub(crate) const THREAD_PREFIX: &str = "controller ";

/// Starts a controller: from now on it takes part in the cluster as one more client, named `name` in the trace and in
/// events. The same name again replaces the controller that had it.
///
/// # Panics
/// Outside a cell of Kernetes, where there is no cluster to join.
pub fn run<C: Controller + Send + 'static>(name: &str, controller: C) {
    let Some(path) = std::env::var_os(SOCKET_VARIABLE) else {
        panic!("run({name:?}, …) needs a cluster: call it in a cell that starts with %%rust");
    };
    let joined = UnixStream::connect(path).map(Dialog::new).and_then(|dialog| {
        dialog.say(&FromCell::Hello(name.to_owned(), controller.watches()))?;
        dialog.hear::<ToCell>().map(|_welcome| dialog)
    });
    let started = joined.and_then(|dialog| {
        let thread = std::thread::Builder::new().name(format!("{THREAD_PREFIX}{name}"));
        thread.spawn(move || serve(&controller, View::of_cluster(dialog)))
    });
    if let Err(error) = started {
        panic!("the controller {name:?} can't join the cluster: {error}");
    }
}

/// Reconciles what the kernel asks for, until the kernel hangs up.
fn serve(controller: &impl Controller, view: View) {
    let Some(dialog) = view.dialog() else { return };
    while let Ok(ToCell::Reconcile(key, now)) = dialog.hear() {
        let answer = match catch_unwind(AssertUnwindSafe(|| controller.reconcile(&key, &view, now))) {
            Ok(plan) => FromCell::Plan(plan),
            Err(panic) if panic.is::<Gone>() => return,
            Err(panic) => FromCell::Panic(message_of(panic.as_ref())),
        };
        if dialog.say(&answer).is_err() {
            return;
        }
    }
}

pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Ask;
    use crate::{Duration, Key, Object, Plan, Time, Watches, json};

    struct Sample;

    impl Controller for Sample {
        fn watches(&self) -> Watches {
            Watches::of("v1", "Pod")
        }

        fn reconcile(&self, key: &Key, view: &View, now: Time) -> Plan {
            let pod = view.get("v1", "Pod", key).expect("a Pod of that name");
            let mut plan = Plan::new();
            plan.delete(&pod, format!("{} is old at {now}", pod.name()));
            plan.requeue_after(Duration::from_secs(1))
        }
    }

    #[test]
    fn a_reconcile_is_a_dialog_and_a_panic_ends_only_that_one() {
        let (here, there) = UnixStream::pair().expect("a pair of sockets");
        let cell = std::thread::Builder::new()
            .name(format!("{THREAD_PREFIX}sample"))
            .spawn(move || serve(&Sample, View::of_cluster(Dialog::new(there))))
            .expect("a thread");
        let kernel = Dialog::new(here);
        let key = Key::new("shop", "web");
        let reconcile = |answer: Vec<crate::Value>| {
            kernel.say(&ToCell::Reconcile(key.clone(), Time::default())).expect("a listener");
            let ask = FromCell::Ask(Ask::Get(("v1".to_owned(), "Pod".to_owned()), key.clone()));
            assert_eq!(kernel.hear::<FromCell>().expect("a question"), ask);
            kernel.say(&ToCell::Objects(answer)).expect("a listener");
            kernel.hear::<FromCell>().expect("an answer")
        };
        assert_eq!(reconcile(vec![]), FromCell::Panic("a Pod of that name".to_owned()));
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}});
        let FromCell::Plan(plan) = reconcile(vec![pod]) else { panic!("no plan") };
        assert_eq!(plan.to_string(), "delete Pod shop/web: web is old at 1970-01-01T00:00:00Z\nlook again after 1s\n");
        drop(kernel);
        cell.join().expect("the thread ends with the connection");
    }
}
