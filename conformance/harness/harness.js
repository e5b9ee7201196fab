// Harness of the conformance suite for a sampler in JavaScript.
// node harness.js ../cases.jsonl > answers.jsonl; node harness.js ../cases.jsonl wrong > wrong.jsonl
// Replace `verify` by a call of your sampler, and `processed` and `draw` if it has settings and drafts of its own.
"use strict";
const fs = require("fs");
const wrong = process.argv[3] !== undefined; // play the sampler that must be found
const TIMES = Number(process.env.TIMES || 1); // play every case so many times
const UNSUPPORTED = ["paths"];

function pick(row, coin = Math.random()) {
  let left = coin * row.reduce((sum, mass) => sum + mass, 0);
  let last = 0;
  for (let t = 0; t < row.length; t++) {
    if (!(row[t] > 0)) continue;
    last = t;
    if (left < row[t]) break;
    left -= row[t];
  }
  return last;
}

// The sampler under test: n drafts, n+1 dense rows of the target, n rows of the draft; returns the emitted tokens.
// coins: undefined, or n acceptance numbers and one for the token after them.
function verify(drafts, target, draft, coins) {
  const last = coins ? coins[drafts.length] : Math.random();
  for (let i = 0; i < drafts.length; i++) {
    const x = drafts[i];
    if (x < 0) return [...drafts.slice(0, i), pick(target[i], last)]; // a placeholder: no draft is here
    const coin = coins ? coins[i] : Math.random();
    if (draft[i][x] > 0 && coin * draft[i][x] < target[i][x]) continue;
    const residual = target[i].map((mass, t) => Math.max(mass - draft[i][t], 0));
    const left = !wrong && residual.some((mass) => mass > 0) ? residual : target[i];
    return [...drafts.slice(0, i), pick(left, last)];
  }
  return [...drafts, pick(target[drafts.length], last)];
}

// One draft token from a row of the draft.
const draw = (row) => pick(row);

// A target row from weights (exponentials of logits) and a request's settings, in the order of the file.
function processed(weights, settings, before, position) {
  let row = Float64Array.from(weights);
  const { allowed, past = [], frequency_penalty = 0, temperature = 1, min_p, top_k, top_p } = settings;
  if (allowed) row = row.map((mass, t) => (allowed[position].includes(t) ? mass : 0));
  for (const token of [...past, ...before]) row[token] *= Math.exp(-frequency_penalty);
  const largest = Math.max(...row);
  row = temperature === 0 ? row.map((mass) => (mass === largest ? 1 : 0)) : row.map((mass) => mass ** (1 / temperature));
  const order = [...row.keys()].sort((a, b) => row[b] - row[a]);
  const top = row[order[0]];
  if (min_p !== undefined) row = row.map((mass) => (mass >= min_p * top ? mass : 0));
  if (top_k !== undefined) for (const token of order.slice(top_k)) row[token] = 0;
  if (top_p !== undefined) {
    const total = row.reduce((sum, mass) => sum + mass, 0);
    let sum = 0;
    for (const token of order) {
      const mass = row[token];
      if (sum >= top_p * total) row[token] = 0;
      sum += mass;
    }
  }
  const total = row.reduce((sum, mass) => sum + mass, 0);
  return row.map((mass) => mass / total);
}

// Reading and writing
function number(text) {
  if (text === "nan") return NaN;
  const [above, below = 1] = text.split("/");
  return Number(above) / Number(below);
}

function dense(row, size) {
  if (row.length && row[0][0] === "*") return new Float32Array(size).fill(number(row[0][1]));
  const out = new Float32Array(size);
  for (const [token, mass] of row) out[token] = number(mass);
  return out;
}

function prepared(request, size) {
  let target = (request.weights || request.target).map((row) => dense(row, size));
  const { drafts, parameters } = request;
  if (parameters) target = target.map((row, i) => processed(row, parameters, drafts.slice(0, i), i));
  const draft = request.draft.map((row) => dense(row, size));
  return { ...request, target, draft, then: (request.then || []).map((next) => prepared(next, size)) };
}

function answer(kind, { drafts, target, draft, then }, coins) {
  if (kind === "drafted") {
    const drawn = draft.map(draw);
    return [...drawn, -1, ...verify(drawn, target, draft)];
  }
  const block = verify(drafts, target, draft, coins);
  if (kind === "calls") {
    const next = then[block.length - 1];
    return [...block, -1, ...verify(next.drafts, next.target, next.draft)];
  }
  if (kind === "logprobs") return { tokens: block, logprobs: block.map((token, i) => Math.log(target[i][token])) };
  return block;
}

function gridCoins(call, { points, coins }) {
  const found = [];
  for (let k = 0, rest = call; k < coins; k++, rest = Math.floor(rest / points)) found.push(((rest % points) + 0.5) / points);
  return found;
}

function play(own) {
  if (own.kind === "pooled") {
    const { target, draft } = prepared(own, own.vocab);
    return own.calls.flatMap(({ drafts, times }) => Array.from({ length: times * TIMES }, () => [verify(drafts, target, draft)]));
  }
  const requests = own.requests.map((request) => prepared(request, own.vocab));
  const calls = own.kind === "grid" ? own.points ** own.coins : own.draws * TIMES;
  return Array.from({ length: calls }, (_, call) => {
    const coins = own.kind === "grid" ? gridCoins(call, own) : undefined;
    return requests.map((request) => answer(own.kind, request, coins));
  });
}

const lines = fs.readFileSync(process.argv[2], "utf8").trim().split("\n").slice(1);
for (const own of lines.map((line) => JSON.parse(line))) {
  if (UNSUPPORTED.includes(own.profile)) continue;
  fs.writeSync(1, JSON.stringify({ case: own.id, answers: play(own) }) + "\n");
}
