//! The same view gives the same plan: a controller keeps nothing in memory and draws nothing at random.

use cluster_core::api::Key;

use super::{Broken, Property};
use crate::grading::words::Words;

pub struct Replay;

const NAME: &str = "replay";

impl Property for Replay {
    fn name(&self) -> &'static str {
        NAME
    }

    fn demands(&self) -> Words {
        Words::new("同じものを見れば、同じことをする", "it does the same whenever it sees the same")
    }
}

pub fn broken(controller: &str, key: &Key) -> Broken {
    let name = &key.name;
    let found = Words::new(
        format!(
            "{controller} は {name} について、同じものを見たのに違う計画を立てた。目に見えないもの（メモリ、乱数、順序のない集まり）に頼っている"
        ),
        format!(
            "{controller} saw the same of {name} again and planned otherwise: it depends on something that it does not see, like memory, chance, or an order that is none"
        ),
    );
    Broken { property: NAME, found }
}
