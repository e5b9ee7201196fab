// Harness of the conformance suite for a sampler in C++17.
// c++ -O2 -std=c++17 -o harness harness.cpp; ./harness ../cases.txt > answers.jsonl; ./harness ../cases.txt wrong > wrong.jsonl
// Replace `verify` by a call of your sampler; everything else stays. SEED sets the seed, TIMES=16 plays
// every case 16 times.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

using Row = std::vector<float>;
using Tokens = std::vector<int>;
using Coins = std::optional<std::vector<double>>;
struct Request { Tokens drafts; std::vector<Row> target, draft; };

static std::mt19937_64 generator(std::getenv("SEED") ? std::stoull(std::getenv("SEED")) : std::random_device{}());
static int times = std::getenv("TIMES") ? std::stoi(std::getenv("TIMES")) : 1;
static bool wrong = false;  // play the sampler that must be found

static double uniform() { return (generator() >> 11) * 0x1p-53; }

static int pick(const Row &masses, double coin) {
    double left = coin * std::accumulate(masses.begin(), masses.end(), 0.0);
    int last = 0;
    for (int t = 0; t < (int)masses.size(); t++) {
        if (!(masses[t] > 0)) continue;
        last = t;
        if (left < masses[t]) break;
        left -= masses[t];
    }
    return last;
}

// The sampler under test: n drafts, n+1 dense rows of the target, n rows of the draft; returns the emitted tokens.
// coins: nothing, or n acceptance numbers and one for the token after them.
static Tokens verify(const Request &r, const Coins &coins) {
    Tokens out;
    int n = r.drafts.size();
    double last = coins ? (*coins)[n] : uniform();
    for (int i = 0; i < n; i++) {
        int x = r.drafts[i];
        const Row &p = r.target[i], &q = r.draft[i];
        Row left = p;
        if (x >= 0) {
            if (q[x] > 0 && (coins ? (*coins)[i] : uniform()) * q[x] < p[x]) {
                out.push_back(x);
                continue;
            }
            if (!wrong)
                for (size_t t = 0; t < p.size(); t++) left[t] = p[t] > q[t] ? p[t] - q[t] : 0;
        }
        bool has_mass = std::any_of(left.begin(), left.end(), [](float m) { return m > 0; });
        out.push_back(pick(has_mass ? left : p, last));
        return out;
    }
    out.push_back(pick(r.target[n], last));
    return out;
}

// Reading and writing
static std::ifstream cases;

static std::string word() {
    std::string text;
    if (!(cases >> text)) std::exit(2);
    return text;
}

static int integer() { return std::stoi(word()); }

static std::vector<Row> rows(int count, int size) {
    std::vector<Row> found(count, Row(size, 0.0f));
    for (Row &row : found)
        for (int k = integer(); k; k--) {
            int token = integer();
            row[token] = std::stof(word());
        }
    return found;
}

static Request request(int size) {
    Request r;
    r.drafts.resize(integer());
    for (int &token : r.drafts) token = integer();
    r.target = rows(r.drafts.size() + 1, size);
    r.draft = rows(r.drafts.size(), size);
    return r;
}

static void play(int size, int points, bool is_first) {
    word();
    int calls = integer(), batch = integer();
    std::vector<Request> requests;
    while (batch--) requests.push_back(request(size));
    int numbers = requests[0].drafts.size() + 1;
    calls = points ? std::lround(std::pow(points, numbers)) : calls * times;
    for (int call = 0; call < calls; call++) {
        Coins coins;
        if (points) coins.emplace();
        for (int k = 0, rest = call; points && k < numbers; k++, rest /= points)
            coins->push_back((rest % points + 0.5) / points);
        std::cout << (is_first && !call ? "[" : ",[");
        for (size_t b = 0; b < requests.size(); b++) {
            std::cout << (b ? ",[" : "[");
            Tokens out = verify(requests[b], coins);
            for (size_t k = 0; k < out.size(); k++) std::cout << (k ? "," : "") << out[k];
            std::cout << "]";
        }
        std::cout << "]";
    }
}

int main(int argc, char **argv) {
    std::ios::sync_with_stdio(false);
    cases.open(argc > 1 ? argv[1] : "../cases.txt");
    if (!cases) {
        std::cerr << "cannot open the file of cases\n";
        return 2;
    }
    wrong = argc > 2;
    for (word(), word(); word() == "case";) {
        std::cout << "{\"case\":\"" << word() << "\",\"answers\":[";
        word(), word();
        int size = integer(), groups = integer(), points = integer();
        for (int g = 0; g < groups; g++) play(size, points, !g);
        std::cout << "]}\n";
    }
}
