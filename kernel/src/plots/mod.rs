//! Pictures of the trace: SVG with words for those who can't see it, and a table of the same facts.
//!
//! A picture is one file and one line in [`ALL`]. It reads the trace, and little else that leaves none there.

pub mod actors;
pub mod canvas;
mod causes;
mod contrast;
mod desired;
mod gantt;
pub mod lives;
mod owners;
pub mod packing;
mod queue;
mod revisions;
mod sequence;
mod timeline;
mod traffic;

use std::collections::BTreeMap;

use cluster_core::api::Name;
use cluster_core::clock::Time;
use cluster_core::scheduler::Scheduler;
use cluster_core::trace::Trace;
use serde_json::Value;

use crate::output::MimeBundle;
use canvas::Axis;
use lives::{Life, Subject};

pub struct Plot {
    pub name: &'static str,
    pub about: (&'static str, &'static str),
    pub draw: fn(&Context<'_>) -> Result<Picture, String>,
}

/// The pictures that `%plot` can draw.
pub const ALL: &[Plot] = &[
    Plot {
        name: "desired",
        about: ("望ましい数と実際の数", "desired and actual numbers over time"),
        draw: desired::plot,
    },
    Plot { name: "pods", about: ("Pod の一生（ガント図）", "the lives of pods (Gantt)"), draw: gantt::plot },
    Plot {
        name: "contrast",
        about: ("同じ障害を二つの世界で比べる", "the same fault on two sides"),
        draw: contrast::plot,
    },
    Plot {
        name: "causes",
        about: ("何が何を引き起こしてそれができたか", "what led to what until it was there"),
        draw: causes::plot,
    },
    Plot {
        name: "revisions",
        about: ("etcd への書き込みをリビジョン順に", "the writes to etcd by their revisions"),
        draw: revisions::plot,
    },
    Plot {
        name: "actors",
        about: ("だれが何を見て、何を書いたか", "who saw what, and wrote what"),
        draw: actors::plot,
    },
    Plot {
        name: "traffic",
        about: ("Service への通信の行き先", "where the traffic to a Service went"),
        draw: traffic::plot,
    },
    Plot {
        name: "packing",
        about: (
            "ノードの資源と Pod の要求、スケジューラーの判定",
            "what nodes offer, what pods request, what the scheduler found",
        ),
        draw: packing::plot,
    },
    Plot {
        name: "sequence",
        about: ("だれがだれに接続し、何を頼んだか", "who connected to whom, and asked for what"),
        draw: sequence::plot,
    },
    Plot {
        name: "queue", about: ("コントローラーの作業キュー", "a controller's work queue"), draw: queue::plot
    },
    Plot {
        name: "timeline",
        about: (
            "Pod の一生とリビジョンを、同じ時刻のつまみで動かす",
            "the lives of pods and the revisions of etcd, with a slider over virtual time",
        ),
        draw: timeline::plot,
    },
    Plot {
        name: "owners",
        about: ("どのフィールドをだれが管理するか", "who manages which fields"),
        draw: owners::plot,
    },
];

pub fn find(name: &str) -> Option<&'static Plot> {
    ALL.iter().find(|plot| plot.name == name)
}

/// What a picture is about.
#[derive(Clone)]
pub struct Context<'a> {
    pub trace: &'a Trace,
    /// For what it found when it last looked for a pod's node.
    pub scheduler: &'a Scheduler,
    /// The memory that is in use on each machine.
    pub memory_bytes: &'a BTreeMap<Name, u64>,
    pub now: Time,
    pub subject: Subject,
    /// The other side of a contrast.
    pub other: Option<Subject>,
    /// From when on; the first life's beginning if not said.
    pub from: Option<Time>,
    pub japanese: bool,
}

pub struct Picture {
    pub svg: String,
    /// The same to play with, for frontends that show HTML; it needs nothing from outside.
    pub html: Option<String>,
    pub alt: String,
    pub table: Table,
}

