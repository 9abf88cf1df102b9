#!/usr/bin/env node
// ONNX Runtime as an engine: `pare run MODEL --oracle M --backend onnx:F.onnx` starts this with the
// file that `pare export MODEL --oracle M [--batch B] -o F.onnx` wrote. docs/pipe.md describes the frames.
// onnxruntime-node is looked for as node does, in node_modules of the folder pare was started in,
// and where `make setup-bench` puts it.
'use strict';
const path = require('path');

function findRuntime() {
  const places = ['onnxruntime-node', path.resolve('node_modules', 'onnxruntime-node'),
    path.resolve(__dirname, '../../build/peers/node_modules/onnxruntime-node')];
  for (const p of places) {
    try { return require(p); } catch (e) { if (e.code !== 'MODULE_NOT_FOUND') throw e; }
  }
  console.error('onnx.js: onnxruntime-node is not installed: npm install --ignore-scripts onnxruntime-node');
  process.exit(3);
}

const FULL = 1, CAUSAL = 2, QKV = 16, STATIC = 256;
const ort = findRuntime();

// ---- framing -----------------------------------------------------------------------------------

async function* frames(stream) {
  let parts = [], have = 0, need = 16, head = null;
  for await (const chunk of stream) {
    parts.push(chunk);
    have += chunk.length;
    while (have >= need) {
      const all = Buffer.concat(parts), now = all.subarray(0, need);
      parts = [all.subarray(need)];
      have -= need;
      if (head === null) {
        head = { kind: now.readUInt32LE(4) };
        need = Number(now.readBigUInt64LE(8));
      } else {
        yield { kind: head.kind, body: now };
        head = null;
        need = 16;
      }
    }
  }
}

function put(kind, ...parts) {
  const head = Buffer.alloc(16);
  head.writeUInt32LE(0x45524150, 0); // "PARE"
  head.writeUInt32LE(kind, 4);
  head.writeBigUInt64LE(BigInt(parts.reduce((n, p) => n + p.length, 0)), 8);
  process.stdout.write(Buffer.concat([head, ...parts]));
}

// ---- the engine --------------------------------------------------------------------------------

// Fixed shapes [batch, rows, d] of the inputs.
function shapesOf(session) {
  const meta = session.inputMetadata;
  const of = (name) => meta.find((m) => m.name === name).shape;
  return { q: of('q'), v: of('v'), y: session.outputNames[0] };
}

function hello(shapes, body) {
  const [batch, rows, dk] = shapes.q, dv = shapes.v[2];
  const caps = Buffer.alloc(56), mask = shapes.y === 'causal_y' ? CAUSAL : FULL;
  [1, mask | QKV | STATIC, rows, dk, dv, batch, 4, 0].forEach((n, i) => caps.writeUInt32LE(n, 4 * i));
  [104, 8, 2 ** -80].forEach((x, i) => caps.writeDoubleLE(x, 32 + 8 * i));
  put(2, caps);
}

// At most `batch` calls come in one frame; the rest of the model's batch stays zero.
async function calls(session, shapes, body) {
  const [batch, rows, dk] = shapes.q, dv = shapes.v[2], count = body.readUInt32LE(0);
  const q = new Float32Array(batch * rows * dk), k = new Float32Array(batch * rows * dk);
  const v = new Float32Array(batch * rows * dv);
  let at = 8;
  const take = (to, i, n) => {
    Buffer.from(to.buffer, 4 * i * n, 4 * n).set(body.subarray(at, at + 4 * n));
    at += 4 * n;
  };
  for (let i = 0; i < count; i++) {
    at += 32; // every call has the shape of the model
    take(q, i, rows * dk);
    take(k, i, rows * dk);
    take(v, i, rows * dv);
  }
  const feed = (x, shape) => new ort.Tensor('float32', x, shape);
  const y = (await session.run({ q: feed(q, shapes.q), k: feed(k, shapes.q), v: feed(v, shapes.v) }))[shapes.y];
  const head = Buffer.alloc(8), size = Buffer.alloc(8), parts = [];
  head.writeUInt32LE(count, 0);
  size.writeUInt32LE(rows, 0);
  size.writeUInt32LE(dv, 4);
  for (let i = 0; i < count; i++)
    parts.push(size, Buffer.from(y.data.buffer, y.data.byteOffset + 4 * i * rows * dv, 4 * rows * dv));
  put(4, head, ...parts);
}

async function main(file) {
  const session = await ort.InferenceSession.create(file, { logSeverityLevel: 3 });
  const shapes = shapesOf(session);
  for await (const f of frames(process.stdin))
    await (f.kind === 1 ? hello(shapes, f.body) : calls(session, shapes, f.body));
}
main(process.argv[2]).catch((e) => { console.error(`onnx.js: ${e.message}`); process.exit(2); });
