/* Harness of the conformance suite for a sampler in C.
   cc -O2 -o harness harness.c -lm && ./harness ../cases.txt > answers.jsonl && ./harness ../cases.txt wrong > wrong.jsonl
   Replace `verify` by a call of your sampler; everything else stays. SEED sets the seed, TIMES=16 plays
   every case 16 times. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int length, *drafts; float **target, **draft; } Request;

static uint64_t state = 88172645463325252u;
static int wrong; /* play the sampler that must be found */
static FILE *cases;

static double uniform(void) { /* xorshift64*, 53 bits */
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (double)((state * 2685821657736338717u) >> 11) / 9007199254740992.0;
}

static int pick(const float *masses, int size, double coin) {
    double left = 0;
    int last = 0;
    for (int t = 0; t < size; t++) left += masses[t];
    left *= coin;
    for (int t = 0; t < size; t++) {
        if (!(masses[t] > 0)) continue;
        last = t;
        if (left < masses[t]) break;
        left -= masses[t];
    }
    return last;
}

/* The sampler under test: n drafts, n+1 dense rows of the target, n rows of the draft. Writes the emitted tokens and
   returns their number. coins: NULL, or n acceptance numbers and one for the token after them. */
static int verify(const int *drafts, int n, float **target, float **draft, int size, const double *coins, int *out) {
    double last = coins ? coins[n] : uniform();
    for (int i = 0; i < n; i++) {
        int x = drafts[i];
        const float *p = target[i], *q = draft[i];
        if (x < 0) { /* a placeholder: no draft is here */
            out[i] = pick(p, size, last);
            return i + 1;
        }
        out[i] = x;
        if (q[x] > 0 && (coins ? coins[i] : uniform()) * q[x] < p[x]) continue;
        float *left = malloc(size * sizeof *left), mass = 0;
        for (int t = 0; t < size; t++) {
            left[t] = wrong ? p[t] : p[t] > q[t] ? p[t] - q[t] : 0;
            mass += left[t];
        }
        out[i] = pick(mass > 0 ? left : p, size, last);
        free(left);
        return i + 1;
    }
    out[n] = pick(target[n], size, last);
    return n + 1;
}

/* Reading */
static const char *word(void) {
    static char text[64];
    if (fscanf(cases, "%63s", text) != 1) exit(2);
    return text;
}

static int integer(void) { return atoi(word()); }

static float **rows(int count, int size) {
    float **found = malloc((count + 1) * sizeof *found);
    for (int i = 0; i < count; i++) {
        found[i] = calloc(size, sizeof **found);
        for (int k = integer(); k; k--) {
            int token = integer();
            found[i][token] = (float)atof(word());
        }
    }
    return found;
}

static Request request(int size) {
    Request r = {integer(), 0, 0, 0};
    r.drafts = malloc((r.length + 1) * sizeof *r.drafts);
    for (int i = 0; i < r.length; i++) r.drafts[i] = integer();
    r.target = rows(r.length + 1, size);
    r.draft = rows(r.length, size);
    return r;
}

/* All calls of one group; `between` divides them from the calls before. */
static void play(int size, int points, const char *between) {
    word();
    int calls = integer(), batch = integer(), out[64];
    double coins[64];
    Request *r = malloc(batch * sizeof *r);
    for (int b = 0; b < batch; b++) r[b] = request(size);
    calls = points ? (int)pow(points, r[0].length + 1) : calls * (getenv("TIMES") ? atoi(getenv("TIMES")) : 1);
    for (int call = 0; call < calls; call++, between = ",") {
        for (int k = 0, rest = call; points && k <= r[0].length; k++, rest /= points)
            coins[k] = (rest % points + 0.5) / points;
        printf("%s[", between);
        for (int b = 0; b < batch; b++) {
            int n = verify(r[b].drafts, r[b].length, r[b].target, r[b].draft, size, points ? coins : NULL, out);
            for (int k = 0; k < n; k++) printf("%s%d", k ? "," : b ? ",[" : "[", out[k]);
            printf("]");
        }
        printf("]");
    }
}

int main(int argc, char **argv) {
    cases = fopen(argc > 1 ? argv[1] : "../cases.txt", "r");
    if (!cases) {
        fprintf(stderr, "cannot open %s\n", argc > 1 ? argv[1] : "../cases.txt");
        return 2;
    }
    wrong = argc > 2;
    if (getenv("SEED")) state += strtoull(getenv("SEED"), 0, 10) * 0x9E3779B97F4A7C15u;
    for (int k = 0; k < 20; k++) uniform();
    for (word(), word(); !strcmp(word(), "case");) {
        printf("{\"case\":\"%s\",\"answers\":[", word());
        word(), word();
        int size = integer(), groups = integer(), points = integer();
        for (int g = 0; g < groups; g++) play(size, points, g ? "," : "");
        printf("]}\n");
    }
    return 0;
}
