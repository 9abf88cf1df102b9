#!/usr/bin/env node
// ONNX Runtime as a peer of `pare bench --peer`: dense attention (docs/bench.md).
//
//     node bench/peers/peer_ort.js FOLDER      FOLDER/node_modules holds onnxruntime-node
//
// The graph is one operator, written here as the few bytes of protobuf it is: MultiHeadAttention
// for full attention, GroupQueryAttention for causal, whose kernel leaves out what is masked.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const modules = path.resolve(process.argv[2] || '.', 'node_modules', 'onnxruntime-node');
const ort = require(modules);
const version = JSON.parse(fs.readFileSync(path.join(modules, 'package.json'), 'utf8')).version;

// ---- ONNX, as much of it as is needed: fields of onnx.proto by their numbers -----------------

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
const FLOAT = 1, INT32 = 6;
// ValueInfoProto: name 1, type 2 { tensor_type 1 { elem_type 1, shape 2 { dim 1 } } }
const value = (field, name, type, dims) =>
  bytes(field, [bytes(1, name), bytes(2, bytes(1, [int(1, type), bytes(2, dims.map(
    (d) => bytes(1, typeof d === 'string' ? bytes(2, d) : int(1, d))))]))]);
// AttributeProto: name 1, i 3, type 20 (2 is INT)
const attribute = (name, n) => bytes(5, [bytes(1, name), int(3, n), int(20, 2)]);

function model(causal, heads, d) {
  const rows = [1, 'N', heads * d], cache = [1, heads, 'M', d];
  const inputs = causal ? ['q', 'k', 'v', '', '', 'last', 'total'] : ['q', 'k', 'v'];
  const outputs = causal ? ['y', 'keys', 'values'] : ['y'];
  const node = bytes(1, [ // NodeProto: input 1, output 2, op_type 4, attribute 5, domain 7
    ...inputs.map((x) => bytes(1, x)), ...outputs.map((x) => bytes(2, x)),
    bytes(4, causal ? 'GroupQueryAttention' : 'MultiHeadAttention'),
    attribute('num_heads', heads), ...(causal ? [attribute('kv_num_heads', heads)] : []),
    bytes(7, 'com.microsoft')]);
  const graph = bytes(7, [ // GraphProto: node 1, name 2, input 11, output 12
    node, bytes(2, 'attention'), ...['q', 'k', 'v'].map((x) => value(11, x, FLOAT, rows)),
    ...(causal ? [value(11, 'last', INT32, [1]), value(11, 'total', INT32, [])] : []),
    value(12, 'y', FLOAT, rows),
    ...(causal ? [value(12, 'keys', FLOAT, cache), value(12, 'values', FLOAT, cache)] : [])]);
  const opset = (domain, n) => bytes(8, [bytes(1, domain), int(2, n)]);
  return Buffer.concat([int(1, 8), graph, opset('', 17), opset('com.microsoft', 1)]);
}

// ---- .npy ------------------------------------------------------------------------------------

function readF32(file) { // version 1, little-endian, row-major: what pare writes
  const b = fs.readFileSync(file);
  const start = 10 + b.readUInt16LE(8);
  return new Float32Array(b.buffer.slice(b.byteOffset + start, b.byteOffset + b.length));
}

function writeF32(file, data, shape) {
  let head = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(', ')}), }`;
  head = head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11) + '\n';
  const size = Buffer.alloc(2);
  size.writeUInt16LE(head.length);
  fs.writeFileSync(file, Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), size,
    Buffer.from(head, 'latin1'), Buffer.from(data.buffer, data.byteOffset, data.byteLength)]));
}

// ---- answering -------------------------------------------------------------------------------

let session = null, feeds = null, result = null, cpu = false;

function seconds() {
  const used = process.cpuUsage();
  return cpu ? (used.user + used.system) / 1e6 : Number(process.hrtime.bigint()) / 1e9;
}

async function load(threads, folder) {
  const c = JSON.parse(fs.readFileSync(path.join(folder, 'case.json'), 'utf8'));
  if (c.kind !== 'attention') return 'no such kind of work';
  const causal = c.mask === 'causal';
  if (session) await session.release();
  session = await ort.InferenceSession.create(model(causal, c.heads, c.d),
    { intraOpNumThreads: threads, interOpNumThreads: 1, graphOptimizationLevel: 'all',
      // Waiting is not work: a thread that spins would be charged for it.
      extra: { session: { intra_op: { allow_spinning: cpu ? '0' : '1' } } } });
  feeds = {};
  for (const x of ['q', 'k', 'v'])
    feeds[x] = new ort.Tensor('float32', readF32(path.join(folder, x + '.npy')),
      [1, c.n, c.heads * c.d]);
  if (causal) {
    feeds.last = new ort.Tensor('int32', Int32Array.of(c.n - 1), [1]);
    feeds.total = new ort.Tensor('int32', Int32Array.of(c.n), []);
  }
  return 'ok ' + (causal ? 'GQA' : 'MHA');
}

async function run(n) {
  const times = [];
  for (let i = 0; i < n; i++) {
    const start = seconds();
    result = await session.run(feeds, ['y']);
    times.push((1e3 * (seconds() - start)).toFixed(6));
  }
  return 'ms ' + times.join(' ');
}

function save(file) {
  writeF32(file, result.y.data, result.y.dims);
  return 'ok';
}

async function answer(line) {
  const [word, ...rest] = line.split(' ');
  try {
    if (word === 'load') return await load(Number(rest[0]), rest.slice(1).join(' '));
    if (word === 'run') return await run(Number(rest[0]));
    if (word === 'clock') return (cpu = rest[0] === 'cpu', 'ok');
    if (word === 'save') return save(rest.join(' '));
    return 'what?';
  } catch (e) { // the other side prints it
    return 'failed: ' + String(e && e.message || e).replace(/\s+/g, ' ').slice(0, 300);
  }
}

async function main() {
  process.stdout.write(`pare-peer 1 ort-${version}\n`);
  for await (const line of readline.createInterface({ input: process.stdin }))
    process.stdout.write(await answer(line) + '\n');
}
main();
