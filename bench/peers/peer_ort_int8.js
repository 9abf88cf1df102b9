#!/usr/bin/env node
// ONNX Runtime on an int8 encoder of the shape of MiniLM, as a peer of bench/peers/turns.py:
//
//     node bench/peers/peer_ort_int8.js FOLDER [TOKENS [THREADS [f32]]]
//
// FOLDER/node_modules holds onnxruntime-node. The graph is written here: six post-norm layers, 384
// wide, 12 heads, 1536 hidden units, from token ids to the mean of the last rows. Every matrix is
// int8 with a scale for each output (DynamicQuantizeLinear and MatMulInteger, which the runtime
// fuses); queries, keys and values share one rounding of their input; attention, norms and GELU are
// the runtime's own fused operators in f32. With f32 the matrices are f32. Weights are random: the
// time does not depend on them.
'use strict';
const path = require('path');
const readline = require('readline');
const modules = path.resolve(process.argv[2] || '.', 'node_modules', 'onnxruntime-node');
const ort = require(modules);
const tokens = Number(process.argv[3] || 32), threads = Number(process.argv[4] || 1);
const f32 = process.argv[5] === 'f32';
const DIM = 384, HEADS = 12, HIDDEN = 1536, LAYERS = 6, VOCAB = 1024;

// ---- ONNX: fields of onnx.proto by their numbers ---------------------------------------------

function varint(n) {
  const b = [];
  for (; n > 127; n = Math.floor(n / 128)) b.push((n % 128) | 128);
  b.push(n);
  return Buffer.from(b);
}
const int = (field, n) => Buffer.concat([varint(field * 8), varint(n)]);
function bytes(field, v) {
  const b = typeof v === 'string' ? Buffer.from(v) : Buffer.concat([].concat(v));
  return Buffer.concat([varint(field * 8 + 2), varint(b.length), b]);
}
const FLOAT = 1, INT8 = 3, INT64 = 7;
const value = (field, name, type, dims) =>
  bytes(field, [bytes(1, name), bytes(2, bytes(1, [int(1, type), bytes(2, dims.map(
    (d) => bytes(1, int(1, d))))]))]);
function attribute(name, v) { // an integer, a float as { f }, or a list of integers
  if (Array.isArray(v)) return bytes(5, [bytes(1, name), ...v.map((n) => int(8, n)), int(20, 7)]);
  if (typeof v === 'number') return bytes(5, [bytes(1, name), int(3, v), int(20, 2)]);
  const b = Buffer.alloc(4);
  b.writeFloatLE(v.f);
  return bytes(5, [bytes(1, name), varint(2 * 8 + 5), b, int(20, 1)]);
}

const nodes = [], tensors = [];
let names = 0, state = 1;
const random = () => { // of a linear congruence: the same weights every time
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32 - 0.5;
};

function node(op, inputs, outputs = 1, attributes = {}, domain = '') {
  const out = Array.from({ length: outputs }, () => 't' + names++);
  nodes.push(bytes(1, [...inputs.map((x) => bytes(1, x)), ...out.map((x) => bytes(2, x)),
    bytes(4, op), ...Object.entries(attributes).map(([k, v]) => attribute(k, v)),
    ...(domain ? [bytes(7, domain)] : [])]));
  return outputs === 1 ? out[0] : out;
}

function tensor(type, dims, data) {
  const name = 'w' + names++;
  tensors.push(bytes(5, [...dims.map((d) => int(1, d)), int(2, type), bytes(8, name),
    bytes(9, Buffer.from(data.buffer, data.byteOffset, data.byteLength))]));
  return name;
}
const floats = (dims, f) =>
  tensor(FLOAT, dims, Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, f));

// x (or what DynamicQuantizeLinear made of it) W + b
function dense(x, q, inputs, outputs) {
  const bias = floats([outputs], () => 0.1 * random());
  if (f32) {
    const w = floats([inputs, outputs], () => 3 * random() / Math.sqrt(inputs));
    return node('Add', [node('MatMul', [x, w]), bias]);
  }
  const w = tensor(INT8, [inputs, outputs],
    Int8Array.from({ length: inputs * outputs }, () => Math.round(254 * random())));
  const zero = tensor(INT8, [outputs], new Int8Array(outputs));
  const scale = floats([outputs], () => (1 + random()) * 0.02 / Math.sqrt(inputs));
  const sums = node('Cast', [node('MatMulInteger', [q[0], w, q[2], zero])], 1, { to: FLOAT });
  return node('Add', [node('Mul', [sums, node('Mul', [q[1], scale])]), bias]);
}
const rounded = (x) => (f32 ? null : node('DynamicQuantizeLinear', [x], 3));
function norm(x, skip) {
  const gain = floats([DIM], () => 1), bias = floats([DIM], () => 0);
  return skip ? node('SkipLayerNormalization', [x, skip, gain, bias], 1, { epsilon: { f: 1e-12 } },
    'com.microsoft') : node('LayerNormalization', [x, gain, bias], 1, { epsilon: { f: 1e-12 } });
}

function model() {
  const table = floats([VOCAB, DIM], random), positions = floats([1, tokens, DIM], random);
  let x = norm(node('Add', [node('Gather', [table, 'ids']), positions]));
  for (let l = 0; l < LAYERS; l++) {
    const q = rounded(x);
    const heads = [0, 1, 2].map(() => dense(x, q, DIM, DIM));
    const y = node('MultiHeadAttention', heads, 1, { num_heads: HEADS }, 'com.microsoft');
    x = norm(dense(y, rounded(y), DIM, DIM), x);
    const h = node('Gelu', [dense(x, rounded(x), DIM, HIDDEN)], 1, {}, 'com.microsoft');
    x = norm(dense(h, rounded(h), HIDDEN, DIM), x);
  }
  nodes.push(bytes(1, [bytes(1, x), bytes(2, 'y'), bytes(4, 'ReduceMean'), attribute('axes', [1]),
    attribute('keepdims', 0)]));
  const graph = bytes(7, [...nodes, bytes(2, 'encoder'), ...tensors,
    value(11, 'ids', INT64, [1, tokens]), value(12, 'y', FLOAT, [1, DIM])]);
  const opset = (domain, n) => bytes(8, [bytes(1, domain), int(2, n)]);
  return Buffer.concat([int(1, 8), graph, opset('', 17), opset('com.microsoft', 1)]);
}

async function main() {
  const session = await ort.InferenceSession.create(model(),
    { intraOpNumThreads: threads, interOpNumThreads: 1, graphOptimizationLevel: 'all' });
  const ids = BigInt64Array.from({ length: tokens }, (_, i) => BigInt((37 * i + 1) % VOCAB));
  const feeds = { ids: new ort.Tensor('int64', ids, [1, tokens]) };
  process.stdout.write(`pare-peer 1 ort-${f32 ? 'f32' : 'int8'}\n`);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [word, n] = line.split(' ');
    if (word !== 'run') break;
    const times = [];
    for (let i = 0; i < Number(n); i++) {
      const start = process.hrtime.bigint();
      const out = await session.run(feeds, ['y']);
      times.push((Number(process.hrtime.bigint() - start) / 1e6).toFixed(6));
      if (!out.y.data.every(Number.isFinite)) throw new Error('not finite');
    }
    process.stdout.write('ms ' + times.join(' ') + '\n');
  }
}
main();
