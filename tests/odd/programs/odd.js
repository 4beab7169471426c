// SPDX-License-Identifier: Apache-2.0
// A program of Node that has no NCCL: worker threads, a child, signals, files, and a rejected promise.
const { execFileSync } = require("node:child_process");
const { readFile } = require("node:fs/promises");
const { Worker, isMainThread, parentPort } = require("node:worker_threads");

async function main() {
  const results = await Promise.all([1, 2, 3, 4].map((number) => new Promise((resolve, reject) => {
    const worker = new Worker(__filename);
    worker.on("message", resolve);
    worker.on("error", reject);
    worker.postMessage(number);
  })));
  console.log("workers:", results.join(" "));
  console.log(execFileSync("/bin/echo", ["a child"]).toString().trim());
  setInterval(() => {}, 1000); // Node ends if it waits for nothing but a signal
  const told = new Promise((resolve) => process.once("SIGQUIT", resolve));
  process.kill(process.pid, "SIGQUIT");
  console.log("was told", await told);
  await readFile("/no/such/file").catch((error) => console.log(error.code));
  process.exit(7);
}

if (isMainThread) {
  main();
} else {
  parentPort.once("message", (number) => {
    let sum = 0;
    for (let i = 0; i < 1e6; ++i) sum += i % number;
    parentPort.postMessage(sum);
  });
}
