(* Uniform numbers from a grid of N points, in place of the events that the   *)
(* specification takes as independent.                                        *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Grid.
Variables (F : realFieldType) (N : nat).
Hypothesis N_gt0 : (0 < N)%N.
Implicit Types (h : F) (f : bool -> F) (n k : nat).

(* eta is one of 1/N, 2/N, .., 1, each with probability 1/N; the event eta <= h *)
Definition below_threshold h n : bool := n.+1%:R / N%:R <= h.
Definition grid_coin h : M F bool := fun f => (\sum_(n < N) f (below_threshold h n)) / N%:R.

Let N0 : N%:R != 0 :> F. Proof. by rewrite pnatr_eq0 -lt0n. Qed.
Let N_pos : 0 < N%:R :> F. Proof. by rewrite ltr0n. Qed.
Let count h n : nat := \sum_(i < n) below_threshold h i.

Lemma countS h n : count h n.+1 = (count h n + below_threshold h n)%N.
Proof. by rewrite /count big_ord_recr. Qed.

Lemma count_le h n : (count h n <= n)%N.
Proof. by elim: n => [|n IH]; rewrite ?/count ?big_ord0 // -/(count h n.+1) countS -addn1 leq_add // leq_b1. Qed.

(* the count is the largest k with k/N <= h                                   *)
Lemma count_bounds h n : 0 <= h ->
  (count h n)%:R / N%:R <= h /\ (count h n = n \/ h < (count h n).+1%:R / N%:R).
Proof.
move=> h0; elim: n => [|n [low high]]; first by rewrite /count big_ord0 mul0r; split=> //; left.
rewrite countS; case E: (below_threshold h n); last first.
  rewrite addn0; split=> //; right; case: high => // ->.
  by rewrite ltNge; apply/negP => le; rewrite /below_threshold le in E.
case: high => [->|high]; first by rewrite addn1; split=> //; left.
suff : h < h by rewrite ltxx.
apply: lt_le_trans high _; apply: le_trans E.
by rewrite ler_pmul2r ?invr_gt0 // ler_nat ltnS count_le.
Qed.

Lemma grid_coinE h f :
  grid_coin h f = (count h N)%:R / N%:R * f true + (1 - (count h N)%:R / N%:R) * f false.
Proof.
have E (i : 'I_N) : f (below_threshold h i)
    = f false + (below_threshold h i)%:R * (f true - f false).
  by case: (below_threshold h i); rewrite /= ?mul0r ?addr0 // mul1r addrC subrK.
rewrite /grid_coin; under eq_bigr do rewrite E.
rewrite big_split /= sumr_const card_ord -big_distrl /= -natr_sum -/(count h N) -mulr_natr.
by field.
Qed.

(* a threshold that is a multiple of 1/N: the same law                        *)
Theorem grid_exact k f : (k <= N)%N -> grid_coin (k%:R / N%:R) f = coin (k%:R / N%:R) f.
Proof.
move=> kN; rewrite grid_coinE coinE; have h0 : 0 <= k%:R / N%:R :> F by rewrite divr_ge0 ?ler0n.
suff -> : count (k%:R / N%:R) N = k by [].
have [low high] := count_bounds N h0; apply/eqP; rewrite eqn_leq; apply/andP; split.
  by rewrite ler_pmul2r ?invr_gt0 // ler_nat in low.
case: high => [->//|]; by rewrite ltr_pmul2r ?invr_gt0 // ltr_nat ltnS.
Qed.

(* any threshold: the probability of the event is off by less than 1/N        *)
Theorem grid_error h : 0 <= h <= 1 ->
  `| grid_coin h (fun b => b%:R) - coin h (fun b => b%:R) | < 1 / N%:R.
Proof.
case/andP=> h0 h1; rewrite grid_coinE coinE !mulr0 !addr0 !mulr1.
have [low high] := count_bounds N h0; rewrite ler0_norm ?subr_le0 // opprB ltr_subl_addl.
case: high => [->|high].
  by rewrite divff //; apply: le_lt_trans h1 _; rewrite ltr_addl divr_gt0 ?ltr01.
by apply: lt_le_trans high _; rewrite -mulrDl -addn1 natrD.
Qed.
End Grid.
