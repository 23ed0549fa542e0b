// JupyterLab as a person opens it: started by `kernetes lab`, looked at with Chromium.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Starts `kernetes lab FOLDER` in `home`; resolves once the server answers. */
export async function startLab(kernetes, home, folder) {
  const token = randomUUID();
  const lab = spawn(
    kernetes,
    [
      ...["lab", folder, "--", "--no-browser", "--ip=127.0.0.1", "--port=0"],
      ...[`--IdentityProvider.token=${token}`, "--LabApp.expose_app_in_browser=True"],
    ],
    { cwd: home, stdio: ["ignore", "pipe", "pipe"] },
  );
  const said = [];
  const ended = once(lab, "exit");
  const port = new Promise((found) => {
    for (const stream of [lab.stdout, lab.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        said.push(line);
        const address = /http:\/\/127\.0\.0\.1:(\d+)\/lab/.exec(line);
        if (address) found(address[1]);
      });
    }
  });
  const failed = ended.then(([code]) => {
    throw new Error(`kernetes lab ended with ${code}:\n${said.join("\n")}`);
  });
  failed.catch(() => {});
  return {
    url: `http://127.0.0.1:${await Promise.race([port, failed])}`,
    token,
    said,
    async stop() {
      lab.kill("SIGTERM");
      await ended;
    },
  };
}

export function startBrowser() {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** Opens a notebook and waits until its kernel is idle. */
export async function openNotebook(page, lab, path) {
  await page.goto(`${lab.url}/lab/tree/${path}?token=${lab.token}&reset`);
  await page.waitForFunction(() => {
    const session = globalThis.jupyterapp?.shell.currentWidget?.sessionContext;
    return session?.session?.kernel?.status === "idle";
  });
}

/** Runs all cells from the menu; resolves when each code cell has its number and the kernel is idle again. */
export async function runAllCells(page) {
  await page.getByRole("menuitem", { name: "Run", exact: true }).click();
  await page.getByRole("menuitem", { name: "Run All Cells", exact: true }).click();
  await page.waitForFunction(() => {
    const { content, sessionContext } = globalThis.jupyterapp.shell.currentWidget;
    const cells = [...content.model.cells].map((cell) => cell.toJSON());
    const waiting = cells.filter(
      (cell) => cell.cell_type === "code" && String(cell.source).trim() && cell.execution_count === null,
    );
    return waiting.length === 0 && sessionContext.session.kernel.status === "idle";
  });
}

/** Waits until a cell has another number than before and the kernel is idle. */
export async function ran(page, index, before) {
  await page.waitForFunction(
    ([index, before]) => {
      const { content, sessionContext } = globalThis.jupyterapp.shell.currentWidget;
      const { execution_count } = content.model.cells.get(index).toJSON();
      return execution_count !== null && execution_count !== before && sessionContext.session?.kernel?.status === "idle";
    },
    [index, before],
  );
}

/** The cells of the open notebook, as its file would hold them. */
export function cells(page) {
  return page.evaluate(() =>
    [...globalThis.jupyterapp.shell.currentWidget.content.model.cells].map((cell) => cell.toJSON()),
  );
}

/** Changes to a theme by its name, and waits until it is there. */
export async function setTheme(page, theme) {
  await page.evaluate((theme) => globalThis.jupyterapp.commands.execute("apputils:change-theme", { theme }), theme);
  await page.waitForFunction((theme) => document.body.dataset.jpThemeName === theme, theme);
}

/**
 * Scrolls to a cell and looks at its SVG pictures: their natural size, how many colours their pixels have, and that of the
 * corner in red, green, blue and opacity.
 */
export async function pictures(page, index) {
  await page.evaluate(
    (index) => globalThis.jupyterapp.shell.currentWidget.content.scrollToItem(index, "center"),
    index,
  );
  const images = page.locator(`.jp-Cell[data-windowed-list-index="${index}"] .jp-RenderedSVG img`);
  await images.first().waitFor();
  return images.evaluateAll((images) =>
    Promise.all(
      images.map(async (image) => {
        await image.decode();
        const { naturalWidth: width, naturalHeight: height } = image;
        const context = new OffscreenCanvas(width, height).getContext("2d");
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(0, 0, width, height);
        return { width, height, colours: new Set(new Uint32Array(data.buffer)).size, corner: [...data.slice(0, 4)] };
      }),
    ),
  );
}
