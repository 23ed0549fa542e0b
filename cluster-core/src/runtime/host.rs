//! A plain container host: named containers, orders that are done once, and rules that hope to hear of every exit.
//! <https://docs.docker.com/reference/cli/docker/container/>
//!
//! Nothing here compares a wish with what is there. A restart policy is the daemon's own and reliable; a rule is a
//! script outside that listens to events, and an event that it misses is gone.

use std::time::Duration;

use super::container::{Config, Container, Handle, Identity, State};
use super::{Runtime, RuntimeEvent, images};
use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::faults::Effect;
use crate::trace::{Causes, ContainerPhase, Sequence};
use crate::world::{Event, World};

/// The host's machine, and the component's name for fault rules on the delivery of its events.
pub const MACHINE: &str = "docker-host";

/// How long `docker stop` waits for a program.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// The daemon's wait before it restarts a container: doubled each time, forgotten after ten seconds of running.
const RESTART_FIRST: Duration = Duration::from_millis(100);
const RESTART_LONGEST: Duration = Duration::from_secs(60);
const RESTART_FORGOTTEN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub enum Wake {
    /// The event that a container has exited reaches those who listen.
    Heard { name: Name, cause: Sequence },
    /// The daemon's own restart policy.
    Restart { name: Name, handle: Handle, cause: Sequence },
}

/// `--restart`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    #[default]
    No,
    /// At most so often, if there is a number.
    OnFailure(Option<u32>),
    Always,
    UnlessStopped,
}

impl Restart {
    /// Reads `no`, `on-failure[:max-retries]`, `always`, `unless-stopped`.
    pub fn parse(text: &str) -> Result<Restart, String> {
        let (policy, retries) = text.split_once(':').map_or((text, None), |(policy, retries)| (policy, Some(retries)));
        match (policy, retries) {
            ("no" | "", None) => Ok(Restart::No),
            ("always", None) => Ok(Restart::Always),
            ("unless-stopped", None) => Ok(Restart::UnlessStopped),
            ("on-failure", None) => Ok(Restart::OnFailure(None)),
            ("on-failure", Some(retries)) => match retries.parse() {
                Ok(retries) => Ok(Restart::OnFailure(Some(retries))),
                Err(_) => {
                    Err(format!("invalid restart policy format: maximum retry count must be an integer: {retries}"))
                }
            },
            _ => Err(format!(
                "invalid restart policy: unknown policy '{policy}'; use one of 'no', 'always', 'on-failure', or 'unless-stopped'"
            )),
        }
    }
}

/// What `docker run` is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    pub name: Name,
    pub image: Name,
    pub command: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub restart: Restart,
}

/// A container of the host by its name.
#[derive(Clone, Debug)]
pub struct Named {
    pub order: Order,
    /// `None` while its image is on its way.
    pub handle: Option<Handle>,
    pub restarts: u32,
    /// Somebody stopped it; policies leave it alone.
    pub stopped: bool,
    delay: Duration,
}

/// On the exit of a container, do something.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub on_exit_of: Name,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Start(Name),
    Run(Order),
    Remove(Name),
}

#[derive(Clone, Debug)]
pub struct Host {
    pub runtime: Runtime,
    containers: imbl::OrdMap<Name, Named>,
    rules: Vec<Rule>,
    /// So many of the next exit events reach nobody.
    lost: u32,
}

impl Default for Host {
    fn default() -> Host {
        Host {
            runtime: Runtime::of(MACHINE.into(), "dockerd".into(), "dockerd".into()),
            containers: imbl::OrdMap::new(),
            rules: Vec::new(),
            lost: 0,
        }
    }
}

impl Host {
    /// Containers by name, with what the runtime knows of each.
    pub fn containers(&self) -> impl Iterator<Item = (&Name, &Named, Option<&Container>)> {
        self.containers.iter().map(|(name, named)| (name, named, named.handle.and_then(|h| self.runtime.container(h))))
    }

