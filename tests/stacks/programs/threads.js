// SPDX-License-Identifier: Apache-2.0
const { Worker } = require('worker_threads');
const net = require('net');
const fs = require('fs');

new Worker(
    'const cell = new Int32Array(new SharedArrayBuffer(4));' +
    'const wait = (n) => n ? wait(n - 1) : Atomics.wait(cell, 0, 0); wait(20);', { eval: true });
net.createServer().listen(0, '127.0.0.1');
const read = (depth) => {
  if (depth > 0) return read(depth - 1);
  return fs.readSync(0, Buffer.alloc(1));
};
setTimeout(() => {
  console.log('ready');
  if (process.argv[2] === 'read') read(20);
}, 500);
setInterval(() => {}, 86400000);
