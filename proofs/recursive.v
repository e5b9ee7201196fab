(* Recursive rejection at one position is lossless (Statement 3.7).           *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks lossless.
From Spectheory Require Import spec.recursive_rejection.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Recursive.
Variables (F : realFieldType) (T : finType) (cv : convention F T).
Notation recursive := (recursive_rejection (field_numbers F) (tokens T) cv).
Notation always r := (fun _ : seq T => r).
Implicit Types (r q : T -> F) (f : T -> F).

Definition prob_row r := (forall t, 0 <= r t) /\ \sum_t r t = 1.

Lemma always_row r : prob_row r -> is_row (always r).
Proof. by case=> r0 r1; split. Qed.

(* for every number of drafts and every row of each                           *)
Theorem recursive_rejection_lossless qs r f :
  (forall i, (i < size qs)%N -> prob_row (nth r qs i)) -> prob_row r ->
  recursive qs r f = \sum_t r t * f t.
Proof.
elim: qs r => [|q qs IH] r qs_row r_row; first exact: drawE.
have q_row : prob_row q by exact: (qs_row 0%N).
have rR := always_row r_row; have qR := always_row q_row.
set res := residual (always r) (always q) cv [::] 1.
set g := gain (always r) (always q) [::] 1; set S := total_gain (always r) (always q) [::] 1.
set A := recursive qs res f.
have SR t : S * res t = g t by exact: gain_residual.
have SA : S * A = \sum_t g t * f t.
  have [S0|Sn0] := eqVneq S 0.
    rewrite S0 mul0r; symmetry; apply: big1 => t _.
    by rewrite -SR S0 !mul0r.
  have resE t : res t = g t / S by rewrite -SR mulrC mulKf.
  rewrite /A IH.
  - by rewrite big_distrr /=; apply: eq_bigr => t _; rewrite mulrA SR.
  - move=> i iq; rewrite (set_nth_default r) //; exact: (qs_row i.+1).
  - split=> [t|].
      by rewrite resE divr_ge0 ?gain_ge0 ?total_gain_ge0.
    under eq_bigr do rewrite resE.
    by rewrite -big_distrl /= -total_gainE divff.
have acc t : q t * Num.min (ratio (always r) (always q) cv [::] t) 1 = r t - g t.
  have := @accepted F T (always r) (always q) cv rR qR [::] 1 t ler01.
  by rewrite next_weightE !mul1r.
rewrite -[LHS]/(draw q (fun t => Num.min (ratio (always r) (always q) cv [::] t) 1 * f t
  + (1 - Num.min (ratio (always r) (always q) cv [::] t) 1) * A)) drawE.
have E t : q t * (Num.min (ratio (always r) (always q) cv [::] t) 1 * f t
    + (1 - Num.min (ratio (always r) (always q) cv [::] t) 1) * A)
   = (r t - g t) * f t + (q t - r t + g t) * A.
  by rewrite -acc mulrDr !mulrA; congr (_ + _ * _); rewrite mulrBr mulr1 acc; ring.
under eq_bigr do rewrite E.
rewrite big_split /= -big_distrl /= big_split sumrB /= q_row.2 r_row.2 subrr add0r.
rewrite -total_gainE -/S SA -big_split /=; apply: eq_bigr => t _.
by rewrite -mulrDl subrK.
Qed.
End Recursive.
