// Harness of the conformance suite for a sampler in Go.
// go build -o harness harness.go; ./harness ../cases.txt > answers.jsonl; ./harness ../cases.txt wrong > wrong.jsonl
// Replace verify by a call of your sampler; everything else stays. SEED sets the seed, TIMES=16 plays
// every case 16 times.
package main

import (
	"bufio"
	"encoding/json"
	"math/rand"
	"os"
	"strconv"
)

type Request struct {
	drafts        []int
	target, draft [][]float32
}

var (
	random *rand.Rand
	times  int
	wrong  bool // play the sampler that must be found
	words  *bufio.Scanner
)

func pick(masses []float32, coin float64) int {
	left, last := 0.0, 0
	for _, mass := range masses {
		left += coin * float64(mass)
	}
	for token, mass := range masses {
		if mass > 0 {
			last = token
			if left < float64(mass) {
				break
			}
			left -= float64(mass)
		}
	}
	return last
}

// The sampler under test: n drafts, n+1 dense rows of the target, n rows of the draft; returns the emitted tokens.
// coins: nil, or n acceptance numbers and one for the token after them.
func verify(r Request, coins []float64) []int {
	out, n := []int{}, len(r.drafts)
	number := func(i int) float64 {
		if coins != nil {
			return coins[i]
		}
		return random.Float64()
	}
	last := number(n)
	for i, x := range r.drafts {
		p, q := r.target[i], r.draft[i]
		if x < 0 { // a placeholder: no draft is here
			return append(out, pick(p, last))
		}
		if q[x] > 0 && number(i)*float64(q[x]) < float64(p[x]) {
			out = append(out, x)
			continue
		}
		left, mass := make([]float32, len(p)), float32(0)
		for t := range p {
			if p[t] > q[t] {
				left[t] = p[t] - q[t]
				mass += left[t]
			}
		}
		if wrong || !(mass > 0) {
			left = p
		}
		return append(out, pick(left, last))
	}
	return append(out, pick(r.target[n], last))
}

// Reading and writing
func word() string {
	if !words.Scan() {
		os.Exit(2)
	}
	return words.Text()
}

func integer() int {
	number, _ := strconv.Atoi(word())
	return number
}

func rows(count, size int) [][]float32 {
	found := make([][]float32, count)
	for i := range found {
		found[i] = make([]float32, size)
		for k := integer(); k > 0; k-- {
			token := integer()
			mass, _ := strconv.ParseFloat(word(), 32)
			found[i][token] = float32(mass)
		}
	}
	return found
}

func request(size int) Request {
	r := Request{drafts: make([]int, integer())}
	for i := range r.drafts {
		r.drafts[i] = integer()
	}
	r.target = rows(len(r.drafts)+1, size)
	r.draft = rows(len(r.drafts), size)
	return r
}

func play(size, points int) [][][]int {
	word()
	calls, requests := integer()*max(times, 1), make([]Request, integer())
	for b := range requests {
		requests[b] = request(size)
	}
	if points > 0 {
		calls = 1
		for k := 0; k <= len(requests[0].drafts); k++ {
			calls *= points
		}
	}
	answers := make([][][]int, calls)
	for call := range answers {
		var coins []float64
		for k, rest := 0, call; points > 0 && k <= len(requests[0].drafts); k++ {
			coins = append(coins, (float64(rest%points)+0.5)/float64(points))
			rest /= points
		}
		for _, r := range requests {
			answers[call] = append(answers[call], verify(r, coins))
		}
	}
	return answers
}

func main() {
	file, _ := os.Open(os.Args[1])
	wrong = len(os.Args) > 2
	seed, _ := strconv.ParseInt(os.Getenv("SEED"), 10, 64)
	random = rand.New(rand.NewSource(seed))
	times, _ = strconv.Atoi(os.Getenv("TIMES"))
	words = bufio.NewScanner(file)
	words.Split(bufio.ScanWords)
	out := json.NewEncoder(os.Stdout)
	_, _ = word(), word()
	for word() == "case" {
		id, answers := word(), [][][]int{}
		_, _ = word(), word()
		size, groups, points := integer(), integer(), integer()
		for ; groups > 0; groups-- {
			answers = append(answers, play(size, points)...)
		}
		out.Encode(map[string]any{"case": id, "answers": answers})
	}
}
