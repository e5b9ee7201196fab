(* Recursive rejection of drafts without replacement is lossless.             *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless recursive selection multi_round.
From Spectheory Require Import spec.without_replacement.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Distinct.
Variables (F : realFieldType) (T : finType) (cv : convention F T).
Hypothesis cv_proper : proper cv.
Notation always r := (fun _ : seq T => r).
Notation rejection := (distinct_rejection (field_numbers F) (tokens T) cv).
Notation without := (without (field_numbers F) (tokens T) cv).
Implicit Types (r q : T -> F) (row : seq T -> T -> F) (xs : seq T).

(* whatever rows the earlier drafts choose                                    *)
Theorem distinct_rejection_lossless n row xs r (f : T -> F) :
  (forall xs, prob_row (row xs)) -> prob_row r ->
  rejection n row xs r (fun o => f o.1) = draw r f.
Proof.
move=> rows; elim: n xs r => [//|n IH] xs r r_row; have q_row := rows xs.
have rR := always_row r_row; have qR := always_row q_row.
set res := residual (always r) (always (row xs)) cv [::] 1.
set g := gain (always r) (always (row xs)) [::] 1.
set S := total_gain (always r) (always (row xs)) [::] 1.
have acc t : row xs t * Num.min (ratio (always r) (always (row xs)) cv [::] t) 1 = r t - g t.
  have := @accepted F T (always r) (always (row xs)) cv rR qR [::] 1 t ler01.
  by rewrite next_weightE !mul1r.
rewrite -[LHS]/(draw (row xs) (fun t =>
  Num.min (ratio (always r) (always (row xs)) cv [::] t) 1 * f t
  + (1 - Num.min (ratio (always r) (always (row xs)) cv [::] t) 1)
    * rejection n row (rcons xs t) res (fun o => f o.1))) drawE.
have E t : row xs t * (Num.min (ratio (always r) (always (row xs)) cv [::] t) 1 * f t
    + (1 - Num.min (ratio (always r) (always (row xs)) cv [::] t) 1)
      * rejection n row (rcons xs t) res (fun o => f o.1))
   = (r t - g t) * f t + (row xs t - r t + g t) * draw res f.
  rewrite IH; last exact: residual_row.
  by rewrite -acc mulrDr !mulrA; congr (_ + _ * _); rewrite mulrBr mulr1 acc; ring.
under eq_bigr do rewrite E.
rewrite big_split /= -[X in _ + X]big_distrl /= big_split sumrB /= q_row.2 r_row.2 subrr add0r.
have -> : (\sum_t g t) * draw res f = \sum_t g t * f t.
  rewrite -total_gainE drawE big_distrr; apply: eq_bigr => t _ /=.
  by rewrite mulrA gain_residual.
by rewrite -big_split drawE; apply: eq_bigr => t _ /=; rewrite -mulrDl subrK.
Qed.

Lemma without_row q xs : prob_row q -> prob_row (without q xs).
Proof.
move=> [q0 q1]; have [_ _ [u0 u1]] := cv_proper.
have kept0 t : 0 <= (if t \in xs then 0 else q t) by case: ifP.
split=> [t|].
  rewrite /without_replacement.without /= sumE; case: eqP => _; first exact: u0.
  by rewrite divr_ge0 // sumr_ge0.
rewrite /without_replacement.without /= sumE; case: eqP => [_|/eqP n0]; first exact: u1.
by rewrite -big_distrl /= divff.
Qed.

Section Tree.
Variables (p q : model F T) (L : nat).
Hypotheses (p_row : is_row p) (q_row : is_row q).

Theorem distinct_tree_lossless Ks : size Ks = L ->
  lossless_call p L (distinct_tree (field_numbers F) (tokens T) p q cv Ks [::]).
Proof.
move=> KL f; pose k o := cont p (L - size o.1) (rcons o.1 o.2) f.
rewrite -[LHS]/(distinct_tree (field_numbers F) (tokens T) p q cv Ks [::] k) -[RHS]/(cont p L.+1 [::] f) -KL.
suff H c : (size c + size Ks)%N = L ->
    distinct_tree (field_numbers F) (tokens T) p q cv Ks c k = cont p (size Ks).+1 c f.
  exact: H.
elim: Ks c {KL} => [|K Ks IH] c cL.
  by rewrite /= /bind /ret drawE contS /k /= -cL addn0 subnn.
have pc : prob_row (p c) by split; [exact: p_row.1 | exact: p_row.2].
have rows xs : prob_row (without (q c) xs).
  by apply: without_row; split; [exact: q_row.1 | exact: q_row.2].
rewrite contS -drawE -(@distinct_rejection_lossless K _ [::] (p c) _ rows pc) /= /bind2.
have E y b : (if b then distinct_tree (field_numbers F) (tokens T) p q cv Ks (rcons c y) else ret (c, y)) k
    = cont p (size Ks).+1 (rcons c y) f.
  case: b; first by rewrite IH // size_rcons addSnnS.
  by rewrite /ret /k /= -cL addKn.
have ext n xs r (g h : T * bool -> F) : (forall o, g o = h o) ->
    rejection n (without (q c)) xs r g = rejection n (without (q c)) xs r h.
  move=> gh; elim: n xs r => [|n IHn] xs r /=; rewrite /bind !drawE; apply: eq_bigr => t _; congr (_ * _).
    exact: gh.
  by rewrite !coinE /ret gh IHn.
by apply: ext => -[y b]; exact: E.
Qed.
End Tree.
End Distinct.
