// A front end without a Jupyter server, such as VS Code's: it picks the ports, starts the kernel itself, and connects before
// anybody listens.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { Dealer, Subscriber } from "zeromq";

const target = process.env.CARGO_TARGET_DIR ?? resolve(import.meta.dirname, "../../target");
const kernetes = process.env.KERNETES ?? join(target, "debug/kernetes");
const CHANNELS = ["shell", "control", "stdin", "iopub"];

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/** The sockets of a front end; `heard` holds every message that came. */
class FrontEnd {
  constructor(connection) {
    this.connection = connection;
    this.session = randomUUID();
    this.heard = [];
    this.sockets = {};
    for (const channel of CHANNELS) {
      const socket = channel === "iopub" ? new Subscriber() : new Dealer({ routingId: this.session });
      socket.connect(`tcp://127.0.0.1:${connection[`${channel}_port`]}`);
      if (channel === "iopub") socket.subscribe();
      this.sockets[channel] = socket;
      this.#listen(channel, socket);
    }
  }

  async #listen(channel, socket) {
    for await (const frames of socket) {
      const start = frames.findIndex((frame) => frame.toString() === "<IDS|MSG>") + 2;
      const [header, parent, , content] = frames.slice(start, start + 4).map((frame) => JSON.parse(frame));
      this.heard.push({ channel, type: header.msg_type, parent: parent.msg_id, content });
    }
  }

  async send(channel, type, content = {}) {
    const header = { msg_id: randomUUID(), msg_type: type, username: "code", session: this.session, version: "5.2" };
    const parts = [{ ...header, date: new Date().toISOString() }, {}, {}, content].map((part) => JSON.stringify(part));
    const signature = createHmac("sha256", this.connection.key);
    for (const part of parts) signature.update(part);
    await this.sockets[channel].send(["<IDS|MSG>", signature.digest("hex"), ...parts]);
    return header.msg_id;
  }

  async until(found, seconds = 30) {
    for (const deadline = Date.now() + seconds * 1000; ; await sleep(5)) {
      const message = this.heard.find(found);
      if (message) return message;
      assert.ok(Date.now() < deadline, `not within ${seconds} s: ${found}`);
    }
  }

  reply(id) {
    return this.until((message) => message.parent === id && ["shell", "control"].includes(message.channel));
  }

  /** Runs a cell; resolves with the types of what was told of it. */
  async execute(code, whileItRuns = async () => {}) {
    const id = await this.send("shell", "execute_request", { code, silent: false, store_history: true, allow_stdin: true });
    await this.until((message) => message.parent === id && message.type === "execute_input");
    await whileItRuns();
    await this.until((message) => message.parent === id && message.content.execution_state === "idle");
    await this.reply(id);
    return this.heard.filter((message) => message.parent === id);
  }

  close() {
    for (const socket of Object.values(this.sockets)) socket.close();
  }
}

test("a front end with sockets of its own", { timeout: 120_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "kernetes-"));
  t.after(() => rm(folder, { recursive: true }));
  const ports = {};
  for (const channel of [...CHANNELS, "hb"]) ports[`${channel}_port`] = await freePort();
  const transport = { ip: "127.0.0.1", transport: "tcp", key: randomUUID(), signature_scheme: "hmac-sha256" };
  const connection = { ...transport, ...ports };
  await writeFile(join(folder, "connection.json"), JSON.stringify(connection));

  const frontEnd = new FrontEnd(connection);
  t.after(() => frontEnd.close());
  const early = [];
  for (let times = 0; times < 3; times++) early.push(await frontEnd.send("shell", "kernel_info_request"));
  const kernel = spawn(kernetes, ["kernel", join(folder, "connection.json")], { stdio: "ignore" });
  t.after(() => kernel.kill("SIGKILL"));

  await t.test("what was asked before it listened is answered", async () => {
    for (const id of early) assert.equal((await frontEnd.reply(id)).content.implementation, "kernetes");
    const told = await frontEnd.execute("kubectl get nodes");
    assert.deepEqual(told.find((message) => message.type === "execute_reply").content.status, "ok");
    assert.match(told.find((message) => message.type === "stream").content.text, /^NAME +STATUS/);
  });

  for (const [how, interrupt] of [
    ["by a signal", () => kernel.kill("SIGINT")],
    ["by a message", () => frontEnd.send("control", "interrupt_request")],
  ]) {
    await t.test(`a wait is interrupted ${how}`, async () => {
      const told = await frontEnd.execute("kubectl wait --for=create pod/nothing --timeout=100000s", async () => {
        await sleep(200);
        await interrupt();
      });
      assert.equal(told.find((message) => message.type === "error").content.ename, "Interrupted");
    });
  }

  await t.test("windows come and go", async () => {
    for (let times = 0; times < 20; times++) {
      const window = new FrontEnd(connection);
      const id = await window.send("shell", "kernel_info_request");
      if (times % 4 === 0) await window.reply(id);
      window.close();
    }
    const told = await frontEnd.execute("kubectl version");
    assert.equal(told.find((message) => message.type === "execute_reply").content.status, "ok");
  });

  await t.test("it ends when it is told to, and a signal behind that does no harm", async () => {
    const ended = once(kernel, "exit");
    await frontEnd.reply(await frontEnd.send("control", "shutdown_request", { restart: false }));
    kernel.kill("SIGTERM");
    await ended;
  });
});
