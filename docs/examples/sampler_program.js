// Token verification of one path behind spectheory's protocol: node sampler_program.js [gumbel] [wrong]
const gumbel = process.argv.includes("gumbel"), wrong = process.argv.includes("wrong");

function verify({ paths: [path], target_rows: [p], draft_rows: [q], uniforms }) {
  let used = 0;
  const uniform = () => (uniforms ? uniforms[used++] : Math.random());
  let n = 0;
  while (n < path.length && uniform() < p[n][path[n]] / q[n][path[n]]) n++;
  const row = n === path.length || wrong ? p[n] : p[n].map((x, i) => Math.max(x - q[n][i], 0));
  let token = 0;
  if (gumbel) {
    const keys = row.map((weight) => Math.log(weight) - Math.log(-Math.log(uniform())));
    token = keys.indexOf(Math.max(...keys));
  } else {
    let u = uniform() * row.reduce((a, b) => a + b);
    while (token < row.length - 1 && u >= row[token]) u -= row[token++];
  }
  return { tokens: [...path.slice(0, n), token], used };
}

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  let answer;
  try { answer = verify(JSON.parse(line)); } catch (error) { answer = { error: String(error) }; }
  console.log(JSON.stringify(answer));
});
