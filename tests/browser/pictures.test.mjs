// Pictures and the timeline's slider: in JupyterLab's light and dark theme, in an exported page without network, on paper.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { cells, openNotebook, pictures, runAllCells, setTheme, startBrowser, startLab } from "./jupyterlab.mjs";

const project = resolve(import.meta.dirname, "../..");
const target = process.env.CARGO_TARGET_DIR ?? join(project, "target");
const kernetes = process.env.KERNETES ?? join(target, "debug/kernetes");
const home = join(target, "tests/lab");
const folder = join(home, "pictures");

const sources = [
  "kubectl create deployment web --image=nginx --replicas=2",
  "kubectl scale deployment web --replicas=3",
  "%plot pods deployment/web",
  "%plot timeline deployment/web",
  "kubectl get pods",
];
const PODS = 2;
const TIMELINE = 3;

const notebook = {
  cells: sources.map((source, index) => ({
    ...{ cell_type: "code", id: `cell-${index}`, source },
    ...{ metadata: {}, outputs: [], execution_count: null },
  })),
  metadata: {
    kernelspec: { name: "kernetes", display_name: "Kubernetes" },
    kernetes: { language: "en" },
  },
  ...{ nbformat: 4, nbformat_minor: 5 },
};

/** How far the light of two colours is apart, as in the WCAG: 4.5 can be read. */
function contrast(one, other) {
  const light = (colour) => {
    const [red, green, blue] = colour.match(/[\d.]+/g).map((part) => {
      const share = Number(part) / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

/** The colour of an element's words, and that of whatever lies behind them. */
function colours(locator) {
  return locator.evaluate((element) => {
    let behind = element;
    while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
    return [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
  });
}

/** Moves the slider of a timeline from end to beginning and back by its buttons. */
async function moveSlider(timeline) {
  const slider = timeline.getByRole("slider", { name: "virtual time" });
  const told = timeline.locator("output");
  const covered = () => timeline.locator("svg > rect[opacity='0.8']").first().evaluate((cover) => cover.width.baseVal.value);
  await slider.waitFor();
  assert.match(await told.textContent(), /^[\d.]+s · revision \d+ · .*3/);
  assert.equal(Math.round(await covered()), 0);
  await slider.press("Home");
  assert.match(await told.textContent(), /revision - · -$/);
  const all = await covered();
  assert.ok(all > 100, `${all} pixels are covered at the beginning`);
  await timeline.getByRole("button", { name: "to the next event" }).click();
  assert.doesNotMatch(await told.textContent(), /revision -/);
  const less = await covered();
  assert.ok(less < all, `${less} of ${all} pixels are covered after the first event`);
  await timeline.getByRole("button", { name: "to the event before" }).click();
  await slider.press("End");
  assert.equal(Math.round(await covered()), 0);
}

test("pictures in both themes, in an exported page and on paper", { timeout: 600_000 }, async (t) => {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const path = join(folder, "pictures.ipynb");
  await writeFile(path, JSON.stringify(notebook));
  const lab = await startLab(kernetes, home, "pictures");
  t.after(() => lab.stop());
  const browser = await startBrowser();
  t.after(() => browser.close());

  await t.test("in JupyterLab", async () => {
    const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
    page.setDefaultTimeout(120_000);
    try {
      await openNotebook(page, lab, "pictures.ipynb");
      await runAllCells(page);
      for (const theme of ["JupyterLab Light", "JupyterLab Dark"]) {
        await setTheme(page, theme);
        const [picture] = await pictures(page, PODS);
        assert.ok(picture.colours > 3, `${theme}: ${picture.colours} colours`);
        // A light card in both themes: its dark words are on no other ground.
        assert.deepEqual(picture.corner, [255, 255, 255, 255], theme);
        const timeline = page.locator(`.jp-Cell[data-windowed-list-index="${TIMELINE}"] .kernetes-timeline`);
        await moveSlider(timeline);
        const [words, ground] = await colours(timeline.locator("output"));
        assert.ok(contrast(words, ground) >= 4.5, `${theme}: ${words} on ${ground}`);
      }
      const { outputs } = (await cells(page))[TIMELINE];
      assert.match(outputs[0].data["text/html"], /<img alt="[^"]{20,}"/);
      await page.evaluate(() => globalThis.jupyterapp.commands.execute("docmanager:save"));
    } finally {
      await page.screenshot({ path: join(target, "tests/pictures.png") });
      await page.close();
    }
  });

  await t.test("in a page that nbconvert wrote", async () => {
    const jupyter = join(home, ".kernetes/venv/bin/jupyter");
    await promisify(execFile)(jupyter, ["nbconvert", "--to", "html", "pictures.ipynb"], { cwd: folder });
    const context = await browser.newContext({ offline: true });
    const page = await context.newPage();
    await page.goto(pathToFileURL(join(folder, "pictures.html")).href, { waitUntil: "domcontentloaded" });
    await moveSlider(page.locator(".kernetes-timeline"));
    const still = page.locator("svg[role='img'][aria-label*='pod']").first();
    const { width, height } = await still.boundingBox();
    assert.ok(width > 300 && height > 50, `the picture is ${width} by ${height}`);
    await page.setViewportSize({ width: 600, height: 900 });
    const narrow = await still.boundingBox();
    assert.ok(narrow.width <= 600 && narrow.height < height, `on a narrow page it is ${narrow.width} by ${narrow.height}`);
    const paper = await page.pdf({ path: join(target, "tests/pictures.pdf"), format: "A4", printBackground: true });
    assert.equal(paper.subarray(0, 5).toString(), "%PDF-");
    await context.close();
  });
});
