// A slider over virtual time: what lies behind the moment is covered, in both panels at once.
for (const root of document.querySelectorAll(".kernetes-timeline:not([data-ready])")) {
  root.dataset.ready = "";
  const data = JSON.parse(root.dataset.timeline);
  const still = root.querySelector("img");
  const bytes = Uint8Array.from(atob(still.src.split(",")[1]), (letter) => letter.charCodeAt(0));
  const sheet = document.createElement("div");
  sheet.innerHTML = new TextDecoder().decode(bytes);
  const svg = sheet.querySelector("svg");

  const covers = data.panels.map(({ top, bottom }) => {
    const add = (name, attributes) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      return svg.appendChild(element);
    };
    const cover = add("rect", { y: top, height: bottom - top, fill: "#fff", opacity: 0.8 });
    const line = add("line", { y1: top - 6, y2: bottom, stroke: "#212529", "stroke-width": 2 });
    return (x) => {
      cover.setAttribute("x", x);
      cover.setAttribute("width", Math.max(0, data.right - x));
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
    };
  });

  // The last of the sorted pairs that had come by a moment.
  const by = (pairs, at) => pairs.findLast(([moment]) => moment <= at);
  const slider = document.createElement("input");
  const told = document.createElement("output");
  const show = (at) => {
    const share = Math.min(1, Math.max(0, (at - data.from) / (data.to - data.from)));
    covers[0](data.left + share * (data.right - data.left));
    const [, revision, x] = by(data.revisions, at) ?? [0, null, data.revisions[0][2] - 14];
    covers[1](x + 6);
    const counts = new Map();
    for (const { gone, stages } of data.lives) {
      const stage = gone === null || at < gone ? by(stages, at) : undefined;
      if (stage) counts.set(stage[1], (counts.get(stage[1]) ?? 0) + 1);
    }
    const pods = [...counts].map(([stage, count]) => `${stage} ${count}`).join(", ");
    told.textContent = `${(at / 1e6).toFixed(3)}s · ${data.words.revision} ${revision ?? "-"} · ${pods || "-"}`;
  };
  Object.assign(slider, { type: "range", min: data.from, max: data.to, step: "any", value: data.to });
  slider.setAttribute("aria-label", data.words.slider);
  slider.style.cssText = "flex: 1; min-width: 12em";
  slider.oninput = () => show(Number(slider.value));
  const step = (label, words, next) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: label, title: words });
    button.setAttribute("aria-label", words);
    button.onclick = () => {
      slider.value = next(Number(slider.value)) ?? slider.value;
      slider.oninput();
    };
    return button;
  };
  const back = step("◀", data.words.back, (at) => data.moments.findLast((moment) => moment < at - 0.5));
  const on = step("▶", data.words.on, (at) => data.moments.find((moment) => moment > at + 0.5));
  const bar = document.createElement("div");
  bar.style.cssText = "display: flex; flex-wrap: wrap; gap: 0.5em; align-items: center; max-width: 860px";
  bar.append(back, slider, on, told);
  still.replaceWith(bar, sheet);
  slider.oninput();
}
