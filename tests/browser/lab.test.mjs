// A lesson in JupyterLab, in Chromium: all cells run, none fails, its pictures are really drawn.

import assert from "node:assert/strict";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { cells, openNotebook, pictures, runAllCells, startBrowser, startLab } from "./jupyterlab.mjs";

const project = resolve(import.meta.dirname, "../..");
const target = process.env.CARGO_TARGET_DIR ?? join(project, "target");
const kernetes = process.env.KERNETES ?? join(target, "debug/kernetes");
const home = join(target, "tests/lab");

const hasPicture = (cell) => cell.outputs?.some((output) => output.data?.["image/svg+xml"]);

/** The first lesson whose committed outputs hold a picture; LESSON names another. */
async function lesson() {
  const folder = join(project, "notebooks/ja");
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".ipynb")).sort();
  const paths = process.env.LESSON ? [process.env.LESSON] : names.map((name) => join(folder, name));
  for (const path of paths) {
    const notebook = JSON.parse(await readFile(path, "utf8"));
    if (notebook.cells.some(hasPicture)) return notebook;
  }
}

const notebook = await lesson();

test("a lesson runs in JupyterLab", { timeout: 600_000, skip: !notebook && "no lesson with a picture yet" }, async (t) => {
  const expected = notebook.cells.flatMap((cell, index) => (hasPicture(cell) ? [index] : []));
  for (const cell of notebook.cells.filter((cell) => cell.cell_type === "code")) {
    Object.assign(cell, { outputs: [], execution_count: null });
  }
  await mkdir(join(home, "notebooks"), { recursive: true });
  await writeFile(join(home, "notebooks/lesson.ipynb"), JSON.stringify(notebook));

  const lab = await startLab(kernetes, home, "notebooks");
  t.after(() => lab.stop());
  const browser = await startBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  page.setDefaultTimeout(120_000);
  try {
    await openNotebook(page, lab, "lesson.ipynb");
    await runAllCells(page);

    for (const cell of await cells(page)) {
      const error = cell.outputs?.find((output) => output.output_type === "error");
      const wanted = cell.metadata.tags?.includes("raises-exception");
      assert.ok(!error || wanted, `cell ${cell.id}: ${error?.ename}: ${error?.evalue}`);
    }
    for (const index of expected) {
      for (const picture of await pictures(page, index)) {
        assert.ok(picture.width > 0 && picture.height > 0, `cell ${index}: the picture has no size`);
        assert.ok(picture.colours > 1, `cell ${index}: the picture is blank`);
      }
    }
  } finally {
    await page.screenshot({ path: join(target, "tests/lab.png") });
  }
});
