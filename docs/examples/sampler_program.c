/* Token verification of one path behind spectheory's protocol: cc -O2 -o sampler sampler_program.c
   -DWRONG: the residual subtracts q at the drafted token only; -DOWN: the handed numbers are left alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef WRONG
#define WRONG 0
#endif
#ifndef OWN
#define OWN 0
#endif
static double P[65536], Q[65536], U[64], path[64];
static int handed, used;
static int numbers(const char *line, const char *key, double *out) { /* all numbers of a nested array */
    const char *at = strstr(line, key);
    if (!at) return 0;
    int depth = 0, n = 0;
    for (at = strchr(at, ':') + 1;; ) {
        if (*at == '[') depth++, at++;
        else if (*at == ']') { if (--depth == 0) return n; at++; }
        else if (*at == ',' || *at == ' ') at++;
        else { char *end; out[n++] = strtod(at, &end); at = end; }
    }
}
static double uniform(void) { return handed ? U[used++] : rand() / (RAND_MAX + 1.0); }
int main(void) {
    static char line[1 << 20];
    while (fgets(line, sizeof line, stdin)) {
        int L = numbers(line, "\"paths\"", path), V = numbers(line, "\"target_rows\"", P) / (L + 1), n = 0;
        numbers(line, "\"draft_rows\"", Q);
        handed = numbers(line, "\"uniforms\"", U) && !OWN, used = 0;
        while (n < L && uniform() * Q[n * V + (int)path[n]] < P[n * V + (int)path[n]]) n++;
        double row[512], sum = 0;
        for (int i = 0; i < V; i++) {
            double q = n < L && (!WRONG || i == (int)path[n]) ? Q[n * V + i] : 0;
            sum += row[i] = P[n * V + i] > q ? P[n * V + i] - q : 0;
        }
        int token = 0;
        for (double u = uniform() * sum; token < V - 1 && u >= row[token]; token++) u -= row[token];
        printf("{\"tokens\": [");
        for (int i = 0; i < n; i++) printf("%d, ", (int)path[i]);
        printf("%d], \"used\": %d}\n", token, used);
        fflush(stdout);
    }
}
