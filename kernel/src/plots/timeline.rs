//! The lives of pods above the revisions of etcd. As HTML it has a slider over virtual time that moves both; what shows no
//! HTML, or runs no scripts, has the picture as it stands.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cluster_core::clock::Time;
use plotters::prelude::*;
use serde_json::json;

use super::canvas::{Axis, FAINT, INK, LEFT, RIGHT, WIDTH, draw, escaped, legend, style};
use super::lives::Life;
use super::revisions::Timeline;
use super::{Context, Picture, gantt, revisions};

const TOP: i32 = 64;
/// Between the panels: the legend of the upper one, and the title of the lower one.
const GAP: i32 = 104;
const SCRIPT: &str = include_str!("timeline.js");

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let rows = gantt::rows_of(context)?;
    let timeline = revisions::timeline(context);
    let axis = context.axis(&rows);
    let middle = TOP + gantt::ROW * rows.len() as i32;
    let height = middle + GAP + timeline.height();
    let alt = alt(context, &rows, &timeline);
    let mut panels = [(TOP, middle), (middle + GAP, middle + GAP)];
    let svg = draw(height as u32, &alt, |sheet| {
        let [title, upper, lower] = match context.japanese {
            true => [format!("時間の流れ: {}", context.subject), "Pod の一生".into(), "etcd のリビジョン".into()],
            false => [format!("Over time: {}", context.subject), "lives of pods".into(), "revisions of etcd".into()],
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        sheet.draw(&Text::new(upper, (12, TOP - 26), style(13, &FAINT)))?;
        gantt::panel(sheet, &axis, context, &rows, TOP)?;
        legend(sheet, middle + 40, context.japanese, true)?;
        sheet.draw(&Text::new(lower, (12, middle + GAP - 28), style(13, &FAINT)))?;
        panels[1].1 = timeline.panel(sheet, middle + GAP, context.japanese)?;
        Ok(())
    })?;
    let html = html(context, &svg, &alt, &Scene { rows: &rows, timeline: &timeline, axis, panels });
    Ok(Picture { svg, html: Some(html), alt, table: gantt::table(context, &rows, axis.to) })
}

/// What the script must know of the picture.
struct Scene<'a> {
    rows: &'a [Life],
    timeline: &'a Timeline,
    axis: Axis,
    /// From where to where the panels reach.
    panels: [(i32, i32); 2],
}

fn html(context: &Context<'_>, svg: &str, alt: &str, scene: &Scene<'_>) -> String {
    let micros = Time::as_micros;
    let (rows, puts) = (scene.rows, &scene.timeline.puts);
    let stages = |life: &Life| -> Vec<_> {
        life.stages.iter().map(|(at, stage)| json!([micros(*at), stage.words(context.japanese)])).collect()
    };
    let entered = rows.iter().flat_map(|life| life.stages.iter().map(|(at, _)| *at).chain(life.gone));
    let mut moments: Vec<u64> = entered.chain(puts.iter().map(|put| put.at)).map(micros).collect();
    moments.sort_unstable();
    moments.dedup();
    let say = |japanese: &'static str, english: &'static str| if context.japanese { japanese } else { english };
    let data = json!({
        "left": LEFT, "right": WIDTH as i32 - RIGHT,
        "from": micros(scene.axis.from), "to": micros(scene.axis.to),
        "panels": scene.panels.map(|(top, bottom)| json!({"top": top, "bottom": bottom})),
        "revisions": puts.iter().map(|put| json!([micros(put.at), put.revision, scene.timeline.x(put.revision)])).collect::<Vec<_>>(),
        "lives": rows.iter().map(|life| json!({"gone": life.gone.map(micros), "stages": stages(life)})).collect::<Vec<_>>(),
        "moments": moments,
        "words": {
            "slider": say("仮想時間", "virtual time"), "revision": say("リビジョン", "revision"),
            "back": say("前の出来事へ", "to the event before"), "on": say("次の出来事へ", "to the next event"),
        },
    });
    let (data, alt, picture) = (escaped(&data.to_string()), escaped(alt), BASE64_STANDARD.encode(svg));
    format!(
        "<div class=\"kernetes-timeline\" data-timeline=\"{data}\">\n\
         <img alt=\"{alt}\" src=\"data:image/svg+xml;base64,{picture}\">\n\
         <script>\n{SCRIPT}</script>\n</div>\n"
    )
}

fn alt(context: &Context<'_>, rows: &[Life], timeline: &Timeline) -> String {
    let writes = timeline.puts.len();
    let lives = gantt::alt(context, rows);
    match context.japanese {
        true => format!("{lives}下はその間の etcd への書き込み{writes}回。"),
        false => format!("{lives} Below, the {writes} writes to etcd in that time."),
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};
    use crate::output::{MimeBundle, Output, Sink};

    struct Last(MimeBundle);

    impl Sink for Last {
        fn put(&mut self, output: Output) {
            if let Output::Display { data, .. } = output {
                self.0 = data;
            }
        }
    }

    #[test]
    fn both_panels_are_in_one_page_that_needs_nothing_from_outside() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx --replicas=2");
        run(&mut session, "kubectl delete pods --all");
        insta::assert_snapshot!(run(&mut session, "%plot timeline deployment/web"));
        insta::assert_snapshot!(run(&mut session, "%lang ja\n%plot timeline deployment/web"));
        let mut last = Last(MimeBundle::new());
        session.execute("%plot timeline deployment/web", &mut last).unwrap();
        let html = last.0["text/html"].as_str().unwrap();
        assert!(html.contains("<img alt=") && html.contains("data:image/svg+xml;base64,"));
        assert!(!html.replace("http://www.w3.org/2000/svg", "").contains("http"), "{html}");
        assert!(last.0["image/svg+xml"].as_str().unwrap().contains("role=\"img\""));
    }
}