    pub fn container(&self, name: &str) -> Option<&Container> {
        self.runtime.container(self.containers.get(&Name::from(name))?.handle?)
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub fn add_rule(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    pub fn clear_rules(&mut self) {
        self.rules.clear();
    }

    /// The next exit events are lost on their way to the rules.
    pub fn lose_next_events(&mut self, count: u32) {
        self.lost = self.lost.saturating_add(count);
    }

    /// `docker run -d`: makes a container and starts it, when its image is there. The error is the daemon's.
    pub fn run(&mut self, order: Order, world: &mut World) -> Result<(), String> {
        self.order(order, Causes::None, world)
    }

    fn order(&mut self, order: Order, causes: Causes, world: &mut World) -> Result<(), String> {
        let name = order.name.clone();
        if let Some(known) = self.containers.get(&name) {
            let id = known.handle.and_then(|handle| self.runtime.container(handle)).map_or("", |known| &known.id);
            return Err(format!(
                "Conflict. The container name \"/{name}\" is already in use by container \"{id}\". You have to remove \
                 (or rename) that container to be able to reuse that name."
            ));
        }
        let image = images::reference(&order.image);
        if !self.runtime.has_image(&image)
            && let Err(why) = world.registry.lookup(&image)
        {
            let short = order.image.split(':').next().unwrap_or_default();
            return Err(if why.contains("pull access denied") {
                format!("pull access denied for {short}, repository does not exist or may require 'docker login'")
            } else if why.contains("not found") {
                format!("manifest for {} not found: manifest unknown: manifest unknown", order.image)
            } else {
                why.rsplit("failed to do request: ").next().unwrap_or(&why).to_owned()
            });
        }
        let identity = identity(&order);
        self.containers
            .insert(name.clone(), Named { order, handle: None, restarts: 0, stopped: false, delay: RESTART_FIRST });
        if self.runtime.has_image(&image) {
            self.create(&name, causes, world);
        } else {
            self.runtime.pull(&identity, causes, world);
        }
        Ok(())
    }

    fn create(&mut self, name: &Name, causes: Causes, world: &mut World) {
        let Some(named) = self.containers.get_mut(name) else { return };
        let order = &named.order;
        let config = Config {
            args: order.command.clone(),
            environment: order.environment.clone(),
            ..Config::new(identity(order))
        };
        let (handle, sequence) = self.runtime.create(config, causes, world);
        named.handle = Some(handle);
        self.runtime.start(handle, sequence.into(), world);
    }

    fn find(&mut self, name: &str) -> Result<(&mut Named, Handle), String> {
        let missing = || format!("No such container: {name}");
        let named = self.containers.get_mut(&Name::from(name)).ok_or_else(missing)?;
        let handle = named.handle.ok_or_else(missing)?;
        Ok((named, handle))
    }

    /// `docker start`: an ended container runs again.
    pub fn start(&mut self, name: &str, world: &mut World) -> Result<(), String> {
        self.start_because(name, Causes::None, world)
    }

    fn start_because(&mut self, name: &str, causes: Causes, world: &mut World) -> Result<(), String> {
        let (named, handle) = self.find(name)?;
        named.stopped = false;
        if self.runtime.reset(handle) {
            self.runtime.start(handle, causes, world);
        }
        Ok(())
    }

    /// `docker stop`: SIGTERM, then SIGKILL after ten seconds.
    pub fn stop(&mut self, name: &str, world: &mut World) -> Result<(), String> {
        let (named, handle) = self.find(name)?;
        named.stopped = true;
        self.runtime.stop(handle, STOP_GRACE, Causes::None, world);
        Ok(())
    }

    /// `docker kill`: SIGKILL. `by_hand` is an order to the daemon; else the process just dies.
    pub fn kill(&mut self, name: &str, by_hand: bool, world: &mut World) -> Result<(), String> {
        let (named, handle) = self.find(name)?;
        named.stopped |= by_hand;
        let Some(container) = self.runtime.container(handle).filter(|container| container.is_running()) else {
            return Err(format!("cannot kill container: {name}: container is not running"));
        };
        debug_assert_eq!(container.state, State::Running);
        let events = self.runtime.kill(handle, "Error", world);
        self.on_runtime(&events, world);
        Ok(())
    }

    /// `docker rm`: forgets a container; a running one only by force.
    pub fn remove(&mut self, name: &str, force: bool, world: &mut World) -> Result<(), String> {
        let (_, handle) = self.find(name)?;
        if self.runtime.container(handle).is_some_and(|container| container.exit_code().is_none()) {
            if !force {
                return Err(format!(
                    "cannot remove container \"/{name}\": container is running: stop the container before removing or \
                     force remove"
                ));
            }
            self.find(name)?.0.stopped = true;
            let events = self.runtime.kill(handle, "Error", world);
            self.on_runtime(&events, world);
        }
        if let Some(identity) = self.runtime.container(handle).map(|container| container.identity.clone()) {
            // A plain container is all that there is of it, as a sandbox is of a pod.
            let actor = self.runtime.actor.clone();
            self.runtime.record(&actor, Causes::None, &identity, ContainerPhase::SandboxRemoved, world);
        }
        self.runtime.remove(handle);
        self.containers.remove(&Name::from(name));
        Ok(())
    }

    pub(crate) fn on_runtime(&mut self, events: &[RuntimeEvent], world: &mut World) {
        for event in events {
            match event {
                RuntimeEvent::PullDone { identity, outcome: Ok(_), sequence } => {
                    self.create(&identity.name, Causes::from(*sequence), world);
                }
                RuntimeEvent::Exited { container, sequence, .. } => self.exited(*container, *sequence, world),
                _ => {}
            }
        }
    }

    fn exited(&mut self, handle: Handle, cause: Sequence, world: &mut World) {
        let Some((name, named)) = self.containers.iter().find(|(_, named)| named.handle == Some(handle)) else {
            return;
        };
        let (name, mut named) = (name.clone(), named.clone());
        if let Some(container) = self.runtime.container(handle) {
            let ran = container.finished_at.since(container.started_at);
            let failed = container.exit_code() != Some(0);
            let again = match named.order.restart {
                Restart::No => false,
                Restart::OnFailure(most) => failed && most.is_none_or(|most| named.restarts < most),
                Restart::Always | Restart::UnlessStopped => true,
            };
            if again && !named.stopped {
                named.delay = if ran >= RESTART_FORGOTTEN { RESTART_FIRST } else { named.delay };
                let delay = named.delay;
                named.delay = (named.delay * 2).min(RESTART_LONGEST);
                named.restarts += 1;
                // The first few restarts are waited for; a container that goes on failing is not.
                let class = if named.restarts <= 3 { Class::Work } else { Class::Background };
                world.after(delay, class, Event::Host(Wake::Restart { name: name.clone(), handle, cause }));
            }
        }
        self.containers.insert(name.clone(), named);
        if self.rules.iter().any(|rule| rule.on_exit_of == name) {
            let delay = world.random.between(world.settings.watch.0, world.settings.watch.1);
            world.after(delay, Class::Work, Event::Host(Wake::Heard { name, cause }));
        }
    }

    pub(crate) fn wake(&mut self, wake: Wake, world: &mut World) {
        match wake {
            Wake::Restart { name, handle, cause } => {
                let due =
                    self.containers.get(&name).is_some_and(|named| named.handle == Some(handle) && !named.stopped);
                if due {
                    // It was there a moment ago.
                    let _ = self.start_because(&name, cause.into(), world);
                }
            }
            Wake::Heard { name, cause } => {
                if self.lost > 0 {
                    self.lost -= 1;
                    world.note(&"dockerd".into(), cause.into(), &Key::cluster(name), "the exit event was lost");
                    return;
                }
                match world.faults.on_machine_event(MACHINE, &name, world.now) {
                    Some(Effect::Drop) => {
                        world.note(&"dockerd".into(), cause.into(), &Key::cluster(name), "the exit event was lost");
                    }
                    Some(Effect::Delay(by)) => {
                        world.after(by, Class::Work, Event::Host(Wake::Heard { name, cause }));
                    }
                    Some(Effect::Duplicate) => {
                        self.heard(&name, cause, world);
                        self.heard(&name, cause, world);
                    }
                    _ => self.heard(&name, cause, world),
                }
            }
        }
    }

    fn heard(&mut self, name: &Name, cause: Sequence, world: &mut World) {
        let actions: Vec<Action> =
            self.rules.iter().filter(|rule| rule.on_exit_of == *name).map(|rule| rule.action.clone()).collect();
        for action in actions {
            let done = match action {
                Action::Start(name) => self.start_because(&name, cause.into(), world),
                Action::Run(order) => self.order(order, cause.into(), world),
                Action::Remove(name) => self.remove(&name, true, world),
            };
            if let Err(message) = done {
                world.note(&"dockerd".into(), cause.into(), &Key::cluster(name.clone()), message);
            }
        }
    }

    /// When a container began to run, if it does.
    pub fn running_since(&self, name: &str) -> Option<Time> {
        self.container(name).filter(|container| container.is_running()).map(|container| container.started_at)
    }
}

fn identity(order: &Order) -> Identity {
    Identity {
        pod: Key::cluster(order.name.clone()),
        pod_uid: Name::from(""),
        name: order.name.clone(),
        image: order.image.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, Config as ClusterConfig};

    fn cluster() -> Cluster {
        Cluster::new(ClusterConfig { nodes: 0, ..ClusterConfig::default() })
    }

    fn run(cluster: &mut Cluster, name: &str, image: &str, restart: Restart) -> Result<(), String> {
        let order = Order { name: name.into(), image: image.into(), restart, ..Order::default() };
        let (host, world) = cluster.host_mut();
        host.run(order, world)
    }

    fn settle(cluster: &mut Cluster) {
        cluster.settle(Duration::from_secs(60), |_| true);
    }

    fn running(cluster: &Cluster) -> usize {
        cluster.host().containers().filter(|(_, _, container)| container.is_some_and(Container::is_running)).count()
    }

    fn crash(cluster: &mut Cluster, name: &str) {
        let (host, world) = cluster.host_mut();
        host.kill(name, false, world).unwrap();
        settle(cluster);
    }

    #[test]
    fn nothing_replaces_a_container_that_dies() {
        let mut cluster = cluster();
        for name in ["web-1", "web-2", "web-3"] {
            run(&mut cluster, name, "nginx", Restart::No).unwrap();
        }
        settle(&mut cluster);
        assert_eq!(running(&cluster), 3);
        crash(&mut cluster, "web-2");
        assert_eq!(running(&cluster), 2);
        assert_eq!(cluster.host().container("web-2").unwrap().exit_code(), Some(137));
    }

    #[test]
    fn a_rule_starts_it_again_unless_the_event_is_lost() {
        let mut cluster = cluster();
        run(&mut cluster, "web", "nginx", Restart::No).unwrap();
        settle(&mut cluster);
        cluster.host_mut().0.add_rule(Rule { on_exit_of: "web".into(), action: Action::Start("web".into()) });
        crash(&mut cluster, "web");
        assert_eq!(running(&cluster), 1);
        cluster.host_mut().0.lose_next_events(1);
        crash(&mut cluster, "web");
        assert_eq!(running(&cluster), 0);
        cluster.advance(Duration::from_secs(3600), |_| true);
        assert_eq!(running(&cluster), 0);
    }

    #[test]
    fn the_daemon_keeps_its_restart_policies() {
        let mut cluster = cluster();
        run(&mut cluster, "web", "nginx", Restart::Always).unwrap();
        run(&mut cluster, "bad", "crash", Restart::OnFailure(Some(2))).unwrap();
        settle(&mut cluster);
        crash(&mut cluster, "web");
        assert_eq!(running(&cluster), 1);
        let (_, bad, _) = cluster.host().containers().find(|(name, ..)| ***name == *"bad").unwrap();
        assert_eq!(bad.restarts, 2);
        let (host, world) = cluster.host_mut();
        host.stop("web", world).unwrap();
        settle(&mut cluster);
        assert_eq!(running(&cluster), 0);
    }

    #[test]
    fn the_daemon_refuses_what_it_can_not_do() {
        let mut cluster = cluster();
        run(&mut cluster, "web", "nginx", Restart::No).unwrap();
        settle(&mut cluster);
        assert!(
            run(&mut cluster, "web", "nginx", Restart::No).unwrap_err().starts_with("Conflict. The container name")
        );
        assert!(
            run(&mut cluster, "x", "nosuch", Restart::No).unwrap_err().starts_with("pull access denied for nosuch")
        );
        let (host, world) = cluster.host_mut();
        assert_eq!(host.start("y", world), Err("No such container: y".into()));
        assert!(host.remove("web", false, world).is_err());
        host.remove("web", true, world).unwrap();
        assert_eq!(running(&cluster), 0);
        assert!(Restart::parse("on-failure:x").is_err());
        assert_eq!(Restart::parse("on-failure:3"), Ok(Restart::OnFailure(Some(3))));
    }
}
