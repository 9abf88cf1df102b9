#!/usr/bin/env node
// Runs an ONNX file by ONNX Runtime: node onnx.js FOLDER MODEL.onnx X.npy Y.npy [X.npy Y.npy ...]
// FOLDER/node_modules holds onnxruntime-node. Y is float32.
'use strict';
const fs = require('fs');
const path = require('path');

function readNpy(file) {
  const b = fs.readFileSync(file);
  const head = b.toString('latin1', 10, 10 + b.readUInt16LE(8));
  const shape = /'shape': \(([^)]*)\)/.exec(head)[1].split(',').filter((s) => s.trim()).map(Number);
  const start = 10 + b.readUInt16LE(8);
  return { type: /'descr': '([^']*)'/.exec(head)[1], shape, bytes: b.subarray(start) };
}

function tensor(ort, a) {
  const copy = a.bytes.buffer.slice(a.bytes.byteOffset, a.bytes.byteOffset + a.bytes.length);
  const ids = { '<i8': BigInt64Array, '<i4': Int32Array }[a.type];
  const shape = a.shape.length === (ids ? 1 : 2) ? [1, ...a.shape] : a.shape;
  if (ids) return new ort.Tensor('int64', BigInt64Array.from(new ids(copy), BigInt), shape);
  const x = a.type === '<f8' ? Float32Array.from(new Float64Array(copy)) : new Float32Array(copy);
  return new ort.Tensor('float32', x, shape);
}

function writeNpy(file, data, shape) {
  let head = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  head = head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11) + '\n';
  const start = Buffer.alloc(10);
  start.write('\x93NUMPY\x01\x00', 'latin1');
  start.writeUInt16LE(head.length, 8);
  fs.writeFileSync(file, Buffer.concat([start, Buffer.from(head),
    Buffer.from(data.buffer, data.byteOffset, data.byteLength)]));
}

async function main([folder, model, ...files]) {
  const ort = require(path.resolve(folder, 'node_modules', 'onnxruntime-node'));
  const session = await ort.InferenceSession.create(model, { logSeverityLevel: 3 });
  for (let i = 0; i + 1 < files.length; i += 2) {
    const x = tensor(ort, readNpy(files[i]));
    // Published encoders also ask which tokens are no padding (all) and of which type they are (0).
    const like = (v) => new ort.Tensor('int64', new BigInt64Array(x.data.length).fill(v), x.dims);
    const feeds = {};
    session.inputNames.forEach((name) => {
      feeds[name] = name.includes('mask') ? like(1n) : name.includes('type') ? like(0n) : x;
    });
    const y = (await session.run(feeds))[session.outputNames[0]];
    writeNpy(files[i + 1], y.data, y.dims);
  }
}
main(process.argv.slice(2)).catch((e) => { console.error(String(e)); process.exit(2); });
