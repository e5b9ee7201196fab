// Harness of the conformance suite for a sampler in Rust.
// rustc --edition 2021 -O -o harness harness.rs; ./harness ../cases.txt > answers.jsonl; ./harness ../cases.txt wrong > wrong.jsonl
// Replace `verify` by a call of your sampler; everything else stays. SEED sets the seed, TIMES=16 plays
// every case 16 times.
use std::io::Write;

struct Request {
    drafts: Vec<i64>,
    target: Vec<Vec<f32>>,
    draft: Vec<Vec<f32>>,
}

struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(2685821657736338717) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn pick(masses: &[f32], coin: f64) -> i64 {
    let mut left = coin * masses.iter().map(|&m| m as f64).sum::<f64>();
    let mut last = 0;
    for (token, &mass) in masses.iter().enumerate().filter(|(_, &m)| m > 0.0) {
        last = token;
        if left < mass as f64 {
            break;
        }
        left -= mass as f64;
    }
    last as i64
}

/// The sampler under test: n drafts, n+1 dense rows of the target, n rows of the draft; returns the emitted tokens.
/// coins: nothing, or n acceptance numbers and one for the token after them.
fn verify(r: &Request, coins: Option<&[f64]>, random: &mut Random, wrong: bool) -> Vec<i64> {
    let n = r.drafts.len();
    let last = coins.map_or_else(|| random.uniform(), |own| own[n]);
    let mut out = Vec::new();
    for i in 0..n {
        let (p, q) = (&r.target[i], &r.draft[i]);
        if r.drafts[i] < 0 {
            out.push(pick(p, last)); // a placeholder: no draft is here
            return out;
        }
        let x = r.drafts[i] as usize;
        let coin = coins.map_or_else(|| random.uniform(), |own| own[i]);
        if q[x] > 0.0 && coin * (q[x] as f64) < p[x] as f64 {
            out.push(r.drafts[i]);
            continue;
        }
        let left: Vec<f32> = p.iter().zip(q).map(|(&a, &b)| if a > b { a - b } else { 0.0 }).collect();
        let has_mass = left.iter().any(|&m| m > 0.0);
        out.push(pick(if has_mass && !wrong { &left } else { p }, last));
        return out;
    }
    out.push(pick(&r.target[n], last));
    out
}

// Reading and writing
struct Words<'a>(std::str::SplitWhitespace<'a>);

impl<'a> Words<'a> {
    fn word(&mut self) -> &'a str {
        self.0.next().expect("the file of cases ends too early")
    }

    fn number<T: std::str::FromStr>(&mut self) -> T {
        let text = self.word();
        text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
    }

    fn rows(&mut self, count: usize, size: usize) -> Vec<Vec<f32>> {
        let mut found = vec![vec![0.0; size]; count];
        for row in &mut found {
            for _ in 0..self.number::<usize>() {
                let token: usize = self.number();
                row[token] = self.number();
            }
        }
        found
    }

    fn request(&mut self, size: usize) -> Request {
        let length: usize = self.number();
        let drafts = (0..length).map(|_| self.number()).collect();
        let target = self.rows(length + 1, size);
        let draft = self.rows(length, size);
        Request { drafts, target, draft }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(arguments.get(1).map_or("../cases.txt", |path| path)).expect("no such file");
    let wrong = arguments.len() > 2;
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (seed, times) = (variable("SEED").unwrap_or(1u64), variable("TIMES").unwrap_or(1) as usize);
    let mut random = Random(88172645463325252 ^ seed.wrapping_mul(0x9E3779B97F4A7C15));
    let mut words = Words(text.split_whitespace());
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    (words.word(), words.word());
    while words.word() == "case" {
        let id = words.word();
        (words.word(), words.word());
        let (size, groups, points): (usize, usize, usize) = (words.number(), words.number(), words.number());
        let mut answers: Vec<String> = Vec::new();
        for _ in 0..groups {
            words.word();
            let (mut calls, batch): (usize, usize) = (words.number(), words.number());
            let requests: Vec<Request> = (0..batch).map(|_| words.request(size)).collect();
            let numbers = requests[0].drafts.len() + 1;
            calls = if points > 0 { points.pow(numbers as u32) } else { calls * times };
            for call in 0..calls {
                let coins: Option<Vec<f64>> = (points > 0).then(|| {
                    let digit = |k: u32| call / points.pow(k) % points;
                    (0..numbers).map(|k| (digit(k as u32) as f64 + 0.5) / points as f64).collect()
                });
                let tokens = requests.iter().map(|r| verify(r, coins.as_deref(), &mut random, wrong));
                let blocks: Vec<String> = tokens.map(|own| format!("{own:?}").replace(' ', "")).collect();
                answers.push(format!("[{}]", blocks.join(",")));
            }
        }
        writeln!(out, "{{\"case\":\"{id}\",\"answers\":[{}]}}", answers.join(",")).expect("cannot write");
    }
}
