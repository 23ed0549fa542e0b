// What a person does in JupyterLab with the keyboard: completes a manifest, runs it, breaks it, reads the error, looks a field
// up, interrupts a wait, and restarts and runs all. Each step leaves a screenshot.

import assert from "node:assert/strict";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { cells, openNotebook, ran, startBrowser, startLab } from "./jupyterlab.mjs";

const project = resolve(import.meta.dirname, "../..");
const target = process.env.CARGO_TARGET_DIR ?? join(project, "target");
const kernetes = process.env.KERNETES ?? join(target, "debug/kernetes");
const home = join(target, "tests/lab");
const folder = join(home, "journey");
const shots = join(target, "tests/journey");

const MANIFEST = 0;
const PODS = 1;
const WAIT = 2;

const code = (id, source) => ({
  ...{ cell_type: "code", id, source, metadata: {}, outputs: [], execution_count: null },
});

const notebook = {
  cells: [code("manifest", ""), code("pods", "kubectl get pods --no-headers"), code("wait", "%until deployment/web .status.readyReplicas=7 within 8000h")],
  metadata: { kernelspec: { name: "kernetes", display_name: "Kubernetes" }, kernetes: { language: "en" } },
  ...{ nbformat: 4, nbformat_minor: 5 },
};

/** A cell of the open notebook. */
const cell = (page, index) => page.locator(`.jp-Cell[data-windowed-list-index="${index}"]`);

/** Puts the cursor at the end of a cell. */
async function edit(page, index) {
  await cell(page, index).locator(".cm-content").click();
  await page.keyboard.press("Control+End");
}

/** Types a text whose lines stand as they are: an editor would indent them on its own. */
async function type(page, text) {
  for (const [number, line] of text.split("\n").entries()) {
    if (number > 0) {
      await page.keyboard.press("Enter");
      await page.keyboard.press("Shift+Home");
      if (line === "") await page.keyboard.press("Delete");
    }
    if (line) await page.keyboard.insertText(line);
  }
}

/** Asks for completions, and takes the one that is named. */
async function complete(page, label) {
  await page.keyboard.press("Tab");
  const item = page.locator(".jp-Completer-item", { hasText: label }).first();
  await item.waitFor();
  await page.screenshot({ path: join(shots, `complete-${label}.png`) });
  await item.click();
  await page.locator(".jp-Completer-item").first().waitFor({ state: "hidden" });
}

async function source(page, index) {
  return [(await cells(page))[index].source].flat().join("");
}

/** Runs the cell that is edited and returns it with its outputs. */
async function run(page, index) {
  const before = (await cells(page))[index].execution_count;
  await page.keyboard.press("Control+Enter");
  await ran(page, index, before);
  return (await cells(page))[index];
}

const text = (cell) => cell.outputs.map((output) => [output.text ?? output.data?.["text/plain"] ?? ""].flat().join("")).join("");

test("a person's way through a notebook", { timeout: 600_000 }, async (t) => {
  for (const path of [folder, shots]) {
    await rm(path, { recursive: true, force: true });
    await mkdir(path, { recursive: true });
  }
  await writeFile(join(folder, "journey.ipynb"), JSON.stringify(notebook));
  const lab = await startLab(kernetes, home, "journey");
  t.after(() => lab.stop());
  const browser = await startBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  page.setDefaultTimeout(60_000);
  t.afterEach((step) => page.screenshot({ path: join(shots, `${step.name}.png`) }));
  await openNotebook(page, lab, "journey.ipynb");

  await t.test("types a manifest with completion", async () => {
    await edit(page, MANIFEST);
    await type(page, "apiVersion: apps/v1\nkind: Depl");
    await complete(page, "Deployment");
    await type(page, "\nmetadata: {name: web}\nspec:\n  repl");
    await complete(page, "replicas");
    const typed = await source(page, MANIFEST);
    assert.match(typed, /^apiVersion: apps\/v1\nkind: Deployment\nmetadata: \{name: web\}\nspec:\n  replicas: ?$/);
  });

  await t.test("looks a field up", async () => {
    await page.keyboard.press("Shift+Tab");
    const tooltip = page.locator(".jp-Tooltip");
    await tooltip.waitFor();
    assert.match(await tooltip.textContent(), /replicas/);
    await page.screenshot({ path: join(shots, "tooltip.png") });
    await page.keyboard.press("Escape");
  });

  await t.test("reads what is wrong with it", async () => {
    await edit(page, MANIFEST);
    const space = (await source(page, MANIFEST)).endsWith(" ") ? "" : " ";
    await type(page, `${space}three\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}`);
    await type(page, "\n    spec: {containers: [{name: web, image: nginx}]}");
    const { outputs } = await run(page, MANIFEST);
    assert.equal(outputs.at(-1).output_type, "error");
    const told = outputs.at(-1).traceback.join("\n");
    assert.match(told, /replicas: three/, told);
    assert.match(told, /\^{5}/, told);
  });

  await t.test("mends it and runs it", async () => {
    const mended = (await source(page, MANIFEST)).replace("three", "3");
    await edit(page, MANIFEST);
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(mended);
    const done = await run(page, MANIFEST);
    assert.match(text(done), /deployment\.apps\/web created/);
    await edit(page, PODS);
    const pods = await run(page, PODS);
    assert.equal(text(pods).match(/web-\S+ +1\/1 +Running/g)?.length, 3, text(pods));
  });

  await t.test("interrupts a wait", async () => {
    await edit(page, WAIT);
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(
      () => globalThis.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === "busy",
    );
    await page.evaluate(() => globalThis.jupyterapp.commands.execute("notebook:interrupt-kernel"));
    await ran(page, WAIT, null);
    const { outputs } = (await cells(page))[WAIT];
    assert.equal(outputs.at(-1).ename, "Interrupted", JSON.stringify(outputs));
  });

  await t.test("restarts and runs all", async () => {
    await edit(page, WAIT);
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText("kubectl scale deployment web --replicas=5");
    const before = (await cells(page))[WAIT].execution_count;
    await page.getByRole("menuitem", { name: "Run", exact: true }).click();
    await page.getByRole("menuitem", { name: "Restart Kernel and Run All Cells…", exact: true }).click();
    await page.locator(".jp-Dialog .jp-mod-accept").click();
    await ran(page, WAIT, before);
    const all = await cells(page);
    assert.deepEqual(all.map((cell) => cell.execution_count), [1, 2, 3]);
    assert.match(text(all[MANIFEST]), /deployment\.apps\/web created/);
    assert.equal(text(all[PODS]).match(/Running/g)?.length, 3);
    assert.match(text(all[WAIT]), /deployment\.apps\/web scaled/);
  });
});