/// The facts of a picture in words.
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Context<'_> {
    fn lives(&self) -> Vec<Life> {
        let shown = |life: &Life| {
            self.subject.includes(life) && self.from.is_none_or(|from| life.gone.is_none_or(|gone| gone > from))
        };
        lives::lives(self.trace).into_iter().filter(shown).collect()
    }

    fn wishes(&self) -> Vec<(Time, i32)> {
        lives::wishes(self.trace, &self.subject)
    }

    fn faults(&self) -> Vec<(Time, String)> {
        lives::faults(self.trace)
    }

    /// From a little before the first life (or from when it was asked for) until now.
    fn axis(&self, rows: &[Life]) -> Axis {
        let first = rows.iter().map(Life::born).chain(self.wishes().first().map(|(at, _)| *at)).min();
        let from = self.from.unwrap_or_else(|| first.unwrap_or(Time::ZERO));
        let span = self.now.since(from).max(std::time::Duration::from_millis(10));
        Axis { from: from - span / 50, to: from + span }
    }

    fn nothing(&self) -> String {
        if self.japanese {
            format!("{} に当たる Pod もコンテナもまだありません", self.subject)
        } else {
            format!("there has been no pod or container of {} yet", self.subject)
        }
    }
}

impl Picture {
    /// SVG, HTML if there is some, and the table as text for frontends without pictures.
    pub fn bundle(&self) -> MimeBundle {
        let html = self.html.iter().map(|html| ("text/html".to_owned(), Value::String(html.clone())));
        let still = [
            ("image/svg+xml".to_owned(), Value::String(self.svg.clone())),
            ("text/plain".to_owned(), Value::String(format!("{}\n\n{}", self.alt, self.table))),
        ];
        still.into_iter().chain(html).collect()
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::text::table(&self.columns, &self.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controls::testing::{run, session};
    use crate::output::{Output, Sink};
    use canvas::{WIDTH, text_width};

    struct Drawn(String);

    impl Sink for Drawn {
        fn put(&mut self, output: Output) {
            if let Output::Display { data, .. } = output {
                self.0 += data.get("image/svg+xml").and_then(Value::as_str).unwrap_or_default();
            }
        }
    }

    /// The texts of an SVG that go beyond its sides.
    fn cut(svg: &str) -> Vec<&str> {
        let texts = svg.split("<text ").skip(1).filter_map(|text| text.split_once('>'));
        let cut = texts.filter_map(|(attributes, text)| {
            let attribute = |name: &str| attributes.split_once(&format!("{name}=\""))?.1.split('"').next();
            let text = text.split("</text>").next()?.trim();
            let x: i32 = attribute("x")?.parse().ok()?;
            // plotters writes the size in pixels less a part of it.
            let size = attribute("font-size")?.parse::<f64>().ok()? * 1.24;
            // Reckoned for wide letters; most fonts need less.
            let width = text_width(&text.replace("&quot;", "\""), size as i32) * 4 / 5;
            let left = match attribute("text-anchor")? {
                "start" => x,
                "middle" => x - width / 2,
                _ => x - width,
            };
            (left < 0 || left + width > WIDTH as i32).then_some(text)
        });
        cut.collect()
    }

    #[test]
    fn no_words_of_a_picture_are_cut_off() {
        let mut session = session();
        run(
            &mut session,
            "kubectl create deployment web --image=nginx --replicas=3\nkubectl expose deployment web --port=80",
        );
        run(&mut session, "docker run -d --name old nginx\nkubectl run client --image=busybox -- sleep 3600");
        let told = run(&mut session, "kubectl exec client -- curl -s http://web");
        assert!(told.contains("nginx"), "{told}");
        run(&mut session, "%poweroff node-1\n%advance 6m\nkubectl set image deployment/web nginx=nginx:1.28");
        for language in ["en", "ja"] {
            run(&mut session, &format!("%lang {language}"));
            for plot in ALL {
                let subject = match plot.name {
                    "packing" => "",
                    "queue" => "endpointslice-controller",
                    "traffic" => "service/web",
                    "contrast" => "deployment/web docker",
                    _ => "deployment/web",
                };
                let mut drawn = Drawn(String::new());
                session.execute(&format!("%plot {} {subject}", plot.name), &mut drawn).unwrap();
                assert!(drawn.0.contains("role=\"img\" aria-label=\""), "{}", plot.name);
                assert_eq!(cut(&drawn.0), [""; 0], "{} in {language}", plot.name);
            }
        }
    }
}
