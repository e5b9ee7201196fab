// Token verification of batches behind spectheory's protocol: node batch_program.js [MISTAKE]
// Mistakes: "shared", all requests read the numbers of the first; "company", a seed counts alone only;
// "greedy", one greedy request makes all of them greedy; "logprobs" of the draft's rows.
const mistake = process.argv[2];
const best = (row) => row.indexOf(Math.max(...row));

function generator(state) { // mulberry32
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function verify({ draft_tokens: path, target_rows: p, draft_rows: q }, greedy, uniform) {
  const accepts = (n) => (greedy ? path[n] === best(p[n]) : uniform() * q[n][path[n]] < p[n][path[n]]);
  let n = 0, token = 0;
  while (n < path.length && accepts(n)) n++;
  if (greedy) return [...path.slice(0, n), best(p[n])];
  const row = n === path.length ? p[n] : p[n].map((x, i) => Math.max(x - q[n][i], 0));
  let u = uniform() * row.reduce((a, b) => a + b);
  while (token < row.length - 1 && u >= row[token]) u -= row[token++];
  return [...path.slice(0, n), token];
}

function answer({ requests }) {
  const answers = requests.map((request) => {
    const { uniforms } = mistake === "shared" ? requests[0] : request;
    const isSeeded = request.seed !== undefined && (mistake !== "company" || requests.length === 1);
    const own = isSeeded ? generator(request.seed) : Math.random;
    let used = 0;
    const greedy = mistake === "greedy" ? requests.some((each) => each.greedy) : request.greedy;
    const tokens = verify(request, greedy, () => (uniforms ? uniforms[used++] : own()));
    const rows = request.target_rows.map((row, i) => (mistake === "logprobs" && request.draft_rows[i]) || row);
    return { tokens, used, logprobs: tokens.map((token, i) => Math.log(rows[i][token])) };
  });
  return { requests: answers, reads: ["greedy", "seed"] };
}

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  console.log(JSON.stringify(answer(JSON.parse(line))));
});
