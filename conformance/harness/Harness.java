// Harness of the conformance suite for a sampler in Java 17.
// javac Harness.java; java Harness ../cases.txt > answers.jsonl; java Harness ../cases.txt wrong > wrong.jsonl
// Replace `verify` by a call of your sampler; everything else stays. SEED sets the seed, TIMES=16 plays
// every case 16 times.
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.StringTokenizer;

public class Harness {
    record Request(int[] drafts, float[][] target, float[][] draft) {}

    static final String SEED = System.getenv("SEED");
    static final Random RANDOM = SEED == null ? new Random() : new Random(Long.parseLong(SEED));
    static final int TIMES = Integer.parseInt(System.getenv().getOrDefault("TIMES", "1"));
    static boolean wrong; // play the sampler that must be found
    static StringTokenizer words;

    static int pick(float[] masses, double coin) {
        double left = 0;
        int last = 0;
        for (float mass : masses) left += mass;
        left *= coin;
        for (int t = 0; t < masses.length; t++) {
            if (!(masses[t] > 0)) continue;
            last = t;
            if (left < masses[t]) break;
            left -= masses[t];
        }
        return last;
    }

    /**
     * The sampler under test: n drafts, n+1 dense rows of the target, n rows of the draft; returns the emitted
     * tokens. coins: null, or n acceptance numbers and one for the token after them.
     */
    static List<Integer> verify(Request r, double[] coins) {
        List<Integer> out = new ArrayList<>();
        int n = r.drafts.length;
        double last = coins == null ? RANDOM.nextDouble() : coins[n];
        for (int i = 0; i < n; i++) {
            int x = r.drafts[i];
            float[] p = r.target[i], q = r.draft[i];
            float[] left = new float[p.length];
            boolean hasMass = false;
            if (x >= 0) {
                double coin = coins == null ? RANDOM.nextDouble() : coins[i];
                if (q[x] > 0 && coin * q[x] < p[x]) {
                    out.add(x);
                    continue;
                }
                for (int t = 0; t < p.length; t++) {
                    left[t] = p[t] > q[t] ? p[t] - q[t] : 0;
                    hasMass |= left[t] > 0;
                }
            }
            out.add(pick(hasMass && !wrong ? left : p, last));
            return out;
        }
        out.add(pick(r.target[n], last));
        return out;
    }

    // Reading and writing
    static int integer() {
        return Integer.parseInt(words.nextToken());
    }

    static float[][] rows(int count, int size) {
        float[][] found = new float[count][size];
        for (float[] row : found)
            for (int k = integer(); k > 0; k--) {
                int token = integer();
                String mass = words.nextToken();
                row[token] = mass.equals("nan") ? Float.NaN : Float.parseFloat(mass);
            }
        return found;
    }

    static Request request(int size) {
        int[] drafts = new int[integer()];
        for (int i = 0; i < drafts.length; i++) drafts[i] = integer();
        float[][] target = rows(drafts.length + 1, size);
        return new Request(drafts, target, rows(drafts.length, size));
    }

    static void play(int size, int points, StringBuilder out) {
        words.nextToken();
        int calls = integer();
        Request[] requests = new Request[integer()];
        for (int b = 0; b < requests.length; b++) requests[b] = request(size);
        int numbers = requests[0].drafts.length + 1;
        calls = points > 0 ? (int) Math.round(Math.pow(points, numbers)) : calls * TIMES;
        for (int call = 0; call < calls; call++) {
            double[] coins = points > 0 ? new double[numbers] : null;
            for (int k = 0, rest = call; points > 0 && k < numbers; k++, rest /= points)
                coins[k] = (rest % points + 0.5) / points;
            List<List<Integer>> answer = new ArrayList<>();
            for (Request r : requests) answer.add(verify(r, coins));
            out.append(out.charAt(out.length() - 1) == '[' ? "" : ",").append(answer);
        }
    }

    public static void main(String[] arguments) throws Exception {
        words = new StringTokenizer(Files.readString(Path.of(arguments[0])));
        wrong = arguments.length > 1;
        PrintStream stream = new PrintStream(System.out, false);
        words.nextToken();
        words.nextToken();
        while (words.nextToken().equals("case")) {
            StringBuilder out = new StringBuilder("{\"case\":\"" + words.nextToken() + "\",\"answers\":[");
            words.nextToken();
            words.nextToken();
            int size = integer(), groups = integer(), points = integer();
            for (; groups > 0; groups--) play(size, points, out);
            stream.println(out.append("]}"));
        }
        stream.flush();
    }
}
