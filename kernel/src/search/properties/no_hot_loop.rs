//! When nothing comes from outside, a key is looked at now and then, and failures less and less often.

use cluster_core::api::Key;

use super::{Broken, Property};
use crate::grading::words::Words;

pub struct NoHotLoop;

const NAME: &str = "no-hot-loop";

impl Property for NoHotLoop {
    fn name(&self) -> &'static str {
        NAME
    }

    fn demands(&self) -> Words {
        Words::new("外から何も起きなければ、たまにしか動かない", "it runs seldom when nothing comes from outside")
    }
}

pub fn broken(controller: &str, key: &Key, runs: u32) -> Broken {
    let name = &key.name;
    let found = Words::new(
        format!("外からは何も起きていないのに、{controller} は {name} のために1分で{runs}回動いた"),
        format!("{controller} ran {runs} times within a minute for {name}, although nothing came from outside"),
    );
    Broken { property: NAME, found }
}
